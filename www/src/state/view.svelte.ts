/** What is on show below the curves: which batch, which group, which token, which quantity, under which credit. */

import { untrack } from 'svelte';
import { type ColourScale, clampOf, type Quantity } from '../credit-scale';
import {
  allValues,
  columnsOf,
  columnWidths,
  forCredit,
  own,
  type RowView,
  recredited,
  rowsOf,
  type Shown,
  tellingGroup,
  tokenWidth,
} from '../episodes';
import { tokenLabel } from '../format';
import { creditPalette } from '../palette';
import type { ExperimentConfig } from '../protocol';
import { experiment } from './experiment.svelte';
import { notices } from './notices.svelte';
import { trainer } from './trainer.svelte';
import { ui } from './ui.svelte';

/** The settings that change credit alone: frozen episodes can be credited again under them. */
const CREDIT_SETTINGS = [
  'reward_mode',
  'outcome_weight',
  'valid_call_weight',
  'format_weight',
  'malformed_weight',
  'repeated_call_weight',
  'turn_weight',
  'gamma',
  'credit_method',
  'scale_rewards',
] as const;

const creditSettings = (config: ExperimentConfig): string => JSON.stringify(CREDIT_SETTINGS.map(name => config[name]));

export interface Selection {
  member: number;
  position: number;
}

class View {
  /** The group that the person turned to; null shows a telling one. */
  group = $state<number | null>(null);
  quantity = $state<Quantity>('advantage');
  table = $state(false);
  hiddenState = $state(false);
  byReturn = $state(false);
  selection = $state.raw<Selection | null>(null);
  hover = $state.raw<Selection | null>(null);

  private palette = $derived(creditPalette(ui.theme));
  private labels = $derived(experiment.tokenNames.map(tokenLabel));
  private tokenWidths = $derived(this.labels.map(label => tokenWidth(label, false)));
  private smallTokenWidths = $derived(this.labels.map(label => tokenWidth(label, true)));

  batch = $derived.by(() => {
    const batches = trainer.run?.batches ?? [];
    const pinned = trainer.run?.pinned ?? null;
    if (pinned === null) return batches.at(-1) ?? null;
    const distance = (iteration: number) => Math.abs(iteration - pinned);
    return batches.reduce(
      (best, batch) => (best && distance(best.iteration) <= distance(batch.iteration) ? best : batch),
      batches[0] ?? null,
    );
  });

  private wanted = $derived(experiment.config ? creditSettings(experiment.config) : null);
  private trained = $derived(trainer.run ? creditSettings(trainer.run.config) : null);

  /** The credit on show is not the one the batch was trained with. */
  again = $derived(
    this.batch?.credit != null && experiment.module !== null && this.wanted !== null && this.wanted !== this.trained,
  );

  shown: Shown | null = $derived.by(() => {
    const batch = this.batch;
    if (!batch) return null;
    if (!this.again || !this.wanted || !experiment.module || !trainer.run) return own(batch);
    const values = JSON.parse(this.wanted) as unknown[];
    const changed = Object.fromEntries(CREDIT_SETTINGS.map((name, i) => [name, values[i]]));
    try {
      return recredited(batch, experiment.module.recredit({ ...trainer.run.config, ...changed }, forCredit(batch)));
    } catch (error) {
      queueMicrotask(() =>
        notices.show({ id: 'module', text: words => words.notices.moduleFailed, detail: String(error), reload: true }),
      );
      return own(batch);
    }
  });

  /** The configuration whose credit is on show. */
  config = $derived(this.again && experiment.config ? experiment.config : (trainer.run?.config ?? null));

  lossMask = $derived(experiment.config?.loss_mask ?? trainer.run?.config.loss_mask ?? true);

  groups = $derived(this.batch?.groups.length ?? 0);
  groupShown = $derived(Math.min(this.group ?? (this.batch ? tellingGroup(this.batch) : 0), Math.max(0, this.groups - 1)));

