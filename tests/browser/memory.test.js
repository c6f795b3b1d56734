// page.md case 12 at its whole length, with `cargo verify --slow`: the page's heap, the engine's memory and the buffers of a graphics
// device over 2,000 steps, 20 resets and 20 changes of lesson. A shorter form is in robust.test.js.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertClean, context, engineMemory, inWorker, iterations, launch, open, until } from './support.js';

/** Steps of some ten milliseconds. */
const TINY = '#v=1&env=search&seed=4&groups=2&num_generations=4&d_model=32&held_out=4&warm_start=none&iterations=100000';
/** Small enough for a software GPU. */
const GPU = '#v=1&env=search&seed=4&groups=1&num_generations=2&turn_limit=1&d_model=32&layers=1&heads=2&held_out=0&iterations=100000&warm_start=none&micro_batches=1';

/** Minutes of work: not on every change. */
const SLOW = { timeout: 900_000, skip: process.env.TURNWISE_SLOW ? false : 'slow: TURNWISE_SLOW=1' };

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const press = (page, name) => page.getByRole('button', { name, exact: true }).click();

/**
 * JavaScript is interpreted, with its counters of calls from the start: machine code lies in the heap too, and grows for hundreds of
 * rounds without anything being kept. WebAssembly is compiled as ever.
 */
const INTERPRETED = '--js-flags=--no-opt,--no-maglev,--no-sparkplug,--no-lazy-feedback-allocation,--no-flush-bytecode';

/** Megabytes that are alive in the page, once it has drawn what it draws in pieces. */
async function heapOf(within, page) {
  const devtools = await within.newCDPSession(page);
  return async () => {
    await page.waitForTimeout(1500);
    await devtools.send('HeapProfiler.collectGarbage');
    return (await devtools.send('Runtime.getHeapUsage')).usedSize / 1e6;
  };
}

async function trainTo(page, steps, name) {
  await press(page, name);
  await until(async () => (await iterations(page)) >= steps, 400, `${steps} steps`);
  await press(page, 'Pause');
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
  return iterations(page);
}

test('2,000 steps in two runs: the second leaves no more behind than the first', SLOW, async t => {
  const within = await context(browser);
  const engines = await engineMemory(within);
  const session = await open(within, TINY);
  const { page } = session;
  const heap = await heapOf(within, page);
  const found = [];
  for (const run of [1, 2]) {
    for (const steps of [200, 950]) {
      const at = await trainTo(page, steps, steps === 200 ? 'Train' : 'Go on');
      found.push({ run, at, heap: await heap(), engines: (await engines(page)).map(bytes => bytes / 1e6) });
    }
    // In the same worker, so that its memory is that of both runs.
    if (run === 1) await press(page, 'New seed');
  }
  t.diagnostic(found.map(({ run, at, heap, engines }) => `run ${run}, step ${at}: heap ${heap.toFixed(2)} MB, engines ${engines.map(size => size.toFixed(2)).join(' and ')} MB`).join('; '));
  const [early, late, , again] = found;
  t.diagnostic(`${((1e3 * (late.heap - early.heap)) / (late.at - early.at)).toFixed(2)} kB a step within a run, for its reports`);
  assert.ok(again.heap <= late.heap * 1.05, `heap ${late.heap} to ${again.heap}`);
  assert.ok(early.engines.length > 0 && again.engines.length === early.engines.length, `engines ${early.engines} to ${again.engines}`);
  early.engines.forEach((before, index) => assert.ok(again.engines[index] <= before * 1.05, `engines ${early.engines} to ${again.engines}`));
  assertClean(session);
});

