/** Ours: the engine's own learner and rollout. */

import { assist } from '../helper';
import { type Assist, Pool } from '../pool';
import init, { Bench } from '../wasm/engine/turnwise_engine.js';
import wasmUrl from '../wasm/engine/turnwise_engine_bg.wasm?url';
import { counts } from './count';
import { serve } from './remote';
import type { Draws, Weight } from './shape';

let module: WebAssembly.Module | null = null;
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
    if (!module) {
      module = await WebAssembly.compileStreaming(fetch(wasmUrl));
      await init({ module_or_path: module });
    }
    bench?.free();
    pool?.end();
    let lost = '';
    pool = workers > 1 ? await Pool.start(workers - 1, module, (_, detail) => (lost = detail || 'a worker ended')) : null;
    if (pool && pool.left < workers - 1) throw new Error(lost || 'no further worker');
    // A micro-batch for each worker.
    bench = await Bench.open(shape, gpu, workers, pool);
    const { kind, name, detail } = bench.device();
    if (gpu && kind !== 'webgpu') throw new Error(detail || 'no WebGPU adapter');
    return { device: name, weights: bench.weights() as Weight[] };
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
