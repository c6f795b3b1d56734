/** How the charts are drawn: hairline grid, no legend away from the lines, gaps where a value is missing, a cross where it is NaN. */

import type uPlot from 'uplot';

export interface ChartLine {
  key: string;
  label: string;
  /** One value per x; null where there is none, NaN where it was not a number. */
  values: (number | null)[];
  /** Name of a colour in the style sheet. */
  color: string;
  width: number;
  dots?: boolean;
  /** A pinned run. */
  dashed?: boolean;
  /** Without a label at its end: another line has it. */
  unlabelled?: boolean;
}

/** The spread of several runs, behind the lines. Never drawn where a value is missing or not a number. */
export interface ChartBand {
  key: string;
  low: (number | null)[];
  high: (number | null)[];
}

interface Settings {
  width: number;
  height: number;
  /** The lines at the time of asking: a plot outlives its first data. */
  lines: () => ChartLine[];
  bands: () => ChartBand[];
  yMax: number;
  yTicks: number[];
  xMax: number;
  /** Width of the imitation phase, in iterations of the axis. */
  shade: number;
  format: (value: number) => string;
  color: (name: string) => string;
  font: string;
  /** Called when the plot has its final size and whenever it was drawn again. */
  drawn: () => void;
}

/** Round steps of the iteration axis. */
export function iterationTicks(xMax: number): number[] {
  const steps = [1, 10, 100, 1000, 10_000].flatMap(size => [size, 2 * size, 5 * size]);
  const step = steps.find(size => xMax / size <= 4) ?? 100_000;
  return Array.from({ length: Math.floor(xMax / step) + 1 }, (_, i) => i * step);
}

/** Room for the names at the ends of the lines, in pixels: as much as the longest needs with its value, in bounds. */
function labelWidth(lines: ChartLine[]): number {
  // Chinese characters are about as wide as high.
  const wide = (text: string) =>
    Array.from(text, char => (char.charCodeAt(0) > 0x2e80 ? 10 : 5.6)).reduce((sum, size) => sum + size, 0);
  const longest = Math.max(0, ...lines.filter(line => !line.unlabelled).map(line => wide(line.label)));
  return Math.min(152, Math.max(88, 12 + longest + 28));
}

export function chartOptions(settings: Settings): uPlot.Options {
  const { width, height, lines, bands, yMax, yTicks, xMax, shade, format, color, font, drawn } = settings;
  const axisFont = `10px ${font}`;
  const muted = color('--muted');
  const ink = color('--ink');
  const shaded = color('--shade');
  const drawShade = (u: uPlot) => {
    if (shade <= 0) return;
    const left = u.valToPos(-shade, 'x', true);
    u.ctx.save();
    u.ctx.fillStyle = shaded;
    u.ctx.fillRect(left, u.bbox.top, u.valToPos(0, 'x', true) - left, u.bbox.height);
    u.ctx.restore();
  };
  /** One polygon for each stretch of iterations that has values; a single one becomes a stroke. */
  const drawBands = (u: uPlot) => {
    u.ctx.save();
    u.ctx.fillStyle = ink;
    u.ctx.strokeStyle = ink;
    u.ctx.globalAlpha = 0.13;
    for (const { low, high } of bands()) {
      for (const [start, end] of stretches(within(low, high))) {
        const at = (i: number, values: (number | null)[]): [number, number] => [
          u.valToPos(u.data[0][i] ?? 0, 'x', true),
          u.valToPos(values[i] ?? 0, 'y', true),
        ];
        u.ctx.beginPath();
        u.ctx.moveTo(...at(start, low));
        for (let i = start; i <= end; i++) u.ctx.lineTo(...at(i, high));
        for (let i = end; i >= start; i--) u.ctx.lineTo(...at(i, low));
        if (start === end) u.ctx.stroke();
        else u.ctx.fill();
      }
    }
    u.ctx.restore();
  };
  /** A cross on the axis for every value that is not a number: a gap alone would hide it. */
  const drawCrosses = (u: uPlot) => {
    const size = 3.5 * devicePixelRatio;
    const y = u.bbox.top + u.bbox.height - size;
    // uPlot remembers which styles it has set.
    u.ctx.save();
    u.ctx.strokeStyle = ink;
    u.ctx.lineWidth = 1.5 * devicePixelRatio;
    u.ctx.beginPath();
    for (const line of lines()) {
      line.values.forEach((value, i) => {
        if (value === null || Number.isFinite(value)) return;
        const at = u.valToPos(u.data[0][i] ?? 0, 'x', true);
        u.ctx.moveTo(at - size, y - size);
        u.ctx.lineTo(at + size, y + size);
        u.ctx.moveTo(at - size, y + size);
        u.ctx.lineTo(at + size, y - size);
      });
    }
    u.ctx.stroke();
    u.ctx.restore();
  };
  return {
    width,
    height,
    padding: [14, labelWidth(lines()), 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, auto: false, range: [-shade, xMax] },
      y: { auto: false, range: [0, yMax] },
    },
    axes: [
      {
        size: 17,
        gap: 3,
        font: axisFont,
        stroke: muted,
        grid: { show: false },
        ticks: { show: false },
        splits: () => iterationTicks(xMax),
        values: (_, splits) => splits.map(String),
      },
      {
        size: 34,
        gap: 3,
        font: axisFont,
        stroke: muted,
        grid: { stroke: color('--rule'), width: 1 },
        ticks: { show: false },
        splits: () => yTicks,
        values: (_, splits) => splits.map(format),
      },
    ],
    series: [
      {},
      ...lines().map(
        (line): uPlot.Series => ({
          stroke: color(line.color),
          width: line.width,
          dash: line.dashed ? [5, 4] : [],
          spanGaps: false,
          points: {
            show: true,
            size: line.dots ? 5 : 3,
            fill: color(line.color),
            stroke: color(line.color),
            filter: (u, series) => dotted(u.data[series] ?? [], line.dots === true),
          },
        }),
      ),
    ],
    hooks: { drawClear: [drawShade, drawBands], draw: [drawCrosses, drawn] },
  };
}

/** The lower edge of a band where it has an upper one. */
export const within = (low: (number | null)[], high: (number | null)[]) =>
  low.map((value, i) => (Number.isFinite(high[i]) ? value : null));

/** First and last index of each run of finite values. */
export function stretches(values: (number | null)[]): [number, number][] {
  const found: [number, number][] = [];
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    const last = found.at(-1);
    if (last && last[1] === i - 1) last[1] = i;
    else found.push([i, i]);
  });
  return found;
}

/** Which points get a dot: some of a dotted line; of the others those that stand alone between gaps, which a line cannot show. */
function dotted(values: ArrayLike<number | null | undefined>, dots: boolean): number[] {
  const there = (i: number) => values[i] !== null && values[i] !== undefined;
  const all = Array.from({ length: values.length }, (_, i) => i).filter(there);
  const every = Math.max(1, Math.ceil(all.length / 12));
  return all.filter((i, n) => (dots && n % every === 0) || (!there(i - 1) && !there(i + 1)));
}

/** Moves labels apart so that none covers another, in the order of their lines. */
export function spread<Label extends { top: number }>(labels: Label[], min: number, max: number): Label[] {
  const gap = 12;
  const sorted = labels.map(label => ({ ...label })).sort((a, b) => a.top - b.top);
  let above = min - gap;
  for (const label of sorted) {
    label.top = Math.max(label.top, above + gap);
    above = label.top;
  }
  let below = max + gap;
  for (const label of sorted.toReversed()) {
    label.top = Math.min(label.top, below - gap);
    below = label.top;
  }
  return sorted;
}
