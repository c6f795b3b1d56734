/** Updates and decoding, measured in rounds that take turns: in every round each contender works once, one after the other. */

import { type Contender, contenders, type DeviceName } from './contenders';
import type { Counts } from './count';
import type { Remote } from './remote';
import { DECODE_SHAPE, DECODED, type Draws, makeBatch, type Shape, UPDATE_SHAPE, type Weight } from './shape';
import { distance, LOSS_TOLERANCE, type Quartiles, quartiles, ratios, SAME_SEQUENCES, sameSequences } from './statistics';

/** One line of a table. */
export interface Row {
  package: string;
  device: DeviceName;
  workers: number;
  /** Sequences decoded together; 0 for updates. */
  sequences: number;
  /** Of one update, or of all decoded tokens together. */
  seconds: Quartiles;
  /** How many times as long as ours on the same device. */
  ratio: Quartiles;
  /** Largest distance of losses from ours, or share of sequences that are the same. */
  agreement: number;
  /** A row whose results are not ours says nothing about speed. */
  state: 'ours' | 'agrees' | 'void' | 'failed';
  detail: string;
  /** WebGPU calls of one update, or of decoding once. */
  counts: Counts | null;
}

export interface Plan {
  devices: DeviceName[];
  rounds: number;
  /** Updates of a round. */
  steps: number;
  /** Numbers of sequences to decode. */
  sequences: number[];
}

/** Somebody at work, with what was seen so far. */
interface Entry {
  contender: Contender;
  remote: Remote;
  rounds: number[][];
  losses: number[];
  tokens: Uint8Array;
  counts: Counts | null;
  failed: string;
}

const BATCH = 16;

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Opens every contender with the weights that ours begins with. */
async function opened(devices: DeviceName[], shape: Shape, workers = 1): Promise<{ entries: Entry[]; weights: Weight[] }> {
  const entries = contenders(devices, workers).map(
    (contender): Entry => ({
      contender,
      remote: contender.start(),
      rounds: [],
      losses: [],
      tokens: new Uint8Array(),
      counts: null,
      failed: '',
    }),
  );
  let weights: Weight[] = [];
  const base = document.baseURI;
  for (const entry of entries) {
    const gpu = entry.contender.device === 'webgpu';
    const own = isOurs(entry);
    await attempt(entry, async () => {
      const answer = await entry.remote.call('open', {
        gpu,
        workers: entry.contender.workers,
        shape,
        weights: own ? null : weights,
        base,
      });
      if (own) weights = answer.weights;
    });
  }
  return { entries, weights };
}

/** What fails is told in the contender's row and takes no further part. */
async function attempt(entry: Entry, work: () => Promise<void>): Promise<void> {
  if (entry.failed) return;
  try {
    await work();
  } catch (error) {
    entry.failed = words(error) || 'failed';
  }
}

/** The WebGPU calls of `work`. */
async function counted(entry: Entry, times: number, work: () => Promise<void>): Promise<void> {
  const before = await entry.remote.call('counts', null);
  await work();
  const after = await entry.remote.call('counts', null);
  const names = Object.keys(after) as (keyof Counts)[];
  entry.counts = Object.fromEntries(names.map(name => [name, (after[name] - before[name]) / times])) as unknown as Counts;
}

/** Ours with one worker: what everything is compared with. */
const isOurs = ({ contender }: Entry): boolean => contender.library === 'turnwise' && contender.workers === 1;

/** Ours on the device of an entry. */
const oursOf = (entry: Entry, entries: Entry[]): Entry | undefined =>
  entries.find(other => isOurs(other) && other.contender.device === entry.contender.device);

function row(entry: Entry, entries: Entry[], sequences: number, agreement: number, agrees: boolean): Row {
  const { contender, rounds, counts, failed } = entry;
  const ours = oursOf(entry, entries);
  const own = entry === ours;
  const state = failed ? 'failed' : own ? 'ours' : agrees ? 'agrees' : 'void';
  const seconds = quartiles(rounds.flat());
  const gpu = contender.device === 'webgpu' ? counts : null;
  return {
    package: contender.package,
    device: contender.device,
    workers: contender.workers,
    sequences,
    seconds,
    ratio: ratios(rounds, ours?.rounds ?? []),
    agreement,
    state,
    detail: failed,
    counts: gpu,
  };
}

/** The masked policy-gradient update: forward, backward, Adam, loss read back. Two updates go before the first round. */
export async function measureUpdates(plan: Plan, tell: (rows: Row[]) => void): Promise<void> {
  const { entries } = await opened(plan.devices, UPDATE_SHAPE, navigator.hardwareConcurrency);
  const batch = makeBatch(UPDATE_SHAPE, BATCH);
  const rows = (): Row[] =>
    entries.map(entry => {
      const apart = distance(entry.losses, oursOf(entry, entries)?.losses ?? []);
      return row(entry, entries, 0, apart, apart <= LOSS_TOLERANCE);
    });
  try {
    for (const entry of entries) {
      await attempt(entry, async () => {
        await entry.remote.call('batch', batch);
        entry.losses.push(...(await entry.remote.call('step', 2)).losses);
      });
    }
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const entry of entries) {
        await attempt(entry, () =>
          counted(entry, plan.steps, async () => {
            const { losses, seconds } = await entry.remote.call('step', plan.steps);
            entry.losses.push(...losses);
            entry.rounds.push(seconds);
          }),
        );
      }
      tell(rows());
    }
  } finally {
    for (const { remote } of entries) remote.close();
  }
}

/** Decoded tokens of many sequences with a key/value cache. Everyone decodes once before the first round. */
export async function measureDecoding(plan: Plan, tell: (rows: Row[]) => void): Promise<void> {
  const { entries } = await opened(plan.devices, DECODE_SHAPE);
  const done: Row[] = [];
  try {
    for (const sequences of plan.sequences) {
      const ours = entries[0];
      if (!ours) break;
      const draws: Draws = await ours.remote.call('draws', { sequences, count: DECODED });
      for (const entry of entries) entry.rounds = [];
      for (let round = 0; round <= plan.rounds; round += 1) {
        for (const entry of entries) {
          await attempt(entry, () =>
            counted(entry, 1, async () => {
              const { tokens, seconds } = await entry.remote.call('decode', draws);
              entry.tokens = tokens;
              if (round > 0) entry.rounds.push([seconds]);
            }),
          );
        }
      }
      done.push(
        ...entries.map(entry => {
          const same = sameSequences(entry.tokens, oursOf(entry, entries)?.tokens ?? new Uint8Array(), DECODED);
          return row(entry, entries, sequences, same, same >= SAME_SEQUENCES);
        }),
      );
      tell([...done]);
    }
  } finally {
    for (const { remote } of entries) remote.close();
  }
}
