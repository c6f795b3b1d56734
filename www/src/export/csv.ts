/** The reports of a run as CSV: one line a step, every field under its dotted name. Numbers are independent of the locale. */

import type { Report } from '../protocol';

import { breathe } from './jsonl';

type Cell = number | null;

/** Reports at a time: all of a long run at once would hold the page up. */
const PIECE = 500;

/** Fields that may be missing without being bad: they have no value for some steps. Any other `null` was not a finite number. */
const OPTIONAL = /^(by_type\.|update\.critic)/;

/** Every number of a value under its path. */
function flatten(value: unknown, path: string, into: Map<string, Cell>): void {
  if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value)) flatten(part, path ? `${path}.${key}` : key, into);
  } else if (typeof value === 'number') into.set(path, value);
  else into.set(path, OPTIONAL.test(path) ? null : Number.NaN);
}

/** The numbers of a report under their names. */
function rowOf(report: Report): Map<string, Cell> {
  const row = new Map<string, Cell>();
  flatten(report, '', row);
  return row;
}

/** Puts names that are new where the report has them. */
function collect(row: Map<string, Cell>, names: string[]): void {
  if (row.size === names.length && names.every(name => row.has(name))) return;
  let at = 0;
  for (const name of row.keys()) {
    const known = names.indexOf(name);
    if (known >= 0) at = known + 1;
    else names.splice(at++, 0, name);
  }
}

/** Names of the columns in the order of the first report that has them. */
async function columns(reports: Report[]): Promise<string[]> {
  const names: string[] = [];
  for (const [i, report] of reports.entries()) {
    collect(rowOf(report), names);
    if (i % PIECE === PIECE - 1) await breathe();
  }
  // An object that is missing in some reports is none of their columns.
  return names.filter(name => !names.some(other => other.startsWith(`${name}.`)));
}

/** The shortest digits that give the same number back; `NaN`, `Infinity` as they are; nothing where there is no value. */
const cell = (value: Cell | undefined) => (value === null || value === undefined ? '' : String(value));

/** The file in pieces, as bytes: to turn all text into bytes in the end would hold the page up. `notes` stand first, each in a line that begins with `#`. */
export async function reportsCsv(reports: Report[], notes: string[]): Promise<Blob[]> {
  const names = await columns(reports);
  const comments = notes.map(note => `# ${note.replaceAll(/\s+/g, ' ')}`);
  const parts = [new Blob([`${[...comments, names.join(',')].join('\n')}\n`])];
  for (let from = 0; from < reports.length; from += PIECE) {
    const line = (report: Report) => {
      const row = rowOf(report);
      return `${names.map(name => cell(row.get(name))).join(',')}\n`;
    };
    parts.push(new Blob(reports.slice(from, from + PIECE).map(line)));
    await breathe();
  }
  return parts;
}
