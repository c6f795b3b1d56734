/** Curves over iterations as figures: one chart of lines, and the other measures as small curves in a table. */

import type { ChartBand, ChartLine } from '../parts/chart';
import { iterationTicks, spread } from '../parts/chart';
import { type Figure, type Shape, textWidth } from './figure';
import { type Caption, type Colours, framed } from './look';

export interface ChartData {
  x: number[];
  xMax: number;
  lines: ChartLine[];
  /** The spread of several runs, behind the lines. */
  bands: ChartBand[];
  yMax: number;
  yTicks: number[];
  format: (value: number) => string;
  /** What the axes say. */
  xLabel: string;
  /** Iteration of the batch on show, with what is said of it. */
  head: { at: number; text: string } | null;
  /** What the shaded part before iteration 0 is called; null without one. */
  imitation: string | null;
}

const there = (value: number | null | undefined): value is number =>
  value !== null && value !== undefined && Number.isFinite(value);

/** The pieces of a line between its gaps. */
function pieces(values: (number | null)[], at: (i: number, value: number) => [number, number]): [number, number][][] {
  const found: [number, number][][] = [];
  values.forEach((value, i) => {
    if (!there(value)) return;
    if (there(values[i - 1]) && found.length > 0) found.at(-1)?.push(at(i, value));
    else found.push([at(i, value)]);
  });
  return found;
}

export function chartFigure(caption: Caption, data: ChartData, colours: Colours): Figure {
  const { x, xMax, lines, bands, yMax, yTicks, format, head, imitation } = data;
  const [left, top, width, height] = [44, 18, 520, 250];
  const shade = imitation === null ? 0 : Math.max(1, xMax / 6);
  const toX = (value: number) => left + ((value + shade) / Math.max(1e-9, xMax + shade)) * width;
  const toY = (value: number) => top + height - (Math.min(yMax, Math.max(0, value)) / yMax) * height;
  const [ink, muted, rule] = [colours('--ink'), colours('--muted'), colours('--rule')];
  const shapes: Shape[] = [];
  const text = (at: [number, number], words: string, more: Partial<Extract<Shape, { kind: 'text' }>> = {}) =>
    shapes.push({ kind: 'text', x: at[0], y: at[1], text: words, size: 10, fill: muted, ...more });

  if (imitation !== null) {
    shapes.push({ kind: 'rect', x: left, y: top, width: toX(0) - left, height, fill: colours('--shade') });
    text([left + 2, top - 5], imitation);
  }
  for (const tick of yTicks) {
    shapes.push({
      kind: 'path',
      points: [
        [
          [left, toY(tick)],
          [left + width, toY(tick)],
        ],
      ],
      stroke: rule,
      line: 1,
    });
    text([left - 5, toY(tick) + 3.5], format(tick), { anchor: 'end' });
  }
  shapes.push({
    kind: 'path',
    points: [
      [
        [left, top + height],
        [left + width, top + height],
      ],
    ],
    stroke: muted,
    line: 1,
  });
  for (const tick of iterationTicks(xMax)) text([toX(tick), top + height + 14], String(tick), { anchor: 'middle' });
  text([left + width / 2, top + height + 30], data.xLabel, { anchor: 'middle' });
  if (head) {
    shapes.push({
      kind: 'path',
      points: [
        [
          [toX(head.at), top],
          [toX(head.at), top + height],
        ],
      ],
      stroke: ink,
      line: 1,
    });
    const flip = head.at > xMax * 0.75;
    text([toX(head.at) + (flip ? -5 : 5), top - 5], head.text, { anchor: flip ? 'end' : 'start', fill: ink });
  }
  for (const { low, high } of bands) {
    const whole = low.map((value, i) => (there(value) && there(high[i]) ? value : null));
    const floor = pieces(whole, i => [i, i]);
    // Once along the lower edge and back along the upper one, for each piece without a gap.
    const areas = floor.map(piece => {
      const places = piece.map(([i]) => i);
      const edge = (of: (number | null)[], i: number): [number, number] => [toX(x[i] ?? 0), toY(of[i] ?? 0)];
      return [...places.map(i => edge(low, i)), ...places.toReversed().map(i => edge(high, i))];
    });
    shapes.push({ kind: 'path', points: areas.filter(area => area.length > 2), fill: colours('--shade') });
  }
  const ends: { top: number; text: string; fill: string; left: number }[] = [];
  for (const line of lines) {
    const stroke = colours(line.color);
    const place = (i: number, value: number): [number, number] => [toX(x[i] ?? 0), toY(value)];
    const drawn = pieces(line.values, place);
    shapes.push({
      kind: 'path',
      points: drawn.filter(piece => piece.length > 1),
      stroke,
      line: line.width,
      ...(line.dashed ? { dash: [5, 4] } : {}),
    });
    const known = line.values.flatMap((value, i) => (there(value) ? [{ i, value }] : []));
    const every = Math.max(1, Math.ceil(known.length / 12));
    for (const [n, { i, value }] of known.entries()) {
      const alone = !there(line.values[i - 1]) && !there(line.values[i + 1]);
      if (alone || (line.dots && n % every === 0)) {
        shapes.push({ kind: 'circle', x: toX(x[i] ?? 0), y: toY(value), radius: line.dots ? 2.5 : 1.5, fill: stroke });
      }
    }
    // A cross on the axis for every value that is not a number.
    const crosses = line.values.flatMap((value, i): [number, number][][] => {
      if (value === null || Number.isFinite(value)) return [];
      const [at, y] = [toX(x[i] ?? 0), top + height - 4];
      return [
        [
          [at - 3, y - 3],
          [at + 3, y + 3],
        ],
        [
          [at - 3, y + 3],
          [at + 3, y - 3],
        ],
      ];
    });
    if (crosses.length > 0) shapes.push({ kind: 'path', points: crosses, stroke: ink, line: 1.5 });
    const last = known.at(-1);
    if (last && !line.unlabelled) {
      ends.push({
        top: toY(last.value),
        text: `${line.label} ${format(last.value)}`,
        fill: stroke,
        left: toX(x[last.i] ?? 0) + 6,
      });
    }
  }
  const placed = spread(ends, top, top + height);
  for (const end of placed) text([end.left, end.top + 3.5], end.text, { fill: end.fill, bold: true });
  const right = Math.max(left + width, ...placed.map(end => end.left + textWidth(end.text, 10) + 8));
  return framed(caption, { width: right, height: top + height + 34, shapes }, colours);
}

