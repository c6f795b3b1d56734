/** Reads a file in a worker and puts the run in it together again, piece by piece. */

import { historyOf } from '../history';
import type { RecordedRun } from '../protocol';
import type { Ask, Told } from './reader';
import type { Found } from './sniff';

export type Read =
  | Exclude<Found, { kind: 'run' }>
  | { kind: 'run'; value: RecordedRun }
  | { kind: 'unread'; detail: string }
  | { kind: 'refused'; detail: string }
  | { kind: 'failed'; detail: string }
  /** Another file was opened meanwhile. */
  | { kind: 'given up' };

/** Ends the reading in progress. */
let giveUp: () => void = () => {};

/** Something else is opened: a file that is still being read is not to take its place. */
export const stopReading = (): void => giveUp();

/**
 * What is in a file. `accept` is given the settings of a run before the rest of it comes, and throws where they are none; `progress`
 * how much of a run has come.
 */
export function readFile(
  file: File,
  vocabulary: number,
  accept: (config: RecordedRun['config']) => void,
  progress: (share: number) => void,
): Promise<Read> {
  giveUp();
  return new Promise(resolve => {
    let worker: Worker;
    try {
      worker = new Worker(new URL('./reader.ts', import.meta.url), { type: 'module' });
    } catch (error) {
      resolve({ kind: 'failed', detail: String(error) });
      return;
    }
    let ended = false;
    const end = (read: Read): void => {
      // A message may be on its way still.
      if (ended) return;
      ended = true;
      worker.terminate();
      giveUp = () => {};
      // What comes of it is a task of its own.
      setTimeout(() => resolve(read));
    };
    giveUp = () => end({ kind: 'given up' });
    let run: RecordedRun | null = null;
    let [left, pieces] = [0, 0];
    const take = (told: Told): void => {
      if (told.type === 'other') end(told.found);
      else if (told.type === 'unread' || told.type === 'refused') end({ kind: told.type, detail: told.detail });
      else if (told.type === 'run') {
        accept(told.rest.config);
        run = { ...told.rest, reports: [], batches: [] };
        left = pieces = told.pieces;
      } else if (run) {
        run.reports.push(...told.reports);
        run.batches.push(...told.batches);
        // What curves are drawn from is taken along: all at once it would be too much for one frame.
        historyOf(run.reports);
        left -= 1;
        progress(1 - left / pieces);
        if (left === 0) end({ kind: 'run', value: run });
      }
    };
    worker.onmessage = ({ data }: MessageEvent<Told>) => {
      try {
        take(data);
      } catch (error) {
        end({ kind: 'refused', detail: error instanceof Error ? error.message : String(error) });
      }
    };
    worker.onmessageerror = () => end({ kind: 'failed', detail: '' });
    worker.onerror = event => {
      event.preventDefault();
      end({ kind: 'failed', detail: event.message ?? '' });
    };
    worker.postMessage({ file, vocabulary } satisfies Ask);
  });
}
