/** The measures that stand beside the curves: where each is found in a report, and how its numbers are written. */

import { fixed, measure, percent } from '../format';
import type { Report } from '../protocol';
import type { Words } from '../words/en';

export interface Measure {
  key: keyof Words['curves']['measures'];
  of: (report: Report) => number;
  format: (value: number) => string;
}

const decimals = (value: number) => fixed(value);
const thousands = (value: number) => (Number.isFinite(value) ? `${fixed(value / 1000, 1)} k` : fixed(value));

export const MEASURES: Measure[] = [
  { key: 'mean_return', of: report => report.mean_return, format: decimals },
  { key: 'entropy', of: report => report.update.entropy, format: decimals },
  { key: 'approximate_kl', of: report => report.update.approximate_kl, format: measure },
  { key: 'clip_fraction', of: report => report.update.clip_fraction, format: measure },
  { key: 'ratio_deviation', of: report => report.update.ratio_deviation, format: measure },
  { key: 'gradient_norm', of: report => report.update.gradient_norm, format: decimals },
  { key: 'no_signal', of: report => report.no_signal_groups, format: value => percent(value) },
  { key: 'speed', of: report => report.tokens_per_second, format: thousands },
];

/** A number that a file could not hold was not a number. */
export const measured = (value: number | null): number => value ?? Number.NaN;
