/**
 * Runs kept in this browser, so that a reload, a crash or a lost device costs one step at most: settings, the report of every step,
 * checkpoints, and the episodes of some steps (IndexedDB, a few times a second), and the last two steps (`journal.ts`). The worker
 * writes, the page reads.
 */

import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import { type Entry, journalled, tidyJournals } from './journal';
import type { Batch, ExperimentConfig, Report } from './protocol';

/** A run without its reports and checkpoints. */
export interface KeptRun {
  id: string;
  config: ExperimentConfig;
  /** Milliseconds since 1970. */
  updated: number;
  /** Steps done. */
  iteration: number;
  finished: boolean;
}

/** After how many steps a run stands, and all that it needs to go on from there. */
export interface Checkpoint {
  iteration: number;
  bytes: Uint8Array;
}

interface Schema extends DBSchema {
  runs: { key: string; value: KeptRun };
  reports: { key: [string, number]; value: Report };
  checkpoints: { key: [string, number]; value: Uint8Array };
  episodes: { key: [string, number]; value: Batch };
}

/** Everything that a run has. */
const STORES = ['runs', 'reports', 'checkpoints', 'episodes'] as const;

/** Runs that are kept; older ones make way. */
const KEPT_RUNS = 5;

/** Checkpoints of a run that are kept: the last two, and some of the way. */
const KEPT_CHECKPOINTS = 10;

/** Steps of a run whose episodes are kept: the last two, and some of the way. */
const KEPT_EPISODES = 6;

/** Reports of a run that are read at a time. */
const REPORTS = 250;

/** How long the storage may take to open, in milliseconds. */
const OPENING = 5000;

/** The lock that a tab holds while it has a run, so that no other tab takes it for an interrupted one. */
export const lock = (id: string): string => `turnwise-run-${id}`;

/** Everything of one run. */
const of = (id: string) => IDBKeyRange.bound([id, 0], [id, Number.POSITIVE_INFINITY]);

/** Everything of one run from a step on. */
const from = (id: string, iteration: number) => IDBKeyRange.bound([id, iteration], [id, Number.POSITIVE_INFINITY]);

export class Storage {
  private constructor(private readonly database: IDBPDatabase<Schema>) {}

  /** Fails where the browser keeps nothing. */
  static async open(): Promise<Storage> {
    let refuse: (reason: Error) => void = () => {};
    const refused = new Promise<never>((_, reject) => {
      refuse = reject;
    });
    const opened = openDB<Schema>('turnwise', 2, {
      upgrade(database, before) {
        if (before < 1) {
          database.createObjectStore('runs', { keyPath: 'id' });
          database.createObjectStore('reports');
          database.createObjectStore('checkpoints');
        }
        if (before < 2) database.createObjectStore('episodes');
      },
      // Somebody clears the storage or has a newer page open: nothing is kept here any more, but nobody waits either.
      blocking: () => close(),
      blocked: before =>
        giveUp(`another tab holds the storage of an older version of the page (${before}): close it, then reload`),
    });
    const close = (): void => void opened.then(database => database.close()).catch(() => {});
    /** What opens all the same later is closed again. */
    const giveUp = (why: string): void => {
      refuse(new Error(why));
      close();
    };
    // A request that waits behind one that is blocked is told nothing.
    const timer = setTimeout(() => giveUp(`the storage did not open within ${OPENING / 1000} s`), OPENING);
    const database = await Promise.race([opened, refused]).finally(() => clearTimeout(timer));
    return new Storage(database);
  }

  /**
   * Keeps a run as it stands: `iteration` steps done, with reports of the last ones, the last checkpoints, of which one is that of
   * `iteration`, and the episodes of a step if they are given. All of it or nothing; nothing where the run does not begin and is there no
   * more: the page has dropped it.
   */
  async keep(run: KeptRun, reports: Report[], last: Checkpoint[], batch: Batch | null, begins: boolean): Promise<void> {
    const there = new Set([...(await this.stored(run.id)), ...last.map(({ iteration }) => iteration)]);
    const spare = spareOf(
      [...there].sort((a, b) => a - b),
      run.iteration,
      KEPT_CHECKPOINTS,
    );
    const spareEpisodes = batch ? spareOf(await this.episodesKept(run.id), batch.iteration, KEPT_EPISODES) : [];
    const transaction = this.database.transaction(STORES, 'readwrite');
    if (!begins && !(await transaction.objectStore('runs').getKey(run.id))) return;
    const written = transaction.objectStore('reports');
    const checkpoints = transaction.objectStore('checkpoints');
    const episodes = transaction.objectStore('episodes');
    await Promise.all([
      transaction.objectStore('runs').put(run),
      ...reports.map(report => written.put(report, [run.id, report.iteration])),
      // What an undo has left behind.
      written.delete(from(run.id, run.iteration)),
      checkpoints.delete(from(run.id, run.iteration)),
      episodes.delete(from(run.id, run.iteration)),
      ...last.map(({ iteration, bytes }) => checkpoints.put(bytes, [run.id, iteration])),
      ...spare.map(iteration => checkpoints.delete([run.id, iteration])),
      batch ? episodes.put(batch, [run.id, batch.iteration]) : null,
      ...spareEpisodes.map(iteration => episodes.delete([run.id, iteration])),
      transaction.done,
    ]);
  }

