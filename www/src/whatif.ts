/** Credit of one group before and after a change of settings, turn by turn. Pure functions: no page state, no drawing. */

import { mark } from './credit-scale';
import { members, type PerTurn } from './episodes';
import type { Batch, CreditMap } from './protocol';

/** One episode's credit at one turn. */
export interface Slope {
  /** Index into the batch's trajectories. */
  index: number;
  member: number;
  before: number;
  after: number;
}

/** What one turn's panel shows. */
export interface TurnSlopes {
  turn: number;
  slopes: Slope[];
  /** How many values the comparison rests on, where it is the same for all who are there; else null. */
  peers: number | null;
}

/** How many turns have another sign after a change. */
export interface SignChanges {
  turns: number;
  /** From plus to minus, or the other way round. */
  flipped: number;
  /** From a sign to zero, or from zero to a sign. */
  lost: number;
  gained: number;
}

/** The sign as the page marks it: what rounds to zero has none. */
const sign = (value: number): number => ({ '+': 1, '−': -1 })[mark(value, 'advantage')] ?? 0;

/** One entry for each turn that somebody of the group reached. */
export function slopesOf(batch: Batch, group: number, before: PerTurn, after: CreditMap): TurnSlopes[] {
  const rows = members(batch, group);
  const count = Math.max(0, ...rows.map(row => row.trajectory.turns.length));
  return Array.from({ length: count }, (_, turn) => {
    const there = rows.filter(row => row.trajectory.turns.length > turn);
    const peers = there.map(row => after.peers[row.index]?.[turn] ?? 0);
    const slopes = there.map(({ index, trajectory }) => ({
      index,
      member: trajectory.member,
      before: before[index]?.[turn] ?? Number.NaN,
      after: after.advantages[index]?.[turn] ?? Number.NaN,
    }));
    return { turn, slopes, peers: peers.every(value => value === peers[0]) ? (peers[0] ?? null) : null };
  });
}

/** Counts over the trajectories that `of` names; over the whole batch without it. */
export function signChanges(before: PerTurn, after: PerTurn, of?: (trajectory: number) => boolean): SignChanges {
  const found: SignChanges = { turns: 0, flipped: 0, lost: 0, gained: 0 };
  for (const [index, turns] of before.entries()) {
    if (of && !of(index)) continue;
    for (const [turn, value] of turns.entries()) {
      const [was, is] = [sign(value ?? Number.NaN), sign(after[index]?.[turn] ?? Number.NaN)];
      found.turns += 1;
      if (was * is < 0) found.flipped += 1;
      else if (was !== 0 && is === 0) found.lost += 1;
      else if (was === 0 && is !== 0) found.gained += 1;
    }
  }
  return found;
}

/** Where an axis ends that all these values fit in: 1, 1.5, 2, 3, 4, 5 or 7.5 times a power of ten. */
export function axisEnd(values: number[]): number {
  const size = Math.max(0.01, ...values.filter(Number.isFinite).map(Math.abs));
  const power = 10 ** Math.floor(Math.log10(size));
  const step = [1, 1.5, 2, 3, 4, 5, 7.5, 10].find(factor => factor * power >= size) ?? 10;
  return Number((step * power).toPrecision(3));
}
