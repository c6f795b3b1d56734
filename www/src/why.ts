/** What a part of an advantage was compared with: the values of its peers, for drawing. Pure functions. */

import type { CreditMap, Part, PartKind } from './protocol';

const WHOLE: PartKind[] = ['episode', 'outcome'];

/** Whether a part belongs to whole episodes. */
export const isWhole = (part: Part): boolean => WHOLE.includes(part.kind);

/** What a part adds to the advantage. */
export const contribution = (part: Part): number => (part.weight * (part.value - part.baseline)) / part.scale;

/**
 * The values that a part's baseline is a mean over, its own among them, where they can be told from the credit of the group: as many
 * as the part says that it rests on. Empty where the baseline is no mean over peers, or the peers are beyond the group.
 */
export function peerValues(credit: CreditMap, group: number[], part: Part): number[] {
  if (part.peers === 0) return [];
  const ofKind = group.map(index => {
    const own = new Map<number, Part>();
    for (const parts of credit.parts[index] ?? [])
      for (const entry of parts) if (entry.kind === part.kind) own.set(entry.turn, entry);
    return [...own.values()];
  });
  const all = ofKind.flat();
  const candidates = [
    isWhole(part) ? ofKind.flatMap(parts => parts.slice(0, 1)) : all.filter(entry => entry.turn === part.turn),
    all.filter(entry => entry.baseline === part.baseline && entry.scale === part.scale),
    all,
  ];
  return candidates.find(found => found.length === part.peers)?.map(entry => entry.value) ?? [];
}
