/** The training worker seen from the page: what it does now, what it is told next, and the run that comes of it. */

import { drawInTurn, stopDrawing } from '../frames.svelte';
import type {
  Batch,
  Counterfactual,
  DeviceChoice,
  DeviceReport,
  Event as EngineEvent,
  ExperimentConfig,
  Phase,
} from '../protocol';
import type { KeptRun } from '../storage';
import type { Words } from '../words/en';
import type { Broken, Checkpoint, ExportedPolicy, FromWorker, NotKept, Workers } from '../worker';
import { Asked } from './asked';
import { BatchPace, EPISODES_EVERY } from './batch-pace';
import { Clock } from './clock.svelte';
import type { CounterfactualRequest } from './counterfactual.svelte';
import { DeviceLosses } from './device-losses';
import { experiment } from './experiment.svelte';
import { kept } from './kept.svelte';
import { Measurement } from './measurement.svelte';
import { notices } from './notices.svelte';
import { recordings } from './recordings.svelte';
import { Run } from './run.svelte';
import type { Job } from './series.svelte';
import { words } from './ui.svelte';
import { WorkerLink } from './worker-link';
import { workers } from './workers.svelte';

/**
 * What goes on: nothing, the engine's download, the set-up of a run, training, one phase, the end of a phase after Pause, or the
 * measurement of true credit, or playing on from a changed turn.
 */
export type Activity = 'idle' | 'loading' | 'preparing' | 'running' | 'stepping' | 'pausing' | 'measuring' | 'replaying';

/** How long storage may take to read an interrupted run back, in milliseconds. */
const PATIENCE = 10_000;

class Trainer {
  activity = $state<Activity>('idle');
  live = $state.raw<Run | null>(null);
  deviceChoice = $state<DeviceChoice>('auto');
  device = $state.raw<DeviceReport | null>(null);
  /** The phase done last and the one that comes next. */
  done = $state<Phase | null>(null);
  next = $state<Phase>('sample');
  /** Of the download in bytes, or of the imitation in updates. */
  progress = $state.raw<{ stage: 'download' | 'imitation'; done: number; total: number } | null>(null);
  readonly clock = new Clock();

  /** The worker has the live run set up. */
  private configured = $state(false);
  /** The device that the live run was set up for. */
  configuredDevice = $state<DeviceChoice>('auto');

  /** What the page shows: the live run, or the recorded one before there is any. */
  run: Run | null = $derived(this.live ?? recordings.run);

  /** In what the form differs from the run on show. */
  differences = $derived(this.run && experiment.config ? experiment.changesFrom(this.run.form) : []);

  /** An interrupted run is being read back. */
  reading = $state(false);

  busy = $derived(this.activity !== 'idle' || this.reading);

  /** Whether the next run would compute on another device than the worker was told. */
  deviceChanged = $derived(this.live !== null && this.configured && this.deviceChoice !== this.configuredDevice);

  /** What the live run goes on from when the worker does not have it. */
  private checkpoint = $state.raw<Checkpoint | null>(null);

  /** After how many steps the worker took the live run up: it knows no episodes from before. */
  private workerFrom = $state(0);

  /** Steps done of the live run, those before its first report here included. */
  steps = $derived(
    Math.max((this.live?.reports.at(-1)?.iteration ?? -1) + 1, this.checkpoint?.iteration ?? 0, this.live?.begun ?? 0),
  );

  /**
   * Whether the form asks for more steps of the live run, and for nothing else: Train goes on with it then, as far as the run is what it
   * would have been with as many steps from the start. With a schedule, or as one of several, it is not.
   */
  longer = $derived.by(() => {
    const { live, differences } = this;
    const { config } = experiment;
    if (!live || !config || this.deviceChanged || (!this.configured && this.checkpoint === null)) return false;
    if (live.stop?.kind === 'non_finite' || (live.job && (live.job.of > 1 || live.job.compared))) return false;
    const steps = differences.length === 1 && differences[0]?.name === 'iterations';
    return steps && config.learning_rate_schedule === 'constant' && this.steps > 0 && config.iterations > this.steps;
  });

  /** Whether Train goes on with the live run instead of starting a new one. */
  resumable = $derived(
    this.longer ||
      (this.live !== null &&
        !this.live.over &&
        (this.configured || this.checkpoint !== null) &&
        this.differences.length === 0 &&
        !this.deviceChanged),
  );

