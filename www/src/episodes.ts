/** From a frozen batch to what one group's rows show. Pure functions: no page state, no drawing. */

import type { ColourScale, Quantity } from './credit-scale';
import { signedShort } from './format';
import type { Batch, CreditMap, Recredit, RewardTable, Trajectory, WeightedTerm } from './protocol';

/** One number per trajectory and turn; null where it is not known. */
export type PerTurn = (number | null)[][];

/** A batch with the credit that is on show: its own, another one, or none yet. */
export interface Shown {
  batch: Batch;
  rewards: RewardTable | null;
  credit: CreditMap | null;
}

export interface TokenView {
  /** Index into the trajectory's tokens. */
  position: number;
  token: number;
  /** Index among the tokens of its turn, and how many the action has. */
  inTurn: number;
  /** Sampled by the policy; else written by the environment. */
  sampled: boolean;
  /** Weighted by the loss: sampled, or any token of a turn when the loss mask is off. */
  trained: boolean;
  /** The quantity on show; NaN before there is credit. */
  value: number;
}

export interface TurnView {
  turn: number;
  tokens: TokenView[];
  outcome: number;
  process: number;
  terms: WeightedTerm[];
}

export interface RowView {
  /** Index into the batch's trajectories. */
  index: number;
  trajectory: Trajectory;
  turns: TurnView[];
  /** A part of the row: one that is drawn a frame later keeps its own until then. */
  scale: ColourScale;
  /** Discounted return of the trajectory; null before it was scored. */
  return: number | null;
  /** Share of the judged turns that were right; 0 or 1 where the answer or the goal alone is judged. */
  success: number;
}

/** What the head of a column says. */
export interface ColumnView {
  /** Trajectories of the group that reached the turn. */
  reached: number;
  peers: number;
  /** What all of them are compared with; null where they are not compared with the same. */
  mean: number | null;
  scale: number | null;
}

/** As the crate has it: right turns over judged turns. */
export function successOf({ turns }: Trajectory): number {
  const right = turns.filter(turn => turn.facts.answer_right).length;
  return right / Math.max(1, turns.filter(turn => turn.facts.judged).length);
}

/** The group's trajectories, with their index in the batch. */
export function members(batch: Batch, group: number): { index: number; trajectory: Trajectory }[] {
  return batch.trajectories.flatMap((trajectory, index) => (trajectory.group === group ? [{ index, trajectory }] : []));
}

/** The quantity of one token: log-probabilities are its own, everything else belongs to its turn. */
export function valueAt(
  shown: Shown,
  index: number,
  turn: number,
  position: number,
  quantity: Quantity,
  turns: PerTurn | null,
): number {
  if (quantity === 'log_prob') return shown.batch.trajectories[index]?.log_probs[position] ?? Number.NaN;
  return turns?.[index]?.[turn] ?? Number.NaN;
}

/** Every value of the quantity over the tokens of the policy in the batch, for the colour scale. */
export function allValues(shown: Shown, quantity: Quantity, turns: PerTurn | null): number[] {
  const values: number[] = [];
  for (const [index, trajectory] of shown.batch.trajectories.entries()) {
    for (const [k, turn] of trajectory.turns.entries()) {
      for (let position = turn.start; position < turn.action_end; position++) {
        values.push(valueAt(shown, index, k, position, quantity, turns));
      }
    }
  }
  return values;
}

const isOutcome = (term: WeightedTerm): boolean => term.term === 'answer_right' || term.term === 'luck';
const total = (terms: WeightedTerm[]): number => terms.reduce((sum, term) => sum + term.weight, 0);

export function rowsOf(shown: Shown, group: number, scale: ColourScale, perTurn: PerTurn | null, lossMask: boolean): RowView[] {
  return members(shown.batch, group).map(({ index, trajectory }) => {
    const turns = trajectory.turns.map((turn, k): TurnView => {
      const terms = shown.rewards?.turns[index]?.[k] ?? [];
      return {
        turn: k,
        terms,
        outcome: total(terms.filter(isOutcome)),
        process: total(terms.filter(term => !isOutcome(term))),
        tokens: Array.from({ length: turn.end - turn.start }, (_, inTurn) => {
          const position = turn.start + inTurn;
          const sampled = trajectory.loss_mask[position] ?? false;
          return {
            position,
            token: trajectory.tokens[position] ?? 0,
            inTurn,
            sampled,
            trained: sampled || !lossMask,
            value: valueAt(shown, index, k, position, scale.quantity, perTurn),
          };
        }),
      };
    });
    return {
      index,
      trajectory,
      turns,
      scale,
      return: shown.credit?.returns_to_go[index]?.[0] ?? null,
      success: successOf(trajectory),
    };
  });
}

