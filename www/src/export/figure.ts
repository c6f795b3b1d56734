/** A figure as a list of shapes: written as SVG, or drawn on a canvas for PNG, from the same list. Pure, without the page. */

export type Shape =
  | {
      kind: 'rect';
      x: number;
      y: number;
      width: number;
      height: number;
      fill?: string;
      stroke?: string;
      line?: number;
      radius?: number;
    }
  | { kind: 'path'; points: [number, number][][]; stroke?: string; line?: number; dash?: number[]; fill?: string }
  | { kind: 'circle'; x: number; y: number; radius: number; fill?: string; stroke?: string; line?: number; opacity?: number }
  | {
      kind: 'text';
      x: number;
      y: number;
      text: string;
      fill: string;
      size: number;
      anchor?: 'start' | 'middle' | 'end';
      bold?: boolean;
      mono?: boolean;
    };

export interface Figure {
  /** Said first by programs that read the file aloud. */
  title: string;
  width: number;
  height: number;
  shapes: Shape[];
}

/** Fonts that are named in every figure: no page's own fonts, so that a figure looks alike in other programs. */
const SANS = "'Noto Sans', 'DejaVu Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif";
const MONO = "'DejaVu Sans Mono', Consolas, Menlo, 'Noto Sans CJK SC', monospace";

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
/** Text for XML. Control characters are not allowed there at all. */
const escaped = (text: string) =>
  [...text].map(sign => ENTITIES[sign] ?? (sign < ' ' && !'\t\n'.includes(sign) ? ' ' : sign)).join('');
const round = (value: number) => String(Number(value.toFixed(2)));

function attributes(values: Record<string, string | number | undefined>): string {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}="${typeof value === 'number' ? round(value) : escaped(String(value))}"`)
    .join('');
}

function element(shape: Shape): string {
  const stroke = {
    stroke: shape.kind === 'text' ? undefined : shape.stroke,
    'stroke-width': 'line' in shape ? shape.line : undefined,
  };
  const fill = shape.fill ?? 'none';
  switch (shape.kind) {
    case 'rect': {
      const { x, y, width, height, radius } = shape;
      return `<rect${attributes({ x, y, width, height, rx: radius, fill, ...stroke })}/>`;
    }
    case 'circle':
      return `<circle${attributes({ cx: shape.x, cy: shape.y, r: shape.radius, fill, opacity: shape.opacity, ...stroke })}/>`;
    case 'path': {
      const d = shape.points
        .map(line => line.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${round(x)} ${round(y)}`).join(''))
        .join('');
      return `<path${attributes({ d, fill, 'stroke-dasharray': shape.dash?.join(' '), 'stroke-linejoin': 'round', ...stroke })}/>`;
    }
    case 'text': {
      const { x, y, size, anchor, bold, mono, text } = shape;
      const look = {
        x,
        y,
        fill,
        'font-size': size,
        'font-family': mono ? MONO : SANS,
        'font-weight': bold ? '600' : undefined,
        'text-anchor': anchor === 'start' ? undefined : anchor,
      };
      return `<text${attributes(look)} xml:space="preserve">${escaped(text)}</text>`;
    }
  }
}

/** The figure as a file of its own, on white ground. */
export function toSvg({ title, width, height, shapes }: Figure): string {
  const size = attributes({ width, height, viewBox: `0 0 ${round(width)} ${round(height)}` });
  const lines = shapes.map(element).join('\n');
  return `<svg xmlns="http://www.w3.org/2000/svg"${size} role="img">\n<title>${escaped(title)}</title>\n<rect width="100%" height="100%" fill="#ffffff"/>\n${lines}\n</svg>\n`;
}

