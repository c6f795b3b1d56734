/** What the page shows before anything was trained: a recorded run of the task that the form asks for, or a run from a file. */

import { notices } from './notices.svelte';
import { runOf } from './recorded';
import type { Run } from './run.svelte';

/** The task of a link that names none, and what is shown where the module of the form cannot be loaded. */
export const FIRST = 'search';

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function fetchText(path: string): Promise<string> {
  const response = await fetch(new URL(path, document.baseURI));
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return await response.text();
}

class Recordings {
  /** The run on show. */
  run = $state.raw<Run | null>(null);
  /** There is none to show. */
  failed = $state(false);
  /** A run from a file stays, whatever the form asks for. */
  private fromFile = false;
  private wanted: string | null = null;
  private readonly texts = new Map<string, Promise<string>>();

  /** Begins to load the recording of the first task while the page's module loads too, if that is what the link asks for. */
  begin(hash: string): void {
    // Of other names only the module knows whether they are tasks.
    if ((new URLSearchParams(hash.slice(1)).get('env') ?? FIRST) === FIRST) this.text(FIRST).catch(() => {});
  }

  /**
   * Shows the recording of a task; the one on show stays until that is there, and where it cannot be loaded. True if another run
   * is on show now.
   */
  async show(environment: string): Promise<boolean> {
    if (this.fromFile || environment === this.wanted) return false;
    this.wanted = environment;
    const found = await this.load(environment);
    if (this.fromFile || this.wanted !== environment) return false;
    if (found) this.run = found;
    // It is asked for again the next time.
    else this.wanted = null;
    this.failed = this.run === null;
    return found !== null;
  }

  /** Shows a run from a file. */
  open(run: Run): void {
    this.fromFile = true;
    this.run = run;
    this.failed = false;
  }

  private async load(environment: string): Promise<Run | null> {
    let text: string;
    try {
      text = await this.text(environment);
    } catch (error) {
      this.texts.delete(environment);
      notices.show({ id: 'recorded', text: ({ notices }) => notices.recordedFailed, detail: words(error) });
      return null;
    }
    try {
      return runOf(JSON.parse(text));
    } catch (error) {
      notices.show({ id: 'recorded', text: ({ notices }) => notices.recordedUnreadable, detail: words(error) });
      return null;
    }
  }

  private text(environment: string): Promise<string> {
    const found = this.texts.get(environment) ?? fetchText(`recorded/${environment}.json`);
    this.texts.set(environment, found);
    return found;
  }
}

export const recordings = new Recordings();
