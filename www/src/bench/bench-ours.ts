/** Ours: the engine's own learner and rollout. */

import { findDevice, loadEngine } from '../engine';
import { assist } from '../helper';
import { type Assist, Pool } from '../pool';
import type { Bench } from '../wasm/cpu/turnwise_cpu.js';
import { counts } from './count';
import { serve } from './remote';
import type { Draws, Weight } from './shape';

let pool: Pool | null = null;
let bench: Bench | null = null;

function opened(): Bench {
  if (!bench) throw new Error('nothing is open');
  return bench;
}

// A helper of another worker runs the same script.
addEventListener('message', ({ data }: MessageEvent<Assist>) => {
  if (data.type === 'assist') void assist(data);
});

serve({
  async open({ gpu, workers, shape }) {
    const device = await findDevice(gpu ? 'gpu' : 'cpu');
    if (gpu && device.kind !== 'webgpu') throw new Error(device.detail || 'no WebGPU adapter');
    const { exports, module } = await loadEngine(device.kind, () => {});
    bench?.free();
    pool?.end();
    let lost = '';
    pool = workers > 1 ? await Pool.start(workers - 1, module, (_, detail) => (lost = detail || 'a worker ended')) : null;
    if (pool && pool.left < workers - 1) throw new Error(lost || 'no further worker');
    // A micro-batch for each worker.
    bench = await exports.Bench.open(shape, device, workers, pool);
    return { device: device.name, weights: bench.weights() as Weight[] };
  },
  batch({ length, tokens, lossMask, oldLogProbs, advantages }) {
    opened().set_batch(length, tokens, lossMask, oldLogProbs, advantages);
  },
  async step(count) {
    const [losses, seconds]: [number[], number[]] = [[], []];
    for (let step = 0; step < count; step += 1) {
      const start = performance.now();
      losses.push(await opened().step());
      seconds.push((performance.now() - start) / 1000);
    }
    return { losses, seconds };
  },
  draws({ sequences, count }): Draws {
    const [prompts, uniforms] = opened().draws(sequences, count) as [Uint8Array, Float32Array];
    return { sequences, count, prompts, uniforms };
  },
  async decode({ sequences, count }) {
    const start = performance.now();
    const tokens = await opened().decode(sequences, count);
    return { tokens, seconds: (performance.now() - start) / 1000 };
  },
  counts: () => counts,
});