/** Heap after 20 rounds in place of before them, in a browser that was started with some arguments. */
async function rounds(t, args) {
  const own = await launch({ args });
  t.after(() => own.close());
  const within = await context(own);
  const session = await open(within, TINY);
  const { page } = session;
  const heap = await heapOf(within, page);
  const lessons = await page.locator('#lesson option').evaluateAll(options => options.map(({ value }) => value).filter(Boolean));
  const round = async index => {
    await page.locator('#lesson').selectOption(lessons[index % lessons.length]);
    await page.waitForTimeout(300);
    await page.evaluate(hash => {
      location.hash = hash;
    }, TINY);
    await trainTo(page, 2, 'Train');
    await press(page, 'Reset');
    await page.getByText('Recorded run', { exact: true }).waitFor();
  };
  // Warm-up: every lesson once, for every recording stays once it is there.
  for (let index = 0; index < lessons.length; index += 1) {
    await page.locator('#lesson').selectOption(lessons[index]);
    await page.waitForTimeout(200);
  }
  for (let index = 0; index < 6; index += 1) await round(index);
  const before = await heap();
  for (let index = 0; index < 20; index += 1) await round(index);
  const afterwards = await heap();
  t.diagnostic(`heap ${before.toFixed(3)} to ${afterwards.toFixed(3)} MB`);
  assertClean(session);
  return afterwards / before;
}

test('20 resets and 20 changes of lesson leave the heap as it was', SLOW, async t => {
  const growth = await rounds(t, []);
  assert.ok(growth <= 1.05, `${growth} times as much`);
});

test('and, machine code apart, nothing is kept of them', SLOW, async t => {
  const growth = await rounds(t, [INTERPRETED]);
  assert.ok(growth <= 1.01, `${growth} times as much`);
});

test('the buffers of a graphics device do not grow in number or size', SLOW, async t => {
  // What is garbage is collected before it is counted.
  const gpu = await launch({ webgpu: true, args: ['--js-flags=--expose-gc'] });
  try {
    const within = await context(gpu);
    await inWorker(within, `{
      const live = new Map(); const device = globalThis.GPUDevice?.prototype; const buffer = globalThis.GPUBuffer?.prototype;
      if (device) {
        const { createBuffer } = device; const { destroy } = buffer;
        const gone = new FinalizationRegistry(key => live.delete(key)); let made = 0;
        device.createBuffer = function (descriptor) { const made_ = createBuffer.call(this, descriptor); made += 1; made_.__key = made; live.set(made, descriptor.size); gone.register(made_, made); return made_; };
        buffer.destroy = function () { live.delete(this.__key); return destroy.call(this); };
        new BroadcastChannel('ask').onmessage = async () => { for (let i = 0; i < 3; i += 1) { gc(); await new Promise(done => setTimeout(done, 50)); }
          new BroadcastChannel('buffers').postMessage({ made, count: live.size, bytes: [...live.values()].reduce((a, b) => a + b, 0) }); };
      } }`);
    const session = await open(within, GPU);
    const { page } = session;
    await page.getByText('More settings').click();
    await page.getByLabel('Device', { exact: true }).selectOption('gpu');
    const buffers = () => page.evaluate(() => new Promise(done => {
      new BroadcastChannel('buffers').onmessage = ({ data }) => done(data);
      new BroadcastChannel('ask').postMessage(null);
    }));
    const found = [];
    for (const steps of [20, 500, 950]) {
      const at = await trainTo(page, steps, steps === 20 ? 'Train' : 'Go on');
      found.push({ at, ...(await buffers()) });
    }
    t.diagnostic(found.map(({ at, count, bytes, made }) => `step ${at}: ${count} buffers, ${(bytes / 1e6).toFixed(2)} MB, ${made} made`).join('; '));
    // The library keeps the last few hundred small uniforms of kernels: they fill up first.
    const [, first, last] = found;
    assert.ok(last.count <= first.count * 1.05, `${first.count} to ${last.count} buffers`);
    assert.ok(last.bytes <= first.bytes * 1.05, `${first.bytes} to ${last.bytes} bytes`);
    assertClean(session);
  } finally {
    await gpu.close();
  }
});
