/** Which method comes closest to true credit, and which others cannot be told from it. */

import type { CreditAccuracy, CreditMethod } from '../protocol';

export interface Closest {
  method: CreditMethod;
  /** Its Pearson correlation over all turns. */
  value: number;
  /** Whether there is an interval to compare with. */
  certain: boolean;
  /** Methods whose interval overlaps with its own. */
  tied: CreditMethod[];
}

export function closest({ methods }: CreditAccuracy): Closest | null {
  const known = methods.flatMap(({ method, all_turns: { pearson } }) => (pearson ? [{ method, ...pearson }] : []));
  const [first, ...rest] = known.toSorted((a, b) => b.value - a.value);
  if (!first) return null;
  const low = first.interval?.[0] ?? null;
  const tied = rest.filter(({ interval }) => low !== null && interval !== null && interval[1] >= low);
  return { method: first.method, value: first.value, certain: low !== null, tied: tied.map(({ method }) => method) };
}
