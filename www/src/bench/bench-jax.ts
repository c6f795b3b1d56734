/** @jax-js/jax: the whole update, and one decoded token, are each one compiled function. */

import { defaultDevice, init, jit, nn, numpy as np, type Array as Tensor, tree, valueAndGrad } from '@jax-js/jax';
import { counts } from './count';
import { serve } from './remote';
import { type Batch, cumulating, type Draws, oneHot, PROMPT, type Shape, shifted, UPDATE, type Weight } from './shape';

// jax-js takes ownership of what a function is given: `.ref` keeps a value for another use.
type Weights = Record<string, Tensor>;
type Layer = Record<string, Tensor>;

const tensor = (values: Float32Array, shape: number[]): Tensor => np.array(values).reshape(shape);

/** The weights, with the projections to queries, keys and values apart. */
function load(weights: Weight[], width: number): Weights {
  const loaded: Weights = {};
  for (const [name, shape, values] of weights) {
    if (!name.endsWith('qkv.weight')) {
      loaded[name] = tensor(values, shape);
      continue;
    }
    ['query', 'key', 'value'].forEach((part, index) => {
      const own = Float32Array.from(
        { length: width * width },
        (_, at) => values[Math.floor(at / width) * 3 * width + index * width + (at % width)] ?? 0,
      );
      loaded[name.replace('qkv.weight', part)] = tensor(own, [width, width]);
    });
  }
  return loaded;
}

function take(weights: Weights, name: string): Tensor {
  const found = weights[name];
  if (!found) throw new Error(`no weight ${name}`);
  return found;
}

/** Uses each weight once. */
const layerOf = (weights: Weights, layer: number): Layer =>
  Object.fromEntries(
    Object.entries(weights).flatMap(([name, value]) => (name.startsWith(`blocks.${layer}.`) ? [[name.slice(9), value]] : [])),
  );

function norm(hidden: Tensor, gamma: Tensor, beta: Tensor): Tensor {
  const centred = hidden.ref.sub(hidden.mean(-1, { keepdims: true }));
  const deviation = np.sqrt(np.square(centred.ref).mean(-1, { keepdims: true }).add(1e-5));
  return centred.div(deviation).mul(gamma).add(beta);
}

function finish(layer: Layer, hidden: Tensor, attended: Tensor): Tensor {
  const after = hidden.add(np.matmul(attended, take(layer, 'out.weight')));
  const normed = norm(after.ref, take(layer, 'hidden_norm.gamma'), take(layer, 'hidden_norm.beta'));
  const inner = nn.relu(np.matmul(normed, take(layer, 'up.weight')).add(take(layer, 'up.bias')));
  return after.add(np.matmul(inner, take(layer, 'down.weight')).add(take(layer, 'down.bias')));
}

/** Queries, keys and values, `[rows, heads, width / heads]` before `shape` says otherwise. */
function project(layer: Layer, hidden: Tensor, shape: number[]): [Tensor, Tensor, Tensor] {
  const normed = norm(hidden, take(layer, 'attention_norm.gamma'), take(layer, 'attention_norm.beta'));
  return [
    np.matmul(normed.ref, take(layer, 'query')).reshape(shape),
    np.matmul(normed.ref, take(layer, 'key')).reshape(shape),
    np.matmul(normed, take(layer, 'value')).reshape(shape),
  ];
}

function logits(weights: Weights, hidden: Tensor): Tensor {
  return np.matmul(norm(hidden, take(weights, 'norm.gamma'), take(weights, 'norm.beta')), take(weights, 'head.weight'));
}

/** Logits `[rows * T, V]` of one-hot tokens `[rows * T, V]`. */
function forward(shape: Shape, rows: number, weights: Weights, tokens: Tensor): Tensor {
  const { d_model: width, heads, context_length: length } = shape;
  const embedded = np.matmul(tokens, take(weights, 'tokens.weight')).reshape([rows, length, width]);
  let hidden = embedded.add(take(weights, 'positions.weight')).reshape([rows * length, width]);
  for (let index = 0; index < shape.layers; index += 1) {
    const layer = layerOf(weights, index);
    const [query, key, value] = project(layer, hidden.ref, [rows, length, heads, width / heads]);
    const attended = nn.dotProductAttention(query, key, value, { isCausal: true });
    hidden = finish(layer, hidden, attended.reshape([rows * length, width]));
  }
  return logits(weights, hidden);
}

