/** Colours come from the style sheet alone; what draws on a canvas or mixes colours asks here. */

import type { Palette } from './credit-scale';
import type { Theme } from './state/ui.svelte';

const probe = document.createElement('span');
probe.hidden = true;
document.documentElement.append(probe);

/** Asking makes the browser settle every style of the page first: once for each colour and theme is enough. */
const known = new Map<string, string>();

/** A colour of the style sheet as `rgb(...)`. */
export function color(name: string): string {
  const key = `${document.documentElement.dataset.theme} ${name}`;
  let value = known.get(key);
  if (value === undefined) {
    probe.style.color = `var(${name})`;
    value = getComputedStyle(probe).color;
    known.set(key, value);
  }
  return value;
}

const parts = (name: string) => (color(name).match(/[\d.]+/g) ?? []).slice(0, 3).map(Number) as [number, number, number];

/** The colours of the credit scale. The theme is named so that whoever asks is asked again when it changes. */
export function creditPalette(_theme: Theme): Palette {
  return { neutral: parts('--neutral'), better: parts('--better'), worse: parts('--worse'), ink: parts('--ink') };
}
