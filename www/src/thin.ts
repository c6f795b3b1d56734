/**
 * Curves of very many iterations, thinned to what a screen can show: of every few neighbouring iterations the first, lowest, highest
 * and last value stay, in their order, and a gap or a value that is not a number wherever one lay between them. So every spike is
 * drawn as high as it was, no gap is bridged and nothing that is not a number is hidden. Short curves stay as they are.
 */

import { type Column, NONE, UNSOUND } from './history';

/** Values as they are drawn: null where there is none, NaN where it was not a number. */
export type Drawn = (number | null)[];

/** Several columns on one axis: a place on it for each entry, and the values there. */
export interface Thinned {
  x: number[];
  values: Drawn[];
}

/** As many values stand for a span of iterations at least; shorter spans stay whole. */
const LEAST = 4;

const asDrawn = (value: number): number | null => (Number.isNaN(value) ? null : value === UNSOUND ? Number.NaN : value);

/** How many iterations one span has, so that an axis has `most` spans at most: a power of two, so that spans seldom change. */
function spanOf(axis: number, most: number): number {
  let span = 1;
  while (Math.ceil(axis / span) > most) span *= 2;
  return span > LEAST ? span : 1;
}

/** What stays of a span of a column, in order. */
function kept(column: Column, from: number, to: number): number[] {
  const part = column.part(from, to);
  // Places in the part; each number is looked at once, and there may be very many.
  let [first, last, lowest, highest, count] = [-1, -1, 0, 0, 0];
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < part.length; i++) {
    const value = part[i] as number;
    // Neither NaN nor infinite.
    if (value - value !== 0) continue;
    if (count === 0) first = i;
    last = i;
    count += 1;
    if (value < low) {
      low = value;
      lowest = i;
    }
    if (value > high) {
      high = value;
      highest = i;
    }
  }
  const places = count === 0 ? [] : [...new Set([first, lowest, highest, last])].sort((a, b) => a - b);
  const length = to - from;
  if (count === length) return places.map(i => part[i] ?? NONE);
  const found: number[] = [];
  let before = -1;
  for (const place of [...places, length]) {
    // One of what lay between two values; what is not a number comes before what is merely missing.
    const between = part.subarray(before + 1, place);
    if (between.includes(UNSOUND)) found.push(UNSOUND);
    else if (place > part.length || between.some(Number.isNaN)) found.push(NONE);
    if (place < length) found.push(part[place] ?? NONE);
    before = place;
  }
  return found;
}

/** Thins the same columns again and again while they grow: only the spans in which something has changed are looked at. */
export class Thinner {
  private columns: Column[] = [];
  private lengths: number[] = [];
  private span = 0;
  private x: number[] = [];
  private values: Drawn[] = [];
  /** How many entries there are before each span. */
  private starts: number[] = [];

  /** The columns on an axis of `axis` iterations, in `most` spans at most. */
  thin(columns: Column[], axis: number, most: number): Thinned {
    const span = spanOf(Math.max(axis, ...columns.map(({ length }) => length)), most);
    const same =
      span === this.span && columns.length === this.columns.length && columns.every((column, i) => column === this.columns[i]);
    if (!same) {
      [this.span, this.columns, this.lengths] = [span, [...columns], columns.map(() => 0)];
      [this.x, this.values, this.starts] = [[], columns.map(() => []), []];
    }
    const changed = columns.flatMap(({ length }, i) =>
      length === this.lengths[i] ? [] : [Math.min(length, this.lengths[i] ?? 0)],
    );
    if (changed.length > 0) this.from(Math.floor(Math.min(...changed) / span));
    this.lengths = columns.map(({ length }) => length);
    return { x: [...this.x], values: this.values.map(list => [...list]) };
  }

  /** Makes all spans from one on anew. */
  private from(first: number): void {
    const { columns, span, x, values, starts } = this;
    const entries = starts[first] ?? x.length;
    for (const list of [x, ...values]) list.length = entries;
    starts.length = Math.min(starts.length, first);
    const end = Math.max(0, ...columns.map(({ length }) => length));
    for (let from = first * span; from < end; from += span) {
      starts.push(x.length);
      const to = Math.min(from + span, end);
      if (span === 1) {
        x.push(from);
        for (const [i, column] of columns.entries()) values[i]?.push(asDrawn(column.at(from)));
        continue;
      }
      const parts = columns.map(column => kept(column, from, to));
      const most = Math.max(...parts.map(part => part.length));
      // All columns have the same places: less than a span, and with it less than a pixel, from their own.
      for (let place = 0; place < most; place++) x.push(from + (most > 1 ? ((to - 1 - from) * place) / (most - 1) : 0));
      for (const [i, part] of parts.entries()) {
        // Where a column has fewer, its last entry stands again; a single value stays one, so that it is drawn as one.
        const filler = part.some(value => !Number.isFinite(value)) ? NONE : (part.at(-1) ?? NONE);
        for (let place = 0; place < most; place++) values[i]?.push(asDrawn(part[place] ?? filler));
      }
    }
  }
}
