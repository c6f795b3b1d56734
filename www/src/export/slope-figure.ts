/** What if as a figure: one panel for each turn, one line for each episode, from its credit before to that after. */

import { mark } from '../credit-scale';
import { short, signed } from '../format';
import type { TurnSlopes } from '../whatif';
import type { Words } from '../words/en';
import { type Figure, type Shape, wrap } from './figure';
import { type Caption, type Colours, framed, moved } from './look';

export interface SlopeData {
  panels: TurnSlopes[];
  /** Where the axis ends, upwards and downwards. */
  end: number;
  /** The selected episode, as an index into the batch's trajectories. */
  selected: number | null;
}

const [WIDTH, HEIGHT, PER_ROW] = [220, 168, 4];

/** One turn, drawn from (0, 0) on. */
function panelShapes({ turn, slopes }: TurnSlopes, { end, selected }: SlopeData, w: Words, colours: Colours): Shape[] {
  const [left, right, middle, reach] = [44, 158, 84, 58];
  const [ink, muted] = [colours('--ink'), colours('--muted')];
  const y = (value: number) => middle - Math.max(-1.04, Math.min(1.04, value / end)) * reach;
  const text = (x: number, at: number, words: string, anchor: 'start' | 'middle' | 'end', fill = muted): Shape => ({
    kind: 'text',
    x,
    y: at,
    text: words,
    size: 10,
    anchor,
    fill,
    bold: fill === ink,
  });
  const shapes: Shape[] = [
    { kind: 'text', x: 0, y: 10, text: w.turn(turn + 1), size: 11, fill: ink, bold: true },
    {
      kind: 'path',
      points: [
        [
          [left - 6, middle],
          [right + 6, middle],
        ],
      ],
      stroke: colours('--border'),
      line: 1,
    },
    text(left - 10, middle + 3, '0', 'end'),
    text(left - 10, middle - reach + 3, `+${short(end)}`, 'end'),
    text(left - 10, middle + reach + 3, `−${short(end)}`, 'end'),
    text(left, HEIGHT - 6, w.whatIf.before, 'middle'),
    text(right, HEIGHT - 6, w.whatIf.after, 'middle'),
  ];
  // The selected one is drawn last, above the others.
  for (const { index, before, after } of slopes.toSorted((a, b) => Number(a.index === selected) - Number(b.index === selected))) {
    const on = index === selected;
    const sign = mark(after, 'advantage');
    const tone = sign === '+' ? colours('--better') : sign === '−' ? colours('--worse') : muted;
    const edge = on ? ink : tone;
    shapes.push(
      {
        kind: 'path',
        points: [
          [
            [left, y(before)],
            [right, y(after)],
          ],
        ],
        stroke: edge,
        line: on ? 2.4 : 1.2,
      },
      { kind: 'circle', x: left, y: y(before), radius: 3.4, fill: '#ffffff', stroke: edge, line: on ? 1.8 : 1 },
      { kind: 'circle', x: right, y: y(after), radius: 4.2, fill: tone, stroke: edge, line: on ? 1.8 : 1 },
    );
    if (sign === '+' || sign === '−') {
      const strokes: [number, number][][] = [
        [
          [right - 2.2, y(after)],
          [right + 2.2, y(after)],
        ],
      ];
      if (sign === '+')
        strokes.push([
          [right, y(after) - 2.2],
          [right, y(after) + 2.2],
        ]);
      shapes.push({ kind: 'path', points: strokes, stroke: '#ffffff', line: 1.3 });
    }
    if (on) shapes.push(text(right + 9, y(after) + 3.5, signed(after), 'start', ink));
  }
  return shapes;
}

export function slopeFigure(caption: Caption, data: SlopeData, w: Words, colours: Colours): Figure {
  const shapes = data.panels.flatMap((panel, i) =>
    panelShapes(panel, data, w, colours).map(shape =>
      moved(shape, (i % PER_ROW) * WIDTH, Math.floor(i / PER_ROW) * (HEIGHT + 12)),
    ),
  );
  const width = Math.max(2, Math.min(PER_ROW, data.panels.length)) * WIDTH;
  const height = Math.ceil(data.panels.length / PER_ROW) * (HEIGHT + 12);
  const lines = wrap(w.whatIf.legend, width, 10);
  lines.forEach((line, i) => {
    shapes.push({ kind: 'text', x: 0, y: height + 8 + i * 14, text: line, size: 10, fill: colours('--muted') });
  });
  return framed(caption, { width, height: height + lines.length * 14, shapes }, colours);
}
