/** Numbers and tables as text. */

import type { Counts } from './count';
import type { IterationRow } from './iteration';
import type { Row } from './rounds';
import { DECODED } from './shape';
import type { Quartiles } from './statistics';
import type { BenchWords } from './words';

/** Three digits that count. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** A median with its quartiles in brackets. */
export function spread([low, middle, high]: Quartiles, scale = 1): string {
  return Number.isFinite(middle) ? `${short(middle * scale)} (${short(low * scale)}–${short(high * scale)})` : '–';
}

export function calls(counts: Counts | null): string {
  return counts ? [counts.dispatches, counts.submits, counts.buffers, counts.reads].map(Math.round).join(' / ') : '–';
}

/** A table: its header, then its lines. */
export type Table = string[][];

export function updateTable(rows: Row[], w: BenchWords): Table {
  const line = (row: Row): string[] => [
    row.workers > 1 ? w.withWorkers(row.package, row.workers) : row.package,
    row.device,
    spread(row.seconds, 1000),
    row.state === 'ours' ? '1' : spread(row.ratio),
    row.state === 'ours' || row.state === 'failed' ? '–' : row.agreement.toExponential(1),
    row.detail ? `${w.verdicts[row.state]}: ${row.detail}` : w.verdicts[row.state],
    calls(row.counts),
  ];
  return [[w.contender, w.device, w.perStep, w.ratio, w.lossApart, w.verdict, w.calls], ...rows.map(line)];
}

export function decodeTable(rows: Row[], w: BenchWords): Table {
  const line = (row: Row): string[] => [
    String(row.sequences),
    row.package,
    row.device,
    spread(row.seconds, 1000),
    short((row.sequences * DECODED) / row.seconds[1]),
    row.state === 'ours' ? '1' : spread(row.ratio),
    row.state === 'ours' || row.state === 'failed' ? '–' : `${(100 * row.agreement).toFixed(0)} %`,
    row.detail ? `${w.verdicts[row.state]}: ${row.detail}` : w.verdicts[row.state],
    calls(row.counts),
  ];
  return [
    [w.sequences, w.contender, w.device, w.perDecode, w.tokensPerSecond, w.ratio, w.same, w.verdict, w.calls],
    ...rows.map(line),
  ];
}

export function iterationTable(rows: IterationRow[], w: BenchWords): Table {
  const line = (row: IterationRow): string[] => [
    row.device,
    row.failed || (row.workers > 1 ? w.withWorkers(row.name, row.workers) : row.name),
    spread(row.seconds),
    short(row.tokens),
    `${(100 * row.success).toFixed(0)} %`,
    row.toNinety === null ? w.notReached : short(row.toNinety),
    row.calls ? `${calls(row.calls.sample)} ${w.inTurns(row.calls.turns)}` : '–',
    calls(row.calls?.update ?? null),
  ];
  const head = [
    w.device,
    '',
    w.perIteration,
    w.tokens,
    w.success,
    w.toNinety,
    `${w.sampleCalls}: ${w.calls}`,
    `${w.updateCalls}: ${w.calls}`,
  ];
  return [head, ...rows.map(line)];
}

/** A table in Markdown. */
export function markdown(table: Table): string {
  const line = (cells: string[]): string => `| ${cells.join(' | ')} |`;
  const [head = [], ...rest] = table;
  return [line(head), line(head.map(() => '---')), ...rest.map(line)].join('\n');
}
