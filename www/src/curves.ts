/** What curves are drawn from: reports of runs on one axis of iterations, and the spread over the seeds of a series. */

import type { Report } from './protocol';

/** One value per iteration; null where there is none, NaN where it was not a number. */
export type Values = (number | null)[];

/** A number that a message or a file could not hold was not a number. */
export const number = (value: number | null): number => value ?? Number.NaN;

/** The iterations 0 to the last one of any of these runs. */
export function iterationsOf(runs: Report[][]): number[] {
  const last = Math.max(-1, ...runs.map(reports => reports.at(-1)?.iteration ?? -1));
  return Array.from({ length: last + 1 }, (_, iteration) => iteration);
}

/** A measure of a run at every iteration of the axis. */
export function along(x: number[], reports: Report[], of: (report: Report) => number | null): Values {
  const values: Values = x.map(() => null);
  for (const report of reports) if (report.iteration < values.length) values[report.iteration] = of(report);
  return values;
}

/** Lowest, mean and highest of several runs; null beyond the shortest one, NaN where any of them is not a number. */
export interface Spread {
  low: Values;
  mean: Values;
  high: Values;
}

export function spreadOf(runs: Values[]): Spread {
  const length = Math.max(0, ...runs.map(values => values.length));
  const spread: Spread = { low: [], mean: [], high: [] };
  for (let i = 0; i < length; i++) {
    const values = runs.map(run => run[i] ?? null);
    const there = values.filter(value => value !== null);
    const whole = there.length === values.length;
    const sound = there.every(value => Number.isFinite(value));
    const put = (value: number) => (whole ? (sound ? value : Number.NaN) : null);
    spread.low.push(put(Math.min(...there)));
    spread.mean.push(put(there.reduce((sum, value) => sum + value, 0) / there.length));
    spread.high.push(put(Math.max(...there)));
  }
  return spread;
}

/** What is drawn beside the run on show: one run, or the mean of several with their spread. */
export interface Beside {
  line: Values;
  band: { low: Values; high: Values } | null;
}

/** A measure of other runs over the iterations from 0; null where there are none. */
export function beside(runs: Report[][], of: (report: Report) => number | null): Beside | null {
  const x = iterationsOf(runs);
  const [first, ...others] = runs.map(reports => along(x, reports, of));
  if (!first) return null;
  if (others.length === 0) return { line: first, band: null };
  const { low, mean, high } = spreadOf([first, ...others]);
  return { line: mean, band: { low, high } };
}

/** Values on a longer axis. */
export function padded(values: Values, length: number): Values {
  return values.length < length ? [...values, ...Array<null>(length - values.length).fill(null)] : values;
}
