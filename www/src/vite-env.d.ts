/** Bytes of the training module as built, 0 when it was not there. */
declare const ENGINE_BYTES: { cpu: number; webgpu: number };

/** Versions by package: this one, and those that the page of measurements compares it with. */
declare const PACKAGES: { turnwise: string; '@jax-js/jax': string; '@tensorflow/tfjs-core': string };
