/** The reports of a run as CSV: one line a step, every field under its dotted name. Numbers are independent of the locale. */

import type { Report } from '../protocol';

type Cell = number | null;

/** Fields that may be missing without being bad: they have no value for some steps. Any other `null` was not a finite number. */
const OPTIONAL = /^(by_type\.|update\.critic)/;

/** Every number of a value under its path. */
function flatten(value: unknown, path: string, into: Map<string, Cell>): void {
  if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value)) flatten(part, path ? `${path}.${key}` : key, into);
  } else if (typeof value === 'number') into.set(path, value);
  else into.set(path, OPTIONAL.test(path) ? null : Number.NaN);
}

/** Names of the columns in the order of the first report that has them. */
export function columns(rows: Map<string, Cell>[]): string[] {
  const names: string[] = [];
  for (const row of rows) {
    let at = 0;
    for (const name of row.keys()) {
      const known = names.indexOf(name);
      if (known >= 0) at = known + 1;
      else names.splice(at++, 0, name);
    }
  }
  // An object that is missing in some reports is none of their columns.
  return names.filter(name => !names.some(other => other.startsWith(`${name}.`)));
}

/** The shortest digits that give the same number back; `NaN`, `Infinity` as they are; nothing where there is no value. */
const cell = (value: Cell | undefined) => (value === null || value === undefined ? '' : String(value));

/** `notes` stand first, each in a line that begins with `#`. */
export function reportsCsv(reports: Report[], notes: string[]): string {
  const rows = reports.map(report => {
    const row = new Map<string, Cell>();
    flatten(report, '', row);
    return row;
  });
  const names = columns(rows);
  const comments = notes.map(note => `# ${note.replaceAll(/\s+/g, ' ')}`);
  const lines = [...comments, names.join(','), ...rows.map(row => names.map(name => cell(row.get(name))).join(','))];
  return `${lines.join('\n')}\n`;
}
