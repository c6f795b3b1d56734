/** The engine, in a worker: which of the two a device takes, fetched with progress in bytes, compiled and started. */

import type { DeviceChoice, DeviceKind, DeviceReport } from './protocol';
import cpuUrl from './wasm/cpu/turnwise_cpu_bg.wasm?url';
import gpuUrl from './wasm/gpu/turnwise_gpu_bg.wasm?url';
import initPage, { find_device } from './wasm/page/turnwise_page.js';
import pageUrl from './wasm/page/turnwise_page_bg.wasm?url';

/** What both engines export. The one for the CPU has helpers besides. */
export type Exports = Pick<typeof import('./wasm/cpu/turnwise_cpu.js'), 'Engine' | 'Bench'>;

/** An engine, compiled and started. */
export interface Loaded {
  exports: Exports;
  /** Helpers get it so, without another download. */
  module: WebAssembly.Module;
}

/** An engine cannot be had: it did not arrive whole, or the browser refused what arrived. */
export class LoadError extends Error {
  constructor(
    override readonly cause: 'download' | 'module',
    error: unknown,
  ) {
    super(error instanceof Error ? error.message : String(error));
  }
}

const scripts = {
  cpu: () => import('./wasm/cpu/turnwise_cpu.js'),
  webgpu: () => import('./wasm/gpu/turnwise_gpu.js'),
};
const urls = { cpu: cpuUrl, webgpu: gpuUrl };

let page: Promise<unknown> | null = null;
const engines = new Map<DeviceKind, Loaded>();

/** The device that a choice comes to in this browser, and why. Nothing is opened. */
export async function findDevice(choice: DeviceChoice): Promise<DeviceReport> {
  try {
    // The page has fetched it already: it is in the browser's cache.
    page ??= initPage({ module_or_path: pageUrl });
    await page;
  } catch (error) {
    page = null;
    throw new LoadError('download', error);
  }
  return find_device(choice);
}

/** The engine for a kind of device. `arrived` is told how many bytes have come, of how many. Throws a `LoadError`. */
export async function loadEngine(kind: DeviceKind, arrived: (done: number, total: number) => void): Promise<Loaded> {
  const known = engines.get(kind);
  if (known) return known;
  const bytes = ENGINE_BYTES[kind];
  let done = 0;
  try {
    const [response, { default: init, ...exports }] = await Promise.all([fetch(urls[kind]), scripts[kind]()]);
    if (!response.ok || !response.body) throw new Error(`HTTP ${response.status}`);
    let reported = 0;
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        done += chunk.byteLength;
        if (done - reported > 100_000) {
          reported = done;
          arrived(done, Math.max(bytes, done));
        }
        controller.enqueue(chunk);
      },
    });
    arrived(0, bytes);
    const headers = { 'Content-Type': 'application/wasm' };
    const module = await WebAssembly.compileStreaming(new Response(response.body.pipeThrough(counter), { headers }));
    await init({ module_or_path: module });
    const loaded = { exports, module };
    engines.set(kind, loaded);
    return loaded;
  } catch (error) {
    // A connection that breaks halfway surfaces as an error of the compiler or of the stream: fewer or more bytes than there are,
    // and the download is to blame, not the browser.
    const refused = error instanceof WebAssembly.CompileError || error instanceof WebAssembly.LinkError;
    throw new LoadError(refused && done === bytes ? 'module' : 'download', error);
  }
}
