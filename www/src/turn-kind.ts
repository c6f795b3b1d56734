/** What a turn is: an answer in text, a call of a tool, or neither. */

import { tokenLabel } from './format';
import type { Trajectory } from './protocol';
import type { Words } from './words/en';

export type TurnKind = { kind: 'answer' | 'malformed' } | { kind: 'call'; tool: string };

/** The facts say what a turn was; of a call, the first token says which tool. */
export function kindOf({ tokens, turns }: Trajectory, turn: number, names: string[]): TurnKind {
  const at = turns[turn];
  if (!at || at.facts.malformed) return { kind: 'malformed' };
  return at.facts.answered ? { kind: 'answer' } : { kind: 'call', tool: tokenLabel(names[tokens[at.start] ?? -1] ?? '') };
}

/** A kind in words; a tool that has no words of its own goes by its token. */
export function nameOf(kind: TurnKind, { kinds }: Words): string {
  return kind.kind === 'call' ? kinds.call(kinds.tools[kind.tool] ?? kind.tool) : kinds[kind.kind];
}
