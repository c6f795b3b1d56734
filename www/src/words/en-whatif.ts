/** The sentences of What if, of the picture of the loop, and of what turns and hidden states are called, in English. */

import type { Phase } from '../protocol';
import type { SignChanges } from '../whatif';

const turns = (count: number) => (count === 1 ? '1 turn' : `${count} turns`);

function changes({ turns: total, flipped, lost, gained }: SignChanges): string {
  const parts = [`${flipped} of ${turns(total)} ${flipped === 1 ? 'changes' : 'change'} sign`];
  if (lost > 0) parts.push(`${lost} ${lost === 1 ? 'becomes' : 'become'} zero`);
  if (gained > 0) parts.push(`${gained} ${gained === 1 ? 'leaves' : 'leave'} zero`);
  return parts.join(', ');
}

export const whatIfEn = {
  whatIf: {
    title: 'What if?',
    intro: 'The same frozen episodes, credited again. Nothing is re-rolled, nothing is trained.',
    gamma: (trained: string) => `γ from ${trained} to`,
    method: 'Credit by',
    mode: 'Reward counted',
    before: 'before',
    after: 'after',
    change: (before: string, after: string) => `${before} → ${after}`,
    panel: (turn: number, episodes: number, selected: string | null) =>
      `Credit at turn ${turn} before and after, ${episodes === 1 ? '1 episode' : `${episodes} episodes`}${selected ? `; selected episode ${selected}` : ''}`,
    selectTurn: 'Select this turn of the selected episode',
    same: 'These are the settings that the episodes were trained with: move one and see whose credit changes.',
    sentence: (selected: string | null, group: SignChanges, batch: SignChanges) =>
      `${selected === null ? '' : `Selected turn, thick line: ${selected}. `}In this group ${changes(group)}. In the whole batch ${changes(batch)}.`,
    legend:
      'Hollow: before, as trained. Filled: after, with its sign. Thick line: the selected episode. A click selects the nearest line.',
    copy: 'Train with this',
    copyHelp: 'Copies these values into the settings. Nothing starts until you press Train.',
    back: 'Back to the trained settings',
    copied: 'The settings have these values now. Press Train to start a run with them.',
    blocked: {
      passing: 'Episodes go by while the run goes on. Select a token to hold them, and they can be credited again here.',
      nothing: 'No episodes yet.',
      uncredited: 'These episodes have no credit yet: step until the credit phase is done.',
    },
  },

  other: {
    title: 'What if this turn had been different?',
    intro: (episode: number, turn: number, action: string) => `Episode ${episode}, turn ${turn}: ${action}`,
    instead: 'Instead',
    remove: 'remove this turn',
    taken: (action: string, times: number) => `${action} (taken ${times === 1 ? 'once' : `${times} times`} in this group)`,
    own: 'an action of your own',
    rolls: 'Re-rolls of each',
    noRolls: 'none',
    play: 'Play on',
    playing: 'Playing on from the changed turn',
    action: 'Action',
    typed: 'Action in words',
    typedHelp: 'Names of tokens with spaces between them; the end of the turn is added.',
    next: 'Tokens that may follow',
    undo: 'Remove the last token',
    complete: 'This action is complete.',
    incomplete: 'This is the beginning of an action: choose how it goes on.',
    illFormed: 'This is no well-formed action here; the environment will say so in its own way.',
    unknown: (word: string) => `There is no token called “${word}”.`,
    early: 'The end of the turn may stand at the end only.',
    empty: 'Choose or type at least one token.',
    long: (tokens: number, limit: number) => `${tokens} tokens with the end of the turn; a turn has at most ${limit}.`,
    same: 'This is what the policy did: choose another action.',
    elsewhere: (iteration: number) => `The policy can play on in the episodes credited last, those of iteration ${iteration}.`,
    show: 'Show them',
    original: 'as played',
    changed: 'changed',
    removed: 'turn removed',
    turnLabel: (turn: number) => `${turn}`,
    ended: { terminated: 'ends', turn_limit: 'cut by the turn limit', context_end: 'cut by the context' },
    result: (before: string, after: string, change: string) => `Return ${before} → ${after}, a change of ${change}.`,
    mean: (rolls: number, original: string, changed: string) =>
      `Over ${rolls} re-rolls of each the mean return after this turn is ${original} as played and ${changed} changed (± one standard error).`,
    randomness: 'Both tails use the same random draws, turn by turn: what differs, differs because of the changed turn.',
    of: (iteration: number, episode: number, turn: number) => `Iteration ${iteration}, episode ${episode}, from turn ${turn} on`,
  },

  loop: {
    label: 'The loop of a training step',
    policy: 'policy',
    environment: 'environment',
    action: 'action',
    observation: 'observation',
    start: 'Step does one phase at a time and lights it here.',
    running: 'Sample, score, credit and update follow one another in every training step.',
    text: {
      sample: 'Sampled: the policy acted, the environment answered, turn by turn.',
      score: 'Scored: what happened in each turn was turned into reward.',
      credit: 'Credited: the rewards became one advantage for every turn.',
      update: 'Updated: the loss moved the weights of the policy; the loop begins again.',
    } as Record<Phase, string>,
  },

  kinds: {
    answer: 'text: answer',
    malformed: 'malformed',
    call: (tool: string) => `tool: ${tool}`,
    tools: {
      search: 'search',
      calc: 'calculator',
      run: 'run',
      cache: 'cache',
      verify: 'verify',
      click: 'click',
      back: 'back',
    } as Record<string, string>,
    head: 'kind of turn',
    legendAnswer: 'text',
    legendCall: 'tool call',
    legendMalformed: 'malformed',
  },

  hidden: {
    page: (number: number) => `page ${number}`,
    luck: 'pays by luck',
    altered: 'tampered with',
    genuine: 'untouched',
  },

  capabilities: {
    title: 'Asks for',
    names: {
      'tool use': 'tool use',
      planning: 'planning',
      reasoning: 'reasoning',
      'self-improvement': 'self-improvement',
      perception: 'perception',
      memory: 'memory',
    } as Record<string, string>,
  },
};