type Data = { inputs: Tensor; targets: Tensor; mask: Tensor; old: Tensor; advantages: Tensor };

function loss(shape: Shape, rows: number, trained: number, weights: Weights, data: Data): Tensor {
  const all = nn.logSoftmax(forward(shape, rows, weights, data.inputs), -1);
  const ratio = np.exp(all.mul(data.targets).sum(-1).sub(data.old));
  const bounded = np.clip(ratio.ref, 1 - UPDATE.epsilon, 1 + UPDATE.epsilon).mul(data.advantages.ref);
  return np
    .minimum(ratio.mul(data.advantages), bounded)
    .mul(data.mask)
    .sum()
    .mul(-1 / trained);
}

type State = { weights: Weights; first: Weights; second: Weights };

/** Loss, gradient and Adam; `scales` holds the two bias corrections. */
function compileStep(shape: Shape, rows: number, trained: number) {
  const { beta1, beta2, learningRate, adamEpsilon } = UPDATE;
  return jit((state: State, scales: Tensor, data: Data): [State, Tensor] => {
    const [value, gradient] = valueAndGrad((weights: Weights, of: Data) => loss(shape, rows, trained, weights, of))(
      tree.ref(state.weights),
      data,
    );
    const next: State = { weights: {}, first: {}, second: {} };
    const [one, two] = [scales.ref.slice(0), scales.slice(1)];
    for (const [name, weight] of Object.entries(state.weights)) {
      const own = take(gradient as Weights, name);
      const first = take(state.first, name)
        .mul(beta1)
        .add(own.ref.mul(1 - beta1));
      const second = take(state.second, name)
        .mul(beta2)
        .add(np.square(own).mul(1 - beta2));
      const root = np.sqrt(second.ref.mul(two.ref)).add(adamEpsilon);
      next.weights[name] = weight.sub(first.ref.mul(one.ref).div(root).mul(learningRate));
      next.first[name] = first;
      next.second[name] = second;
    }
    one.dispose();
    two.dispose();
    return [next, value];
  });
}

type Caches = { keys: Tensor[]; values: Tensor[] };

/** One token for every sequence: from logits to a drawn token, and on to the next logits. `here` is one-hot over positions. */
function compileDecode(shape: Shape, rows: number) {
  const { d_model: width, heads, vocabulary, context_length: length, layers } = shape;
  const head = width / heads;
  return jit((weights: Weights, tokens: Tensor, caches: Caches, here: Tensor, hidden_from: Tensor): [Tensor, Caches] => {
    const position = np.matmul(here.ref.reshape([1, length]), take(weights, 'positions.weight'));
    let hidden = np.matmul(nn.oneHot(tokens, vocabulary), take(weights, 'tokens.weight')).add(position);
    const kept: Caches = { keys: [], values: [] };
    const place = here.reshape([1, length, 1, 1]);
    for (let index = 0; index < layers; index += 1) {
      const layer = layerOf(weights, index);
      const [query, key, value] = project(layer, hidden.ref, [rows, 1, heads, head]);
      const keys = (caches.keys[index] as Tensor).add(key.mul(place.ref));
      const values = (caches.values[index] as Tensor).add(value.mul(place.ref));
      kept.keys.push(keys.ref);
      kept.values.push(values.ref);
      const scores = query
        .mul(keys)
        .sum(-1)
        .mul(head ** -0.5)
        .add(hidden_from.ref.reshape([1, length, 1]));
      const attended = nn.softmax(scores, 1).reshape([rows, length, heads, 1]).mul(values).sum(1);
      hidden = finish(layer, hidden, attended.reshape([rows, width]));
    }
    place.dispose();
    hidden_from.dispose();
    return [logits(weights, hidden), kept];
  });
}

/** Draws by inverting the cumulative distribution. Counted in floats: sums of integers from comparisons do not compile. */
function compileDraw(shape: Shape, rows: number) {
  return jit((all: Tensor, uniforms: Tensor, ones: Tensor): Tensor => {
    const cumulative = np.matmul(nn.softmax(all, -1), ones);
    const last = cumulative.ref.slice([], [shape.vocabulary - 1, shape.vocabulary]);
    const below = cumulative
      .lessEqual(last.mul(uniforms.reshape([rows, 1])))
      .astype(np.float32)
      .sum(-1);
    return np.minimum(below, shape.vocabulary - 1).astype(np.int32);
  });
}

