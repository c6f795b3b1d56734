/** One run as the page keeps it: settings, reports, some batches of episodes. */

import { begins, handOn, historyOf } from '../history';
import type {
  Batch,
  DeviceReport,
  ExperimentConfig,
  MeasuredCredit,
  RecordedRun,
  Report,
  StopReason,
  WarmStartReport,
} from '../protocol';

import type { Job } from './series.svelte';

/** How many batches a run keeps; more are thinned out. */
const KEPT_BATCHES = 24;

export type RunKind = 'recorded' | 'live';

export class Run {
  /** Under which it is kept in this browser. */
  readonly id: string = crypto.randomUUID?.() ?? String(Math.random());
  readonly kind: RunKind;
  readonly config: ExperimentConfig;
  /** For a recorded run: the command and machine it was made with. */
  readonly madeWith: string;
  /** Its place among several seeds or in a comparison. */
  readonly job: Job | null;
  reports = $state.raw<Report[]>([]);
  /** Steps that were done elsewhere, before it was opened here from a checkpoint. */
  begun = $state(0);
  /** Loss after each update of a live warm start. */
  imitation = $state.raw<{ step: number; loss: number }[]>([]);
  /** Kept episodes, by iteration. */
  batches = $state.raw<Batch[]>([]);
  /** True credit where it was measured, by iteration. */
  measured = $state.raw<MeasuredCredit[]>([]);
  device = $state.raw<DeviceReport | null>(null);
  warmStart = $state.raw<WarmStartReport | null>(null);
  stop = $state.raw<StopReason | null>(null);
  /** The iteration whose batch is on show; null follows the newest. */
  pinned = $state<number | null>(null);
  /** What came after the step that was gone back to. */
  private ahead: { batches: Batch[]; measured: MeasuredCredit[] } = { batches: [], measured: [] };

  constructor(kind: RunKind, config: ExperimentConfig, madeWith = '', job: Job | null = null, id: string | null = null) {
    if (id !== null) this.id = id;
    this.job = job;
    this.kind = kind;
    this.config = config;
    this.madeWith = madeWith;
  }

  static recorded(file: RecordedRun): Run {
    const run = new Run('recorded', file.config, file.made_with);
    run.reports = file.reports;
    run.batches = file.batches;
    run.measured = file.measured;
    // Early enough that the policy still has something to learn; where true credit was measured if it was.
    const early = Math.round(file.config.iterations / 9);
    const far = ({ iteration }: MeasuredCredit) => Math.abs(iteration - early);
    run.pinned = file.measured.toSorted((a, b) => far(a) - far(b))[0]?.iteration ?? early;
    return run;
  }

  /** What the form held when it was begun. */
  get form(): ExperimentConfig {
    return this.job?.form ?? this.config;
  }

  /** The same run with more steps to do, under the settings of the form. */
  longer(config: ExperimentConfig): Run {
    const run = new Run('live', config, '', null, this.id);
    run.reports = this.reports;
    run.begun = this.begun;
    run.imitation = this.imitation;
    run.batches = this.batches;
    run.measured = this.measured;
    run.device = this.device;
    run.warmStart = this.warmStart;
    return run;
  }

  /** Seconds of work in the first steps that are kept. */
  seconds(iterations = this.reports.length): number {
    return historyOf(this.reports).seconds(iterations);
  }

  /** Whether the run reached its stated end or cannot go on. */
  get over(): boolean {
    return this.stop?.kind === 'finished' || this.stop?.kind === 'non_finite';
  }

  /** Goes back to where `iteration` steps were done; what came after can be gone forward to until the next step is done. */
  back(iteration: number): void {
    const after = (entry: { iteration: number }) => entry.iteration >= iteration;
    this.ahead = { batches: this.batches.filter(after), measured: this.measured.filter(after) };
    this.cut(iteration);
  }

  /** Forgets what came after `iteration` steps. */
  cut(iteration: number): void {
    const before = (entry: { iteration: number }) => entry.iteration < iteration;
    if ((this.reports.at(-1)?.iteration ?? -1) >= iteration) {
      const shorter = this.reports.filter(before);
      begins(this.reports, shorter);
      this.reports = shorter;
    }
    this.batches = this.batches.filter(before);
    this.measured = this.measured.filter(before);
    if (this.pinned !== null && this.pinned >= iteration) this.pinned = null;
    this.stop = null;
  }

  /** Takes back what was gone back from, and kept episodes that are no longer here. */
  restore(kept: Batch[]): void {
    this.batches = merged(this.batches, [...this.ahead.batches, ...kept]);
    this.measured = merged(this.measured, this.ahead.measured);
  }

  addReport(report: Report): void {
    this.ahead = { batches: [], measured: [] };
    const { reports } = this;
    // A step that was done before is done anew.
    const earlier =
      (reports.at(-1)?.iteration ?? -1) < report.iteration
        ? reports
        : reports.filter(other => other.iteration < report.iteration);
    const longer = [...earlier, report];
    if (earlier !== reports) begins(reports, earlier);
    historyOf(earlier);
    handOn(earlier, longer);
    this.reports = longer;
  }

  addMeasured(measured: MeasuredCredit): void {
    this.measured = [...this.measured.filter(other => other.iteration !== measured.iteration), measured];
  }

  /** Keeps a batch; the same iteration's earlier phase is replaced. `shown` is never thinned out. */
  addBatch(batch: Batch, shown: number | null): void {
    const batches = [...this.batches.filter(other => other.iteration !== batch.iteration), batch];
    if (batches.length > KEPT_BATCHES) batches.splice(mostCrowded(batches, shown), 1);
    this.batches = batches;
  }
}

/** Entries by iteration, with those of `more` that are of other iterations. */
function merged<T extends { iteration: number }>(entries: T[], more: T[]): T[] {
  const all = new Map([...more, ...entries].map(entry => [entry.iteration, entry]));
  return [...all.values()].sort((a, b) => a.iteration - b.iteration);
}

/** Index of the batch whose neighbours are closest; the first, the last and the one on show stay. */
function mostCrowded(batches: Batch[], shown: number | null): number {
  let best = 1;
  let gap = Number.POSITIVE_INFINITY;
  const at = (i: number) => batches[i]?.iteration ?? 0;
  for (let i = 1; i < batches.length - 1; i++) {
    const width = at(i + 1) - at(i - 1);
    if (width < gap && at(i) !== shown) [best, gap] = [i, width];
  }
  return best;
}
