/** The numbers of a run's steps in columns: what curves are drawn from. A run that grows by a step adds to them; nothing is read again. */

import { MEASURES } from './parts/measures';
import type { Report } from './protocol';

/** What a column holds where there is no value, and where the value was not a number. */
export const NONE = Number.NaN;
export const UNSOUND = Number.POSITIVE_INFINITY;

/** One number per iteration, from 0. */
export class Column {
  private room = new Float64Array(64);
  /** Up to the last iteration that was put in. */
  length = 0;

  /** The number of an iteration; `NONE` beyond the end. */
  at(iteration: number): number {
    return iteration < this.length ? (this.room[iteration] ?? NONE) : NONE;
  }

  /** Puts in the value of an iteration beyond those there are: null where there is none. Those left out have none. */
  put(iteration: number, value: number | null): void {
    if (iteration >= this.room.length) {
      const wider = new Float64Array(Math.max(iteration + 1, this.room.length * 2));
      wider.set(this.room);
      this.room = wider;
    }
    this.room.fill(NONE, this.length, iteration);
    this.room[iteration] = value === null ? NONE : Number.isFinite(value) ? value : UNSOUND;
    this.length = iteration + 1;
  }

  /** The numbers from one iteration to before another, as far as it goes: a look into it, no copy. */
  part(from: number, to: number): Float64Array {
    return this.room.subarray(Math.min(from, this.length), Math.min(to, this.length));
  }

  /** A column of its own with the first `length` iterations. */
  upTo(length: number): Column {
    const column = new Column();
    column.length = Math.min(length, this.length);
    column.room = this.room.slice(0, Math.max(64, column.length));
    return column;
  }
}

/** A number that a message or a file could not hold was not a number. */
const sound = (value: number | null): number => value ?? Number.NaN;

export class History {
  /** Reports that are in it. */
  count = 0;
  train = new Column();
  /** None where no question was kept apart. */
  heldOut = new Column();
  /** The first iteration for which any was; none yet at infinity. */
  private judged = Number.POSITIVE_INFINITY;
  /** In the order of `MEASURES`. */
  measures = MEASURES.map(() => new Column());
  /** Tool calls by type of question. */
  calls: Column[] = [];
  /** Iterations at which success in training, held-out success and each of the measures was not a number. */
  unsound: number[][] = [[], [], ...MEASURES.map(() => [])];
  /** Seconds of work in the first so many reports. */
  private elapsed = new Column();

  constructor() {
    this.elapsed.put(0, 0);
  }

  /** Whether questions were kept apart. */
  get judges(): boolean {
    return this.judged < this.length;
  }

  /** Iterations that it reaches over. */
  get length(): number {
    return this.train.length;
  }

  seconds(reports: number): number {
    return this.elapsed.at(Math.min(reports, this.count));
  }

  /** Takes the reports that are not in it yet. */
  take(reports: Report[]): void {
    for (; this.count < reports.length; this.count++) {
      const report = reports[this.count];
      if (report) this.add(report);
    }
  }

  private add(report: Report): void {
    const { iteration, by_type: types } = report;
    this.elapsed.put(this.count + 1, this.elapsed.at(this.count) + report.seconds);
    this.train.put(iteration, this.checked(0, iteration, report.train_success));
    const heldOut = this.checked(1, iteration, report.held_out_success);
    if (report.held_out_episodes > 0) this.judged = Math.min(this.judged, iteration);
    this.heldOut.put(iteration, report.held_out_episodes > 0 ? heldOut : null);
    for (const [i, { of }] of MEASURES.entries()) this.measures[i]?.put(iteration, this.checked(i + 2, iteration, of(report)));
    while (this.calls.length < types.length) this.calls.push(new Column());
    for (const [type, column] of this.calls.entries()) column.put(iteration, types[type]?.calls ?? null);
  }

  /** Notes a value that is not a number. */
  private checked(of: number, iteration: number, value: number | null): number {
    if (!Number.isFinite(value)) this.unsound[of]?.push(iteration);
    return sound(value);
  }

  /** Columns of their own for the first reports of those that are in it. */
  upTo(reports: Report[]): History {
    const history = new History();
    const end = (reports.at(-1)?.iteration ?? -1) + 1;
    history.count = reports.length;
    history.judged = this.judged;
    [history.train, history.heldOut] = [this.train.upTo(end), this.heldOut.upTo(end)];
    history.measures = this.measures.map(column => column.upTo(end));
    history.calls = this.calls.map(column => column.upTo(end));
    history.unsound = this.unsound.map(list => list.filter(iteration => iteration < end));
    history.elapsed = this.elapsed.upTo(reports.length + 1);
    return history;
  }
}

const known = new WeakMap<Report[], History>();

/** Lists that others begin with, and the columns of those. */
const beginnings = new WeakMap<Report[], History>();

/** The columns of a list of reports, made when they are asked for first. */
export function historyOf(reports: Report[]): History {
  const history = known.get(reports) ?? beginnings.get(reports)?.upTo(reports) ?? new History();
  known.set(reports, history);
  history.take(reports);
  return history;
}

/** The columns of a list go over to a longer one that begins with the same reports. */
export function handOn(shorter: Report[], longer: Report[]): void {
  const history = known.get(shorter);
  if (!history) return;
  known.delete(shorter);
  known.set(longer, history);
  beginnings.set(shorter, history);
}

/** A list begins with the reports of a shorter one, whose columns need not be read from them again. */
export function begins(longer: Report[], shorter: Report[]): void {
  const history = known.get(longer);
  if (history) beginnings.set(shorter, history);
}
