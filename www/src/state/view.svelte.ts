/** What is on show below the curves: which batch, which group, which token, which quantity, under which credit. */

import { untrack } from 'svelte';
import { type ColourScale, clampOf, methodOf, type Quantity } from '../credit-scale';
import {
  allValues,
  columnsOf,
  columnWidths,
  own,
  type PerTurn,
  type RowView,
  recredited,
  rowsOf,
  type Shown,
  tellingGroup,
  tokenWidth,
} from '../episodes';
import { tokenLabel } from '../format';
import { alwaysInTurn } from '../frames.svelte';
import { creditPalette } from '../palette';
import type { Batch, CreditMethod, ExperimentConfig, MeasuredCredit, Part } from '../protocol';
import type { Words } from '../words/en';
import { credits } from './credits.svelte';
import { experiment } from './experiment.svelte';
import { trainer } from './trainer.svelte';
import { say, ui, words } from './ui.svelte';

export interface Selection {
  member: number;
  position: number;
}

class View {
  /** The group that the person turned to; null shows a telling one. */
  group = $state<number | null>(null);
  quantity = $state<Quantity>('advantage');
  table = $state(false);
  /** Whether the environment's hidden state stands beside what the policy saw. */
  hiddenState = $state(true);
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

  /** What the form asks for. In a frame of its own: crediting a batch again takes longer than moving a slider. */
  private form = alwaysInTurn(() => ({ config: experiment.config, settled: experiment.settled }));
  private wanted = $derived(this.form.current.config ? credits.settingsOf(this.form.current.config) : null);
  private trained = $derived(trainer.run ? credits.settingsOf(trainer.run.form) : null);

  /** The form asks for another task than that of the episodes on show. */
  otherTask = $derived(
    experiment.config !== null && trainer.run !== null && experiment.config.environment !== trainer.run.form.environment,
  );

  /** The credit on show is not the one the batch was trained with. */
  again = $derived(
    this.batch?.credit != null &&
      experiment.module !== null &&
      this.wanted !== null &&
      this.wanted !== this.trained &&
      // Rewards and credit of another task say nothing about these episodes.
      this.form.current.config?.environment === trainer.run?.form.environment,
  );

  /** The configuration whose credit is on show. */
  config: ExperimentConfig | null = $derived.by(() => {
    const trained = trainer.run?.config ?? null;
    return trained && this.again && this.wanted ? credits.under(trained, this.wanted) : trained;
  });

  shown: Shown | null = $derived.by(() => {
    const { batch, config } = this;
    if (!batch) return null;
    if (!this.again || !config) return own(batch);
    const other = credits.again(batch, config);
    return other ? recredited(batch, other) : own(batch);
  });

  /** True credit of the batch on show, where it was measured. */
  measured: MeasuredCredit | null = $derived(
    trainer.run?.measured.find(entry => entry.iteration === this.batch?.iteration) ?? null,
  );

  /** The quantity on show, turn by turn; null for one that belongs to tokens and where there is none. */
  perTurn: PerTurn | null = $derived.by(() => {
    const { quantity, shown, config } = this;
    const method = methodOf(quantity);
    if (method) return shown?.credit && config ? credits.assigned(shown.batch, config, method) : null;
    if (quantity === 'true_credit') return this.measured?.credit.credits ?? null;
    if (quantity === 'log_prob') return null;
    return (quantity === 'advantage' ? shown?.credit?.advantages : shown?.credit?.returns_to_go) ?? null;
  });

  /** Why the chosen quantity has no values here; null where it has some. */
  lacking: 'values' | 'measurement' | null = $derived.by(() => {
    if (this.perTurn !== null || !this.shown?.credit) return null;
    if (methodOf(this.quantity)) return 'values';
    return this.quantity === 'true_credit' ? 'measurement' : null;
  });

  /** As the run on show was trained, until the person moves the switch. */
  lossMask = $derived.by(() => {
    const { run } = trainer;
    const wanted = experiment.config?.loss_mask ?? true;
    return run && wanted === run.form.loss_mask ? run.config.loss_mask : wanted;
  });

  groups = $derived(this.batch?.groups.length ?? 0);
  groupShown = $derived(Math.min(this.group ?? (this.batch ? tellingGroup(this.batch) : 0), Math.max(0, this.groups - 1)));

