/** Runs kept in this browser: which one was interrupted, and the checkpoints of the one on show. */

import { begins, historyOf } from '../history';
import type { Batch, Report } from '../protocol';
import { readBatch, readReports } from '../run-reader';
import { type KeptRun, lock, Storage } from '../storage';
import { experiment } from './experiment.svelte';

class Kept {
  /** The last run that did not reach its end and is in no tab. */
  interrupted = $state.raw<KeptRun | null>(null);
  /** After how many steps the run on show has checkpoints. */
  checkpoints = $state.raw<number[]>([]);
  private storage: Storage | null = null;
  private release: () => void = () => {};
  private held: string | null = null;

  /** Looks for an interrupted run. Where the browser keeps nothing there is none; the worker says so when it matters. */
  async load(): Promise<void> {
    try {
      this.storage = await Storage.open();
      const held = (await navigator.locks?.query())?.held?.map(({ name }) => name) ?? [];
      const runs = await this.storage.runs();
      this.interrupted = runs.find(run => !run.finished && run.iteration > 0 && !held.includes(lock(run.id))) ?? null;
    } catch {
      this.storage = null;
    }
  }

  /** This tab has a new run from now on, or none. */
  hold(id: string | null): void {
    if (id === this.held) return;
    this.release();
    this.release = () => {};
    this.held = null;
    this.checkpoints = [];
    if (id !== null) void this.take(id);
  }

  /** This tab has the run from now on, and no other; false where another tab has it. */
  async take(id: string): Promise<boolean> {
    if (this.held !== id) this.hold(null);
    this.held = id;
    if (this.interrupted?.id === id) this.interrupted = null;
    const locked = await new Promise<boolean>(resolve => {
      const keep = (found: unknown) => {
        resolve(found !== null);
        return found === null
          ? undefined
          : new Promise<void>(release => {
              this.release = release;
              // It was given up again meanwhile.
              if (this.held !== id) release();
            });
      };
      // In a frame of another site the browser may refuse, as it refuses storage: then there is nothing for other tabs to find.
      if (navigator.locks) navigator.locks.request(lock(id), { ifAvailable: true }, keep).catch(() => resolve(true));
      else resolve(true);
    });
    if (!locked && this.held === id) this.held = null;
    return locked;
  }

  /** A run as it is kept now; another tab may have trained it on since it was offered. */
  async current(id: string): Promise<KeptRun | null> {
    try {
      return (await this.storage?.runs())?.find(run => run.id === id) ?? null;
    } catch {
      return null;
    }
  }

  /**
   * The last checkpoint of a run up to a step that is not damaged, and the reports of the steps before it; null where there is
   * none.
   */
  async open({ id, iteration }: Pick<KeptRun, 'id' | 'iteration'>) {
    const { storage } = this;
    if (!storage) return null;
    try {
      const { checkpointHeader } = await import('../open/safetensors');
      const reports = await this.reports(storage, id, iteration);
      for (const at of (await storage.checkpoints(id)).reverse()) {
        const bytes = at <= iteration ? await storage.checkpoint(id, at) : undefined;
        try {
          if (bytes && checkpointHeader(bytes).iteration === at) {
            const whole = (reports.at(-1)?.iteration ?? -1) < at;
            const before = whole ? reports : reports.filter(report => report.iteration < at);
            if (!whole) begins(reports, before);
            return { iteration: at, bytes, reports: before };
          }
        } catch {
          // The one before it, then.
        }
      }
    } catch {
      // Storage that cannot be read, or reports that are none.
    }
    return null;
  }

  /** The reports of the steps before `end`, piece by piece: those of a long run would hold the page up. */
  private async reports(storage: Storage, id: string, end: number): Promise<Report[]> {
    const reports: Report[] = [];
    for (let from = 0; ; ) {
      const found = readReports(await storage.reports(id, from), from - 1).filter(report => report.iteration < end);
      const last = found.at(-1);
      if (!last) return reports;
      reports.push(...found);
      // What curves are drawn from is taken along.
      historyOf(reports);
      from = last.iteration + 1;
    }
  }

  /** The kept episodes of a run; those that this version cannot read are left out. */
  async episodes(id: string): Promise<Batch[]> {
    const found: Batch[] = [];
    for (const iteration of (await this.storage?.episodesKept(id).catch(() => [])) ?? []) {
      try {
        found.push(readBatch(await this.storage?.episodes(id, iteration), experiment.tokenNames.length));
      } catch {
        // The run goes on without them.
      }
    }
    return found;
  }

  /** Asks which checkpoints the run on show has. */
  async refresh(): Promise<void> {
    const id = this.held;
    if (id === null) return;
    try {
      this.storage ??= await Storage.open();
      const found = await this.storage.checkpoints(id);
      if (id === this.held) this.checkpoints = found;
    } catch {
      this.checkpoints = [];
    }
  }

  /** A checkpoint of the run on show, with the reports of the steps before it. */
  async checkpoint(iteration: number) {
    const id = this.held;
    const found = id === null ? null : await this.open({ id, iteration });
    return found?.iteration === iteration ? found : null;
  }

  /** Forgets a run that the person has dropped: it was not interrupted. */
  async forget(id: string): Promise<void> {
    if (this.held === id) this.hold(null);
    try {
      this.storage ??= await Storage.open();
      await this.storage.drop(id);
    } catch {
      // Nothing is kept here.
    }
  }

  /** Forgets the interrupted run. */
  async discard(): Promise<void> {
    const run = this.interrupted;
    this.interrupted = null;
    try {
      // Another tab may have taken it up since it was offered.
      if (run && (await this.take(run.id))) await this.storage?.drop(run.id);
      if (run && this.held === run.id) this.hold(null);
    } catch {
      // It is offered again next time.
    }
  }
}

export const kept = new Kept();
