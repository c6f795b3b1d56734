/** Medians, quartiles and verdicts. Pure functions. */

/** Lower quartile, median, upper quartile, between two values where they fall there; NaN of nothing. */
export type Quartiles = [low: number, middle: number, high: number];

export function quartiles(values: number[]): Quartiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => {
    const place = (sorted.length - 1) * share;
    const [below, above] = [sorted[Math.floor(place)] ?? Number.NaN, sorted[Math.ceil(place)] ?? Number.NaN];
    return below + (above - below) * (place % 1);
  };
  return [at(0.25), at(0.5), at(0.75)];
}

/** The ratio of two medians round by round: how many times as long `theirs` took as `ours`. */
export function ratios(theirs: number[][], ours: number[][]): Quartiles {
  const middle = (round: number[] | undefined): number => quartiles(round ?? [])[1];
  return quartiles(theirs.map((round, index) => middle(round) / middle(ours[index])));
}

/** How far losses may lie apart. */
export const LOSS_TOLERANCE = 1e-3;

/** The largest distance of two lists of losses over the steps that both made; infinite where they share none or one is not finite. */
export function distance(theirs: number[], ours: number[]): number {
  const shared = Math.min(theirs.length, ours.length);
  if (shared === 0) return Number.POSITIVE_INFINITY;
  const apart = theirs.slice(0, shared).map((loss, step) => Math.abs(loss - (ours[step] ?? Number.NaN)));
  return apart.every(Number.isFinite) ? Math.max(...apart) : Number.POSITIVE_INFINITY;
}

/** The share of sequences whose tokens are all the same. A draw that ties within rounding changes all that follows it. */
export const SAME_SEQUENCES = 0.9;

export function sameSequences(theirs: Uint8Array, ours: Uint8Array, length: number): number {
  const rows = ours.length / length;
  if (rows === 0 || theirs.length !== ours.length) return 0;
  let same = 0;
  for (let row = 0; row < rows; row += 1) {
    const begin = row * length;
    if (ours.subarray(begin, begin + length).every((token, at) => token === theirs[begin + at])) same += 1;
  }
  return same / rows;
}
