/** Workers that help the training worker: each has an instance of the engine of its own, and does jobs that it is sent. */

import { Spare, WORTH_KEEPING } from './spare';

/** A job on its way to a helper; its bytes and numbers are handed over, not copied. */
export interface Job {
  type: 'job';
  number: number;
  kind: number;
  task: Uint8Array<ArrayBuffer>;
  numbers: Float32Array<ArrayBuffer>;
  needs: Uint32Array;
  /** An array that the helper may write an answer into. */
  spare: Float32Array<ArrayBuffer> | null;
}

/** The first message to a helper: the engine, compiled, and the name of the lock that it holds while it lives. */
export interface Assist {
  type: 'assist';
  module: WebAssembly.Module;
  lock: string;
}

/** What a helper says. */
export type FromHelper =
  | { type: 'ready' }
  | { type: 'answer'; number: number; kind: number; task: Uint8Array<ArrayBuffer>; numbers: Float32Array<ArrayBuffer> }
  | { type: 'broken'; detail: string };

/** What has come from a helper; without numbers it is gone. */
interface Arrival {
  worker: number;
  number: number;
  kind: number;
  task: Uint8Array<ArrayBuffer>;
  numbers?: Float32Array<ArrayBuffer>;
}

const NOTHING = new Uint8Array();

/** Arrays of numbers that are kept besides one for each helper. */
const SPARE = 4;

/** How long a helper may take to get ready, in milliseconds. */
const READY = 20_000;

/** A page that is not served securely has no locks; a helper that ends by itself is then missed when it does not answer. */
const locks: LockManager | undefined = navigator.locks;

export class Pool {
  private helpers: (Worker | null)[] = [];
  private inbox: Arrival[] = [];
  private waiting: (() => void) | null = null;
  private turns: (() => void)[] = [];
  private readonly channel = new MessageChannel();
  private readonly spare: Spare<Float32Array<ArrayBuffer>>;

  /** `lost` is told of every helper that is gone, and how many are left. */
  private constructor(
    count: number,
    private readonly lost: (left: number, detail: string) => void,
  ) {
    this.spare = new Spare(length => new Float32Array(length), count + SPARE);
    this.channel.port1.onmessage = () => this.turns.shift()?.();
  }

  /** Starts helpers and waits until they are ready. Those that do not get ready are not counted. */
  static async start(count: number, module: WebAssembly.Module, lost: (left: number, detail: string) => void): Promise<Pool> {
    const pool = new Pool(count, lost);
    const started = await Promise.all(Array.from({ length: count }, () => begin(module)));
    for (const helper of started) if (helper) pool.add(helper);
    return pool;
  }

  /** How many there were at the start. */
  get size(): number {
    return this.helpers.length;
  }

  /** How many are there. */
  get left(): number {
    return this.helpers.filter(helper => helper !== null).length;
  }

  private add({ worker, lock }: { worker: Worker; lock: string }): void {
    const index = this.helpers.push(worker) - 1;
    worker.onmessage = ({ data }: MessageEvent<FromHelper>) => {
      if (data.type === 'answer') this.arrived({ ...data, worker: index });
      else if (data.type === 'broken') this.gone(index, data.detail);
    };
    worker.onerror = event => {
      event.preventDefault();
      this.gone(index, event.message ?? '');
    };
    // Granted when the helper no longer holds it, however it ended.
    void locks?.request(lock, () => this.gone(index, ''));
  }

  /** An array of numbers, to be written over. */
  room(length: number): Float32Array<ArrayBuffer> {
    return this.spare.room(length);
  }

  /** The numbers of an arrival were taken in. */
  keep(numbers: Float32Array<ArrayBuffer>): void {
    if (numbers.length >= WORTH_KEEPING) this.spare.keep(numbers);
  }

  post(
    worker: number,
    number: number,
    kind: number,
    task: Uint8Array<ArrayBuffer>,
    numbers: Float32Array<ArrayBuffer>,
    needs: Uint32Array,
  ): void {
    const helper = this.helpers[worker];
    // More of them come with answers than go with policies, one to each helper.
    const spare = numbers.length < WORTH_KEEPING && this.spare.count > this.helpers.length ? this.spare.take() : null;
    const job: Job = { type: 'job', number, kind, task, numbers, needs, spare };
    const moved = [task.buffer, numbers.buffer, ...(spare ? [spare.buffer] : [])];
    if (helper) helper.postMessage(job, moved);
    else this.arrived({ worker, number: 0, kind: 0, task: NOTHING });
  }

  /** The next arrival, waited for up to `patience` milliseconds; with 0 what has come is let in, and nothing waited for. */
  async arrival(patience: number): Promise<Arrival | null> {
    if (this.inbox.length === 0) await (patience > 0 ? this.wait(patience) : this.turn());
    return this.inbox.shift() ?? null;
  }

  giveUp(worker: number): void {
    this.gone(worker, '');
  }

  /** Ends all helpers. */
  end(): void {
    for (const helper of this.helpers) helper?.terminate();
    this.helpers.fill(null);
    this.channel.port1.close();
  }

  private gone(index: number, detail: string): void {
    const helper = this.helpers[index];
    if (!helper) return;
    helper.terminate();
    this.helpers[index] = null;
    this.lost(this.left, detail);
    this.arrived({ worker: index, number: 0, kind: 0, task: NOTHING });
  }

  private arrived(arrival: Arrival): void {
    this.inbox.push(arrival);
    this.waiting?.();
  }

  private wait(patience: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(() => this.waiting?.(), patience);
      this.waiting = () => {
        clearTimeout(timer);
        this.waiting = null;
        resolve();
      };
    });
  }

  /** Lets messages in; a timer would take milliseconds. */
  private turn(): Promise<void> {
    return new Promise(resolve => {
      this.turns.push(resolve);
      this.channel.port2.postMessage(null);
    });
  }
}

let named = 0;

/** A helper that is ready, or null where this browser starts none. */
function begin(module: WebAssembly.Module): Promise<{ worker: Worker; lock: string } | null> {
  const lock = `turnwise-helper-${performance.timeOrigin}-${Math.random()}-${named++}`;
  return new Promise(resolve => {
    let worker: Worker;
    try {
      // The same script: it is in the browser's cache.
      worker = new Worker(self.location.href, { type: 'module' });
    } catch {
      resolve(null);
      return;
    }
    const failed = (): void => {
      worker.terminate();
      resolve(null);
    };
    const timer = setTimeout(failed, READY);
    worker.onerror = event => {
      event.preventDefault();
      clearTimeout(timer);
      failed();
    };
    worker.onmessage = ({ data }: MessageEvent<FromHelper>) => {
      clearTimeout(timer);
      if (data.type === 'ready') resolve({ worker, lock });
      else failed();
    };
    worker.postMessage({ type: 'assist', module, lock } satisfies Assist);
  });
}