  /** End of the colour scale. It stands still while a slider is dragged, else every colour would lie. */
  clamp = $derived.by(() => {
    void experiment.settled;
    void this.batch;
    const quantity = this.quantity;
    return untrack(() => (this.shown ? clampOf(allValues(this.shown, quantity)) : 1));
  });

  scale: ColourScale = $derived({ quantity: this.quantity, clamp: this.clamp, palette: this.palette });

  rows: RowView[] = $derived.by(() => {
    if (!this.shown) return [];
    const rows = rowsOf(this.shown, this.groupShown, this.scale, this.lossMask);
    return this.byReturn ? rows.toSorted((a, b) => (b.return ?? 0) - (a.return ?? 0)) : rows;
  });

  columns = $derived(this.shown ? columnsOf(this.shown, this.groupShown) : []);

  /** How wide the turns of the batch on show are. */
  needs = $derived.by(() => {
    const { shown } = this;
    const of = (tokenWidths: number[]) => (shown ? columnWidths(shown, tokenWidths) : []);
    return { normal: of(this.tokenWidths), small: of(this.smallTokenWidths) };
  });

  /** Whether rows of the batch on show are still being drawn. */
  drawing = false;

  noSignal = $derived(this.shown?.credit?.no_signal[this.groupShown] ?? false);

  /** The selected token, or the first token of a telling turn while nothing was selected. */
  selected = $derived.by(() => locate(this.rows, this.selection) ?? locate(this.rows, opening(this.rows)));
  hovered = $derived(locate(this.rows, this.hover));

  /** What a token is called on the page. */
  label(token: number): string {
    return this.labels[token] ?? '?';
  }

  /** Selects a token. While a run goes on, its batch stays on show: what somebody reads must not be swept away. */
  select(row: RowView, position: number): void {
    this.selection = { member: row.trajectory.member, position };
    if (trainer.activity === 'running' && trainer.run && this.batch) trainer.run.pinned = this.batch.iteration;
  }

  /** Whether the batch on show is held while newer ones come. */
  held = $derived(trainer.live !== null && trainer.live.pinned !== null);

  /** Shows the newest batch from now on. */
  follow(): void {
    if (trainer.run) trainer.run.pinned = null;
  }

  turnGroup(by: number): void {
    if (this.groups > 0) this.group = (this.groupShown + by + this.groups) % this.groups;
    this.hover = null;
  }

  /** Shows the kept batch nearest to an iteration; the newest one is followed again. */
  show(iteration: number): void {
    const run = trainer.run;
    if (!run) return;
    const newest = run.batches.at(-1)?.iteration ?? 0;
    run.pinned = iteration >= newest ? null : iteration;
    this.hover = null;
  }
}

/** Where a selection points in these rows. */
function locate(rows: RowView[], selection: Selection | null) {
  const row = rows.find(entry => entry.trajectory.member === selection?.member);
  if (!row || !selection) return null;
  const turn = row.turns.find(entry => entry.tokens.some(token => token.position === selection.position)) ?? row.turns.at(-1);
  const token = turn?.tokens.find(entry => entry.position === selection.position) ?? turn?.tokens[0];
  return turn && token ? { row, turn, token } : null;
}

/** A place worth looking at first: the last turn but one of the longest rewarded episode. */
function opening(rows: RowView[]): Selection | null {
  const rewarded = rows.filter(row => row.success);
  const longest = (rewarded.length ? rewarded : rows).reduce<RowView | null>(
    (best, row) => (best && best.turns.length >= row.turns.length ? best : row),
    null,
  );
  const turn = longest?.turns[Math.max(0, longest.turns.length - 2)];
  const token = turn?.tokens[Math.min(1, (turn?.tokens.length ?? 1) - 1)];
  return longest && token ? { member: longest.trajectory.member, position: token.position } : null;
}

export const view = new View();
