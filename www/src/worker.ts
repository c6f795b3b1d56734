/** The training worker: fetches the engine with progress in bytes, hands it the page's commands and passes its events on. */

import type { Command, Event as EngineEvent } from './protocol';
import init, { Engine } from './wasm/engine/turnwise_engine.js';
import wasmUrl from './wasm/engine/turnwise_engine_bg.wasm?url';

/** The first message: where the page's static files are. */
export type Start = { type: 'start'; base: string };

/** What can break outside the engine's own reports. */
export type Broken = { type: 'broken'; cause: 'download' | 'module' | 'panic'; detail: string };

export type ToWorker = Start | Command;
export type FromWorker = EngineEvent | Broken;

const send = (message: FromWorker): void => postMessage(message);
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

let engine: Engine | null = null;
let queue: Promise<void> = Promise.resolve();
let broken = false;

/** Says once what broke; the page then replaces this worker. */
function breakDown(cause: Broken['cause'], error: unknown): void {
  if (broken) return;
  broken = true;
  send({ type: 'broken', cause, detail: words(error) });
}

/** Bytes of the engine that have arrived: fewer or more than it has, and the download is to blame, not the browser. */
let done = 0;

/** The engine's bytes as a response that counts what has arrived. */
async function download(): Promise<Response> {
  const response = await fetch(wasmUrl);
  if (!response.ok || !response.body) throw new Error(`HTTP ${response.status}`);
  let reported = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      done += chunk.byteLength;
      if (done - reported > 100_000) {
        reported = done;
        send({ type: 'progress', stage: 'download', done, total: Math.max(ENGINE_BYTES, done) });
      }
      controller.enqueue(chunk);
    },
  });
  send({ type: 'progress', stage: 'download', done: 0, total: ENGINE_BYTES });
  return new Response(response.body.pipeThrough(counter), { headers: { 'Content-Type': 'application/wasm' } });
}

/** The shipped weights of a task, or null where there are none. A failed download is an error, so that it is called one. */
async function warmStart(base: string, environment: string): Promise<Uint8Array | null> {
  const response = await fetch(new URL(`warm-start/${encodeURIComponent(environment)}.safetensors`, base));
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function start(base: string): Promise<void> {
  let response: Response;
  try {
    response = await download();
  } catch (error) {
    breakDown('download', error);
    return;
  }
  try {
    await init({ module_or_path: response });
    engine = new Engine(
      (event: EngineEvent) => send(event),
      (environment: string) => warmStart(base, environment),
    );
  } catch (error) {
    // A connection that breaks halfway surfaces here too, as a TypeError of the stream.
    const refused = error instanceof WebAssembly.CompileError || error instanceof WebAssembly.LinkError;
    breakDown(refused && done === ENGINE_BYTES ? 'module' : 'download', error);
    return;
  }
  send({ type: 'loaded' });
}

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === 'start') {
    queue = start(data.base);
    return;
  }
  const run = async (): Promise<void> => {
    if (!engine || broken) return;
    try {
      await engine.handle(data);
    } catch (error) {
      breakDown('panic', error);
    }
  };
  // A pause must reach the engine while it trains; everything else waits for its turn.
  if (data.type === 'pause') void run();
  else queue = queue.then(run);
});

addEventListener('error', event => breakDown('panic', event.error ?? event.message));
addEventListener('unhandledrejection', event => breakDown('panic', event.reason));