export interface MeasureRow {
  name: string;
  /** Iterations at which there are values. */
  x: number[];
  values: (number | null)[];
  atHead: string;
  latest: string;
}

/** The other measures: name, small curve, value at the batch on show, latest value. */
export function measuresFigure(
  caption: Caption,
  data: { rows: MeasureRow[]; length: number; at: number | null; heads: [string, string] },
  colours: Colours,
): Figure {
  const { rows, length, at, heads } = data;
  const [nameWidth, curve, step] = [150, 300, 30];
  const [ink, muted, rule] = [colours('--ink'), colours('--muted'), colours('--rule')];
  const shapes: Shape[] = [];
  const first = nameWidth + curve + 80;
  const second = first + 80;
  heads.forEach((head, i) => {
    shapes.push({ kind: 'text', x: i === 0 ? first : second, y: 10, text: head, size: 10, fill: muted, anchor: 'end' });
  });
  rows.forEach(({ name, x, values, atHead, latest }, row) => {
    const base = 20 + (row + 1) * step;
    const finite = values.filter(there);
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    const toX = (i: number) => nameWidth + (i / Math.max(1, length - 1)) * curve;
    const toY = (value: number) => (high > low ? base - 4 - ((value - low) / (high - low)) * (step - 10) : base - step / 2);
    shapes.push({
      kind: 'path',
      points: [
        [
          [0, base],
          [second, base],
        ],
      ],
      stroke: rule,
      line: 1,
    });
    shapes.push({ kind: 'text', x: 0, y: base - 9, text: name, size: 11, fill: ink });
    const drawn = pieces(values, (i, value) => [toX(x[i] ?? 0), toY(value)]);
    shapes.push({ kind: 'path', points: drawn.filter(piece => piece.length > 1), stroke: ink, line: 1.2 });
    for (const piece of drawn) {
      const [alone] = piece;
      if (piece.length === 1 && alone) shapes.push({ kind: 'circle', x: alone[0], y: alone[1], radius: 1.5, fill: ink });
    }
    const crosses = values.flatMap((value, i): [number, number][][] => {
      if (value === null || Number.isFinite(value)) return [];
      const at = toX(x[i] ?? 0);
      return [
        [
          [at - 3, base - 9],
          [at + 3, base - 3],
        ],
        [
          [at - 3, base - 3],
          [at + 3, base - 9],
        ],
      ];
    });
    if (crosses.length > 0) shapes.push({ kind: 'path', points: crosses, stroke: ink, line: 1.2 });
    if (at !== null)
      shapes.push({
        kind: 'path',
        points: [
          [
            [toX(at), base - step + 4],
            [toX(at), base - 2],
          ],
        ],
        stroke: muted,
        line: 0.8,
      });
    shapes.push({ kind: 'text', x: first, y: base - 9, text: atHead, size: 11, fill: muted, anchor: 'end', mono: true });
    shapes.push({
      kind: 'text',
      x: second,
      y: base - 9,
      text: latest,
      size: 11,
      fill: ink,
      anchor: 'end',
      mono: true,
      bold: true,
    });
  });
  return framed(caption, { width: second, height: 24 + (rows.length + 1) * step - step + 8, shapes }, colours);
}
