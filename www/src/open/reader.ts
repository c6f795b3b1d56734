/**
 * The worker that reads a file: it tells what the file is, checks a run, and hands it over in pieces, since taking over all of a long run
 * at once would hold the page up.
 */

import type { Batch, RecordedRun, Report } from '../protocol';
import { readRun } from '../run-reader';
import { type Found, sniff } from './sniff';

/** Reports of one piece. */
const PIECE = 250;

/** A file, and how many tokens there are. */
export type Ask = { file: File; vocabulary: number };

export type Told =
  | { type: 'other'; found: Exclude<Found, { kind: 'run' }> }
  /** The file could not be read, or the run in it has a field that is wrong. */
  | { type: 'unread'; detail: string }
  | { type: 'refused'; detail: string }
  /** A run that was checked: what is no piece of it, and how many pieces come. */
  | { type: 'run'; rest: Omit<RecordedRun, 'reports' | 'batches'>; pieces: number }
  | { type: 'piece'; reports: Report[]; batches: Batch[] };

const tell = (told: Told): void => postMessage(told);
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function found(file: File): Promise<Found | null> {
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch (error) {
    tell({ type: 'unread', detail: words(error) });
    return null;
  }
  return sniff(bytes);
}

function hand({ reports, batches, ...rest }: RecordedRun): void {
  tell({ type: 'run', rest, pieces: Math.ceil(reports.length / PIECE) + batches.length });
  for (let from = 0; from < reports.length; from += PIECE) {
    tell({ type: 'piece', reports: reports.slice(from, from + PIECE), batches: [] });
  }
  for (const batch of batches) tell({ type: 'piece', reports: [], batches: [batch] });
}

addEventListener('message', async ({ data }: MessageEvent<Ask>) => {
  const what = await found(data.file);
  if (what === null) return;
  if (what.kind !== 'run') {
    tell({ type: 'other', found: what });
    return;
  }
  let run: RecordedRun;
  try {
    run = readRun(what.value, data.vocabulary);
  } catch (error) {
    tell({ type: 'refused', detail: words(error) });
    return;
  }
  hand(run);
});
