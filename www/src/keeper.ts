/**
 * Keeps a checkpoint of every step of the worker's run: the last one in memory, for the worker that takes over where this one breaks,
 * and all of them in this browser's storage, as long as it takes them.
 */

import { Journal } from './journal';
import type { Batch, Event as EngineEvent, ExperimentConfig, Report } from './protocol';
import { Spare } from './spare';
import { type Checkpoint, Storage } from './storage';

/** Before `configure`: under which name the run is kept in this browser, and the checkpoint that it goes on from. */
export type Keep = { type: 'keep'; id: string; config: ExperimentConfig; checkpoint: Uint8Array | null };

/** Least time between two steps that go to the database, in milliseconds, where those between them are in the journal. */
const DATABASE_EVERY = 500;

/** Least time between two steps whose episodes are kept, in milliseconds: a copy of 256 of them is not for nothing. */
const EPISODES_EVERY = 1000;

/**
 * How long training waits for the last write, once, and how long that may take before nothing is kept any more, in milliseconds: storage
 * that does not answer must not hold training up.
 */
const PATIENCE = 2000;
const GIVE_UP = 10_000;

/** What is to be written of a run. */
interface Write {
  /** The last one is where it stands. */
  last: Checkpoint[];
  updated: number;
  reports: Report[];
  batch: Batch | null;
  begins: boolean;
}

/** Arrays of checkpoints that nobody needs any more, at most: one is written, one is the last, and one is being made. */
const SPARE = 3;

export class Keeper {
  /** The run that is kept. */
  run: Keep | null = null;
  /** The last checkpoint, the last one whose step the page knows of, and the one before that. */
  private latest: Checkpoint | null = null;
  private known: Checkpoint | null = null;
  private before: Checkpoint | null = null;
  /** The episodes that were credited last, and when some were written last. */
  private credited: Batch | null = null;
  private episodesWritten = Number.NEGATIVE_INFINITY;
  /** Reports that are not in the database yet, and as text once that was needed. */
  private reports: { report: Report; text: string | null }[] = [];
  /** The last write to the database, whether it is over, and when it began. */
  private writing: Promise<void> = Promise.resolve();
  private idle = true;
  private begun = Number.NEGATIVE_INFINITY;
  /** A write that takes so long that nothing waits for it. */
  private stalled: Promise<void> | null = null;
  /** Where the run stood when all that was in the journal went to the database. */
  private stood: Checkpoint | null = null;
  /** When something was written last; later than what was written before, whatever the clock says. */
  private updated = 0;
  private storage: Promise<Storage | null> | null = null;
  /** Whether the page knows that nothing is kept. */
  private complained = false;
  /** Null until it is open, and where there is none; and whether the last step is in it. */
  private journal: Journal | null = null;
  private journalled = false;
  /** The run whose beginning is in the database: the journal says no more than what came after that. */
  private based: Keep | null = null;
  /** How many need the array of a checkpoint. */
  private readonly uses = new Map<Uint8Array, number>();
  private readonly spare = new Spare<Uint8Array>(length => new Uint8Array(length), SPARE);

  /** `notKept` is told, once, why nothing can be kept. */
  constructor(private readonly notKept: (detail: string) => void) {}

  /** The last checkpoint whose step the page knows of. */
  get told(): Checkpoint | null {
    return this.known;
  }

  /** From now on it is this run. */
  begin(run: Keep): void {
    this.run = run;
    for (const which of ['latest', 'known', 'before'] as const) this.take(which, null);
    this.credited = null;
    this.episodesWritten = Number.NEGATIVE_INFINITY;
    this.reports = [];
    this.journalled = false;
    [this.begun, this.stood] = [Number.NEGATIVE_INFINITY, null];
  }

  /** Room for the bytes of a checkpoint; what is in it is to be written over. */
  room(length: number): Uint8Array {
    return this.spare.room(length);
  }

  /** Takes the checkpoint of a step. Where the last one is not in a journal, a step that comes too fast for the last write waits for it. */
  save(iteration: number, bytes: Uint8Array): Promise<void> {
    this.take('latest', { iteration, bytes });
    if (this.journalled || this.stalled) return Promise.resolve();
    return Promise.race([this.writing, after(PATIENCE)]).then(() => {
      if (!this.idle && !this.stalled) this.stall();
    });
  }

  /** The last write does not come to its end. Steps until it does are not kept; if it does not in time, none is from then on. */
  private stall(): void {
    const { writing } = this;
    this.stalled = writing;
    void writing.then(() => {
      if (this.stalled === writing) this.stalled = null;
    });
    void after(GIVE_UP - PATIENCE).then(() => {
      if (this.stalled !== writing) return;
      this.storage = Promise.resolve(this.refused(new Error(`the storage has not answered for ${GIVE_UP / 1000} s`)));
      [this.writing, this.idle, this.stalled] = [Promise.resolve(), true, null];
    });
  }

