/** What stands beside the run on show: a pinned run, the other seeds of a series, and what a link says of its run. */

import type { DeviceKind, Difference, ExperimentConfig, Reproduction } from '../protocol';
import { changesBetween, experiment } from './experiment.svelte';
import type { Run } from './run.svelte';
import { Bundle, type KeptRun, keep, series } from './series.svelte';
import { trainer } from './trainer.svelte';

/** Steps that an expectation covers at most: no more need be handed over. */
const EXPECTED_STEPS = 100;

class Comparison {
  pinned = $state.raw<Bundle | null>(null);
  /** Whether a comparison pinned it, not the person: it goes with that comparison. */
  private byComparison = false;
  /** The run that was pinned while it could still go on: its curve grows. */
  private growing: Run | null = null;

  constructor() {
    series.onBothBegun = () => this.leave();
    series.onSecondDone = bundle => {
      this.take(bundle, null);
      this.byComparison = true;
    };
    series.onStopped = run => {
      if (this.growing === run && this.pinned) this.pinned = new Bundle(this.pinned.config, [keep(run)]);
      if (run.over && this.growing === run) this.growing = null;
    };
  }

  /** Pins the run on show, with the seeds of its series that are done. */
  pin(): void {
    const { run } = trainer;
    if (!run) return;
    const seeds = run.job?.bundle;
    if (run.job && run.job.of > 1 && seeds && seeds.runs.length > 0) this.take(seeds, null);
    else this.take(new Bundle(run.config, [keep(run)]), run.over || run.kind === 'recorded' ? null : run);
  }

  unpin(): void {
    this.take(null, null);
  }

  /** Another comparison, or another lesson: what the last comparison pinned goes. */
  leave(): void {
    if (this.byComparison) this.unpin();
  }

  private take(bundle: Bundle | null, growing: Run | null): void {
    this.byComparison = false;
    this.pinned = bundle;
    this.growing = growing;
  }

  /** The runs of the pinned configuration, where they are of the task on show: what another one counts is something else. */
  ghosts: KeptRun[] = $derived(
    this.pinned && trainer.run && this.pinned.config.environment !== trainer.run.config.environment
      ? []
      : (this.pinned?.runs ?? []),
  );

  /** The seeds of the run on show that are done, where it is one of several. */
  seeds: KeptRun[] = $derived.by(() => {
    const job = trainer.run?.job;
    return job && job.of > 1 ? job.bundle.runs : [];
  });

  /** The run on show is the pinned one. */
  same = $derived.by(() => {
    const { run } = trainer;
    if (!this.pinned || !run) return false;
    return run.job?.bundle === this.pinned || (this.ghosts.length === 1 && this.ghosts[0]?.reports === run.reports);
  });

  /** In what the pinned run (first value) differs from the run on show (second value), seeds aside. */
  differences: Difference[] = $derived.by(() => {
    const { run } = trainer;
    return this.pinned && run ? withoutSeed(changesBetween(this.pinned.config, run.config)) : [];
  });

  /** In what the second configuration of the link (second value) differs from the form (first value). */
  ofLink: Difference[] = $derived.by(() => {
    const { config, other } = experiment;
    return config && other ? withoutSeed(changesBetween(config, other)) : [];
  });

  /** The second configuration that a link can hold: that of the link that was opened, else of the pinned run. */
  second: ExperimentConfig | null = $derived.by(() => {
    const { config, other } = experiment;
    const differs = (second: ExperimentConfig | null | undefined) =>
      second && config && withoutSeed(changesBetween(config, second)).length > 0;
    return [other, this.pinned?.config].find(differs) ?? null;
  });

  /** A run of exactly the form's configuration, its seed included, with some steps done. */
  ofForm: KeptRun | null = $derived.by(() => {
    const { config } = experiment;
    const { live } = trainer;
    if (!config || !live) return null;
    const runs = [keep(live), ...(live.job && !live.job.second ? live.job.bundle.runs : [])];
    const fits = (run: KeptRun) =>
      run.backend !== null && run.reports.length > 0 && changesBetween(config, run.config).length === 0;
    return runs.find(fits) ?? null;
  });

  /** What the run of the form's configuration makes of the link's statement; null where there is no such run yet. */
  reproduction(): Reproduction | null {
    const { expectation, module } = experiment;
    const run = this.ofForm;
    if (!expectation || !module || !run?.backend) return null;
    return module.compare_expectation(expectation, run.reports.slice(0, EXPECTED_STEPS), run.backend);
  }

  /** The device that the run of the form's configuration was computed on. */
  backend: DeviceKind | null = $derived(this.ofForm?.backend ?? null);

  /** A link with more than the experiment; null where that is too much for one link. */
  link(compare: boolean, reproduce: boolean): string | null {
    const { module } = experiment;
    const run = reproduce ? this.ofForm : null;
    const expectation = module && run?.backend ? module.expectation_of(run.reports.slice(0, EXPECTED_STEPS), run.backend) : null;
    return experiment.linkWith(compare ? this.second : null, expectation ?? null);
  }
}

const withoutSeed = (differences: Difference[]) => differences.filter(({ name }) => name !== 'seed');

export const comparison = new Comparison();
