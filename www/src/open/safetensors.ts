/** What a checkpoint file says about itself, read from its header alone: the weights are for the engine. */

/** A longer header is none of ours. */
const HEADER_LIMIT = 1 << 20;

export interface CheckpointHeader {
  /** The experiment that made it, as a link's fragment. */
  experiment: string;
  /** Steps done; null where the file holds a policy only. */
  iteration: number | null;
}

/** Reads the header; an error says what is wrong with the file. */
export function checkpointHeader(bytes: Uint8Array): CheckpointHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.length >= 8 ? Number(view.getBigUint64(0, true)) : 0;
  if (length < 2 || length > HEADER_LIMIT || length + 8 > bytes.length) throw new Error('not a readable safetensors file');
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(8, 8 + length)));
  } catch {
    throw new Error('the header of the safetensors file is not JSON');
  }
  const room = bytes.length - 8 - length;
  let end = 0;
  for (const [name, tensor] of Object.entries(header ?? {})) {
    if (name === '__metadata__') continue;
    const offsets = entry(tensor, 'data_offsets');
    const [from, to] = Array.isArray(offsets) ? offsets : [];
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from < 0 || to < from)
      throw new Error(`\`${name}\` has no place in the file`);
    end = Math.max(end, to);
  }
  if (end !== room) throw new Error(`the file holds ${room} bytes of weights, its header speaks of ${end}`);
  const metadata = entry(header, '__metadata__');
  if (typeof entry(metadata, 'turnwise_policy') !== 'string') throw new Error('the file holds no Turnwise policy');
  const experiment = entry(metadata, 'turnwise_experiment');
  const training = entry(metadata, 'turnwise_training');
  let iteration: number | null = null;
  if (typeof training === 'string') {
    try {
      const count = entry(JSON.parse(training), 'iteration');
      if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) iteration = count;
    } catch {
      throw new Error('`turnwise_training` is not JSON');
    }
    if (iteration === null) throw new Error('`turnwise_training.iteration` is not a count');
  }
  return { experiment: typeof experiment === 'string' ? experiment : '', iteration };
}

/** An own entry of what may be an object. */
function entry(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