/** One head per turn, as many as the longest trajectory of the batch has. */
export function columnsOf(shown: Shown, group: number): ColumnView[] {
  const count = Math.max(1, ...shown.batch.trajectories.map(trajectory => trajectory.turns.length));
  const rows = members(shown.batch, group);
  return Array.from({ length: count }, (_, turn) => {
    const there = rows.filter(row => row.trajectory.turns.length > turn);
    /** The value that all who are there have in common. */
    const common = (map: number[][] | undefined) => {
      const values = there.map(row => map?.[row.index]?.[turn]);
      const first = values[0];
      return first !== undefined && values.every(value => value === first) ? first : null;
    };
    return {
      reached: there.length,
      peers: common(shown.credit?.peers) ?? 0,
      mean: common(shown.credit?.baselines),
      scale: common(shown.credit?.scales),
    };
  });
}

/** Width of a token in pixels, from its label. `small` is the size for episodes that would not fit. */
export function tokenWidth(label: string, small: boolean): number {
  if (label === '‹' || label === '›') return 2 + (small ? 9 : 11);
  return 2 + (small ? Math.max(14, 4 + label.length * 6.1) : Math.max(17, 8 + label.length * 7));
}

/** Width of a reward's pill in pixels, with the space before it. */
const pillWidth = (value: number): number => 20 + 6.7 * signedShort(value).length;

/**
 * How wide each column must be, in pixels: the widest turn of the whole batch, so that groups do not shift when turned over.
 * `tokenWidths` is indexed by token id.
 */
export function columnWidths(shown: Shown, tokenWidths: number[]): number[] {
  const widths: number[] = [];
  for (const [index, trajectory] of shown.batch.trajectories.entries()) {
    for (const [k, turn] of trajectory.turns.entries()) {
      // The sign of the turn's kind, and what is between.
      let width = 18;
      for (let position = turn.start; position < turn.end; position++)
        width += tokenWidths[trajectory.tokens[position] ?? 0] ?? 19;
      const paid = shown.rewards?.turns[index]?.[k] ?? [];
      const [outcome, process] = [paid.filter(isOutcome), paid.filter(term => !isOutcome(term))];
      if (outcome.length > 0) width += Math.max(32, pillWidth(total(outcome)));
      if (process.length > 0) width += Math.max(46, pillWidth(total(process)));
      widths[k] = Math.max(widths[k] ?? 0, width);
    }
  }
  return widths;
}

/** The group whose episodes differ most in success, longer ones first: there the comparison with peers shows. */
export function tellingGroup(batch: Batch): number {
  const groups = batch.groups.map(() => ({ episodes: 0, right: 0, squares: 0, turns: 0 }));
  for (const trajectory of batch.trajectories) {
    const group = groups[trajectory.group];
    if (!group) continue;
    group.episodes += 1;
    group.turns += trajectory.turns.length;
    const success = successOf(trajectory);
    group.right += success;
    group.squares += success * success;
  }
  const scores = groups.map(({ episodes, right, squares, turns }) => {
    const count = Math.max(1, episodes);
    return (squares / count - (right / count) ** 2) * 4 + turns / count / 20;
  });
  return Math.max(0, scores.indexOf(Math.max(...scores)));
}

/** The reward that counts most towards the credit of a turn, and how many turns away it is. */
export function strongestReward(
  row: RowView,
  from: number,
  gamma: number,
): { turn: number; amount: number; distance: number; counts: number } | null {
  let best: { turn: number; amount: number; distance: number; counts: number } | null = null;
  for (const { turn, outcome, process } of row.turns) {
    const amount = outcome + process;
    if (turn <= from || amount === 0) continue;
    const counts = gamma ** (turn - from) * amount;
    if (!best || Math.abs(counts) > Math.abs(best.counts)) best = { turn, amount, distance: turn - from, counts };
  }
  return best;
}

/** What a batch shows by itself: the credit it was trained with. */
export function own(batch: Batch): Shown {
  return { batch, rewards: batch.rewards ?? null, credit: batch.credit ?? null };
}

/** What it shows under other settings. */
export function recredited(batch: Batch, other: Recredit): Shown {
  return { batch, rewards: other.rewards, credit: other.credit };
}