  /** Whether something that was trained and could go on would be lost with the page. */
  unfinished = $derived.by(() => {
    const { live } = this;
    if (!live || live.over) return false;
    if (this.activity === 'running' || this.activity === 'stepping' || this.activity === 'pausing') return true;
    return (this.configured || this.checkpoint !== null) && (live.reports.length > 0 || live.batches.length > 0);
  });

  /** This browser keeps no runs. */
  private notKept = $state(false);

  /** Whether leaving the page would interrupt training, or lose a run that is not kept. */
  asksOnLeaving = $derived(['running', 'stepping', 'pausing'].includes(this.activity) || (this.notKept && this.unfinished));

  readonly measurement = new Measurement();

  /** What came of the turn that was changed last. */
  counterfactualFound = $state.raw<Counterfactual | null>(null);

  /** The step whose episodes the worker credited last: it has those, and they are measured. */
  creditedIteration: number | null = $derived(
    this.live?.batches.findLast(batch => batch.credit !== null && batch.iteration >= this.workerFrom)?.iteration ?? null,
  );

  /** Why true credit cannot be measured now; null where it can. */
  unmeasurable: 'recorded' | 'training' | 'no_credit' | 'gone' | null = $derived.by(() => {
    if (!this.live) return 'recorded';
    if (this.busy) return this.activity === 'measuring' ? null : 'training';
    if (this.creditedIteration === null) return 'no_credit';
    return this.configured ? null : 'gone';
  });

  /** Which iteration the page shows, so that its batch is not thinned out. */
  shownIteration: () => number | null = () => null;
  /** When batches are shown. */
  readonly pace = new BatchPace();

  /** Called when a run stands still: paused, at its end, or broken off by a number that is none; `paused` where Pause was pressed. */
  onStopped: (run: Run, paused: boolean) => void = () => {};

  private link = new WorkerLink(message => this.take(message));
  private loaded = false;
  private readonly losses = new DeviceLosses();
  private readonly asked = new Asked(message => this.link.post(message));
  private after: 'train' | 'step' | null = null;
  /** A new run was asked for and is not on show yet. */
  private beginning = false;
  private runOwner = {};

  train(): void {
    if (this.busy) return;
    if (this.longer) void this.goOnLonger('train');
    else if (this.resumable) this.go('train');
    else this.begin('train');
  }

  /** Begins a run of a series. */
  trainJob(job: Job): void {
    if (!this.busy) this.begin('train', job);
  }

  step(): void {
    if (this.busy) return;
    if (this.longer) void this.goOnLonger('step');
    else if (this.resumable) this.go('step');
    else this.begin('step');
  }

  /** Sets the live run up anew with more steps, from where it stands. */
  private async goOnLonger(then: 'train' | 'step'): Promise<void> {
    const { live } = this;
    const { config } = experiment;
    if (!live || !config) return;
    this.reading = true;
    const checkpoint = await this.exportCheckpoint();
    this.reading = false;
    if (live !== this.live || this.busy || !checkpoint) return;
    this.live = live.longer(config);
    this.checkpoint = checkpoint;
    this.configured = false;
    this.measurement.clear();
    this.go(then);
  }

  /** Stops after the phase in progress. */
  pause(): void {
    if (this.activity !== 'running') return;
    this.activity = 'pausing';
    this.link.post({ type: 'pause' });
  }

  /** Re-rolls every state of the episodes credited last until it was done `rolls` times; while it goes on, asks for more. */
  measure(rolls: number): void {
    if (this.unmeasurable !== null) return;
    this.activity = 'measuring';
    this.measurement.ask(rolls);
    this.link.post({ type: 'measure_credit', rolls });
  }

  /** Ends the measurement; what was measured stays, and can be gone on with. */
  stopMeasuring(): void {
    if (this.activity !== 'measuring') return;
    this.measurement.stop();
    this.link.post({ type: 'pause' });
  }

  /** Lets the policy play on from a changed turn of an episode credited last. */
  counterfactual(request: CounterfactualRequest): void {
    if (this.unmeasurable !== null || this.busy) return;
    this.activity = 'replaying';
    this.link.post({ type: 'counterfactual', ...request });
  }

  /** Drops the live run; the recorded one is on show again. A worker that computes is ended at once, not after its phase. */
  reset(): void {
    if (this.busy) this.replaceWorker();
    this.clear();
    this.dropLive();
  }

  /** Goes on with a run that was interrupted, where it stood. */
  async resume(run: KeptRun): Promise<void> {
    if (this.busy) return;
    this.reading = true;
    try {
      await this.takeUp(run);
    } finally {
      this.reading = false;
    }
    if (this.live?.id === run.id) this.train();
  }

