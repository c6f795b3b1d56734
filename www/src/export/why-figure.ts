/** The chain from what happened to the weight of a token, as a figure: a box for each step. */

import { fixed, percent, short, signedShort, superscript } from '../format';
import type { Facts, Part, Provenance } from '../protocol';
import type { Words } from '../words/en';
import { type Figure, type Shape, wrap } from './figure';
import { type Caption, type Colours, framed } from './look';

/** One box: its heading, its lines, and the number that it ends in. */
export interface ChainBox {
  head: string;
  lines: string[];
  result: string | null;
}

const four = (value: number | null | undefined) => fixed(value, 4);
const six = (value: number) => Number(value.toFixed(6));

/** The steps in order, with every number that the page shows. */
export function chainBoxes(provenance: Provenance, facts: Facts, sampled: boolean, w: Words): ChainBox[] {
  const { chain, token } = provenance;
  const contribution = ({ weight, value, baseline, scale }: Part) => (weight * (value - baseline)) / scale;
  const sum = chain.parts.reduce((total, { part }) => total + contribution(part), 0);
  const happened = (Object.keys(w.why.facts) as (keyof Facts)[]).filter(name => facts[name]).map(name => w.why.facts[name]);
  const boxes: ChainBox[] = [{ head: w.why.fact, lines: [happened.join(w.comma) || '–'], result: null }];
  const [first] = chain.parts;
  if (first) {
    const lines = first.rewards.flatMap(({ turn, terms, amount, discount }) => [
      `${w.why.ofTurn(turn + 1)}: ${terms.map(({ term, weight }) => `${w.terms[term]} ${signedShort(six(weight))}`).join(w.comma)}`,
      `γ${superscript(turn - first.part.turn)} × ${short(six(amount / discount))} = ${four(amount)}`,
    ]);
    if (lines.length === 0) lines.push(w.why.noReward);
    if (first.value_after !== null) lines.push(`${w.why.valueAfter} ${four(first.value_after)}`);
    boxes.push({ head: w.why.rewards, lines, result: `= ${four(first.part.value)}` });
  }
  boxes.push({
    head: w.why.part,
    lines: chain.parts.flatMap(({ part }) => {
      const whole = part.kind === 'episode' || part.kind === 'outcome';
      const of = part.turn !== chain.turn && !whole ? `${w.comma}${w.why.ofTurn(part.turn + 1)}` : '';
      const weight = part.weight === 1 ? '' : `${short(six(part.weight))} × `;
      const scale = part.scale === 1 ? '' : ` ÷ ${four(part.scale)}`;
      return [
        `${w.why.kinds[part.kind]}${of} (${w.why.peers(part.peers)})`,
        `${weight}(${four(part.value)} − ${four(part.baseline)})${scale} = ${four(contribution(part))}`,
      ];
    }),
    result: `= ${four(sum)}`,
  });
  if (chain.whitening) {
    const { mean, scale, tokens } = chain.whitening;
    boxes.push({
      head: w.why.whitening(tokens),
      lines: [`(${four(sum)} − ${four(mean)}) ÷ ${four(scale)}`],
      result: `= ${four(chain.advantage)}`,
    });
  }
  const mask = token?.left_out ? w.why.leftOut[token.left_out] : sampled ? w.why.trained : w.why.trainedTool;
  boxes.push({ head: w.why.mask, lines: [mask], result: token?.left_out ? '0' : '1' });
  boxes.push({ head: w.why.advantage, lines: [], result: token?.left_out ? '0' : four(chain.advantage) });
  if (token && !token.left_out) {
    boxes.push({ head: w.why.ratio, lines: [token.clipped ? w.why.clipped : w.why.first], result: four(token.ratio) });
    const loss = token.share !== null && provenance.policy_loss != null;
    boxes.push({
      head: w.why.share,
      lines: loss ? [w.why.loss(fixed(token.share, 6), fixed(provenance.policy_loss, 6))] : [],
      result: percent(token.gradient_share, 2),
    });
  } else if (!token) boxes.push({ head: w.why.share, lines: [w.why.pairs], result: null });
  return boxes;
}

export function whyFigure(caption: Caption, boxes: ChainBox[], colours: Colours): Figure {
  const [width, gap, perRow] = [210, 26, 4];
  const [ink, muted, rule] = [colours('--ink'), colours('--muted'), colours('--rule')];
  const laid = boxes.map(box => ({
    ...box,
    head: wrap(box.head, width - 16, 10),
    lines: box.lines.flatMap(line => wrap(line, width - 16, 11)),
  }));
  const shapes: Shape[] = [];
  let y = 0;
  for (let from = 0; from < laid.length; from += perRow) {
    const row = laid.slice(from, from + perRow);
    const height = Math.max(
      ...row.map(({ head, lines, result }) => 12 + head.length * 13 + lines.length * 15 + (result ? 24 : 4)),
    );
    row.forEach(({ head, lines, result }, k) => {
      const x = k * (width + gap);
      const last = from + k === laid.length - 1;
      shapes.push({
        kind: 'rect',
        x,
        y,
        width,
        height,
        radius: 4,
        fill: '#ffffff',
        stroke: last ? ink : rule,
        line: last ? 1.5 : 1,
      });
      if (from + k > 0)
        shapes.push({
          kind: 'text',
          x: k > 0 ? x - gap / 2 : -9,
          y: y + height / 2 + 4,
          text: '→',
          size: 12,
          fill: muted,
          anchor: 'middle',
        });
      let at = y + 16;
      for (const line of head) {
        shapes.push({ kind: 'text', x: x + 8, y: at, text: line, size: 10, fill: muted });
        at += 13;
      }
      for (const line of lines) {
        shapes.push({ kind: 'text', x: x + 8, y: at + 2, text: line, size: 11, fill: ink });
        at += 15;
      }
      if (result)
        shapes.push({ kind: 'text', x: x + 8, y: y + height - 9, text: result, size: 14, fill: ink, bold: true, mono: true });
    });
    y += height + 12;
  }
  const columns = Math.min(perRow, laid.length);
  return framed(caption, { width: columns * width + (columns - 1) * gap, height: y - 12, shapes }, colours);
}