/** Draws the same shapes on a canvas, `ratio` of its pixels to one of the figure. */
export function drawFigure(context: CanvasRenderingContext2D, { width, height, shapes }: Figure, ratio: number): void {
  context.scale(ratio, ratio);
  context.fillStyle = '#ffffff';
  context.fillRect(0, 0, width, height);
  context.lineJoin = 'round';
  for (const shape of shapes) {
    context.globalAlpha = shape.kind === 'circle' ? (shape.opacity ?? 1) : 1;
    if (shape.kind === 'text') {
      context.font = `${shape.bold ? 600 : 400} ${shape.size}px ${shape.mono ? MONO : SANS}`;
      context.textAlign = ({ start: 'left', middle: 'center', end: 'right' } as const)[shape.anchor ?? 'start'];
      context.fillStyle = shape.fill;
      context.fillText(shape.text, shape.x, shape.y);
      continue;
    }
    context.beginPath();
    context.setLineDash(shape.kind === 'path' ? (shape.dash ?? []) : []);
    if (shape.kind === 'rect') context.roundRect(shape.x, shape.y, shape.width, shape.height, shape.radius ?? 0);
    else if (shape.kind === 'circle') context.arc(shape.x, shape.y, shape.radius, 0, 2 * Math.PI);
    else
      for (const line of shape.points)
        for (const [i, [x, y]] of line.entries()) i === 0 ? context.moveTo(x, y) : context.lineTo(x, y);
    if (shape.fill) {
      context.fillStyle = shape.fill;
      context.fill();
    }
    if (shape.stroke) {
      context.strokeStyle = shape.stroke;
      context.lineWidth = shape.line ?? 1;
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

/** The figure as PNG, two pixels for one. Rejects where the browser refuses a canvas of that size. */
export async function toPng(figure: Figure): Promise<Blob> {
  const ratio = 2;
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(figure.width * ratio);
  canvas.height = Math.ceil(figure.height * ratio);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('canvas');
  drawFigure(context, figure, ratio);
  return new Promise((resolve, reject) => {
    canvas.toBlob(blob => (blob ? resolve(blob) : reject(new Error('canvas'))), 'image/png');
  });
}

/** How wide a text is, in pixels: no less than where it is drawn here, and no less than about anywhere. */
export function textWidth(text: string, size: number, mono = false): number {
  const wide = (code: number) => code >= 0x2e80 && code < 0xfb00;
  const share = (sign: string) =>
    wide(sign.codePointAt(0) ?? 0) || (sign >= '\uff00' && sign < '\uffe7') ? 1 : mono ? 0.61 : 0.56;
  const about = [...text].reduce((sum, sign) => sum + share(sign) * size, 0);
  const context = measure();
  if (!context) return about;
  context.font = `600 ${size}px ${mono ? MONO : SANS}`;
  return Math.max(about, context.measureText(text).width);
}

let measuring: CanvasRenderingContext2D | null | undefined;

/** A canvas to measure on; null where there is no page. */
function measure(): CanvasRenderingContext2D | null {
  if (measuring === undefined) {
    measuring = typeof document === 'undefined' ? null : document.createElement('canvas').getContext('2d');
  }
  return measuring;
}

/** Breaks a text into lines of at most `width` pixels: at spaces, and anywhere in Chinese and in words that are too long. */
export function wrap(text: string, width: number, size: number, mono = false): string[] {
  const lines: string[] = [];
  let line = '';
  for (const piece of text.match(/[\u2e80-\uffee]|[^\s\u2e80-\uffee]+|\s+/g) ?? []) {
    if (line && textWidth(line + piece.trimEnd(), size, mono) > width) {
      lines.push(line.trimEnd());
      line = '';
    }
    let rest = line ? piece : piece.trimStart();
    while (textWidth(rest, size, mono) > width && rest.length > 1) {
      let cut = rest.length - 1;
      while (cut > 1 && textWidth(rest.slice(0, cut), size, mono) > width) cut -= 1;
      lines.push(rest.slice(0, cut));
      rest = rest.slice(cut);
    }
    line += rest;
  }
  if (line.trim()) lines.push(line.trimEnd());
  return lines;
}
