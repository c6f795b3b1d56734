/** What a file is, from its bytes. Pure: nothing is opened here. */

/** Largest file that is read at all, in bytes: a run of as many steps as there may be, with its episodes, is 170 MB. */
export const FILE_LIMIT = 200e6;

export type Found =
  | { kind: 'run'; value: unknown }
  | { kind: 'settings'; text: string }
  | { kind: 'link'; fragment: string }
  | { kind: 'wrong'; why: 'empty' | 'binary' | 'html' | 'json' | 'jsonl' | 'other' | 'link'; detail: string };

const wrong = (why: Extract<Found, { kind: 'wrong' }>['why'], detail = ''): Found => ({ kind: 'wrong', why, detail });

/** The fragment of the first link to an experiment in a text, without `#`; null where there is none. */
export function findLink(text: string): string | null {
  // In Markdown and HTML a link ends at its bracket, quotation mark or parenthesis.
  return text.match(/(?:#|^\s*)(v=\d+&[^\s<>"'`()[\]{}\\^|]+)/m)?.[1] ?? null;
}

/** Text of bytes; null where they are none. */
function decoded(bytes: Uint8Array): string | null {
  const [first, second] = bytes;
  // Some editors save links in UTF-16.
  const encoding = first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}

function parsed(text: string): { value: unknown } | { error: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

function json(text: string): Found {
  const whole = parsed(text);
  if ('error' in whole) {
    const [first] = text.split('\n', 1);
    const line = parsed(first ?? '');
    const rest = text.slice((first ?? '').length).trim();
    return rest && 'value' in line ? wrong('jsonl') : wrong('json', whole.error);
  }
  const { value } = whole;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return wrong('other');
  if ('trajectory' in value) return wrong('jsonl');
  if ('reports' in value || 'batches' in value) return { kind: 'run', value };
  return 'environment' in value ? { kind: 'settings', text } : wrong('other');
}

/** What these bytes are. */
export function sniff(bytes: Uint8Array): Found {
  if (bytes.length === 0) return wrong('empty');
  const text = decoded(bytes)?.replace(/^\ufeff/, '');
  if (text === undefined) return wrong('binary');
  const start = text.trimStart();
  if (start === '') return wrong('empty');
  if (/^<(!doctype|html|head|body)/i.test(start)) return wrong('html');
  if (start.startsWith('{') || /^\[\s*[\d"{[\]]/.test(start)) return json(text);
  const fragment = findLink(text);
  if (fragment) return { kind: 'link', fragment };
  // A number, a word or a text by itself is JSON too, and nothing to open.
  return 'value' in parsed(start) ? wrong('other') : wrong('link');
}
