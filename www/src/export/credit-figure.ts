/** Assigned against measured credit as figures: the scatter of turns, and the table of agreement by method. */

import { fixed, percent, signedShort } from '../format';
import type { Dot } from '../parts/scatter';
import { reach } from '../parts/scatter';
import type { Agreement, CreditAccuracy, CreditMethod } from '../protocol';
import type { Words } from '../words/en';
import { type Figure, type Shape, textWidth, wrap } from './figure';
import { type Caption, type Colours, framed } from './look';

/** `said` stands below the picture: what dots and shading mean. */
export function scatterFigure(caption: Caption, dots: Dot[], said: string, w: Words, colours: Colours): Figure {
  const [size, margin] = [360, 8];
  const ends = { x: reach(dots.map(dot => dot.x)), y: reach(dots.map(dot => dot.y)) };
  const half = size / 2;
  const [muted, border, peer] = [colours('--muted'), colours('--border'), colours('--peer')];
  const shapes: Shape[] = [
    { kind: 'rect', x: half, y: 0, width: half, height: half, fill: peer },
    { kind: 'rect', x: 0, y: half, width: half, height: half, fill: peer },
    { kind: 'rect', x: 0, y: 0, width: size, height: size, stroke: colours('--rule'), line: 1 },
    {
      kind: 'path',
      points: [
        [
          [0, half],
          [size, half],
        ],
        [
          [half, 0],
          [half, size],
        ],
      ],
      stroke: border,
      line: 1,
    },
  ];
  for (const { x, y, tool } of dots) {
    const ink = y === 0 ? muted : colours(y > 0 ? '--better' : '--worse');
    const at = { x: half + (x / ends.x) * (half - margin), y: half - (y / ends.y) * (half - margin), radius: 3, opacity: 0.65 };
    shapes.push(tool ? { kind: 'circle', ...at, fill: ink } : { kind: 'circle', ...at, stroke: ink, line: 1 });
  }
  const label = (x: number, y: number, text: string, anchor: 'start' | 'end') =>
    shapes.push({ kind: 'text', x, y, text, size: 10, fill: muted, anchor });
  const round = (value: number) => signedShort(Number(value.toPrecision(2)));
  label(half + 4, 11, `${w.right.y} ${round(ends.y)}`, 'start');
  label(half + 4, size - 4, round(-ends.y), 'start');
  label(size - 4, half + 12, `${w.right.x} ${round(ends.x)}`, 'end');
  label(4, half + 12, round(-ends.x), 'start');
  const lines = wrap(said, size, 10);
  lines.forEach((line, i) => {
    shapes.push({ kind: 'text', x: 0, y: size + 16 + i * 14, text: line, size: 10, fill: muted });
  });
  return framed(caption, { width: size, height: size + 8 + lines.length * 14, shapes }, colours);
}

export interface AccuracyData {
  accuracy: CreditAccuracy;
  methods: { method: CreditMethod; name: string }[];
  used: CreditMethod | null;
  /** Continuations of each state that a Monte-Carlo method would play. */
  samples: number;
}

export function accuracyFigure(
  caption: Caption,
  { accuracy, methods, used, samples }: AccuracyData,
  w: Words,
  colours: Colours,
): Figure {
  const [ink, muted, rule] = [colours('--ink'), colours('--muted'), colours('--rule')];
  const names = methods.map(({ method, name }) => (method === used ? `${name} · ${w.right.inUse}` : name));
  const first = Math.max(150, ...names.map(name => textWidth(name, 11))) + 12;
  const [axis, cell, row] = [120, 86, 34];
  const columns = [0, 1].flatMap(half => [0, 1, 2].map(k => first + axis + (half * 3 + k + 1) * cell));
  const extra = (columns.at(-1) ?? 0) + 76;
  const shapes: Shape[] = [];
  const text = (x: number, y: number, words: string, more: Partial<Extract<Shape, { kind: 'text' }>> = {}) =>
    shapes.push({ kind: 'text', x, y, text: words, size: 10, fill: muted, ...more });
  const turns = accuracy.methods[0];
  const top = 30;
  text(0, top - 6, w.right.method);
  if (turns) {
    text(columns[2] ?? 0, 10, w.right.allTurns(turns.all_turns.turns), { anchor: 'end' });
    text(columns[5] ?? 0, 10, w.right.toolTurns(turns.tool_turns.turns), { anchor: 'end' });
  }
  for (const [k, x] of columns.entries()) {
    text(x, top - 6, [w.right.pearson, w.right.spearman, w.right.sign][k % 3] ?? '', { anchor: 'end' });
  }
  text(extra, top - 6, w.right.extra, { anchor: 'end' });
  // From -0.5 to 1.
  const toX = (value: number) => first + ((Math.max(-0.5, value) + 0.5) / 1.5) * (axis - 20);
  for (const tick of [0, 0.5, 1]) text(toX(tick), top - 6, String(tick), { anchor: 'middle', mono: true });
  shapes.push({
    kind: 'path',
    points: [
      [
        [0, top],
        [extra, top],
      ],
    ],
    stroke: colours('--border'),
    line: 1,
  });
  methods.forEach(({ method }, n) => {
    const y = top + n * row;
    const middle = y + row / 2;
    const found = accuracy.methods.find(entry => entry.method === method);
    if (method === used) shapes.push({ kind: 'rect', x: -6, y: y + 2, width: 3, height: row - 4, fill: ink });
    text(0, middle + 4, names[n] ?? '', { size: 11, fill: ink });
    shapes.push({
      kind: 'path',
      points: [
        [
          [0, y + row],
          [extra, y + row],
        ],
      ],
      stroke: rule,
      line: 1,
    });
    for (const tick of [0, 0.5, 1])
      shapes.push({
        kind: 'path',
        points: [
          [
            [toX(tick), y],
            [toX(tick), y + row],
          ],
        ],
        stroke: rule,
        line: 1,
      });
    if (!found) {
      text(first + axis, middle + 4, w.right.unavailable);
      return;
    }
    const { pearson } = found.all_turns;
    if (pearson?.interval) {
      const [low, high] = pearson.interval;
      shapes.push({
        kind: 'path',
        points: [
          [
            [toX(low), middle],
            [toX(high), middle],
          ],
        ],
        stroke: ink,
        line: 1.5,
      });
    }
    if (pearson) shapes.push({ kind: 'circle', x: toX(pearson.value), y: middle, radius: 3.5, fill: ink });
    const show = (value: Agreement | null, x: number, format: (value: number) => string) => {
      text(x, value?.interval ? middle : middle + 4, value ? format(value.value) : '–', {
        size: 11,
        fill: ink,
        anchor: 'end',
        mono: true,
        bold: true,
      });
      if (value?.interval) {
        const said = w.right.interval(format(value.interval[0]), format(value.interval[1]));
        text(x, middle + 12, said, { size: 9, anchor: 'end', mono: true });
      }
    };
    [found.all_turns, found.tool_turns].forEach((of, half) => {
      for (const [k, value] of [of.pearson, of.spearman, of.sign_agreement].entries()) {
        show(value, columns[half * 3 + k] ?? 0, k === 2 ? share => percent(share) : share => fixed(share));
      }
    });
    const cost = method === 'monte_carlo' ? (accuracy.states * samples).toLocaleString('en') : '0';
    text(extra, middle + 4, cost, { size: 11, fill: ink, anchor: 'end', mono: true });
  });
  const below = top + methods.length * row;
  text(0, below + 18, w.right.axis);
  return framed(caption, { width: extra, height: below + 22, shapes }, colours);
}
