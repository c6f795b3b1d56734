/** The training worker seen from the page: what it does now, what it is told next, and the run that comes of it. */

import { drawInTurn, stopDrawing } from '../frames.svelte';
import type { Batch, DeviceChoice, DeviceReport, Event as EngineEvent, Phase } from '../protocol';
import type { Broken, FromWorker, ToWorker } from '../worker';
import { experiment } from './experiment.svelte';
import { Measurement } from './measurement.svelte';
import { notices } from './notices.svelte';
import { loadRecorded } from './recorded';
import { Run } from './run.svelte';

/**
 * What goes on: nothing, the engine's download, the set-up of a run, training, one phase, the end of a phase after Pause, or the
 * measurement of true credit.
 */
export type Activity = 'idle' | 'loading' | 'preparing' | 'running' | 'stepping' | 'pausing' | 'measuring';

/** Least time between two batches shown while training, in milliseconds: none can be read faster. */
const BATCH_INTERVAL = 1000;

/** After this many milliseconds the worker's messages are taken in even if no frame was drawn, as in a hidden tab. */
const LATEST = 500;

class Trainer {
  activity = $state<Activity>('idle');
  recorded = $state.raw<Run | null>(null);
  recordedFailed = $state(false);
  live = $state.raw<Run | null>(null);
  deviceChoice = $state<DeviceChoice>('auto');
  device = $state.raw<DeviceReport | null>(null);
  /** The phase done last and the one that comes next. */
  done = $state<Phase | null>(null);
  next = $state<Phase>('sample');
  /** Of the download in bytes, or of the imitation in updates. */
  progress = $state.raw<{ stage: 'download' | 'imitation'; done: number; total: number } | null>(null);
  /** Milliseconds trained so far, and since when the clock runs. */
  private trainedMs = $state(0);
  private since = $state<number | null>(null);
  private now = $state(0);

  /** The worker has the live run set up. */
  private configured = $state(false);
  /** The device that the live run was set up for. */
  configuredDevice = $state<DeviceChoice>('auto');

  /** What the page shows: the live run, or the recorded one before there is any. */
  run: Run | null = $derived(this.live ?? this.recorded);

  /** In what the form differs from the run on show. */
  differences = $derived(this.run && experiment.config ? experiment.changesFrom(this.run.config) : []);

  busy = $derived(this.activity !== 'idle');

  /** Whether the next run would compute on another device than the worker was told. */
  deviceChanged = $derived(this.live !== null && this.configured && this.deviceChoice !== this.configuredDevice);

  /** Whether Train goes on with the live run instead of starting a new one. */
  resumable = $derived(
    this.live !== null && !this.live.over && this.configured && this.differences.length === 0 && !this.deviceChanged,
  );

  /** Whether something that was trained and could go on would be lost with the page. */
  unfinished = $derived.by(() => {
    const { live } = this;
    if (!live || live.over) return false;
    if (this.activity === 'running' || this.activity === 'stepping' || this.activity === 'pausing') return true;
    return this.configured && (live.reports.length > 0 || live.batches.length > 0);
  });

  readonly measurement = new Measurement();

  /** The step whose episodes were credited last: those are measured. */
  creditedIteration: number | null = $derived(this.live?.batches.findLast(batch => batch.credit !== null)?.iteration ?? null);

  /** Why true credit cannot be measured now; null where it can. */
  unmeasurable: 'recorded' | 'training' | 'no_credit' | 'gone' | null = $derived.by(() => {
    if (!this.live) return 'recorded';
    if (this.busy) return this.activity === 'measuring' ? null : 'training';
    if (this.creditedIteration === null) return 'no_credit';
    return this.configured ? null : 'gone';
  });

  elapsed = $derived((this.trainedMs + (this.since === null ? 0 : Math.max(0, this.now - this.since))) / 1000);

  /** Which iteration the page shows, so that its batch is not thinned out. */
  shownIteration: () => number | null = () => null;
  /** Whether the page is still busy with the batch it was given last. */
  drawing: () => boolean = () => false;

  private worker: Worker | null = null;
  private loaded = false;
  private after: 'train' | 'step' | null = null;
  /** Messages of the worker that are not taken in yet. */
  private inbox: FromWorker[] = [];
  private inboxTimer: ReturnType<typeof setTimeout> | undefined;
  /** The newest batch, until the page has time to show it. */
  private waiting: Batch | null = null;
  private lastBatch = 0;
  private batchTimer: ReturnType<typeof setTimeout> | undefined;
  private batchOwner = {};
  private runOwner = {};
  private clock: ReturnType<typeof setInterval> | undefined;