let shape: Shape;
let weights: Weights;
let update: { run: ReturnType<typeof compileStep>; state: State; data: Data; time: number } | null = null;

/** The compiled functions of a number of sequences. */
const compiled = new Map<number, { decode: ReturnType<typeof compileDecode>; draw: ReturnType<typeof compileDraw> }>();

function batch(given: Batch): void {
  const { inputs, targets, mask, old, advantages } = shifted(given);
  const trained = mask.reduce((sum, one) => sum + one, 0);
  const rows = inputs.length;
  const data: Data = {
    inputs: tensor(oneHot(inputs, shape.vocabulary), [rows, shape.vocabulary]),
    targets: tensor(oneHot(targets, shape.vocabulary), [rows, shape.vocabulary]),
    mask: np.array(mask),
    old: np.array(old),
    advantages: np.array(advantages),
  };
  const zeros = (): Weights =>
    Object.fromEntries(Object.entries(weights).map(([name, weight]) => [name, np.zeros(weight.shape)]));
  const state: State = { weights: tree.ref(weights), first: zeros(), second: zeros() };
  update = { run: compileStep(shape, given.rows, trained), state, data, time: 0 };
}

async function step(): Promise<number> {
  if (!update) throw new Error('there is no batch');
  update.time += 1;
  const scales = np.array(new Float32Array([1 / (1 - UPDATE.beta1 ** update.time), 1 / (1 - UPDATE.beta2 ** update.time)]));
  const [state, value] = update.run(update.state, scales, tree.ref(update.data));
  update.state = state;
  return (await value.data())[0] ?? Number.NaN;
}

async function decode({ sequences, count, prompts, uniforms }: Draws): Promise<{ tokens: Uint8Array; seconds: number }> {
  const known = compiled.get(sequences) ?? { decode: compileDecode(shape, sequences), draw: compileDraw(shape, sequences) };
  compiled.set(sequences, known);
  const { d_model: width, heads, context_length: length, layers } = shape;
  const zeros = (): Tensor[] => Array.from({ length: layers }, () => np.zeros([sequences, length, heads, width / heads]));
  let caches: Caches = { keys: zeros(), values: zeros() };
  const feed = (tokens: Tensor, position: number): Tensor => {
    const here = np.array(oneHot([position], length));
    const hidden = np.array(Float32Array.from({ length }, (_, slot) => (slot > position ? -1e9 : 0)));
    const [all, next] = known.decode(tree.ref(weights), tokens, caches, here, hidden);
    caches = next;
    return all;
  };
  const column = (values: ArrayLike<number>, width: number, at: number): number[] =>
    Array.from({ length: sequences }, (_, row) => values[row * width + at] ?? 0);
  let all: Tensor | null = null;
  for (let place = 0; place < PROMPT; place += 1) {
    all?.dispose();
    all = feed(np.array(Int32Array.from(column(prompts, PROMPT, place))), place);
  }
  if (!all) throw new Error('there is no prompt');
  await all.blockUntilReady();
  const ones = tensor(cumulating(shape.vocabulary), [shape.vocabulary, shape.vocabulary]);
  const start = performance.now();
  const drawn: Tensor[] = [];
  for (let place = 0; place < count; place += 1) {
    const token: Tensor = known.draw(all, np.array(Float32Array.from(column(uniforms, count, place))), ones.ref);
    drawn.push(token.ref);
    if (place + 1 < count) all = feed(token, PROMPT + place);
    else token.dispose();
  }
  const tokens = Uint8Array.from(await np.stack(drawn, 1).data());
  const seconds = (performance.now() - start) / 1000;
  ones.dispose();
  tree.dispose(caches);
  return { tokens, seconds };
}

serve({
  async open(asked) {
    const device = asked.gpu ? 'webgpu' : 'wasm';
    if (!(await init(device)).includes(device)) throw new Error(`no ${device}`);
    defaultDevice(device);
    shape = asked.shape;
    weights = load(asked.weights ?? [], shape.d_model);
    update = null;
    compiled.clear();
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
