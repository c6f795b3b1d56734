/** How wide the columns of the grid are. */

/** Of the number before each row, the return after it, and the least of a turn, for what stands above it. */
const [NUMBER, RETURN, TURN] = [24, 92, 96];

export interface Layout {
  /** `grid-template-columns`. */
  template: string;
  /** Pixels below which the rows cannot go. */
  least: number;
  /** Small tokens. */
  small: boolean;
  /** Wider than the panel all the same. */
  scrolls: boolean;
}

/** What the turns of a batch need, in pixels. */
export interface Needs {
  normal: number[];
  small: number[];
}

/**
 * Columns that moved with every batch would be hard to read and have every row drawn again: they stay as wide as the run has
 * needed so far, unless that does not fit the panel any more. What does not fit either way gets small tokens, and only then the
 * grid scrolls.
 */
export class Columns {
  private run: unknown = null;
  private kept: Needs = { normal: [], small: [] };

  fit(run: unknown, needs: Needs, room: number): Layout {
    if (run !== this.run) this.kept = { normal: [], small: [] };
    this.run = run;
    this.kept = { normal: grown(this.kept.normal, needs.normal, room), small: grown(this.kept.small, needs.small, room) };
    const small = total(this.kept.normal) > room;
    const columns = small ? this.kept.small : this.kept.normal;
    const least = total(columns);
    const turns = columns.map(width => `minmax(${Math.round(width)}px, ${Math.round(width)}fr)`);
    return { template: [`${NUMBER}px`, ...turns, `${RETURN}px`].join(' '), least, small, scrolls: least > room };
  }
}

const total = (columns: number[]) => columns.reduce((sum, width) => sum + width, NUMBER + RETURN);

/** The wider of both, one column for each turn of the batch on show; its own needs alone where that is too wide. */
function grown(kept: number[], now: number[], room: number): number[] {
  const own = now.map(width => Math.max(width, TURN));
  const wider = own.map((width, turn) => Math.max(width, kept[turn] ?? 0));
  return total(wider) <= room ? wider : own;
}
