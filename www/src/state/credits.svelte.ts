/** Credit of frozen episodes under other settings or another method: asked of the wasm module, remembered for the batch on show. */

import type { Frozen } from '../page-module';
import type { Batch, CreditMethod, ExperimentConfig, MethodCredit, Provenance, Recredit } from '../protocol';
import { experiment } from './experiment.svelte';
import { notices } from './notices.svelte';

/** How many batches are with the module at a time: the one on show, and the one whose true credit is looked at. */
const KEPT = 2;

interface Kept {
  batch: Batch;
  episodes: Frozen;
  /** The credit of every method, and the settings that it is under. */
  settings: string;
  methods: MethodCredit[];
}

class Credits {
  /** The settings that change credit alone. How often states are re-rolled is not one: that takes the policy. */
  private names = $derived(
    (experiment.description?.settings ?? [])
      .filter(({ section, name }) => (section === 'reward' || section === 'credit') && name !== 'monte_carlo_samples')
      .map(({ name }) => name as keyof ExperimentConfig),
  );

  /** The credit methods that there are, in the order of the form. */
  methods: CreditMethod[] = $derived.by(() => {
    const kind = experiment.settings.get('credit_method')?.kind;
    return kind?.type === 'choice' ? kind.options.map(option => option.value as CreditMethod) : [];
  });

  /** The values of these settings, as one text that can be compared. */
  settingsOf(config: ExperimentConfig): string {
    return JSON.stringify(this.names.map(name => config[name]));
  }

  /** A configuration with the credit settings of another one, given as `settingsOf` gives them. */
  under(config: ExperimentConfig, settings: string): ExperimentConfig {
    const values = JSON.parse(settings) as unknown[];
    return { ...config, ...Object.fromEntries(this.names.map((name, i) => [name, values[i]])) };
  }

  /** Rewards and credit of a batch under a configuration; null, and a notice, where the module fails. */
  again(batch: Batch, config: ExperimentConfig): Recredit | null {
    return this.ask(batch, episodes => episodes.recredit(config));
  }

  /** Where the weight of a token comes from; null where nothing is known. */
  provenance(batch: Batch, config: ExperimentConfig, trajectory: number, position: number): Provenance | null {
    return this.ask(batch, episodes => episodes.provenance(config, trajectory, position));
  }

  /** The advantages that a method gives, everything else as in `config`; null where it needs values that the batch has not. */
  assigned(batch: Batch, config: ExperimentConfig, method: CreditMethod): number[][] | null {
    const settings = this.settingsOf({ ...config, credit_method: 'grpo' });
    const methods = this.ask(batch, (episodes, kept) => {
      if (kept.settings !== settings) {
        kept.methods = episodes.recredit_all(config);
        kept.settings = settings;
      }
      return kept.methods;
    });
    const found = methods?.find(entry => entry.method === method);
    return found && !found.needs_values ? found.advantages : null;
  }

  /** Episodes that are with the module, asked for last at the end. */
  private kept: Kept[] = [];

  private keep(batch: Batch): Kept | null {
    const { module } = experiment;
    if (!module) return null;
    let found = this.kept.find(entry => entry.batch === batch);
    if (!found) {
      // Its credit is what is asked for anew.
      found = { batch, episodes: new module.Frozen({ ...batch, credit: null }), settings: '', methods: [] };
    }
    const others = this.kept.filter(entry => entry !== found);
    for (const old of others.splice(0, others.length + 1 - KEPT)) old.episodes.free();
    this.kept = [...others, found];
    return found;
  }

  private ask<Answer>(batch: Batch, question: (episodes: Frozen, kept: Kept) => Answer): Answer | null {
    try {
      const kept = this.keep(batch);
      return kept ? question(kept.episodes, kept) : null;
    } catch (error) {
      // Not in the middle of what is being derived.
      queueMicrotask(() => notices.show({ id: 'credit', text: words => words.notices.creditFailed, detail: String(error) }));
      return null;
    }
  }
}

export const credits = new Credits();
