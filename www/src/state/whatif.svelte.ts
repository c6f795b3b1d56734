/** What if: settings of credit that the person tries on the frozen episodes, apart from those in the form. */

import { drawInTurn, stopDrawing } from '../frames.svelte';
import type { Batch, CreditMap, ExperimentConfig } from '../protocol';
import { axisEnd } from '../whatif';
import { credits } from './credits.svelte';
import { experiment } from './experiment.svelte';
import { trainer } from './trainer.svelte';
import { view } from './view.svelte';

/** What the frozen episodes are worth under the tried settings. */
export interface Tried {
  batch: Batch;
  /** The group on show. */
  group: number;
  /** The tried settings. */
  config: ExperimentConfig;
  credit: CreditMap;
}

class WhatIf {
  /** What was moved, and in which environment: the weights of another one mean something else. */
  private moved = $state.raw<{ environment: string; values: Partial<ExperimentConfig> }>({ environment: '', values: {} });
  /** A slider is being dragged: the axis stands still. */
  private dragged = $state(false);

  /** The settings that the episodes on show were trained with. */
  trained: ExperimentConfig | null = $derived(trainer.run?.config ?? null);

  private values: Partial<ExperimentConfig> = $derived(
    this.moved.environment === this.trained?.environment ? this.moved.values : {},
  );

  /** The tried settings. */
  config: ExperimentConfig | null = $derived(this.trained ? { ...this.trained, ...this.values } : null);

  /** Whether anything differs from the trained settings. */
  changed: boolean = $derived.by(() => {
    const { trained, config } = this;
    return trained !== null && config !== null && credits.settingsOf(trained) !== credits.settingsOf(config);
  });

  /** Reward weights that can be tried: those of the form that the tried mode turns on. */
  weights: string[] = $derived.by(() => {
    const { config } = this;
    const usual = experiment.description?.defaults[config?.environment ?? ''];
    if (!config || !usual) return [];
    const all = (experiment.description?.settings ?? []).filter(
      ({ section, kind }) => section === 'reward' && kind.type === 'number',
    );
    const outcome = (name: string) => name === 'outcome_weight' || name === 'luck_weight';
    const counts = (name: string) => config.reward_mode === 'mixed' || outcome(name) === (config.reward_mode === 'outcome');
    const used = (name: string) => usual[name as keyof ExperimentConfig] !== 0 || config[name as keyof ExperimentConfig] !== 0;
    return all.map(({ name }) => name).filter(name => counts(name) && used(name));
  });

  /** Moves one setting; `settled` is false while a slider is being dragged. */
  set(name: 'gamma' | 'reward_mode' | 'credit_method' | (string & {}), value: number | string, settled = true): void {
    const { config, trained } = this;
    if (!config || !trained || !experiment.module) return;
    const read = experiment.module.read_json(JSON.stringify({ ...config, [name]: value })).config;
    const now = read[name as keyof ExperimentConfig];
    this.dragged = !settled;
    this.moved = { environment: trained.environment, values: { ...this.values, [name]: now } };
  }

  /** The slider was let go. */
  settle(): void {
    this.dragged = false;
  }

  /** Back to the settings that the episodes were trained with. */
  back(): void {
    this.dragged = false;
    this.moved = { environment: '', values: {} };
  }

  /** Copies what was moved into the form. Starts nothing. */
  copy(): void {
    for (const [name, value] of Object.entries(this.values)) {
      if (experiment.value(name) !== value) experiment.set(name, value as number | string);
    }
  }

  /** Whether the form has every tried value already. */
  copied: boolean = $derived.by(() => {
    const form = experiment.config;
    if (!form || form.environment !== this.trained?.environment) return false;
    return Object.entries(this.values).every(([name, value]) => form[name as keyof ExperimentConfig] === value);
  });

  /** Whether the tried settings can be copied: into a form that shows the same environment. */
  copyable: boolean = $derived(this.changed && !this.copied && experiment.config?.environment === this.trained?.environment);

  /** Episodes that go by while a run goes on are not credited again: nobody could read it. Those that somebody holds are. */
  passing: boolean = $derived(trainer.activity === 'running' && !view.held);

  /** Credit of the episodes on show under the tried settings, as drawn: it is asked for in a frame of its own. */
  tried = $state.raw<Tried | null>(null);
  /** Where the axis of the panels ends. */
  end = $state(1);

  private owner = {};

  /** To be called while the region is set up: from then on `tried` follows. */
  follow(): void {
    $effect(() => {
      if (this.passing) {
        this.tried = null;
        stopDrawing(this.owner);
        return;
      }
      void [view.batch, this.config, this.changed, this.dragged, view.groupShown, experiment.module];
      drawInTurn(this.owner, this.credit);
    });
    $effect(() => () => stopDrawing(this.owner));
  }

  private credit = (): boolean => {
    const { batch } = view;
    const { config } = this;
    const known = batch?.credit && config ? { batch, credit: batch.credit, config } : null;
    const after = known && this.changed ? (credits.again(known.batch, known.config)?.credit ?? null) : (known?.credit ?? null);
    this.tried = known && after ? { batch: known.batch, group: view.groupShown, config: known.config, credit: after } : null;
    if (!this.dragged && this.tried) this.end = this.fit(this.tried);
    return false;
  };

  /** An axis for the group on show before and after. */
  private fit({ batch, group: shown, credit }: Tried): number {
    const of = (map: CreditMap | null) =>
      batch.trajectories.flatMap(({ group }, index) => (group === shown ? (map?.advantages[index] ?? []) : []));
    return axisEnd([...of(batch.credit), ...of(credit)]);
  }
}

export const whatIf = new WhatIf();
