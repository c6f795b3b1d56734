/** A recorded run as the page shows it. */

import { readRun } from '../run-reader';
import { experiment } from './experiment.svelte';
import { Run } from './run.svelte';

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
