/**
 * The training worker: fetches the engine that the device takes, hands it the page's commands, passes its events on, and keeps a
 * checkpoint of every step. On the CPU it starts helpers, which run this script too.
 */

import { findDevice, LoadError, type Loaded, loadEngine } from './engine';
import { assist } from './helper';
import { type Keep, Keeper } from './keeper';
import { Outbox } from './outbox';
import { type Assist, type Job, Pool } from './pool';
import type { Command, DeviceChoice, DeviceKind, DeviceReport, Event as EngineEvent } from './protocol';
import type { Checkpoint } from './storage';
import type { Engine } from './wasm/cpu/turnwise_cpu.js';

/**
 * The first message: where the page's static files are, and what the first run is to compute on; its engine is fetched at once. Phases of
 * short steps may come several at a time where `together` says so.
 */
export type Start = { type: 'start'; base: string; device: DeviceChoice; together?: boolean };

/** How many workers are to compute on the CPU, this one included; taken in while the run stands still. */
export type Share = { type: 'share'; workers: number };

/** How many workers compute now, of how many; `detail` says why one was lost, where that is known. */
export type Workers = { type: 'workers'; count: number; wanted: number; lost: boolean; detail: string };

/** Asks for the policy as files for Hugging Face transformers; the run stands still. */
export type ExportPolicy = { type: 'export_policy' };

/** What can break outside the engine's own reports; with the last checkpoint, so that the run can go on in another worker. */
export type Broken = {
  type: 'broken';
  cause: 'download' | 'module' | 'panic' | 'device_lost';
  detail: string;
  checkpoint: Checkpoint | null;
};

/** Runs cannot be kept in this browser. Sent once. */
export type NotKept = { type: 'not_kept'; detail: string };

/** The policy as files, or why there is none. */
export type ExportedPolicy = { type: 'policy'; files: [string, Uint8Array][]; detail: string };

/** The checkpoint after the last step, or null before there is one. */
export type LatestCheckpoint = { type: 'checkpoint'; checkpoint: Checkpoint | null };

export type { Checkpoint, Keep };

export type ToWorker = Start | Keep | Share | ExportPolicy | { type: 'send_checkpoint' } | Command;
export type FromWorker = EngineEvent | Broken | NotKept | ExportedPolicy | LatestCheckpoint | Workers;

/** What is posted: a message, or several in their order. */
export type Posted = FromWorker | { type: 'several'; messages: FromWorker[] };

const outbox = new Outbox(posted => postMessage(posted));
const send = (message: FromWorker): void => outbox.send(message);
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Whether this worker helps another: its first message says so. */
let helping = false;
/** Where the page's static files are. */
let base = '';
let engine: Engine | null = null;
/** The engines that were started. Each keeps its device, which cannot be opened twice. */
const engines = new Map<DeviceKind, Engine>();
/** The choice that the engine's device came of. */
let device: DeviceChoice | null = null;
/** The engine for the CPU, compiled. */
let module: WebAssembly.Module | null = null;
/** Workers that are to compute, this one included, and those that help now. */
let wanted = 1;
let pool: Pool | null = null;
let queue: Promise<void> = Promise.resolve();
let broken = false;

/** What the browser said when it took the device away; null while there is one. */
let deviceLost: string | null = null;

/** The same of a device that no run was on: a run that asks for it is told. */
let unusedLost: string | null = null;

/** What the browser said when it did not give a buffer of the device back: then the device is gone, told or not. */
let bufferRefused: string | null = null;

/** How long the browser may take to give an adapter, and that to give a device, in milliseconds. */
const DEVICE = 10_000;

/** How long an error waits for the word that the device is gone, which comes a little later than what it breaks. In milliseconds. */
const WORD = 100;

/** Says once what broke; the page then replaces this worker, or the training worker does without this helper. */
function breakDown(cause: Broken['cause'], error: unknown): void {
  if (broken) return;
  broken = true;
  const say = (): void => {
    // While shaders are compiled the browser may take seconds to say that the device is gone.
    const lost = deviceLost ?? (cause === 'panic' ? bufferRefused : null);
    const [why, detail]: [Broken['cause'], string] = lost === null ? [cause, words(error)] : ['device_lost', lost];
    send({ type: 'broken', cause: why, detail, checkpoint: keeper.told });
  };
  if (cause === 'panic' && !helping) setTimeout(say, WORD);
  else say();
}

const keeper = new Keeper(detail => send({ type: 'not_kept', detail }));

/** An event on its way to the page. */
function pass(event: EngineEvent): void {
  keeper.note(event);
  send(event);
}

/** An answer, or an error where it does not come in time. */
function inTime<T>(answer: Promise<T>, what: string): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`${what} within ${DEVICE / 1000} s`)), DEVICE);
  });
  return Promise.race([answer, late]);
}

/** The kind of device that is being opened, once it is known. */
let opening: DeviceKind | null = null;

/** Whether a graphics device is in use, or about to be: not while a run is on the CPU. */
const onDevice = (): boolean => (engine ? engine === engines.get('webgpu') : opening !== 'cpu');

