/** The hidden state of an environment as a person reads it: in pieces, with signs and words in place of the names of tokens. */

import { tokenLabel } from './format';
import type { Words } from './words/en';

/** One piece of a hidden state: what it is, where that needs saying, and the state itself. */
export interface HiddenPiece {
  label: string;
  text: string;
}

/**
 * Takes apart what the environment says in tokens. Pages come apart at bars, equations and documents at commas; a call stands before
 * what it would return.
 */
export function hiddenPieces(environment: string, state: string, words: Words): HiddenPiece[] {
  const { hidden, kinds } = words;
  if (state.includes(' | ')) {
    return state.split(' | ').map((page, i) => {
      const luck = /^(<flag> ?)+$/.test(page);
      return { label: hidden.page(i + 1), text: luck ? hidden.luck : page };
    });
  }
  return state.split(', ').map(piece => {
    const call = /^<(\w+)> (.*)$/.exec(piece);
    const tool = call?.[1] ?? '';
    let text = call?.[2] ?? piece;
    if (environment === 'poisoned' && call) {
      text = text.replace(/ -$/, ` (${hidden.altered})`).replace(/ \.$/, ` (${hidden.genuine})`);
    }
    if (environment === 'calculator') text = text.replaceAll('*', '×').replaceAll('-', '−');
    return { label: call ? (kinds.tools[tool] ?? tokenLabel(tool)) : '', text };
  });
}