  /**
   * Keeps what only the journal has of a run: it is about to be gone on with, under another journal. Gives when the run was written last,
   * which may be later than now where the clock was set back; null where there is no such run.
   */
  async absorb(id: string): Promise<number | null> {
    const run = await this.database.get('runs', id);
    if (!run || !isRun(run)) return null;
    const entries = await this.last(id);
    const [last] = entries;
    if (!last) return run.updated;
    const checkpoints = entries.map(async ({ iteration, checkpoint }) => ({ iteration, bytes: await bytesOf(checkpoint) }));
    await this.keep({ ...run, ...standing(run, last) }, reportsOf(last, 0), await Promise.all(checkpoints), null, false);
    return last.updated;
  }

  /** All runs, the latest first. What is none, of another version or damaged, is left out. */
  async runs(): Promise<KeptRun[]> {
    const entries = await journalled();
    const runs = (await this.database.getAll('runs')).filter(isRun).map(run => {
      const last = entries.find(entry => newer(entry, run));
      return last ? { ...run, ...standing(run, last) } : run;
    });
    return runs.sort((a, b) => b.updated - a.updated);
  }

  /** The next reports of a run from a step on, in order; none after the last one. A long run has too many to be taken at once. */
  async reports(id: string, iteration: number): Promise<Report[]> {
    const found = await this.database.getAll('reports', from(id, iteration), REPORTS);
    if (found.length > 0) return found;
    const [last] = await this.last(id);
    return last ? reportsOf(last, iteration) : [];
  }

  /** After how many steps there are checkpoints of a run, in order. */
  async checkpoints(id: string): Promise<number[]> {
    const last = (await this.last(id)).map(({ iteration }) => iteration);
    return [...new Set([...(await this.stored(id)), ...last])].sort((a, b) => a - b);
  }

  async checkpoint(id: string, iteration: number): Promise<Uint8Array | undefined> {
    const last = (await this.last(id)).find(entry => entry.iteration === iteration);
    if (last) return await bytesOf(last.checkpoint);
    return await this.database.get('checkpoints', [id, iteration]);
  }

  /** The checkpoints of a run in the database. */
  private async stored(id: string): Promise<number[]> {
    return (await this.database.getAllKeys('checkpoints', of(id))).map(([, iteration]) => iteration);
  }

  /** The last steps of a run that are not in the database, the latest first. */
  private async last(id: string): Promise<Entry[]> {
    const run = await this.database.get('runs', id);
    return run && isRun(run) ? (await journalled()).filter(entry => newer(entry, run)) : [];
  }

  /** The steps of a run whose episodes are kept, in order. */
  async episodesKept(id: string): Promise<number[]> {
    return (await this.database.getAllKeys('episodes', of(id))).map(([, iteration]) => iteration);
  }

  async episodes(id: string, iteration: number): Promise<Batch | undefined> {
    return await this.database.get('episodes', [id, iteration]);
  }

  async drop(id: string): Promise<void> {
    const transaction = this.database.transaction(STORES, 'readwrite');
    await Promise.all([
      transaction.objectStore('runs').delete(id),
      transaction.objectStore('reports').delete(of(id)),
      transaction.objectStore('checkpoints').delete(of(id)),
      transaction.objectStore('episodes').delete(of(id)),
      transaction.done,
    ]);
  }

  /** Drops all but the latest runs, those that a tab has aside, and what was written of runs that are no more. */
  async tidy(): Promise<void> {
    const held = (await navigator.locks?.query())?.held?.map(({ name }) => name) ?? [];
    const spare = (await this.runs()).slice(KEPT_RUNS).filter(run => !held.includes(lock(run.id)));
    for (const run of spare) await this.drop(run.id);
    const runs = await this.database.getAll('runs');
    await tidyJournals(entry => runs.some(run => newer(entry, run)));
  }
}

/** Whether an entry of a journal is of a run, and later than what the database has of it. */
function newer(entry: Entry, run: KeptRun): boolean {
  return entry.id === run.id && entry.updated > run.updated;
}

/** Where a run stands by an entry of a journal. */
function standing(run: KeptRun, { updated, iteration }: Entry): Pick<KeptRun, 'updated' | 'iteration' | 'finished'> {
  return { updated, iteration, finished: iteration >= run.config.iterations };
}

/** The reports of an entry from a step on. */
function reportsOf({ reports, iteration }: Entry, from: number): Report[] {
  return reports.filter(
    report => Number.isSafeInteger(report?.iteration) && report.iteration >= from && report.iteration < iteration,
  );
}

async function bytesOf(blob: Blob): Promise<Uint8Array> {
  return new Uint8Array(await blob.arrayBuffer());
}

function isRun({ id, config, updated, iteration, finished }: KeptRun): boolean {
  const settings = typeof config?.environment === 'string' && Number.isInteger(config.iterations);
  return (
    settings && typeof id === 'string' && Number.isFinite(updated) && Number.isInteger(iteration) && typeof finished === 'boolean'
  );
}

/** What makes way for the entry of `next`, so that `most` stay: of all but the last two those that stand closest together. */
function spareOf(iterations: number[], next: number, most: number): number[] {
  const kept = iterations.filter(iteration => iteration < next);
  const spare: number[] = [];
  while (kept.length >= most) {
    let best = 1;
    for (let i = 1; i < kept.length - 1; i++) {
      const gap = (at: number) => (kept[at + 1] ?? 0) - (kept[at - 1] ?? 0);
      if (gap(i) < gap(best)) best = i;
    }
    spare.push(...kept.splice(best, 1));
  }
  return spare;
}