  /** An event of the engine on its way to the page. What belongs to the last checkpoint is written with it. */
  note(event: EngineEvent): void {
    const report = event.type === 'phase' ? event.report : null;
    if ((event.type === 'phase' || event.type === 'episodes') && event.batch?.credit) this.credited = event.batch;
    const { run, latest } = this;
    if (!run || !latest) return;
    if (event.type === 'stopped') this.rest(run);
    if (!(report || event.type === 'ready')) return;
    this.take('before', report ? this.known : null);
    this.take('known', latest);
    if (report) this.reports.push({ report, text: null });
    this.journalled = report !== null && this.based === run && this.inJournal(run, latest);
    // That a run begins is written in any case, when the storage answers again.
    if (this.stalled && report) return;
    if (this.journalled && (!this.idle || performance.now() - this.begun < DATABASE_EVERY)) return;
    if (report) this.begun = performance.now();
    this.put(run, latest, null, report === null);
  }

  /** The run stands: all that was in the journal alone goes to the database. */
  private rest(run: Keep): void {
    const { known, before } = this;
    if (!this.journal || !known || this.stood === known) return;
    this.stood = known;
    this.put(run, known, before, false);
    void this.writing.then(() => {
      if (this.known === known && this.reports.length === 0) this.unlessRefused(journal => journal.clear());
    });
  }

  /** Writes a step to the journal; false where it is not in it. */
  private inJournal({ id }: Keep, { iteration, bytes }: Checkpoint): boolean {
    const written = this.unlessRefused(journal => {
      const texts = this.reports.map(entry => {
        entry.text ??= JSON.stringify(entry.report);
        return entry.text;
      });
      return journal.write({ id, updated: this.now(), iteration }, texts, bytes);
    });
    return written ?? false;
  }

  /** Does something with the journal, if there is one: there is none any more once the browser has refused. */
  private unlessRefused<T>(use: (journal: Journal) => T): T | null {
    const { journal } = this;
    try {
      return journal && use(journal);
    } catch {
      this.giveUp();
      return null;
    }
  }

  private giveUp(): void {
    this.journal?.close();
    this.journal = null;
  }

  /**
   * Has a checkpoint written to the database, and the one before it, with the reports that are not written yet and, now and then, episodes.
   * Where the run begins, what it goes on from as well.
   */
  private put(run: Keep, checkpoint: Checkpoint, before: Checkpoint | null, begins: boolean): void {
    const last = before ? [before, checkpoint] : [checkpoint];
    for (const one of last) this.hold(one);
    this.idle = false;
    // Taken now: when the storage has time, another run may be kept.
    const updated = this.now();
    const reports = this.reports.map(({ report }) => report);
    const { credited } = this;
    const due =
      credited !== null &&
      credited.iteration < checkpoint.iteration &&
      performance.now() - this.episodesWritten >= EPISODES_EVERY;
    const batch = due ? credited : null;
    if (batch) [this.episodesWritten, this.credited] = [performance.now(), null];
    const writing = this.writing
      .then(() => this.write(run, { last, updated, reports, batch, begins }))
      .finally(() => {
        for (const one of last) this.release(one);
        if (this.writing === writing) this.idle = true;
      });
    this.writing = writing;
  }

  private async write(keep: Keep, { last, updated, reports, batch, begins }: Write): Promise<void> {
    const { id, config } = keep;
    const iteration = last.at(-1)?.iteration ?? 0;
    const found = await this.opened();
    const run = { id, config, updated, iteration, finished: iteration >= config.iterations };
    try {
      const before = begins ? await found?.absorb(id) : null;
      // The clock may have been set back since.
      if (before && before >= updated) {
        this.updated = Math.max(this.updated, before);
        run.updated = this.now();
      }
      // Where there is no room for episodes, there may be for what the run goes on from.
      await found?.keep(run, reports, last, batch, begins).catch(error => {
        if (!batch) throw error;
        this.episodesWritten = Number.POSITIVE_INFINITY;
        return found.keep(run, reports, last, null, begins);
      });
      if (begins) this.based = keep;
      this.reports = this.reports.filter(({ report }) => !reports.includes(report));
    } catch (error) {
      this.storage = Promise.resolve(this.refused(error));
    }
  }

  private now(): number {
    this.updated = Math.max(Date.now(), this.updated + 1);
    return this.updated;
  }

  /** Opens the storage once; null where the browser keeps nothing. */
  private opened(): Promise<Storage | null> {
    this.storage ??= Storage.open()
      .then(async found => {
        await found.tidy();
        this.journal = await Journal.open();
        return found;
      })
      .catch(error => this.refused(error));
    return this.storage;
  }

  private refused(error: unknown): null {
    this.giveUp();
    if (!this.complained) this.notKept(error instanceof Error ? error.message : String(error));
    this.complained = true;
    return null;
  }

  private take(which: 'latest' | 'known' | 'before', checkpoint: Checkpoint | null): void {
    const before = this[which];
    if (checkpoint) this.hold(checkpoint);
    this[which] = checkpoint;
    if (before) this.release(before);
  }

  private hold({ bytes }: Checkpoint): void {
    this.uses.set(bytes, (this.uses.get(bytes) ?? 0) + 1);
  }

  private release({ bytes }: Checkpoint): void {
    const left = (this.uses.get(bytes) ?? 1) - 1;
    if (left > 0) {
      this.uses.set(bytes, left);
      return;
    }
    this.uses.delete(bytes);
    this.spare.keep(bytes);
  }
}

/** So many milliseconds later. */
function after(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds));
}