  private async takeUp(run: KeptRun): Promise<void> {
    if (!(await kept.take(run.id))) {
      notices.show({ id: 'resume', text: words => words.notices.elsewhere });
      return;
    }
    const { opened } = experiment;
    const back = await inTime(readBack(run));
    if (experiment.opened !== opened || this.activity !== 'idle') {
      // Something else was opened meanwhile: it is offered again.
      kept.hold(null);
      kept.interrupted = run;
      return;
    }
    const config = back && experiment.adopt(back.current.config);
    if (!back || !config) {
      kept.hold(null);
      if (!back) notices.show({ id: 'resume', text: words => words.notices.notResumed });
      return;
    }
    const { current, found, batches } = back;
    this.clear();
    this.live = new Run('live', config, '', null, run.id);
    this.live.reports = found.reports;
    this.live.restore(batches);
    this.checkpoint = { iteration: found.iteration, bytes: found.bytes };
    this.clock.reset(this.live.seconds());
    this.live.cut(found.iteration);
    if (found.iteration < current.iteration) {
      notices.show({ id: 'resume', text: words => words.notices.olderCheckpoint(found.iteration) });
    }
  }

  /** Goes to the state after `iteration` steps. Nothing is trained; later steps can be gone forward to until the next one is done. */
  async backTo(iteration: number): Promise<void> {
    const run = this.live;
    const found = run && !this.busy ? await kept.checkpoint(iteration) : null;
    const batches = run && found ? await kept.episodes(run.id) : [];
    if (!run || this.busy || run !== this.live) return;
    if (!found) {
      notices.show({ id: 'resume', text: words => words.notices.noCheckpoint });
      void kept.refresh();
      return;
    }
    run.restore(batches);
    run.back(iteration);
    run.reports = found.reports;
    this.checkpoint = { iteration, bytes: found.bytes };
    this.configured = false;
    this.measurement.clear();
    [this.done, this.next] = [null, 'sample'];
  }

  /** Opens a checkpoint: its experiment in the form, and a run that goes on from it when Train is pressed. */
  importCheckpoint(bytes: Uint8Array, config: ExperimentConfig, iteration: number): void {
    if (this.busy) this.replaceWorker();
    this.clear();
    const own = experiment.adopt(config);
    if (!own) return;
    this.dropLive();
    this.live = new Run('live', own);
    this.live.begun = iteration;
    // Where its run ends: with more steps in the form it is gone on with.
    if (iteration >= own.iterations) this.live.stop = { kind: 'finished' };
    this.checkpoint = { iteration, bytes };
    kept.hold(this.live.id);
  }

  /** Why the policy cannot be handed out now; null where it can. */
  unexportable: 'recorded' | 'training' | 'gone' | null = $derived.by(() => {
    if (!this.live) return 'recorded';
    if (this.busy) return 'training';
    return this.configured ? null : 'gone';
  });

  /** The policy as files that Hugging Face transformers loads. */
  exportPolicy(): Promise<ExportedPolicy> {
    return this.asked.forPolicy();
  }

  /** The checkpoint after the last step of the live run; null where there is none. */
  exportCheckpoint(): Promise<Checkpoint | null> {
    return this.link.there && this.configured ? this.asked.forCheckpoint() : Promise.resolve(this.checkpoint);
  }

  /** Shows a run from a file in place of the one on show, which is dropped. */
  open(run: Run): void {
    this.reset();
    recordings.open(run);
  }

  /** Stops what runs and keeps what was learned on show: another experiment was opened. */
  halt(): void {
    if (this.activity === 'running') this.pause();
    else if (this.activity === 'measuring') this.stopMeasuring();
    else if (this.activity === 'loading' || this.activity === 'preparing') {
      const { checkpoint } = this;
      this.replaceWorker();
      this.clear();
      this.checkpoint = checkpoint;
      if (this.live?.reports.length === 0 && !checkpoint) {
        this.live = null;
        kept.hold(null);
      }
    }
  }

  /** The live run gives way, as the person wanted. */
  private dropLive(): void {
    if (this.live) void kept.forget(this.live.id);
    this.live = null;
  }

