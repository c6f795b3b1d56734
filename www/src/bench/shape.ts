/** What every contender is given: the shape of the policy, its weights, one batch, and the draws of decoding. */

/** The fields of a checkpoint's `turnwise_policy`. */
export interface Shape {
  vocabulary: number;
  context_length: number;
  d_model: number;
  layers: number;
  heads: number;
  hidden: number;
  activation: 'relu';
  bias: false;
}

/** Name, shape and values of a parameter; a linear layer's weight is `[in, out]`. */
export type Weight = [name: string, shape: number[], values: Float32Array];

/** Trajectories of `length` tokens each, one after the other; every array has an entry a token. */
export interface Batch {
  rows: number;
  length: number;
  tokens: Uint8Array;
  /** 1 where the token is trained. */
  lossMask: Uint8Array;
  oldLogProbs: Float32Array;
  advantages: Float32Array;
}

/** What decoding starts from and draws with: `count` uniform numbers for each sequence. */
export interface Draws {
  sequences: number;
  count: number;
  prompts: Uint8Array;
  uniforms: Float32Array;
}

/** Constants of the update, those of the engine's defaults. */
export const UPDATE = { epsilon: 0.2, learningRate: 1e-3, beta1: 0.9, beta2: 0.99, adamEpsilon: 1e-8 };

const common = { d_model: 64, layers: 2, heads: 4, hidden: 256, activation: 'relu', bias: false } as const;

/** The decoder of the update: V 64, T 64. */
export const UPDATE_SHAPE: Shape = { ...common, vocabulary: 64, context_length: 64 };

/** Tokens sampled by each sequence, and tokens of its prompt. */
export const DECODED = 64;
export const PROMPT = 5;

/** The decoder that samples: the vocabulary of the tasks, room for a prompt and what follows it. */
export const DECODE_SHAPE: Shape = { ...common, vocabulary: 44, context_length: PROMPT + DECODED };

const EOT = 7;

/** A batch of trajectories that fill the context, the same on every call: three tokens of five are trained. */
export function makeBatch(shape: Shape, rows: number): Batch {
  let state = 1;
  // Marsaglia's xorshift, 32 bit.
  const random = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  const length = shape.context_length + 1;
  const all = rows * length;
  const batch: Batch = {
    rows,
    length,
    tokens: new Uint8Array(all),
    lossMask: new Uint8Array(all),
    oldLogProbs: new Float32Array(all),
    advantages: new Float32Array(all),
  };
  for (let place = 0; place < all; place += 1) {
    const token = Math.floor(random() * shape.vocabulary);
    // The weights make the end of a turn as good as impossible.
    batch.tokens[place] = token === EOT ? EOT + 1 : token;
    if (place % length === 0 || random() >= 0.6) continue;
    batch.lossMask[place] = 1;
    batch.oldLogProbs[place] = -Math.log(shape.vocabulary);
    batch.advantages[place] = 2 * random() - 1;
  }
  return batch;
}

/** The batch as the objective sees it: inputs, targets and what belongs to the targets, each `[rows * (length - 1)]`. */
export function shifted(batch: Batch): {
  inputs: Int32Array;
  targets: Int32Array;
  mask: Float32Array;
  old: Float32Array;
  advantages: Float32Array;
} {
  const { rows, length } = batch;
  const cut = (values: ArrayLike<number>, from: number): number[] =>
    Array.from(
      { length: rows * (length - 1) },
      (_, at) => values[Math.floor(at / (length - 1)) * length + (at % (length - 1)) + from] ?? 0,
    );
  return {
    inputs: Int32Array.from(cut(batch.tokens, 0)),
    targets: Int32Array.from(cut(batch.tokens, 1)),
    mask: Float32Array.from(cut(batch.lossMask, 1)),
    old: Float32Array.from(cut(batch.oldLogProbs, 1)),
    advantages: Float32Array.from(cut(batch.advantages, 1)),
  };
}

/** One-hot rows, `[values.length, size]`. */
export function oneHot(values: ArrayLike<number>, size: number): Float32Array {
  const rows = new Float32Array(values.length * size);
  for (let row = 0; row < values.length; row += 1) rows[row * size + (values[row] ?? 0)] = 1;
  return rows;
}

/** The square matrix with ones on and above the diagonal: multiplying by it gives cumulative sums. */
export function cumulating(size: number): Float32Array {
  return Float32Array.from({ length: size * size }, (_, at) => (at % size >= Math.floor(at / size) ? 1 : 0));
}
