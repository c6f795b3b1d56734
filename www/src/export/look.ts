/** What every figure has in common: colours of the light theme, a title above, the link below. */

import type { Figure, Shape } from './figure';
import { wrap } from './figure';

/** Colours by their name in the style sheet. */
export type Colours = (name: string) => string;

/** The colours of the light theme, whatever theme is on: figures stand on white ground. */
export function lightColours(): Colours {
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (rule instanceof CSSStyleRule && rule.selectorText === ':root' && rule.style.getPropertyValue('--ink')) {
        return name => rule.style.getPropertyValue(name).trim() || '#000000';
      }
    }
  }
  return () => '#000000';
}

/** Red, green and blue of a colour like `#1a5fa3`. */
export function rgb(colour: string): [number, number, number] {
  const parts = (colour.match(/^#?([\da-f]{2})([\da-f]{2})([\da-f]{2})$/i) ?? []).slice(1).map(part => Number.parseInt(part, 16));
  return [parts[0] ?? 0, parts[1] ?? 0, parts[2] ?? 0];
}

/** What a figure says about itself. */
export interface Caption {
  title: string;
  /** A second line, such as which episodes these are. */
  about: string;
  /** The link that opens the experiment. */
  link: string;
}

const MARGIN = 16;

/** A figure around shapes that were drawn from (0, 0) on: title above, link below, so that it stands alone. */
export function framed(caption: Caption, inner: { width: number; height: number; shapes: Shape[] }, colours: Colours): Figure {
  const width = Math.max(360, inner.width + 2 * MARGIN);
  const shapes: Shape[] = [];
  let y = MARGIN + 12;
  const put = (text: string, size: number, fill: string, bold = false, mono = false) => {
    for (const line of wrap(text, width - 2 * MARGIN, size, mono)) {
      shapes.push({ kind: 'text', x: MARGIN, y, text: line, size, fill, bold, mono });
      y += size + 4;
    }
  };
  put(caption.title, 14, colours('--ink'), true);
  put(caption.about, 11, colours('--muted'));
  y += 2;
  shapes.push(...inner.shapes.map(shape => moved(shape, MARGIN, y - 8)));
  y += inner.height + 10;
  put(`Turnwise · ${caption.link}`, 9, colours('--muted'));
  return { title: caption.title, width, height: Math.ceil(y + MARGIN - 10), shapes };
}

/** A shape at another place. */
export function moved(shape: Shape, dx: number, dy: number): Shape {
  if (shape.kind === 'path') {
    return { ...shape, points: shape.points.map(line => line.map(([x, y]): [number, number] => [x + dx, y + dy])) };
  }
  return { ...shape, x: shape.x + dx, y: shape.y + dy };
}

/** Diagonal lines inside a rectangle, as tool tokens have them. */
export function hatching(x: number, y: number, width: number, height: number): [number, number][][] {
  const lines: [number, number][][] = [];
  // A line falls from (x + at, y) to the left; both ends are cut off at the edges.
  for (let at = 5; at < width + height; at += 6) {
    const [top, left] = [Math.max(0, at - width), Math.max(0, at - height)];
    lines.push([
      [x + at - top, y + top],
      [x + left, y + at - left],
    ]);
  }
  return lines;
}
