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
}

/** Iterations at which a measure was not a number: how many, and the first ones. */
export interface Unsound {
  count: number;
  first: number[];
}

/** Iterations that are named of one measure. */
export const NAMED = 3;

/** A number that a message or a file could not hold was not a number. */
const sound = (value: number | null): number => value ?? Number.NaN;

export class History {
  /** Reports that are in it. */
  count = 0;
  readonly train = new Column();
  /** None where no question was kept apart. */
  readonly heldOut = new Column();
  /** Whether any was. */
  judges = false;
  /** In the order of `MEASURES`. */
  readonly measures = MEASURES.map(() => new Column());
  /** Tool calls by type of question. */
  readonly calls: Column[] = [];
  /** Of success in training, of held-out success, then of the measures. */
  readonly unsound: Unsound[] = [0, 0, ...MEASURES].map(() => ({ count: 0, first: [] }));
  /** Seconds of work in the first so many reports. */
  private elapsed = new Column();

  constructor() {
    this.elapsed.put(0, 0);
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
    this.judges ||= report.held_out_episodes > 0;
    this.heldOut.put(iteration, report.held_out_episodes > 0 ? heldOut : null);
    for (const [i, { of }] of MEASURES.entries()) this.measures[i]?.put(iteration, this.checked(i + 2, iteration, of(report)));
    while (this.calls.length < types.length) this.calls.push(new Column());
    for (const [type, column] of this.calls.entries()) column.put(iteration, types[type]?.calls ?? null);
  }

  /** Counts a value that is not a number. */
  private checked(of: number, iteration: number, value: number | null): number {
    const counted = this.unsound[of];
    if (counted && !Number.isFinite(value)) {
      counted.count += 1;
      if (counted.first.length < NAMED) counted.first.push(iteration);
    }
    return sound(value);
  }
}

const known = new WeakMap<Report[], History>();

/** The columns of a list of reports, made when they are asked for first. */
export function historyOf(reports: Report[]): History {
  const history = known.get(reports) ?? new History();
  known.set(reports, history);
  history.take(reports);
  return history;
}

/** The columns of a list go over to a longer one that begins with the same reports. Those of the shorter one are made anew if they are asked for. */
export function handOn(shorter: Report[], longer: Report[]): void {
  const history = known.get(shorter);
  if (!history || history.count > longer.length) return;
  known.delete(shorter);
  known.set(longer, history);
}