  private begin(then: 'train' | 'step', job: Job | null = null): void {
    const config = job?.config ?? experiment.config;
    if (!config) return;
    for (const id of ['stopped', 'broken', 'file']) notices.close(id);
    this.clear();
    this.activity = 'loading';
    this.after = then;
    // The worker starts in a frame after that of the press itself, and the run on show gives way to a new one in the next.
    this.beginning = true;
    drawInTurn(this.runOwner, () => {
      if (!this.link.there) {
        this.startWorker();
        return this.link.there;
      }
      this.beginning = false;
      this.dropLive();
      this.live = new Run('live', config, '', job);
      kept.hold(this.live.id);
      if (this.loaded) this.configure();
      return false;
    });
  }

  private startWorker(): void {
    this.link.start(this.wantedDevice);
    this.share();
  }

  /** Says how many workers are to compute on the CPU; taken in while the run stands still. */
  share(): void {
    this.link.post({ type: 'share', workers: workers.wanted });
  }

  private replaceWorker(): void {
    this.link.end();
    this.loaded = false;
    this.asked.gone(words().notices.workerEnded, this.checkpoint);
  }

  /** What the live run is to compute on. */
  private get wantedDevice(): DeviceChoice {
    return this.losses.instead(this.deviceChoice);
  }

  private configure(): void {
    if (!this.live) return;
    this.activity = 'preparing';
    this.progress = null;
    this.configuredDevice = this.deviceChoice;
    const { id, config } = this.live;
    const plain = $state.snapshot(config) as ExperimentConfig;
    this.link.post({ type: 'keep', id, config: plain, checkpoint: this.checkpoint?.bytes ?? null });
    this.link.post({ type: 'configure', config, device: this.wantedDevice, resume: this.checkpoint !== null });
  }

  private go(what: 'train' | 'step'): void {
    if (this.live) this.live.stop = null;
    if (!this.configured) {
      this.after = what;
      this.activity = 'loading';
      if (this.loaded) this.configure();
      else this.startWorker();
      return;
    }
    this.activity = what === 'train' ? 'running' : 'stepping';
    this.clock.start();
    this.link.post(what === 'train' ? { type: what, episodes_every: EPISODES_EVERY } : { type: what });
  }

  private take(event: FromWorker): void {
    if (event.type === 'broken') {
      this.broke(event);
      return;
    }
    if (event.type === 'loaded') {
      this.loaded = true;
      if (this.live && this.activity === 'loading' && !this.beginning) this.configure();
      return;
    }
    if (event.type === 'failed') {
      this.broke({ type: 'broken', cause: 'panic', detail: event.message, checkpoint: null });
      return;
    }
    if (this.takeAnswer(event)) return;
    const run = this.live;
    if (!run) return;
    if (event.type === 'progress') this.progress = event;
    else if (event.type === 'imitation') run.imitation = [...run.imitation, event];
    else if (event.type === 'device') this.setDevice(run, event.device);
    else if (event.type === 'ready') this.ready(run, event);
    else if (event.type === 'phase') this.phase(run, event);
    else if (event.type === 'episodes') this.show(run, event.batch);
    else if (event.type === 'counterfactual') this.counterfactualFound = event.counterfactual;
    else if (event.type === 'true_credit') {
      run.addMeasured(event.measured);
      this.measurement.answered(event.measured.iteration, event.measured.accuracy.rolls);
    } else if (this.activity === 'measuring') this.measuringStopped(event);
    else if (this.activity === 'replaying') this.activity = 'idle';
    else this.stopped(run, event);
  }

  /** Answers that belong to no run. */
  private takeAnswer(
    event: Exclude<FromWorker, Broken>,
  ): event is NotKept | ExportedPolicy | Workers | Extract<FromWorker, { type: 'checkpoint' }> {
    if (event.type === 'workers') {
      workers.told(event);
      return true;
    }
    if (event.type === 'not_kept') {
      this.notKept = true;
      notices.show({ id: 'storage', text: words => words.notices.notKept, detail: event.detail });
      return true;
    }
    if (event.type !== 'policy' && event.type !== 'checkpoint') return false;
    this.asked.answered(event);
    return true;
  }

  private setDevice(run: Run, told: DeviceReport): void {
    const device = this.losses.told(told);
    this.device = device;
    run.device = device;
    if (device.kind === 'webgpu') workers.count = null;
    if (device.reason === 'device_lost' || device.reason === 'device_refused') {
      notices.show({ id: 'device', text: words => words.device.reasons[device.reason], detail: device.detail });
    }
  }

