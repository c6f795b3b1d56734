/** Numbers and tokens as people read them. The minus sign is U+2212, as wide as the plus. */

import type { Words } from './words/en';

export type Language = 'en' | 'zh';

const MINUS = '−';

/** Fixed decimals; what is not a finite number says so instead of pretending. */
export function fixed(value: number | null | undefined, decimals = 2): string {
  if (value === null || value === undefined || Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : `${MINUS}∞`;
  const text = Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** Fixed decimals with an explicit sign; what rounds to zero has none. */
export function signed(value: number, decimals = 2): string {
  const text = fixed(value, decimals);
  return Number.isFinite(value) && value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** As few digits as the value needs: `0.1`, `1e-3`, `16`. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return fixed(value);
  const size = Math.abs(value);
  const text = size !== 0 && size < 0.01 ? value.toExponential().replace('e-0', 'e-') : String(Number(value.toPrecision(6)));
  return text.replaceAll('-', MINUS);
}

/** A signed short number of at most three digits, for rewards. */
export function signedShort(value: number): string {
  const rounded = Number.isFinite(value) ? Number(value.toPrecision(3)) : value;
  return rounded > 0 ? `+${short(rounded)}` : short(rounded);
}

/** A share as a percentage. */
export function percent(value: number, decimals = 0): string {
  return Number.isFinite(value) ? `${fixed(value * 100, decimals)}%` : fixed(value);
}

/** A small number with enough decimals to be told from zero. */
export function measure(value: number): string {
  if (!Number.isFinite(value)) return fixed(value);
  const size = Math.abs(value);
  // Smaller ones are rounding, and so is their sign.
  if (size < 1e-7) return fixed(0, 3);
  if (size < 0.0005) return value.toExponential(0).replaceAll('-', MINUS);
  return fixed(value, size < 0.1 ? 3 : size < 100 ? 2 : 0);
}

/** Seconds as `13 s` or `1 min 52 s`. */
export function duration(seconds: number, language: Language): string {
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60);
  const rest = whole % 60;
  if (language === 'zh') return minutes ? `${minutes} 分 ${rest} 秒` : `${rest} 秒`;
  return minutes ? `${minutes} min ${rest} s` : `${rest} s`;
}

/** How long ago something was, in the largest unit that fits: `3 minutes ago`. */
export function ago(time: number, language: Language, now = Date.now()): string {
  const seconds = Math.max(0, (now - time) / 1000);
  const [size, unit] =
    seconds < 3600 ? ([60, 'minute'] as const) : seconds < 86_400 ? ([3600, 'hour'] as const) : ([86_400, 'day'] as const);
  return new Intl.RelativeTimeFormat(language === 'zh' ? 'zh-CN' : 'en', { numeric: 'auto' }).format(
    -Math.floor(seconds / size),
    unit,
  );
}

/** How long something took that may have taken less than a second: `0.4 s`, from ten seconds on as `duration`. */
export function took(seconds: number, language: Language): string {
  if (seconds >= 10) return duration(seconds, language);
  return `${Math.max(0, seconds).toFixed(1)} ${language === 'zh' ? '秒' : 's'}`;
}

/** Tokens per second, `32.9 k tokens/s`. */
export function speed(perSecond: number, language: Language): string {
  if (language === 'zh') {
    return perSecond >= 10_000 ? `${(perSecond / 10_000).toFixed(2)} 万词元/秒` : `${Math.round(perSecond)} 词元/秒`;
  }
  return perSecond >= 1_000 ? `${(perSecond / 1_000).toFixed(1)} k tokens/s` : `${Math.round(perSecond)} tokens/s`;
}

/** Bytes as megabytes. */
export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

/** An exponent as superscript digits. */
export function superscript(power: number): string {
  return [...String(power)].map(digit => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)] ?? '').join('');
}

/** The name of a token as drawn in a turn: delimiters become signs, tags lose their brackets. */
export function tokenLabel(name: string): string {
  if (name === '<eot>') return '⏎';
  if (name === '<obs>') return '‹';
  if (name === '</obs>') return '›';
  return name.replace(/^<(.+)>$/, '$1');
}

/** The name of a token as drawn in the prompt, where tags keep brackets. */
export function promptLabel(name: string): string {
  return name.replace(/^<(.+)>$/, '‹$1›');
}

/** How an episode came out: a tick, a cross, or the share that was right where many turns are judged. */
export function outcomeOf(success: number, { episodes }: Words): { sign: string; words: string; part: boolean } {
  if (success >= 1) return { sign: '✓', words: episodes.success, part: false };
  if (success <= 0) return { sign: '×', words: episodes.failure, part: false };
  const share = percent(success);
  return { sign: share, words: episodes.partly(share), part: true };
}
