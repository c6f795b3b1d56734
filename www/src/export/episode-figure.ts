/** One group of episodes as a figure: the same rows, colours and marks as on the page. */

import { type ColourScale, fill, mark } from '../credit-scale';
import type { ColumnView, RowView, TokenView, TurnView } from '../episodes';
import { fixed, outcomeOf, short, signedShort } from '../format';
import type { Words } from '../words/en';
import { type Figure, type Shape, textWidth } from './figure';
import { type Caption, type Colours, framed, hatching, rgb } from './look';

export interface GroupData {
  rows: RowView[];
  columns: ColumnView[];
  /** What a token is called. */
  label: (token: number) => string;
  /** The prompt that all start from. */
  prompt: string;
  /** What the colours mean, with the ends of the scale. */
  quantity: string;
  /** Words at the two ends of the scale. */
  ends: [string, string];
  lossMask: boolean;
  words: Words;
}

const [ROW, TOKEN, NUMBER] = [41, 27, 26];

function widthOf(label: string): number {
  return label === '‹' || label === '›' ? 11 : Math.max(19, 8 + textWidth(label, 11, true));
}

export function episodeFigure(caption: Caption, data: GroupData, colours: Colours): Figure {
  const { rows, columns, words: w } = data;
  const [ink, muted, rule, border] = [colours('--ink'), colours('--muted'), colours('--rule'), colours('--border')];
  const palette = {
    neutral: rgb(colours('--neutral')),
    better: rgb(colours('--better')),
    worse: rgb(colours('--worse')),
    ink: rgb(ink),
  };
  const shapes: Shape[] = [];
  const text = (x: number, y: number, words: string, more: Partial<Extract<Shape, { kind: 'text' }>> = {}) =>
    shapes.push({ kind: 'text', x, y, text: words, size: 11, fill: ink, ...more });
  const pills = (turn: TurnView) =>
    [
      ...(turn.process !== 0 ? [{ words: signedShort(Number(turn.process.toFixed(4))), outcome: false }] : []),
      ...(turn.outcome !== 0 ? [{ words: signedShort(turn.outcome), outcome: true }] : []),
    ].map(pill => ({ ...pill, width: textWidth(pill.words, 10, true) + 12 }));
  const widthOfTurn = (turn: TurnView) =>
    turn.tokens.reduce((sum, token) => sum + widthOf(data.label(token.token)) + 2, 12) +
    pills(turn).reduce((sum, pill) => sum + pill.width + 2, 0);
  const heads = columns.map((_, k) => {
    const needed = rows.map(row => row.turns[k]).flatMap(turn => (turn ? [widthOfTurn(turn)] : []));
    return Math.max(110, ...needed);
  });
  const starts = heads.map((_, k) => NUMBER + heads.slice(0, k).reduce((sum, width) => sum + width, 0));
  const end = NUMBER + heads.reduce((sum, width) => sum + width, 0);
  const width = end + 100;

  text(0, 10, data.prompt, { mono: true });
  columns.forEach((column, k) => {
    const x = (starts[k] ?? 0) + 6;
    text(x, 30, w.turn(k + 1), { bold: true });
    const said = column.reached === 0 ? w.episodes.nobody : w.episodes.reached(column.reached);
    const compared =
      column.mean !== null && column.scale !== null && column.peers > 0 ? ` · ${w.episodes.mean} ${fixed(column.mean)}` : '';
    text(x, 43, said + compared, { size: 10, fill: muted });
  });
  text(width, 43, w.episodes.returnOk, { size: 10, fill: muted, anchor: 'end' });
  const top = 50;
  shapes.push({
    kind: 'path',
    points: [
      [
        [0, top],
        [width, top],
      ],
    ],
    stroke: border,
    line: 1,
  });

  const drawToken = (token: TokenView, x: number, y: number, scale: ColourScale) => {
    const label = data.label(token.token);
    const wide = widthOf(label);
    const coloured = token.trained && Number.isFinite(token.value);
    const look = coloured ? fill(token.value, scale) : null;
    const sign = coloured && token.sampled ? mark(token.value, scale.quantity) : '';
    const ground = look ? hex(look.background) : token.sampled ? colours('--neutral') : '#ffffff';
    shapes.push({
      kind: 'rect',
      x,
      y,
      width: wide,
      height: TOKEN,
      fill: ground,
      ...(token.sampled ? { radius: 3 } : { stroke: border, line: 1 }),
    });
    if (!token.sampled) {
      shapes.push({
        kind: 'path',
        points: hatching(x, y, wide, TOKEN),
        stroke: look ? '#ffffff' : colours('--hatch'),
        line: 0.6,
      });
    }
    const fillOf = look ? look.text : token.sampled ? ink : muted;
    text(x + wide / 2, y + (sign ? 12 : 17), label, { fill: fillOf, anchor: 'middle', mono: true });
    if (sign) text(x + wide / 2, y + 22, sign, { size: 10, fill: fillOf, anchor: 'middle', mono: true, bold: true });
    if (token.trained) shapes.push({ kind: 'rect', x: x - 2, y: y + TOKEN + 3, width: wide + 4, height: 2, fill: ink });
    return wide + 2;
  };
  rows.forEach((row, n) => {
    const y = top + n * ROW;
    const scale = { ...row.scale, palette };
    text(0, y + 24, String(row.trajectory.member + 1), { mono: true, fill: muted });
    row.turns.forEach((turn, k) => {
      const start = starts[k] ?? 0;
      shapes.push({
        kind: 'path',
        points: [
          [
            [start, y],
            [start, y + ROW],
          ],
        ],
        stroke: border,
        line: 1,
      });
      let x = start + 6;
      for (const token of turn.tokens) x += drawToken(token, x, y + 5, scale);
      for (const pill of pills(turn)) {
        const fillOf = pill.outcome ? ink : '#ffffff';
        shapes.push({ kind: 'rect', x, y: y + 11, width: pill.width, height: 16, radius: 8, fill: fillOf, stroke: ink, line: 1 });
        text(x + pill.width / 2, y + 22.5, pill.words, {
          size: 10,
          mono: true,
          anchor: 'middle',
          fill: pill.outcome ? '#ffffff' : ink,
        });
        x += pill.width + 2;
      }
    });
    const outcome = outcomeOf(row.success, w);
    const cut = row.trajectory.end === 'terminated' ? '' : `${w.episodes.cut} `;
    text(width, y + 24, `${row.return === null ? '' : fixed(row.return)} ${cut}${outcome.sign}`, { mono: true, anchor: 'end' });
    shapes.push({
      kind: 'path',
      points: [
        [
          [0, y + ROW],
          [width, y + ROW],
        ],
      ],
      stroke: rule,
      line: 1,
    });
  });

  const scale = rows[0] && { ...rows[0].scale, palette };
  let y = top + rows.length * ROW + 20;
  if (scale) {
    const surprise = scale.quantity === 'log_prob';
    const [low, high] = surprise ? ['0', `−${short(scale.clamp)}`] : [`−${short(scale.clamp)}`, `+${short(scale.clamp)}`];
    const before = `${data.quantity}: ${data.ends[0]} ${low}`;
    text(0, y, before, { size: 10, fill: muted });
    let x = textWidth(before, 10) + 6;
    for (let i = 0; i < 9; i++, x += 13) {
      const value = (surprise ? -i / 8 : i / 4 - 1) * scale.clamp;
      shapes.push({ kind: 'rect', x, y: y - 10, width: 13, height: 12, fill: hex(fill(value, scale).background) });
    }
    text(x + 5, y, `${high} ${data.ends[1]}`, { size: 10, fill: muted });
    y += 16;
  }
  const { legend } = w;
  /** What a mark means: the mark, 20 pixels wide, and its words. */
  const key: { draw: (x: number) => void; words: string }[] = [
    {
      draw: x => {
        shapes.push({ kind: 'rect', x, y: y - 10, width: 20, height: 12, fill: '#ffffff', stroke: border, line: 1 });
        shapes.push({ kind: 'path', points: hatching(x, y - 10, 20, 12), stroke: colours('--hatch'), line: 0.6 });
      },
      words: data.lossMask ? legend.tool : legend.toolTrained,
    },
    { draw: x => shapes.push({ kind: 'rect', x, y: y - 5, width: 20, height: 2, fill: ink }), words: legend.mask },
    { draw: x => text(x + 10, y, '⏎', { mono: true, anchor: 'middle' }), words: legend.eot.replace(/^⏎\s*/, '') },
    { draw: x => shapes.push({ kind: 'rect', x, y: y - 10, width: 20, height: 12, radius: 6, fill: ink }), words: legend.reward },
  ];
  let x = 0;
  for (const { draw, words } of key) {
    const wide = 26 + textWidth(words, 10) + 18;
    if (x > 0 && x + wide > width) [x, y] = [0, y + 16];
    draw(x);
    text(x + 26, y, words, { size: 10, fill: muted });
    x += wide;
  }
  y += 14;
  return framed(caption, { width, height: y, shapes }, colours);
}

/** `rgb(1 2 3)` as `#010203`, which every program reads. */
function hex(colour: string): string {
  const parts = (colour.match(/\d+/g) ?? []).slice(0, 3).map(part => Number(part).toString(16).padStart(2, '0'));
  return `#${parts.join('')}`;
}
