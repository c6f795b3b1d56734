/** A worker that does jobs for the training worker, one after another. */

import type { Assist, FromHelper, Job } from './pool';
import { Spare, WORTH_KEEPING } from './spare';

const say = (message: FromHelper, transfer: Transferable[] = []): void => postMessage(message, { transfer });

/** Arrays of numbers that are kept for answers. */
const SPARE = 4;

/** Makes this worker a helper. An error breaks it: whoever asked does the job without it. */
export async function assist({ module, lock }: Assist): Promise<void> {
  const { default: init, Helper } = await import('./wasm/cpu/turnwise_cpu.js');
  await init({ module_or_path: module });
  const arrays = new Spare<Float32Array<ArrayBuffer>>(length => new Float32Array(length), SPARE);
  const helper = new Helper((length: number) => arrays.room(length));
  let queue: Promise<void> = Promise.resolve();
  const work = async ({ number, kind, task, numbers, needs, spare }: Job): Promise<void> => {
    if (spare) arrays.keep(spare);
    const answer: [Uint8Array<ArrayBuffer>, Float32Array<ArrayBuffer>] | null = await helper.handle(kind, task, numbers, needs);
    if (numbers.length >= WORTH_KEEPING) arrays.keep(numbers);
    if (!answer) return;
    const [outcome, figures] = answer;
    say({ type: 'answer', number, kind, task: outcome, numbers: figures }, [outcome.buffer, figures.buffer]);
  };
  addEventListener('message', ({ data }: MessageEvent<Job>) => {
    queue = queue.then(() => work(data)).catch(error => say({ type: 'broken', detail: String(error) }));
  });
  // Let go when this worker ends, in whatever way.
  await new Promise<void>(held => {
    if (!navigator.locks) held();
    else {
      void navigator.locks.request(lock, () => {
        held();
        return new Promise<never>(() => {});
      });
    }
  });
  say({ type: 'ready' });
}
