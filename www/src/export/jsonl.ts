/** Episodes as JSON lines. The wasm module shapes them, as it does for the command line; here they are handed over in pieces. */

import type { PageModule } from '../page-module';
import type { Batch, CreditMap, ExperimentConfig, TrueCredit } from '../protocol';

/** Episodes at a time: handing all over at once would hold the page up. */
const PIECE = 8;

/** Arrays of a credit map that have an entry for each trajectory; the others have one for each group. */
const BY_TRAJECTORY = ['rewards', 'returns_to_go', 'values', 'baselines', 'scales', 'peers', 'advantages', 'parts'] as const;

/** Some trajectories of a batch, with what belongs to them. */
export function slice(batch: Batch, from: number, to: number): Batch {
  const credit = batch.credit && ({ ...batch.credit } as CreditMap);
  if (credit) for (const name of BY_TRAJECTORY) Object.assign(credit, { [name]: credit[name].slice(from, to) });
  return {
    ...batch,
    trajectories: batch.trajectories.slice(from, to),
    rewards: batch.rewards && { turns: batch.rewards.turns.slice(from, to) },
    credit,
    values: batch.values?.slice(from, to) ?? null,
  };
}

function sliceTruth(truth: TrueCredit, from: number, to: number): TrueCredit {
  const of = (rows: (number | null)[][]) => rows.slice(from, to);
  return { credits: of(truth.credits), standard_errors: of(truth.standard_errors), values: of(truth.values) };
}

/** Lets the page draw between two pieces. */
export const breathe = (): Promise<void> => new Promise(resolve => setTimeout(resolve));

/** A line for each episode, in pieces that make the file. */
export async function episodeLines(
  module: Pick<PageModule, 'episode_lines'>,
  entries: { batch: Batch; config: ExperimentConfig; truth: TrueCredit | null }[],
): Promise<string[]> {
  const parts: string[] = [];
  for (const { batch, config, truth } of entries) {
    for (let from = 0; from < batch.trajectories.length; from += PIECE) {
      const to = from + PIECE;
      parts.push(module.episode_lines(slice(batch, from, to), config, truth && sliceTruth(truth, from, to)));
      await breathe();
    }
  }
  return parts;
}
