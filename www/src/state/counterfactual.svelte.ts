/** One turn of a frozen episode done otherwise: what is asked of the worker, and what comes back. */

import type { Batch, Command, Counterfactual } from '../protocol';
import { experiment } from './experiment.svelte';
import { trainer } from './trainer.svelte';
import { view } from './view.svelte';

/** Which turn of which episode of the batch credited last, and what stands in its place. */
export type CounterfactualRequest = Omit<Extract<Command, { type: 'counterfactual' }>, 'type'>;

/** An action that somebody of the group took. */
export interface Taken {
  tokens: number[];
  /** How many turns of the group it was taken in. */
  times: number;
}

/** A typed or chosen action, and what is wrong with it. */
export interface Draft {
  /** Without the end of the turn. */
  tokens: number[];
  problem:
    | { kind: 'unknown'; word: string }
    | { kind: 'early' | 'empty' | 'incomplete' }
    | { kind: 'long'; tokens: number }
    | null;
  /** The environment's grammar does not have it: playable, and a turn of its own kind. */
  illFormed: boolean;
}

class CounterfactualState {
  /** What stands in the place of the selected turn: nothing, an action of the group as `1 2 3`, or one of the person's own. */
  choice = $state('remove');
  /** What the person typed or chose. */
  text = $state('');
  rolls = $state(64);

  /** Whether the batch on show is the one that the policy can play on in. */
  here: boolean = $derived(trainer.live !== null && view.batch !== null && view.batch.iteration === trainer.creditedIteration);

  /** The action of the selected turn, its end of turn included. */
  action: number[] = $derived.by(() => {
    const { selected } = view;
    const turn = selected?.row.trajectory.turns[selected.turn.turn];
    return selected && turn ? selected.row.trajectory.tokens.slice(turn.start, turn.action_end) : [];
  });

  /** Other actions of the group on show, the most frequent first. */
  taken: Taken[] = $derived(
    view.batch ? takenIn(view.batch, view.groupShown).filter(({ tokens }) => !same(tokens, this.action)) : [],
  );

  /** The choice that is there: an action of another group is none of this one. */
  chosen: string = $derived(
    this.choice === 'remove' || this.choice === 'own' || this.taken.some(({ tokens }) => tokens.join(' ') === this.choice)
      ? this.choice
      : 'remove',
  );

  private endOfTurn = $derived(experiment.tokenNames.indexOf('<eot>'));

  draft: Draft = $derived(this.read(this.text));

  /** Tokens that may follow what was typed, without the end of the turn. */
  next: number[] = $derived(this.following(this.draft.tokens).filter(token => token !== this.endOfTurn));

  /** What would be played; `undefined` while there is nothing to play. */
  replacement: number[] | null | undefined = $derived.by(() => {
    if (this.chosen === 'remove') return null;
    const own = this.draft.problem ? undefined : [...this.draft.tokens, this.endOfTurn];
    const tokens = this.chosen === 'own' ? own : this.chosen.split(' ').map(Number);
    return tokens && same(tokens, this.action) ? undefined : tokens;
  });

  /** The own action is what the policy did anyway. */
  unchanged: boolean = $derived(
    this.chosen === 'own' && this.draft.problem === null && same([...this.draft.tokens, this.endOfTurn], this.action),
  );

  /** What came of the turn that was changed last, while that batch is on show. */
  outcome: Counterfactual | null = $derived(
    trainer.counterfactualFound?.iteration === view.batch?.iteration ? trainer.counterfactualFound : null,
  );

  play(): void {
    const { selected } = view;
    const { replacement, rolls } = this;
    if (!selected || replacement === undefined || !this.here) return;
    trainer.counterfactual({ trajectory: selected.row.index, turn: selected.turn.turn, replacement, rolls });
  }

  private following(tokens: number[]): number[] {
    const config = trainer.run?.config;
    return experiment.module && config ? [...experiment.module.legal_tokens(config, Uint8Array.from(tokens))] : [];
  }

  private read(text: string): Draft {
    const names = experiment.tokenNames;
    const words = text.split(/\s+/).filter(word => word !== '');
    if (words.at(-1) === '<eot>' || words.at(-1) === '⏎') words.pop();
    const tokens: number[] = [];
    const wrong = (problem: Draft['problem']): Draft => ({ tokens, problem, illFormed: false });
    for (const word of words) {
      const bare = names.indexOf(word);
      const token = bare >= 0 ? bare : names.indexOf(`<${word.toLowerCase()}>`);
      if (token < 0) return wrong({ kind: 'unknown', word });
      if (token === this.endOfTurn) return wrong({ kind: 'early' });
      tokens.push(token);
    }
    if (tokens.length === 0) return wrong({ kind: 'empty' });
    if (tokens.length + 1 > (trainer.run?.config.turn_tokens ?? 0)) return wrong({ kind: 'long', tokens: tokens.length + 1 });
    const following = this.following(tokens);
    if (following.length > 0 && !following.includes(this.endOfTurn)) return wrong({ kind: 'incomplete' });
    return { tokens, problem: null, illFormed: following.length === 0 };
  }
}

const same = (a: number[], b: number[]): boolean => a.length === b.length && a.every((token, i) => token === b[i]);

/** The distinct actions of a group, at any turn. */
function takenIn(batch: Batch, group: number): Taken[] {
  const found = new Map<string, Taken>();
  for (const trajectory of batch.trajectories) {
    if (trajectory.group !== group) continue;
    for (const { start, action_end } of trajectory.turns) {
      const tokens = trajectory.tokens.slice(start, action_end);
      const key = tokens.join(' ');
      found.set(key, { tokens, times: (found.get(key)?.times ?? 0) + 1 });
    }
  }
  return [...found.values()].sort((a, b) => b.times - a.times);
}

export const counterfactual = new CounterfactualState();
