/** Assigned credit against true credit, a dot a turn. Pure drawing: where the dots are, and what they look like. */

export interface Dot {
  /** Index into the batch's trajectories, and the turn. */
  index: number;
  turn: number;
  x: number;
  y: number;
  tool: boolean;
}

export interface Look {
  width: number;
  height: number;
  color: (name: string) => string;
}

/** Room around the plot. */
const MARGIN = 8;

/** The size at which an axis ends: every dot is inside. */
export function reach(values: number[]): number {
  return Math.max(1e-9, ...values.map(Math.abs)) * 1.05;
}

/** Pixels of a dot. */
export function place({ x, y }: Dot, ends: { x: number; y: number }, { width, height }: Look): { left: number; top: number } {
  return {
    left: width / 2 + (x / ends.x) * (width / 2 - MARGIN),
    top: height / 2 - (y / ends.y) * (height / 2 - MARGIN),
  };
}

/** Draws everything anew. `chosen` gets a ring. */
export function drawScatter(
  canvas: HTMLCanvasElement,
  dots: Dot[],
  ends: { x: number; y: number },
  chosen: (dot: Dot) => boolean,
  look: Look,
): void {
  const { width, height, color } = look;
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(ratio, ratio);
  context.fillStyle = color('--peer');
  context.fillRect(width / 2, 0, width / 2, height / 2);
  context.fillRect(0, height / 2, width / 2, height / 2);
  context.strokeStyle = color('--border');
  context.beginPath();
  context.moveTo(0, height / 2);
  context.lineTo(width, height / 2);
  context.moveTo(width / 2, 0);
  context.lineTo(width / 2, height);
  context.stroke();
  for (const dot of dots) {
    const { left, top } = place(dot, ends, look);
    const ink = dot.y === 0 ? color('--muted') : color(dot.y > 0 ? '--better' : '--worse');
    context.beginPath();
    context.arc(left, top, 2.5, 0, 2 * Math.PI);
    context.globalAlpha = 0.6;
    context.fillStyle = ink;
    context.strokeStyle = ink;
    if (dot.tool) context.fill();
    else context.stroke();
    context.globalAlpha = 1;
  }
  const ring = dots.find(chosen);
  if (!ring) return;
  const { left, top } = place(ring, ends, look);
  context.strokeStyle = color('--selected');
  context.lineWidth = 2;
  context.beginPath();
  context.arc(left, top, 6, 0, 2 * Math.PI);
  context.stroke();
}
