/** A worker that does jobs for the training worker, one after another. */

import type { Assist, FromHelper, Job } from './pool';

const say = (message: FromHelper, transfer: Transferable[] = []): void => postMessage(message, { transfer });

/** Makes this worker a helper. An error breaks it: whoever asked does the job without it. */
export async function assist({ module, lock }: Assist): Promise<void> {
  const { default: init, Helper } = await import('./wasm/cpu/turnwise_cpu.js');
  await init({ module_or_path: module });
  const helper = new Helper();
  let queue: Promise<void> = Promise.resolve();
  const work = async ({ number, kind, task, numbers, needs }: Job): Promise<void> => {
    const answer: [Uint8Array<ArrayBuffer>, Float32Array] | null = await helper.handle(kind, task, numbers, needs);
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