  /** End of the colour scale. It stands still while a slider is dragged, else every colour would lie. */
  clamp = $derived.by(() => {
    void this.form.current.settled;
    void this.batch;
    const quantity = this.quantity;
    void this.measured;
    return untrack(() => (this.shown ? clampOf(allValues(this.shown, quantity, this.perTurn)) : 1));
  });

  scale: ColourScale = $derived({ quantity: this.quantity, clamp: this.clamp, palette: this.palette });

  rows: RowView[] = $derived.by(() => {
    if (!this.shown) return [];
    const rows = rowsOf(this.shown, this.groupShown, this.scale, this.perTurn, this.lossMask);
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

  /** No advantage in the group, and not for want of values. */
  noSignal = $derived.by(() => {
    const credit = this.shown?.credit;
    return (credit?.no_signal[this.groupShown] ?? false) && !credit?.needs_values;
  });

  /** The selected token, or the first token of a telling turn while nothing was selected. */
  selected = $derived.by(() => locate(this.rows, this.selection) ?? locate(this.rows, opening(this.rows)));
  hovered = $derived(locate(this.rows, this.hover));

  /** How the selected turn's advantage came about. */
  parts: Part[] = $derived.by(() => {
    const { selected } = this;
    return selected ? (this.shown?.credit?.parts[selected.row.index]?.[selected.turn.turn] ?? []) : [];
  });

  /** Whole episodes are compared with one another, whatever else is. */
  wholeEpisodes = $derived(this.parts.some(({ kind }) => kind === 'episode' || kind === 'outcome'));

  /** The turn whose peers are those of the selection in other rows; null where whole episodes or states are compared. */
  peerTurn = $derived.by(() => {
    const sameTurn = ({ kind, peers }: Part) =>
      (kind === 'return_to_go' && peers > 0 && this.config?.turn_baseline === 'turn_index') || kind === 'turn_reward';
    return !this.wholeEpisodes && this.parts.some(sameTurn) ? (this.selected?.turn.turn ?? null) : null;
  });

  /** What a token is called on the page. */
  label(token: number): string {
    return this.labels[token] ?? '?';
  }

  /** What a quantity is called on the page. */
  nameOf(quantity: Quantity): string {
    const method = methodOf(quantity);
    return method ? this.methodName(method) : words().episodes.quantities[quantity as keyof Words['episodes']['quantities']];
  }

  methodName(method: CreditMethod): string {
    const kind = experiment.settings.get('credit_method')?.kind;
    const option = kind?.type === 'choice' ? kind.options.find(entry => entry.value === method) : undefined;
    return option ? say(option.label) : method;
  }

  /** Selects a token. While a run goes on, its batch stays on show: what somebody reads must not be swept away. */
  select(row: RowView, position: number): void {
    this.selection = { member: row.trajectory.member, position };
    if (trainer.activity === 'running' && trainer.run && this.batch) trainer.run.pinned = this.batch.iteration;
  }

  /** Another run is on show: a telling group of it, and nothing of the last one selected. */
  look(): void {
    this.group = null;
    this.selection = null;
  }

  /** Selects the first token of a turn of any group. */
  selectTurn(batch: Batch, index: number, turn: number): void {
    const trajectory = batch.trajectories[index];
    const start = trajectory?.turns[turn]?.start;
    if (!trajectory || start === undefined) return;
    if (this.batch?.iteration !== batch.iteration) this.show(batch.iteration);
    this.group = trajectory.group;
    this.selection = { member: trajectory.member, position: start };
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
  const best = Math.max(...rows.map(row => row.success));
  const rewarded = rows.filter(row => best > 0 && row.success === best);
  const longest = (rewarded.length ? rewarded : rows).reduce<RowView | null>(
    (best, row) => (best && best.turns.length >= row.turns.length ? best : row),
    null,
  );
  const turn = longest?.turns[Math.max(0, longest.turns.length - 2)];
  const token = turn?.tokens[Math.min(1, (turn?.tokens.length ?? 1) - 1)];
  return longest && token ? { member: longest.trajectory.member, position: token.position } : null;
}

export const view = new View();
