/** The whole training step of the default search task, in the page's own training worker. */

import type { Command, ExperimentConfig } from '../protocol';
import type { FromWorker, Share, Start } from '../worker';
import type { DeviceName } from './contenders';
import type { Counts } from './count';
import { type Quartiles, quartiles } from './statistics';

/** One line of the table. */
export interface IterationRow {
  device: DeviceName;
  /** How many compute on the CPU. */
  workers: number;
  name: string;
  seconds: Quartiles;
  /** Of training episodes in a step, on average. */
  tokens: number;
  /** From the press on, loading and the warm start included, to the first step whose held-out success is 90 %; null while it is below. */
  toNinety: number | null;
  success: number;
  /** WebGPU calls of one more step: sampling, with the turns it took, and the update; null on the CPU. */
  calls: { sample: Counts; turns: number; update: Counts } | null;
  failed: string;
}

/** How much is run: at most so many steps, fewer where 90 % is reached and `untilNinety` asks for no more. */
export interface IterationPlan {
  config: ExperimentConfig;
  steps: number;
  untilNinety: boolean;
}

/** Steps that are not timed: the first one loads, compiles and allocates. */
const WARM_UP = 1;

type Heard = FromWorker | { type: 'counts'; counts: Counts };
type Of<Type extends Heard['type']> = Extract<Heard, { type: Type }>;

/** The worker, as something that can be waited for. */
class Training {
  private readonly worker = new Worker(new URL('./bench-iteration.ts', import.meta.url), { type: 'module' });
  private readonly waiting = new Map<string, (heard: never) => void>();
  private fail: (error: Error) => void = () => {};
  /** Rejects when the worker breaks. */
  readonly broken = new Promise<never>((_, reject) => {
    this.fail = reject;
  });

  constructor(hear: (heard: Heard) => void) {
    this.broken.catch(() => {});
    this.worker.onerror = event => this.fail(new Error(event.message || 'the worker did not start'));
    this.worker.onmessage = ({ data }: MessageEvent<Heard>) => {
      if (data.type === 'broken') this.fail(new Error(data.detail || data.cause));
      hear(data);
      const waiting = this.waiting.get(data.type);
      this.waiting.delete(data.type);
      waiting?.(data as never);
    };
  }

  post(message: Command | Start | Share | { type: 'counts' }): void {
    this.worker.postMessage(message);
  }

  /** Sends a message and waits for the next event of a type. */
  ask<Type extends Heard['type']>(message: Command | Start | { type: 'counts' }, type: Type): Promise<Of<Type>> {
    const heard = new Promise<Of<Type>>(resolve => this.waiting.set(type, resolve as (heard: never) => void));
    this.post(message);
    return Promise.race([heard, this.broken]);
  }

  async counts(): Promise<Counts> {
    return { ...(await this.ask({ type: 'counts' }, 'counts')).counts };
  }

  close(): void {
    this.worker.terminate();
  }
}

function difference(after: Counts, before: Counts): Counts {
  const names = Object.keys(after) as (keyof Counts)[];
  return Object.fromEntries(names.map(name => [name, after[name] - before[name]])) as unknown as Counts;
}

/** The WebGPU calls of one step, phase by phase. */
async function countPhases(training: Training, turnsOf: () => number): Promise<NonNullable<IterationRow['calls']>> {
  const phases: Counts[] = [];
  let turns = 0;
  for (let phase = 0; phase < 4; phase += 1) {
    const before = await training.counts();
    await training.ask({ type: 'step' }, 'stopped');
    phases.push(difference(await training.counts(), before));
    if (phase === 0) turns = turnsOf();
  }
  const [sample, , , update] = phases as [Counts, Counts, Counts, Counts];
  return { sample, turns, update };
}

/** Trains and tells after every step. Never fails: what went wrong stands in the row. */
export async function measureIteration(
  device: DeviceName,
  workers: number,
  plan: IterationPlan,
  tell: (row: IterationRow) => void,
): Promise<void> {
  const row: IterationRow = {
    device,
    workers,
    name: '',
    seconds: quartiles([]),
    tokens: 0,
    toNinety: null,
    success: 0,
    calls: null,
    failed: '',
  };
  const [seconds, tokens]: [number[], number[]] = [[], []];
  const pressed = performance.now();
  let [last, steps, turns] = [pressed, 0, 0];
  const training = new Training(heard => {
    if (heard.type === 'device') row.name = heard.device.name;
    if (heard.type !== 'phase') return;
    if (heard.batch) turns = Math.max(...heard.batch.trajectories.map(trajectory => trajectory.turns.length));
    if (!heard.report || steps >= plan.steps) return;
    const now = performance.now();
    if (steps >= WARM_UP) seconds.push((now - last) / 1000);
    [last, steps] = [now, steps + 1];
    tokens.push(heard.report.tokens);
    row.seconds = quartiles(seconds);
    row.tokens = tokens.reduce((sum, one) => sum + one, 0) / tokens.length;
    row.success = heard.report.held_out_success;
    if (row.toNinety === null && row.success >= 0.9) row.toNinety = (now - pressed) / 1000;
    tell({ ...row });
    if (steps === plan.steps || (plan.untilNinety && row.toNinety !== null)) training.post({ type: 'pause' });
  });
  try {
    await training.ask({ type: 'start', base: document.baseURI, device: device === 'wasm' ? 'cpu' : 'gpu' }, 'loaded');
    training.post({ type: 'share', workers });
    // One step more than is timed: the one whose calls are counted.
    const config = { ...plan.config, iterations: plan.steps + 1 };
    await training.ask({ type: 'configure', config, device: device === 'wasm' ? 'cpu' : 'gpu', resume: false }, 'ready');
    await training.ask({ type: 'train' }, 'stopped');
    if (device === 'webgpu') row.calls = await countPhases(training, () => turns);
  } catch (error) {
    row.failed = error instanceof Error ? error.message : String(error);
  } finally {
    training.close();
  }
  tell({ ...row });
}
