/** What the page shows before anything was trained: a recorded run of the task that the form asks for, or a run from a file. */

import type { Words } from '../words/en';
import { experiment } from './experiment.svelte';
import { notices } from './notices.svelte';
import { runOf } from './recorded';
import type { Run } from './run.svelte';

/** The task of a link that names none, and what is shown where the module of the form cannot be loaded. */
export const FIRST = 'search';

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** How long a recording may take, in milliseconds. */
const PATIENCE = 60_000;

async function fetched(environment: string): Promise<Run> {
  const address = new URL(`recorded/${environment}.json`, document.baseURI);
  const response = await fetch(address, { signal: AbortSignal.timeout(PATIENCE) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const text = await response.text();
  await experiment.loaded;
  try {
    const run = runOf(JSON.parse(text));
    if (run.config.environment !== environment)
      throw new Error(`config.environment: ${run.config.environment}, not ${environment}`);
    return run;
  } catch (error) {
    throw new Unreadable(words(error));
  }
}

/** A recording that arrived and is none. */
class Unreadable extends Error {}

class Recordings {
  /** The run on show. */
  run = $state.raw<Run | null>(null);
  /** There is none to show. */
  failed = $state(false);
  /** The run from a file that stands in for the recording of its task, until it is closed. */
  file = $state.raw<Run | null>(null);
  private wanted: string | null = null;
  private readonly runs = new Map<string, Promise<Run>>();

  /** Begins to load the recording of the first task while the page's module loads too, if that is what the link asks for. */
  begin(hash: string): void {
    // Of other names only the module knows whether they are tasks.
    if ((new URLSearchParams(hash.slice(1)).get('env') ?? FIRST) === FIRST) this.load(FIRST).catch(() => {});
  }

  /**
   * Shows the recording of a task; the one on show stays until that is there, and where it cannot be loaded. True if another run
   * is on show now.
   */
  async show(environment: string): Promise<boolean> {
    const { file } = this;
    if (file?.config.environment === environment) {
      this.wanted = null;
      return this.put(file);
    }
    this.wanted = environment;
    try {
      const run = await this.load(environment);
      return this.wanted === environment && this.put(run);
    } catch (error) {
      // Whoever has gone on to something else need not hear of it.
      if (this.wanted === environment) {
        const unreadable = error instanceof Unreadable;
        const text = (all: Words) => (unreadable ? all.notices.recordedUnreadable : all.notices.recordedFailed);
        notices.show({ id: 'recorded', text, detail: words(error) });
        this.failed = this.run === null;
      }
      return false;
    }
  }

  /** A run of the person's own is on show: what is still on its way is not waited for. */
  leave(): void {
    this.wanted = null;
  }

  /** Shows a run from a file wherever the form asks for its task. */
  open(run: Run): void {
    this.file = run;
    this.wanted = null;
    this.put(run);
  }

  /** Closes the run from a file. */
  close(): void {
    this.file = null;
  }

  private put(run: Run): boolean {
    const other = run !== this.run;
    this.run = run;
    this.failed = false;
    notices.close('recorded');
    return other;
  }

  /** Each is loaded once; one that failed is asked for again the next time. */
  private load(environment: string): Promise<Run> {
    const found = this.runs.get(environment) ?? fetched(environment);
    this.runs.set(environment, found);
    found.catch(() => this.runs.delete(environment));
    return found;
  }
}

export const recordings = new Recordings();
