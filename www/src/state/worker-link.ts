/** The line to the training worker: started when it is needed, ended at once, its messages taken in when their turn to be drawn comes. */

import { drawInTurn, timeDrawn } from '../frames.svelte';
import type { DeviceChoice } from '../protocol';
import type { FromWorker, Posted, ToWorker } from '../worker';

/**
 * Least time between two times that steps of a run are taken in, in milliseconds, more often could not be followed; and how many times as
 * long as what came of the last ones took to draw: the workers need the cores.
 */
const EVERY = 125;
const SHARE = 10;

/** After this many milliseconds the worker's messages are taken in even if no frame was drawn, as in a hidden tab. */
const LATEST = 500;

export class WorkerLink {
  private worker: Worker | null = null;
  /** Messages that are not taken in yet. */
  private inbox: FromWorker[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private soon: ReturnType<typeof setTimeout> | undefined;
  /** When they were taken in last. */
  private taken = Number.NEGATIVE_INFINITY;
  /** The time that drawing had taken then. */
  private drawn = 0;

  /** `take` is given every message of the worker that is there, in order. */
  constructor(private take: (message: FromWorker) => void) {}

  /** Whether there is a worker, loaded or not. */
  get there(): boolean {
    return this.worker !== null;
  }

  /** Starts a worker where there is none, with the engine for a device. One that cannot be started tells so as a message. */
  start(device: DeviceChoice): void {
    if (this.worker) return;
    let worker: Worker;
    try {
      worker = new Worker(new URL('../worker.ts', import.meta.url), { type: 'module' });
    } catch (error) {
      this.take({ type: 'broken', cause: 'module', detail: String(error), checkpoint: null });
      return;
    }
    this.worker = worker;
    let told = false;
    worker.onmessage = ({ data }: MessageEvent<Posted>) => {
      told = true;
      for (const message of data.type === 'several' ? data.messages : [data]) if (worker === this.worker) this.receive(message);
    };
    // The script itself did not load. Once it runs, it tells of its errors itself, with its last checkpoint.
    worker.onerror = event => {
      if (worker !== this.worker || told) return;
      this.receive({ type: 'broken', cause: 'download', detail: event.message ?? '', checkpoint: null });
    };
    this.post({ type: 'start', base: document.baseURI, device, together: true });
  }

  /** Ends the worker; nothing that it said and was not taken in yet counts. */
  end(): void {
    this.worker?.terminate();
    this.worker = null;
    this.inbox = [];
  }

  post(message: ToWorker): void {
    this.worker?.postMessage(message);
  }

  /** What messages change is laid out once a frame, not once a message. */
  private receive(message: FromWorker): void {
    this.inbox.push(message);
    if (document.hidden) {
      this.takeAll();
      return;
    }
    this.timer ??= setTimeout(this.takeAll, LATEST);
    if (message.type === 'phase' || message.type === 'episodes') this.soon ??= setTimeout(this.inTime, this.wait());
    else drawInTurn(this, this.takeAll);
  }

  /** How long steps are not to be taken in yet. */
  private wait(): number {
    return this.taken + Math.max(EVERY, SHARE * (timeDrawn() - this.drawn)) - performance.now();
  }

  private inTime = (): void => {
    const wait = this.wait();
    this.soon = wait > 0 ? setTimeout(this.inTime, wait) : undefined;
    if (wait <= 0) drawInTurn(this, this.takeAll);
  };

  private takeAll = (): boolean => {
    clearTimeout(this.timer);
    clearTimeout(this.soon);
    [this.timer, this.soon] = [undefined, undefined];
    [this.taken, this.drawn] = [performance.now(), timeDrawn()];
    const messages = this.inbox;
    this.inbox = [];
    const { worker } = this;
    for (const message of messages) {
      this.take(message);
      // It was ended or replaced for that.
      if (worker !== this.worker) break;
    }
    return false;
  };
}
