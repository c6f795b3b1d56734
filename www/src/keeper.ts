/**
 * Keeps a checkpoint of every step of the worker's run: the last one in memory, for the worker that takes over where this one breaks,
 * and all of them in this browser's storage, as long as it takes them.
 */

import type { Batch, Event as EngineEvent, ExperimentConfig, Report } from './protocol';
import { Spare } from './spare';
import { Storage } from './storage';

/** Before `configure`: under which name the run is kept in this browser, and the checkpoint that it goes on from. */
export type Keep = { type: 'keep'; id: string; config: ExperimentConfig; checkpoint: Uint8Array | null };

/** After how many steps a run stands, and all that it needs to go on from there. */
export interface Checkpoint {
  iteration: number;
  bytes: Uint8Array;
}

/** Least time between two steps whose episodes are kept, in milliseconds: a copy of 256 of them is not for nothing. */
const EPISODES_EVERY = 1000;

/** How long training waits for the last write, in milliseconds: storage that does not answer must not hold it up. */
const PATIENCE = 2000;

/** Arrays of checkpoints that nobody needs any more, at most: one is written, one is the last, and one is being made. */
const SPARE = 3;

export class Keeper {
  /** The run that is kept. */
  run: Keep | null = null;
  /** The last checkpoint, and the last one whose step the page knows of. */
  private latest: Checkpoint | null = null;
  private known: Checkpoint | null = null;
  /** The episodes that were credited last, and when some were written last. */
  private credited: Batch | null = null;
  private episodesWritten = Number.NEGATIVE_INFINITY;
  /** The last write. */
  private writing: Promise<void> = Promise.resolve();
  private storage: Promise<Storage | null> | null = null;
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
    this.take('latest', null);
    this.take('known', null);
    this.credited = null;
    this.episodesWritten = Number.NEGATIVE_INFINITY;
  }

  /** Room for the bytes of a checkpoint; what is in it is to be written over. */
  room(length: number): Uint8Array {
    return this.spare.room(length);
  }

  /** Takes the checkpoint of a step. Waits for the last write before a step that comes too fast for it. */
  save(iteration: number, bytes: Uint8Array): Promise<void> {
    this.take('latest', { iteration, bytes });
    return Promise.race([this.writing, new Promise<void>(resolve => setTimeout(resolve, PATIENCE))]);
  }

  /** An event of the engine on its way to the page. What belongs to the last checkpoint is written with it. */
  note(event: EngineEvent): void {
    const report = event.type === 'phase' ? event.report : null;
    if ((event.type === 'phase' || event.type === 'episodes') && event.batch?.credit) this.credited = event.batch;
    if (!this.run || !this.latest || !(report || event.type === 'ready')) return;
    const [run, checkpoint] = [this.run, this.latest];
    this.take('known', checkpoint);
    this.hold(checkpoint);
    this.writing = this.writing.then(() => this.write(run, checkpoint, report)).finally(() => this.release(checkpoint));
  }

  /** Writes a checkpoint with the report of its step and, now and then, its episodes. */
  private async write({ id, config }: Keep, { iteration, bytes }: Checkpoint, report: Report | null): Promise<void> {
    const { credited } = this;
    const due =
      report !== null && credited?.iteration === report.iteration && performance.now() - this.episodesWritten >= EPISODES_EVERY;
    const batch = due ? credited : null;
    if (due) this.episodesWritten = performance.now();
    const found = await this.opened();
    const run = { id, config, updated: Date.now(), iteration, finished: iteration >= config.iterations };
    try {
      // Where there is no room for episodes, there may be for what the run goes on from.
      await found?.keep(run, report, bytes, batch).catch(error => {
        if (!batch) throw error;
        this.episodesWritten = Number.POSITIVE_INFINITY;
        return found.keep(run, report, bytes, null);
      });
    } catch (error) {
      this.storage = Promise.resolve(this.refused(error));
    }
  }

  /** Opens the storage once; null where the browser keeps nothing. */
  private opened(): Promise<Storage | null> {
    this.storage ??= Storage.open()
      .then(async found => {
        await found.tidy();
        return found;
      })
      .catch(error => this.refused(error));
    return this.storage;
  }

  private refused(error: unknown): null {
    this.notKept(error instanceof Error ? error.message : String(error));
    return null;
  }

  private take(which: 'latest' | 'known', checkpoint: Checkpoint | null): void {
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
