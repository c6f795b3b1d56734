/** A run as a file that this page, or anybody's, opens again: settings, reports, kept episodes, measured credit. */

import type { Batch, ExperimentConfig, MeasuredCredit, Report } from '../protocol';
import { breathe } from './jsonl';

export interface RunData {
  config: ExperimentConfig;
  madeWith: string;
  reports: Report[];
  batches: Batch[];
  measured: MeasuredCredit[];
}

/** Bytes of episodes that a file holds at most: it must stay within what the page opens. */
export const EPISODE_BYTES = 48e6;

/** Reports that are written at a time. */
const REPORTS = 1000;

/** Which batches matter most: the one on show, those with measured credit, the first, the last, then evenly through the run. */
export function byImportance(batches: Batch[], shown: number | null, measured: MeasuredCredit[]): Batch[] {
  const known = new Set(measured.map(entry => entry.iteration));
  const rank = (batch: Batch, i: number) =>
    batch.iteration === shown ? 0 : known.has(batch.iteration) ? 1 : i === 0 || i === batches.length - 1 ? 2 : 3 + halvings(i);
  return batches
    .map((batch, i) => ({ batch, rank: rank(batch, i) }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ batch }) => batch);
}

/** How finely a row must be cut until its cuts hit place `i`: 0 for multiples of 32, 5 for odd places. */
function halvings(i: number): number {
  let level = 0;
  for (let step = 32; step > 1 && i % step !== 0; step /= 2) level += 1;
  return level;
}

/** The file in pieces, and how many of the batches it holds. Numbers that are not finite are written as `null`. */
export async function runFile(
  { config, madeWith, reports, batches, measured }: RunData,
  shown: number | null,
  limit = EPISODE_BYTES,
): Promise<{ parts: BlobPart[]; kept: number }> {
  let bytes = 0;
  // As bytes at once: to turn all text into bytes in the end would hold the page up.
  const written = new Map<number, Blob>();
  for (const batch of byImportance(batches, shown, measured)) {
    const pieces: string[] = [];
    // Its trajectories are by far the most of it.
    for (let from = 0; from < batch.trajectories.length; from += 64) {
      pieces.push(
        batch.trajectories
          .slice(from, from + 64)
          .map(entry => JSON.stringify(entry))
          .join(','),
      );
      await breathe();
    }
    const { trajectories: _, ...rest } = batch;
    const text = `${JSON.stringify(rest).slice(0, -1)},"trajectories":[${pieces.join(',')}]}`;
    if (bytes + text.length > limit && written.size > 0) break;
    bytes += text.length;
    written.set(batch.iteration, new Blob([text]));
    await breathe();
  }
  const kept = batches.filter(batch => written.has(batch.iteration));
  const truths = measured.filter(entry => written.has(entry.iteration));
  const steps: Blob[] = [];
  for (let from = 0; from < reports.length; from += REPORTS) {
    steps.push(new Blob([from > 0 ? ',' : '', JSON.stringify(reports.slice(from, from + REPORTS)).slice(1, -1)]));
    await breathe();
  }
  const parts = [
    `{"config":${JSON.stringify(config)},"made_with":${JSON.stringify(madeWith)},"reports":[`,
    ...steps,
    '],"batches":[',
    ...kept.flatMap(({ iteration }, i) => [i > 0 ? ',' : '', written.get(iteration) ?? '']),
    `],"measured":${JSON.stringify(truths)}}`,
  ];
  return { parts, kept: kept.length };
}