/** A lost device is told at once: what waits for it may wait for ever. So may a search for one. */
function watchDevices(): void {
  const gpu = (globalThis as { GPU?: { prototype: { requestAdapter: RequestAdapter } } }).GPU?.prototype;
  if (gpu) {
    const { requestAdapter } = gpu;
    gpu.requestAdapter = function (options) {
      return inTime(requestAdapter.call(this, options), 'the browser gave no adapter');
    };
  }
  const prototype = (globalThis as { GPUAdapter?: { prototype: { requestDevice: RequestDevice } } }).GPUAdapter?.prototype;
  if (!prototype) return;
  const { requestDevice } = prototype;
  prototype.requestDevice = async function (descriptor) {
    const device = await inTime(requestDevice.call(this, descriptor), 'the adapter gave no device');
    void device.lost.then(({ message }) => {
      if (!onDevice()) {
        unusedLost = message;
        return;
      }
      deviceLost = message;
      breakDown('device_lost', message);
    });
    return device;
  };
  const buffers = (globalThis as { GPUBuffer?: { prototype: { mapAsync: MapAsync } } }).GPUBuffer?.prototype;
  if (!buffers) return;
  const { mapAsync } = buffers;
  buffers.mapAsync = function (...how) {
    const mapped = mapAsync.apply(this, how);
    mapped.catch(error => {
      if (onDevice()) bufferRefused = words(error);
    });
    return mapped;
  };
}

type MapAsync = (this: unknown, ...how: unknown[]) => Promise<void>;
type RequestAdapter = (this: unknown, options?: unknown) => Promise<unknown>;
type RequestDevice = (this: unknown, descriptor?: unknown) => Promise<{ lost: Promise<{ message: string }> }>;

/** The shipped weights of a name, or null where there are none. A failed download is an error, so that it is called one. */
async function warmStart(name: string): Promise<Uint8Array | null> {
  const response = await fetch(new URL(`warm-start/${encodeURIComponent(name)}.safetensors`, base));
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** The workers that help a run on the CPU, as many as are wanted. */
async function helpers(): Promise<Pool | null> {
  const others = module ? wanted - 1 : 0;
  const tell = (left: number, lost: boolean, detail: string): void =>
    send({ type: 'workers', count: left + 1, wanted, lost, detail });
  if (pool?.left !== others) {
    pool?.end();
    const started = module && others > 0 ? await Pool.start(others, module, (left, detail) => tell(left, true, detail)) : null;
    pool = started;
  }
  tell(pool?.left ?? 0, false, '');
  return pool;
}

/** The engine's code for a kind of device; the page sees it arrive. */
function load(kind: DeviceKind): Promise<Loaded> {
  return loadEngine(kind, (done, total) => send({ type: 'progress', stage: 'download', done, total }));
}

/** The engine for a kind of device, fetched and started where it is not there yet. */
async function engineFor(kind: DeviceKind): Promise<Engine> {
  const known = engines.get(kind);
  if (known) return known;
  const loaded = await load(kind);
  if (kind === 'cpu') module = loaded.module;
  const started = new loaded.exports.Engine(pass, warmStart, keeper, helpers);
  engines.set(kind, started);
  return started;
}

/** Opens the device of a choice with the engine that it takes. The run that was there before ends. */
async function open(choice: DeviceChoice): Promise<void> {
  if (device === choice) return;
  engine?.leave();
  [engine, device] = [null, null];
  pool?.end();
  pool = null;
  const found = await findDevice(choice);
  if (found.kind === 'webgpu' && unusedLost !== null) {
    // This worker's engine cannot open another: the page starts a new one.
    deviceLost = unusedLost;
    throw new Error(unusedLost);
  }
  opening = found.kind;
  let next = await engineFor(found.kind);
  const opened: DeviceReport = await next.open(found);
  if (opened.kind !== found.kind) {
    // The device was refused: the CPU takes over, with the reason.
    opening = opened.kind;
    next = await engineFor(opened.kind);
    await next.open(opened);
  }
  [engine, device, opening, bufferRefused] = [next, choice, null, null];
}

/** Fetches the engine of the first run. */
async function start(choice: DeviceChoice): Promise<void> {
  watchDevices();
  await load((await findDevice(choice)).kind);
  send({ type: 'loaded' });
}

async function exportPolicy(from: Engine): Promise<void> {
  try {
    send({ type: 'policy', files: await from.export_policy(), detail: '' });
  } catch (error) {
    send({ type: 'policy', files: [], detail: words(error) });
  }
}

addEventListener('message', ({ data }: MessageEvent<ToWorker | Assist | Job>) => {
  if (data.type === 'assist') {
    helping = true;
    void assist(data);
    return;
  }
  if (data.type === 'job') return;
  const run = async (): Promise<void> => {
    if (broken) return;
    try {
      if (data.type === 'start') {
        base = data.base;
        outbox.together = data.together ?? false;
        await start(data.device);
      } else if (data.type === 'keep') keeper.begin(data);
      else if (data.type === 'share') {
        wanted = data.workers;
        await engine?.share();
      } else if (data.type === 'configure') {
        await open(data.device);
        const checkpoint = keeper.run?.checkpoint;
        if (checkpoint) engine?.hand_over(checkpoint);
        await engine?.handle(data);
      } else if (data.type === 'send_checkpoint') send({ type: 'checkpoint', checkpoint: keeper.told });
      else if (!engine) return;
      else if (data.type === 'export_policy') await exportPolicy(engine);
      else await engine.handle(data);
    } catch (error) {
      breakDown(error instanceof LoadError ? error.cause : 'panic', error);
    }
  };
  // A pause must reach the engine while it trains; everything else waits for its turn.
  if (data.type === 'pause') void run();
  else queue = queue.then(run);
});

addEventListener('error', event => {
  // The page need not hear of it another way.
  event.preventDefault();
  breakDown('panic', event.error ?? event.message);
});
addEventListener('unhandledrejection', event => breakDown('panic', event.reason));
