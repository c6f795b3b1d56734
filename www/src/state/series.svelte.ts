/** Runs one after another: several seeds of a configuration, and both configurations of a comparison. */

import type { DeviceKind, ExperimentConfig, Report } from '../protocol';
import { experiment } from './experiment.svelte';
import type { Run } from './run.svelte';
import { trainer } from './trainer.svelte';

/** Most seeds of a series: as many as a link asks for. */
export const SEEDS_LIMIT = 5;

/** What is kept of a run for its curves. */
export interface KeptRun {
  config: ExperimentConfig;
  reports: Report[];
  /** What it was computed on; null for a recorded run. */
  backend: DeviceKind | null;
}

export function keep(run: Run): KeptRun {
  return { config: run.config, reports: run.reports, backend: run.device?.kind ?? null };
}

/** The runs of one configuration that are done, seed by seed. */
export class Bundle {
  /** With the first seed. */
  readonly config: ExperimentConfig;
  runs = $state.raw<KeptRun[]>([]);

  constructor(config: ExperimentConfig, runs: KeptRun[] = []) {
    this.config = config;
    this.runs = runs;
  }
}

/** One run of a series. */
export interface Job {
  /** What it trains, with its own seed. */
  config: ExperimentConfig;
  /** What the form held when the series was begun: the run goes on while the form still does. */
  form: ExperimentConfig;
  /** Where it is kept when it is done. */
  bundle: Bundle;
  /** Whether it is one of two configurations that are compared, and whether of the second. */
  compared: boolean;
  second: boolean;
  /** Which seed of how many, from 0. */
  index: number;
  of: number;
}

class Series {
  private queue: Job[] = [];
  private current: Job | null = null;
  /** Pause was pressed while the last step of a run was done: the next run waits for Go on. */
  private held = $state(false);

  /** Called when a comparison is begun. */
  onBothBegun: () => void = () => {};
  /** Called when the second configuration of a comparison is done with all its seeds. */
  onSecondDone: (bundle: Bundle) => void = () => {};
  /** Called whenever a run stands still. */
  onStopped: (run: Run) => void = () => {};

  /** Goes on with the run that was paused, or begins all seeds of the form's configuration. */
  train(): void {
    if (trainer.busy) return;
    if (trainer.resumable) trainer.train();
    else if (this.waiting) this.next();
    else if (experiment.config) this.begin(this.jobs(experiment.config, experiment.config, false, false));
  }

  /** Trains the second configuration of the comparison, then the first, with the same seeds. */
  trainBoth(): void {
    const { config, other } = experiment;
    if (trainer.busy || !config || !other) return;
    this.onBothBegun();
    this.begin([...this.jobs(other, config, true, true), ...this.jobs(config, config, true, false)]);
  }

  /** One phase; of a new run where there is none that goes on. */
  step(): void {
    if (!trainer.resumable) this.drop();
    trainer.step();
  }

  reset(): void {
    this.drop();
    trainer.reset();
  }

  /** Another experiment was opened: what runs stops, and nothing follows it. */
  halt(): void {
    this.drop();
    trainer.halt();
  }

  /** Whether a series stands between two of its runs, of settings that the form still has. */
  get waiting(): boolean {
    return this.held && this.current?.form === experiment.config;
  }

  /** A run stands still; the next one of the series begins where it reached its end, unless `paused` meanwhile. */
  stopped(run: Run, paused: boolean): void {
    const job = run.job;
    this.onStopped(run);
    if (!job || job !== this.current || run.stop?.kind !== 'finished') return;
    job.bundle.runs = [...job.bundle.runs, keep(run)];
    if (job.second && job.index === job.of - 1) this.onSecondDone(job.bundle);
    this.held = paused && this.queue.length > 0;
    if (!this.held) this.next();
  }

  private begin(jobs: Job[]): void {
    this.queue = jobs;
    this.next();
  }

  private next(): void {
    this.held = false;
    this.current = this.queue.shift() ?? null;
    if (this.current) trainer.trainJob(this.current);
  }

  private drop(): void {
    this.held = false;
    this.queue = [];
    this.current = null;
  }

  private jobs(config: ExperimentConfig, form: ExperimentConfig, compared: boolean, second: boolean): Job[] {
    const bundle = new Bundle(config);
    const of = experiment.seeds;
    return Array.from({ length: of }, (_, index) => {
      const seed = (config.seed + index) % 2 ** 32;
      return { config: { ...config, seed }, form, bundle, compared, second, index, of };
    });
  }
}

export const series = new Series();
