/** Which method comes closest to true credit, and which others cannot be told from it. */

import type { CreditAccuracy, CreditMethod } from '../protocol';

export interface Closest {
  method: CreditMethod;
  /** Its Pearson correlation over all turns. */
  value: number;
  /** Whether the others were compared with it, on the same bootstrap samples. */
  compared: boolean;
  /** Methods whose distance from it may be none: the interval of the difference reaches 0. */
  tied: CreditMethod[];
}

export function closest({ methods }: CreditAccuracy): Closest | null {
  const known = methods.flatMap(({ method, behind, all_turns: { pearson } }) =>
    pearson ? [{ method, value: pearson.value, behind }] : [],
  );
  const [first, ...rest] = known.toSorted((a, b) => b.value - a.value);
  if (!first) return null;
  const intervals = rest.map(({ method, behind }) => ({ method, interval: behind?.interval ?? null }));
  const tied = intervals.filter(({ interval }) => interval !== null && interval[0] <= 0).map(({ method }) => method);
  return { method: first.method, value: first.value, compared: intervals.some(({ interval }) => interval !== null), tied };
}