  private ready(run: Run, event: Extract<EngineEvent, { type: 'ready' }>): void {
    run.warmStart = event.warm_start;
    this.progress = null;
    this.workerFrom = event.iteration;
    this.configured = true;
    if (this.checkpoint !== null) {
      run.cut(event.iteration);
      const { note } = event.warm_start;
      if (event.warm_start.source !== 'checkpoint') {
        notices.show({ id: 'resume', text: words => words.notices.checkpointRefused, detail: note });
      }
    }
    this.checkpoint = null;
    const next = this.after;
    this.after = null;
    if (next) this.go(next);
    else this.activity = 'idle';
  }

  private phase(run: Run, event: Extract<EngineEvent, { type: 'phase' }>): void {
    this.done = event.done;
    this.next = event.next;
    if (event.report) run.addReport(event.report);
    if (!event.batch) return;
    this.show(run, event.batch);
    if (this.activity !== 'running') this.pace.now();
  }

  private show(run: Run, batch: Batch): void {
    this.pace.later(batch, shown => run.addBatch(shown, this.shownIteration()));
  }

  /** The run stands where it stood. */
  private measuringStopped(event: Extract<EngineEvent, { type: 'stopped' }>): void {
    const { reason, iteration } = event;
    if (reason.kind === 'non_finite') {
      notices.show({ id: 'stopped', text: words => words.notices.nonFinite(reason.quantity, iteration + 1) });
    }
    const next = this.measurement.ended();
    if (next === 'done') this.activity = 'idle';
    else if (next === 'stop the next') this.link.post({ type: 'pause' });
  }

  private stopped(run: Run, event: Extract<EngineEvent, { type: 'stopped' }>): void {
    void kept.refresh();
    this.pace.now();
    run.stop = event.reason;
    const paused = this.activity === 'pausing';
    this.activity = 'idle';
    this.clock.stop();
    const { reason, iteration } = event;
    if (reason.kind === 'non_finite') {
      notices.show({ id: 'stopped', text: words => words.notices.nonFinite(reason.quantity, iteration + 1) });
    }
    this.onStopped(run, paused);
  }

  private broke(event: Broken): void {
    const { activity } = this;
    this.checkpoint = event.checkpoint ?? (this.configured ? null : this.checkpoint);
    this.replaceWorker();
    stopDrawing(this.runOwner);
    this.beginning = false;
    this.activity = 'idle';
    this.clock.stop();
    this.configured = false;
    this.measurement.clear();
    this.progress = null;
    const run = this.live;
    if (run && this.checkpoint) {
      run.cut(this.checkpoint.iteration);
      if (event.cause === 'device_lost') {
        this.goOnElsewhere(activity === 'running' || activity === 'preparing', this.checkpoint.iteration, event.detail);
        return;
      }
    } else if (run?.reports.length === 0 && run.batches.length === 0) {
      // Nothing was learned yet: it is begun anew, on another device.
      if (event.cause === 'device_lost' && (activity === 'preparing' || activity === 'running')) {
        run.imitation = [];
        this.goOnElsewhere(true, 0, event.detail);
        return;
      }
      this.live = null;
    }
    const goesOn = this.checkpoint !== null && event.cause === 'panic';
    const text = (words: Words) => (goesOn ? words.notices.brokenGoesOn : words.notices.broken[event.cause]);
    notices.show({ id: 'broken', text, detail: event.detail });
  }

  /** The device was lost: a new one is asked for, or the CPU takes over where that was lost at once too. */
  private goOnElsewhere(training: boolean, iteration: number, detail: string): void {
    this.losses.note();
    if (!training) this.device = null;
    notices.show({ id: 'device', text: words => words.notices.deviceLost(iteration, training), detail });
    if (training) this.go(this.after ?? 'train');
  }

  private clear(): void {
    notices.close('resume');
    stopDrawing(this.runOwner);
    this.beginning = false;
    this.pace.clear();
    this.clock.reset();
    this.activity = 'idle';
    this.after = null;
    this.progress = null;
    this.done = null;
    this.next = 'sample';
    this.configured = false;
    this.checkpoint = null;
    this.losses.clear();
    this.measurement.clear();
    this.counterfactualFound = null;
  }
}

/** What is kept of an interrupted run; null where it cannot be read. */
async function readBack({ id }: KeptRun) {
  const current = await kept.current(id);
  const found = current && (await kept.open(current));
  return found ? { current, found, batches: await kept.episodes(id) } : null;
}

/** What comes of it, or null where it takes too long. */
function inTime<T>(what: Promise<T>): Promise<T | null> {
  return Promise.race([what, new Promise<null>(resolve => setTimeout(resolve, PATIENCE, null))]);
}

export const trainer = new Trainer();