  async loadRecorded(): Promise<void> {
    this.recorded = await loadRecorded();
    this.recordedFailed = this.recorded === null;
  }

  train(): void {
    if (this.busy) return;
    if (this.resumable) this.go('train');
    else this.begin('train');
  }

  step(): void {
    if (this.busy) return;
    if (this.resumable) this.go('step');
    else this.begin('step');
  }

  /** Stops after the phase in progress. */
  pause(): void {
    if (this.activity !== 'running') return;
    this.activity = 'pausing';
    this.post({ type: 'pause' });
  }

  /** Re-rolls every state of the episodes credited last until it was done `rolls` times; while it goes on, asks for more. */
  measure(rolls: number): void {
    if (this.unmeasurable !== null) return;
    this.activity = 'measuring';
    this.measurement.ask(rolls);
    this.post({ type: 'measure_credit', rolls });
  }

  /** Ends the measurement; what was measured stays, and can be gone on with. */
  stopMeasuring(): void {
    if (this.activity !== 'measuring') return;
    this.measurement.stop();
    this.post({ type: 'pause' });
  }

  /** Drops the live run; the recorded one is on show again. A worker that computes is ended at once, not after its phase. */
  reset(): void {
    if (this.busy) this.replaceWorker();
    this.clear();
    this.live = null;
  }

  /** Stops what runs and keeps what was learned on show: another experiment was opened. */
  halt(): void {
    if (this.activity === 'running') this.pause();
    else if (this.activity === 'loading' || this.activity === 'preparing') {
      this.replaceWorker();
      this.clear();
      if (this.live?.reports.length === 0) this.live = null;
    }
  }

  private begin(then: 'train' | 'step'): void {
    const config = experiment.config;
    if (!config) return;
    notices.close('stopped');
    notices.close('broken');
    this.clear();
    this.activity = 'loading';
    this.after = then;
    // The run on show gives way to a new one in a frame after that of the press itself.
    drawInTurn(this.runOwner, () => {
      this.live = new Run('live', config);
      if (this.loaded) this.configure();
      else this.startWorker();
      return false;
    });
  }

