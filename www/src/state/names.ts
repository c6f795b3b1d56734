/** What values of settings are called on the page. */

import type { Difference } from '../protocol';
import { experiment } from './experiment.svelte';
import { say, words } from './ui.svelte';

/** A value as it stands in a link, in the words of the form; empty where the task has no such setting. */
export function valueName(name: string, value: string): string {
  const w = words();
  if (name === 'environment') {
    const found = experiment.description?.environments.find(entry => entry.name === value);
    return found ? say(found.label) : value;
  }
  const kind = experiment.settings.get(name)?.kind;
  const option = kind?.type === 'choice' ? kind.options.find(entry => entry.value === value) : undefined;
  if (kind?.type === 'switch') return value === '1' || value === 'true' ? w.run.on : w.run.off;
  return option ? say(option.label) : value.replace('-', '−');
}

/** Differences in one line, each as `said` words it. */
export function named(differences: Difference[], said: (name: string, a: string, b: string) => string): string {
  const parts = differences.map(({ name, label, a, b }) => said(say(label), valueName(name, a), valueName(name, b)));
  return parts.join(words().comma);
}
