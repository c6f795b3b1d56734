/** The recorded run that the page opens with. */

import { readRun } from '../run-reader';
import { experiment } from './experiment.svelte';
import { notices } from './notices.svelte';
import { Run } from './run.svelte';

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A run from parsed JSON, its settings completed. Throws an error that names the first field that is not as it should be. */
export function runOf(value: unknown): Run {
  // Without the module there are no names of tokens, and nothing to check them against.
  const file = readRun(value, experiment.tokenNames.length || Number.POSITIVE_INFINITY);
  const completed = experiment.completed(file.config);
  // What the settings know nothing of cannot be shown under its name.
  for (const name of ['environment', 'iterations'] as const) {
    if (completed[name] !== file.config[name]) throw new Error(`config.${name}: not one that there is`);
  }
  return Run.recorded({ ...file, config: completed });
}

/** Fetches and reads the recorded run; null, and a notice, where that fails. */
export async function loadRecorded(): Promise<Run | null> {
  let text: string;
  try {
    const response = await fetch(new URL('recorded/search.json', document.baseURI));
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    text = await response.text();
  } catch (error) {
    notices.show({ id: 'recorded', text: ({ notices }) => notices.recordedFailed, detail: words(error) });
    return null;
  }
  await experiment.loaded;
  try {
    return runOf(JSON.parse(text));
  } catch (error) {
    notices.show({ id: 'recorded', text: ({ notices }) => notices.recordedUnreadable, detail: words(error) });
    return null;
  }
}
