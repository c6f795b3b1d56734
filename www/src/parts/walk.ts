/** Where an arrow key leads from the selected token. */

import type { RowView, TokenView, TurnView } from '../episodes';

interface Place {
  row: RowView;
  turn: TurnView;
  token: TokenView;
}

/** Left and right: token by token through the episode. Up and down: the other episodes. Home and End: start and end of the turn, then of the next one. */
export function neighbour(rows: RowView[], from: Place, key: string): { row: RowView; position: number } | null {
  const { row, turn, token } = from;
  const tokens = row.turns.flatMap(entry => entry.tokens);
  const at = tokens.findIndex(entry => entry.position === token.position);
  const stay = (found: TokenView | undefined) => (found ? { row, position: found.position } : null);
  switch (key) {
    case 'ArrowLeft':
      return stay(tokens[at - 1]);
    case 'ArrowRight':
      return stay(tokens[at + 1]);
    case 'Home':
      return stay(token.inTurn > 0 ? turn.tokens[0] : row.turns[turn.turn - 1]?.tokens[0]);
    case 'End':
      return stay(token.inTurn < turn.tokens.length - 1 ? turn.tokens.at(-1) : row.turns[turn.turn + 1]?.tokens.at(-1));
    case 'ArrowUp':
    case 'ArrowDown': {
      const other = rows[rows.findIndex(entry => entry.index === row.index) + (key === 'ArrowUp' ? -1 : 1)];
      const there = other?.turns[Math.min(turn.turn, other.turns.length - 1)];
      const found = there?.tokens[Math.min(token.inTurn, there.tokens.length - 1)];
      return other && found ? { row: other, position: found.position } : null;
    }
    default:
      return null;
  }
}
