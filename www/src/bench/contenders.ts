/** Who is measured: ours and the others, each on the CPU (wasm) and on WebGPU where there is an adapter. */

import { Remote } from './remote';

export type DeviceName = 'wasm' | 'webgpu';

export interface Contender {
  library: 'turnwise' | 'jax-js' | 'tfjs';
  /** Package and version. */
  package: string;
  device: DeviceName;
  /** How many workers compute. */
  workers: number;
  start(): Remote;
}

const ours = (): Remote => new Remote(new Worker(new URL('./bench-ours.ts', import.meta.url), { type: 'module' }));
const jax = (): Remote => new Remote(new Worker(new URL('./bench-jax.ts', import.meta.url), { type: 'module' }));
const tfjs = (): Remote => new Remote(new Worker(new URL('./bench-tfjs.ts', import.meta.url), { type: 'module' }));

/** Ours with one worker comes first on every device: everything else is compared with it. On the CPU it can have `most` workers too. */
export function contenders(devices: DeviceName[], most = 1): Contender[] {
  const name = `turnwise ${PACKAGES.turnwise}`;
  return devices.flatMap((device): Contender[] => [
    { library: 'turnwise', package: name, device, workers: 1, start: ours },
    ...workerCounts(device, most).map(
      (workers): Contender => ({ library: 'turnwise', package: name, device, workers, start: ours }),
    ),
    { library: 'jax-js', package: `@jax-js/jax ${PACKAGES['@jax-js/jax']}`, device, workers: 1, start: jax },
    { library: 'tfjs', package: `@tensorflow/tfjs-core ${PACKAGES['@tensorflow/tfjs-core']}`, device, workers: 1, start: tfjs },
  ]);
}

/** Numbers of workers beside one that a device is measured with: two, where there are as many cores. */
export function workerCounts(device: DeviceName, most: number): number[] {
  return device === 'wasm' && most > 1 ? [2] : [];
}

/** The WebGPU adapter, or null where there is none. */
export async function adapter(): Promise<{ name: string; software: boolean } | null> {
  const gpu = (navigator as { gpu?: { requestAdapter(): Promise<Adapter | null> } }).gpu;
  const found = await gpu?.requestAdapter().catch(() => null);
  if (!found) return null;
  const { description, device, vendor, architecture, isFallbackAdapter } = found.info;
  const name = [description, device, `${vendor} ${architecture}`.trim()].find(Boolean) ?? 'WebGPU';
  const words = `${name} ${vendor} ${architecture}`.toLowerCase();
  return { name, software: isFallbackAdapter === true || /swiftshader|llvmpipe|lavapipe|software/.test(words) };
}

interface Adapter {
  info: { description: string; device: string; vendor: string; architecture: string; isFallbackAdapter?: boolean };
}
