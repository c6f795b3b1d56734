/** From a number to a fill: a symmetric, clamped, diverging scale for credit, and a plain ramp for how surprising a token was. */

import type { CreditMethod } from './protocol';

/** What tokens are coloured by: what stands in the batch, the measured truth, or what another method would have assigned. */
export type Quantity = 'advantage' | 'return_to_go' | 'log_prob' | 'true_credit' | `method:${CreditMethod}`;

/** The method whose credit a quantity is; null for everything else. */
export function methodOf(quantity: Quantity): CreditMethod | null {
  return quantity.startsWith('method:') ? (quantity.slice('method:'.length) as CreditMethod) : null;
}

type Rgb = readonly [number, number, number];

export interface Palette {
  neutral: Rgb;
  better: Rgb;
  worse: Rgb;
  ink: Rgb;
}

/** What the values of a row are coloured by. */
export interface ColourScale {
  quantity: Quantity;
  /** The size at which the colours end. */
  clamp: number;
  palette: Palette;
}

export interface Fill {
  background: string;
  text: string;
}

/** Values that are drawn without a sign. */
const ZERO = 0.005;

/** The quantile of the sizes that the scale is clamped at: a few extreme tokens must not wash out the rest. */
const CLAMP_QUANTILE = 0.95;

/** Where the colour scale ends, from all values of a batch; 1 where nothing differs from zero. */
export function clampOf(values: number[]): number {
  const sizes = values.map(Math.abs).filter(size => size > 1e-9 && Number.isFinite(size));
  if (sizes.length === 0) return 1;
  sizes.sort((a, b) => a - b);
  const size = sizes[Math.min(sizes.length - 1, Math.floor(CLAMP_QUANTILE * sizes.length))] ?? 1;
  return Math.max(0.01, Number(size.toPrecision(2)));
}

/** The sign under a token: `+`, `−` or `0`; nothing for a quantity whose sign says nothing. */
export function mark(value: number, quantity: Quantity): string {
  if (quantity === 'log_prob') return '';
  if (Number.isNaN(value)) return '?';
  if (Math.abs(value) < ZERO) return '0';
  return value < 0 ? '−' : '+';
}

/** Background and text of a token. Blue and orange mean the sign of credit; log-probabilities get a ramp towards ink. */
export function fill(value: number, { clamp, quantity, palette }: ColourScale): Fill {
  const size = Number.isFinite(value) ? Math.min(1, Math.abs(value) / clamp) : 0;
  const end = quantity === 'log_prob' ? palette.ink : value < 0 ? palette.worse : palette.better;
  const strength = size ** 0.8 * (quantity === 'log_prob' ? 0.75 : 1);
  const mixed = palette.neutral.map((part, i) => Math.round(part + ((end[i] ?? part) - part) * strength)) as unknown as Rgb;
  return { background: `rgb(${mixed.join(' ')})`, text: readable(mixed) };
}

/** Black or white, whichever contrasts more (never under 4.58 to 1). */
function readable(color: Rgb): string {
  const [red, green, blue] = color.map(part => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? '#fff' : '#000';
}
