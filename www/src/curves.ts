/** What is drawn beside the run on show: other runs on the same axis of iterations, and the spread over the seeds of a series. */

import { Column, type History, historyOf, UNSOUND } from './history';
import type { Report } from './protocol';

/** One run, or the mean of several with their spread. */
export interface Beside {
  line: Column;
  band: { low: Column; high: Column } | null;
}

/** Lowest, mean and highest of several runs; none beyond the shortest one, unsound where any of them is. */
export function spreadOf(runs: Column[]): { low: Column; mean: Column; high: Column } {
  const length = Math.max(0, ...runs.map(run => run.length));
  const [low, mean, high] = [new Column(), new Column(), new Column()];
  for (let i = 0; i < length; i++) {
    let [lowest, sum, highest, none] = [Number.POSITIVE_INFINITY, 0, Number.NEGATIVE_INFINITY, false];
    for (const run of runs) {
      const value = run.at(i);
      if (Number.isNaN(value)) none = true;
      lowest = Math.min(lowest, value);
      highest = Math.max(highest, value);
      sum += value;
    }
    // A sum with something unsound is that too.
    const put = (column: Column, value: number) => column.put(i, none ? null : sum === UNSOUND ? UNSOUND : value);
    put(low, lowest);
    put(mean, sum / runs.length);
    put(high, highest);
  }
  return { low, mean, high };
}

/** A measure of other runs over the iterations from 0; null where there are none. */
export function beside(runs: Report[][], of: (history: History) => Column | undefined): Beside | null {
  const columns = runs.map(reports => of(historyOf(reports)) ?? new Column());
  const [first, ...others] = columns;
  if (!first) return null;
  if (others.length === 0) return { line: first, band: null };
  const { low, mean, high } = spreadOf(columns);
  return { line: mean, band: { low, high } };
}

/** The iterations from 0 that any of these runs reaches over. */
export function reach(runs: Report[][]): number {
  return Math.max(0, ...runs.map(reports => historyOf(reports).length));
}
