/** A recorded run as the page shows it. */

import type { ExperimentConfig } from '../protocol';
import { readRun } from '../run-reader';
import { experiment } from './experiment.svelte';
import { Run } from './run.svelte';

/** How many tokens there are. Without the module there are no names of them, and nothing to check them against. */
export const vocabulary = (): number => experiment.tokenNames.length || Number.POSITIVE_INFINITY;

/** The settings of a run, completed. Throws an error that names the first that is not one. */
export function completed(config: ExperimentConfig): ExperimentConfig {
  const whole = experiment.completed(config);
  // What the settings know nothing of cannot be shown under its name.
  for (const name of ['environment', 'iterations'] as const) {
    if (whole[name] !== config[name]) throw new Error(`config.${name}: not one that there is`);
  }
  return whole;
}

/** A run from parsed JSON, its settings completed. Throws an error that names the first field that is not as it should be. */
export function runOf(value: unknown): Run {
  const file = readRun(value, vocabulary());
  return Run.recorded({ ...file, config: completed(file.config) });
}
