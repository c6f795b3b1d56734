/** @tensorflow/tfjs-core and its backends: variables, `tf.variableGrads` and its own Adam. */

import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-core/dist/register_all_gradients';
import '@tensorflow/tfjs-core/dist/public/chained_ops/register_all_chained_ops';
import '@tensorflow/tfjs-backend-webgpu';
import { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import plain from '@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm.wasm?url';
import simd from '@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm?url';
import threaded from '@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-threaded-simd.wasm?url';
import { counts } from './count';
import { serve } from './remote';
import { type Batch, cumulating, type Draws, oneHot, PROMPT, type Shape, shifted, UPDATE, type Weight } from './shape';

type Weights = Record<string, tf.Variable>;

let shape: Shape;
let weights: Weights = {};
let update: { run: () => tf.Scalar; adam: tf.Optimizer } | null = null;

function take(name: string): tf.Variable {
  const found = weights[name];
  if (!found) throw new Error(`no weight ${name}`);
  return found;
}

function load(given: Weight[]): Weights {
  return Object.fromEntries(given.map(([name, shape, values]) => [name, tf.variable(tf.tensor(values, shape))]));
}

function norm(name: string, hidden: tf.Tensor): tf.Tensor {
  const centred = hidden.sub(hidden.mean(-1, true));
  const deviation = centred.square().mean(-1, true).add(1e-5).sqrt();
  return centred
    .div(deviation)
    .mul(take(`${name}.gamma`))
    .add(take(`${name}.beta`));
}

/** Queries, keys and values of `hidden` `[rows * length, width]`, `[rows, heads, length, width / heads]` each. */
function project(layer: number, hidden: tf.Tensor, rows: number): tf.Tensor[] {
  const qkv = tf.matMul(norm(`blocks.${layer}.attention_norm`, hidden), take(`blocks.${layer}.qkv.weight`));
  return tf
    .split(qkv, 3, 1)
    .map(part => part.reshape([rows, -1, shape.heads, shape.d_model / shape.heads]).transpose([0, 2, 1, 3]));
}

function finish(layer: number, hidden: tf.Tensor, attended: tf.Tensor): tf.Tensor {
  const flat = attended.transpose([0, 2, 1, 3]).reshape(hidden.shape as [number, number]);
  const of = (name: string): tf.Variable => take(`blocks.${layer}.${name}`);
  const after = hidden.add(tf.matMul(flat as tf.Tensor2D, of('out.weight') as tf.Tensor2D));
  const normed = norm(`blocks.${layer}.hidden_norm`, after);
  const inner = tf.matMul(normed, of('up.weight')).add(of('up.bias')).relu();
  return after.add(tf.matMul(inner, of('down.weight')).add(of('down.bias')));
}

function attend(query: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, bias: tf.Tensor): tf.Tensor {
  const scores = tf.matMul(query.mul((shape.d_model / shape.heads) ** -0.5), keys, false, true).add(bias);
  return tf.matMul(tf.softmax(scores), values);
}

const logits = (hidden: tf.Tensor): tf.Tensor2D => tf.matMul(norm('norm', hidden), take('head.weight')) as tf.Tensor2D;

/** Logits `[rows * T, V]` of one-hot tokens `[rows * T, V]`. */
function forward(tokens: tf.Tensor2D, bias: tf.Tensor, rows: number): tf.Tensor2D {
  const embedded = tf.matMul(tokens, take('tokens.weight')).reshape([rows, shape.context_length, shape.d_model]);
  let hidden: tf.Tensor = embedded.add(take('positions.weight')).reshape([-1, shape.d_model]);
  for (let layer = 0; layer < shape.layers; layer += 1) {
    const [query, key, value] = project(layer, hidden, rows) as [tf.Tensor, tf.Tensor, tf.Tensor];
    hidden = finish(layer, hidden, attend(query, key, value, bias));
  }
  return logits(hidden);
}

function causal(length: number): tf.Tensor {
  return tf.tensor(
    Float32Array.from({ length: length * length }, (_, at) => (at % length > Math.floor(at / length) ? -1e9 : 0)),
    [length, length],
  );
}

function batch(given: Batch): void {
  const data = shifted(given);
  const { vocabulary, context_length: length } = shape;
  const rows = data.inputs.length;
  const inputs = tf.tensor2d(oneHot(data.inputs, vocabulary), [rows, vocabulary]);
  const targets = tf.tensor2d(oneHot(data.targets, vocabulary), [rows, vocabulary]);
  const [mask, old, advantages] = [tf.tensor1d(data.mask), tf.tensor1d(data.old), tf.tensor1d(data.advantages)];
  const trained = data.mask.reduce((sum, one) => sum + one, 0);
  const bias = causal(length);
  const loss = (): tf.Scalar => {
    const taken = tf
      .logSoftmax(forward(inputs, bias, given.rows))
      .mul(targets)
      .sum(-1);
    const ratio = taken.sub(old).exp();
    const bounded = ratio.clipByValue(1 - UPDATE.epsilon, 1 + UPDATE.epsilon).mul(advantages);
    return tf.minimum(ratio.mul(advantages), bounded).mul(mask).sum().div(-trained) as tf.Scalar;
  };
  const adam = tf.train.adam(UPDATE.learningRate, UPDATE.beta1, UPDATE.beta2, UPDATE.adamEpsilon);
  update = { run: loss, adam };
}

async function step(): Promise<number> {
  if (!update) throw new Error('there is no batch');
  const value = update.adam.minimize(update.run, true);
  if (!value) throw new Error('there is no loss');
  const [loss] = await value.data();
  value.dispose();
  return loss ?? Number.NaN;
}

/** One token further: logits after `token` `[B]`; `caches` holds keys and values of each layer, grown by a slot. */
function feed(token: tf.Tensor1D, position: number, caches: [tf.Tensor, tf.Tensor][]): tf.Tensor2D {
  const [rows] = token.shape;
  const none = tf.scalar(0);
  let hidden: tf.Tensor = tf.gather(take('tokens.weight'), token).add(tf.slice(take('positions.weight'), [position, 0], [1, -1]));
  for (let layer = 0; layer < shape.layers; layer += 1) {
    const [query, key, value] = project(layer, hidden, rows) as [tf.Tensor, tf.Tensor, tf.Tensor];
    const before = caches[layer];
    const [keys, values] = before ? [tf.concat([before[0], key], 2), tf.concat([before[1], value], 2)] : [key, value];
    caches[layer] = [keys, values];
    hidden = finish(layer, hidden, attend(query, keys, values, none));
  }
  return logits(hidden);
}

async function decode({ sequences, count, prompts, uniforms }: Draws): Promise<{ tokens: Uint8Array; seconds: number }> {
  const column = (values: ArrayLike<number>, width: number, at: number): number[] =>
    Array.from({ length: sequences }, (_, row) => values[row * width + at] ?? 0);
  const ones = tf.tensor2d(cumulating(shape.vocabulary), [shape.vocabulary, shape.vocabulary]);
  /** Runs one step and keeps only what the next one needs. */
  const caches: [tf.Tensor, tf.Tensor][] = [];
  const forth = (token: tf.Tensor1D, position: number): tf.Tensor2D => {
    const old = caches.flat();
    const all = tf.tidy(() => {
      const made = feed(token, position, caches);
      for (const kept of caches.flat()) tf.keep(kept);
      return made;
    });
    tf.dispose(old);
    return all;
  };
  let all: tf.Tensor2D | null = null;
  for (let place = 0; place < PROMPT; place += 1) {
    all?.dispose();
    all = forth(tf.tensor1d(column(prompts, PROMPT, place), 'int32'), place);
  }
  if (!all) throw new Error('there is no prompt');
  await all.data();
  const start = performance.now();
  const drawn: tf.Tensor1D[] = [];
  for (let place = 0; place < count; place += 1) {
    const before: tf.Tensor2D = all;
    const token = tf.tidy(() => {
      const cumulative = tf.matMul(tf.softmax(before), ones);
      const last = cumulative.slice([0, shape.vocabulary - 1], [-1, 1]);
      const below = cumulative.lessEqual(last.mul(tf.tensor2d(column(uniforms, count, place), [sequences, 1])));
      return below
        .toInt()
        .sum(-1)
        .minimum(tf.scalar(shape.vocabulary - 1, 'int32')) as tf.Tensor1D;
    });
    before.dispose();
    drawn.push(token);
    if (place + 1 < count) all = forth(token, PROMPT + place);
  }
  const stacked = tf.stack(drawn, 1);
  const tokens = Uint8Array.from(await stacked.data());
  const seconds = (performance.now() - start) / 1000;
  tf.dispose([stacked, ones, ...drawn, ...caches.flat()]);
  return { tokens, seconds };
}

serve({
  async open(asked) {
    setWasmPaths({
      'tfjs-backend-wasm.wasm': plain,
      'tfjs-backend-wasm-simd.wasm': simd,
      'tfjs-backend-wasm-threaded-simd.wasm': threaded,
    });
    const device = asked.gpu ? 'webgpu' : 'wasm';
    if (!(await tf.setBackend(device))) throw new Error(`no ${device}`);
    await tf.ready();
    shape = asked.shape;
    tf.dispose(Object.values(weights));
    weights = load(asked.weights ?? []);
    update = null;
    return { device, weights: [] };
  },
  batch,
  async step(count) {
    const [losses, seconds]: [number[], number[]] = [[], []];
    for (let made = 0; made < count; made += 1) {
      const start = performance.now();
      losses.push(await step());
      seconds.push((performance.now() - start) / 1000);
    }
    return { losses, seconds };
  },
  decode,
  counts: () => counts,
});