  private startWorker(): void {
    this.activity = 'loading';
    if (this.worker) return;
    let worker: Worker;
    try {
      worker = new Worker(new URL('../worker.ts', import.meta.url), { type: 'module' });
    } catch (error) {
      this.broke({ type: 'broken', cause: 'module', detail: String(error) });
      return;
    }
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (worker === this.worker) this.receive(data);
    };
    // The script itself did not load.
    worker.onerror = event => {
      if (worker === this.worker) this.receive({ type: 'broken', cause: 'download', detail: event.message ?? '' });
    };
    this.post({ type: 'start', base: document.baseURI });
  }

  private replaceWorker(): void {
    this.worker?.terminate();
    this.worker = null;
    this.loaded = false;
    this.inbox = [];
  }

  /** Messages are taken in when their turn to be drawn comes: what they change is laid out once a frame, not once a message. */
  private receive(message: FromWorker): void {
    this.inbox.push(message);
    if (document.hidden) {
      this.takeAll();
      return;
    }
    drawInTurn(this, this.takeAll);
    this.inboxTimer ??= setTimeout(this.takeAll, LATEST);
  }

  private takeAll = (): boolean => {
    clearTimeout(this.inboxTimer);
    this.inboxTimer = undefined;
    const messages = this.inbox;
    this.inbox = [];
    for (const message of messages) {
      if (message.type === 'broken') {
        // The worker is replaced: nothing that it said later counts.
        this.broke(message);
        break;
      }
      const { worker } = this;
      this.take(message);
      if (worker !== this.worker) break;
    }
    return false;
  };

  private configure(): void {
    if (!this.live) return;
    this.activity = 'preparing';
    this.progress = null;
    this.configuredDevice = this.deviceChoice;
    this.post({ type: 'configure', config: this.live.config, device: this.deviceChoice });
  }

  private go(what: 'train' | 'step'): void {
    if (this.live) this.live.stop = null;
    this.activity = what === 'train' ? 'running' : 'stepping';
    this.startClock();
    this.post({ type: what });
  }

  private take(event: EngineEvent): void {
    if (event.type === 'loaded') {
      this.loaded = true;
      if (this.live && this.activity === 'loading') this.configure();
      return;
    }
    if (event.type === 'failed') {
      this.broke({ type: 'broken', cause: 'panic', detail: event.message });
      return;
    }
    const run = this.live;
    if (!run) return;
    if (event.type === 'progress') this.progress = event;
    else if (event.type === 'imitation') run.imitation = [...run.imitation, event];
    else if (event.type === 'device') this.setDevice(run, event.device);
    else if (event.type === 'ready') this.ready(run, event);
    else if (event.type === 'phase') this.phase(run, event);
    else if (event.type === 'true_credit') {
      run.addMeasured(event.measured);
      this.measurement.answered(event.measured.iteration, event.measured.accuracy.rolls);
    } else if (this.activity === 'measuring') this.measuringStopped(event);
    else this.stopped(run, event);
  }

  private setDevice(run: Run, device: DeviceReport): void {
    this.device = device;
    run.device = device;
    if (device.reason === 'device_lost' || device.reason === 'device_refused') {
      notices.show({ id: 'device', text: words => words.device.reasons[device.reason], detail: device.detail });
    }
  }

  private ready(run: Run, event: Extract<EngineEvent, { type: 'ready' }>): void {
    run.warmStart = event.warm_start;
    this.progress = null;
    this.configured = true;
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
    this.waiting = event.batch;
    if (this.activity === 'running') this.showBatchLater(run);
    else this.showBatch(run);
  }

  /** While training, not more often than can be followed, and only once the last batch is drawn. */
  private showBatchLater(run: Run): void {
    clearTimeout(this.batchTimer);
    const wait = Math.max(this.drawing() ? 100 : 0, this.lastBatch + BATCH_INTERVAL - performance.now());
    this.batchTimer = setTimeout(() => {
      if (this.drawing() && !document.hidden) this.showBatchLater(run);
      else drawInTurn(this.batchOwner, () => this.showBatch(run));
    }, wait);
  }

  private showBatch(run: Run): boolean {
    clearTimeout(this.batchTimer);
    stopDrawing(this.batchOwner);
    if (this.waiting) run.addBatch(this.waiting, this.shownIteration());
    this.waiting = null;
    this.lastBatch = performance.now();
    return false;
  }

  /** The run stands where it stood. */
  private measuringStopped(event: Extract<EngineEvent, { type: 'stopped' }>): void {
    const { reason, iteration } = event;
    if (reason.kind === 'non_finite') {
      notices.show({ id: 'stopped', text: words => words.notices.nonFinite(reason.quantity, iteration + 1) });
    }
    const next = this.measurement.ended();
    if (next === 'done') this.activity = 'idle';
    else if (next === 'stop the next') this.post({ type: 'pause' });
  }

  private stopped(run: Run, event: Extract<EngineEvent, { type: 'stopped' }>): void {
    this.showBatch(run);
    run.stop = event.reason;
    this.activity = 'idle';
    this.stopClock();
    const { reason, iteration } = event;
    if (reason.kind === 'non_finite') {
      notices.show({ id: 'stopped', text: words => words.notices.nonFinite(reason.quantity, iteration + 1) });
    }
  }

  private broke(event: Broken): void {
    this.replaceWorker();
    this.activity = 'idle';
    this.stopClock();
    this.configured = false;
    this.measurement.clear();
    this.progress = null;
    if (this.live?.reports.length === 0 && this.live.batches.length === 0) this.live = null;
    notices.show({ id: 'broken', text: words => words.notices.broken[event.cause], detail: event.detail });
  }

  private clear(): void {
    clearTimeout(this.batchTimer);
    stopDrawing(this.batchOwner);
    stopDrawing(this.runOwner);
    this.waiting = null;
    this.lastBatch = 0;
    this.stopClock();
    this.activity = 'idle';
    this.after = null;
    this.progress = null;
    this.done = null;
    this.next = 'sample';
    this.configured = false;
    this.measurement.clear();
    this.trainedMs = 0;
  }

  private startClock(): void {
    this.since = performance.now();
    this.now = this.since;
    clearInterval(this.clock);
    this.clock = setInterval(() => {
      this.now = performance.now();
    }, 500);
  }

  private stopClock(): void {
    clearInterval(this.clock);
    if (this.since !== null) this.trainedMs += performance.now() - this.since;
    this.since = null;
  }

  private post(message: ToWorker): void {
    this.worker?.postMessage(message);
  }
}

export const trainer = new Trainer();
