// WebGPU against the CPU: the same sampled tokens, and losses within 1e-3, on Chromium's software adapter. The worker is driven
// through the page's own protocol, with a configuration that a software adapter can do in a minute.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { initSync, read_link } from '../../www/src/wasm/page/turnwise_page.js';
import { assertClean, context, inWorker, launch, open } from './support.js';

const TINY = '#v=1&env=search&seed=4&groups=2&num_generations=3&turn_limit=2&d_model=32&layers=1&heads=2&held_out=2&iterations=2&warm_start=none&legal_token_mask=1&reward=mixed&micro_batches=1';

initSync({ module: readFileSync(new URL('../../www/src/wasm/page/turnwise_page_bg.wasm', import.meta.url)) });
const { config } = read_link(TINY);
const asset = readdirSync(new URL('../../www/dist/assets', import.meta.url)).find(name => /^worker.*\.js$/.test(name));
const worker = `./assets/${asset}`;

let browser;
before(async () => {
  browser = await launch({ webgpu: true });
});
after(() => browser.close());

test('a tiny run samples the same tokens on WebGPU as on the CPU, with losses within 1e-3', { timeout: 600_000 }, async t => {
  const session = await open(await context(browser));
  const run = device => session.page.evaluate(drive, { worker, config, device });
  const cpu = await run('cpu');
  const gpu = await run('gpu');
  t.diagnostic(`adapter: ${gpu.device.name}; seconds: CPU ${cpu.seconds.toFixed(1)}, WebGPU ${gpu.seconds.toFixed(1)}`);
  assert.equal(cpu.device.kind, 'cpu');
  assert.equal(gpu.device.kind, 'webgpu');
  assert.deepEqual(gpu.tokens, cpu.tokens);
  assert.equal(gpu.losses.length, 2);
  gpu.losses.forEach((loss, index) => assert.ok(Math.abs(loss - cpu.losses[index]) <= 1e-3, `${loss} against ${cpu.losses[index]}`));
  gpu.norms.forEach((norm, index) => assert.ok(Math.abs(norm - cpu.norms[index]) <= 1e-3, `gradient norm ${norm} against ${cpu.norms[index]}`));
  assertClean(session);
});

test('a software adapter counts as none unless chosen', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser));
  const auto = await session.page.evaluate(drive, { worker, config, device: 'auto' });
  assert.equal(auto.device.kind, 'cpu');
  assert.equal(auto.device.reason, 'software_adapter');
  assertClean(session);
});

test('page.md cases 33 and 35: one awaited read a turn and one an update, and the page draws on while shaders compile', { timeout: 600_000 }, async t => {
  const within = await context(browser);
  const count = `{ let maps = 0; const prototype = globalThis.GPUBuffer?.prototype; const map = prototype?.mapAsync;
  if (map) prototype.mapAsync = function (...args) { maps += 1; return map.apply(this, args); };
  new BroadcastChannel('maps').onmessage = ({ data }) => { if (data === 'ask') new BroadcastChannel('maps-told').postMessage(maps); }; }`;
  await inWorker(within, count);
  const session = await open(within, TINY);
  const { page } = session;
  const maps = () => page.evaluate(() => new Promise(resolve => {
    new BroadcastChannel('maps-told').onmessage = ({ data }) => resolve(data);
    new BroadcastChannel('maps').postMessage('ask');
  }));
  await page.evaluate(() => {
    let last = performance.now();
    window.gap = 0;
    const frame = now => {
      window.gap = Math.max(window.gap, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await page.getByText('More settings').click();
  await page.getByLabel('Device', { exact: true }).selectOption('gpu');
  const step = page.getByRole('button', { name: 'Step', exact: true });
  const phase = async name => {
    await step.click();
    await page.locator('[aria-current="step"]', { hasText: name }).waitFor({ timeout: 300_000 });
    await step.and(page.locator(':enabled')).waitFor();
    return maps();
  };
  const sampled = await phase('sample');
  for (const name of ['score', 'credit']) assert.equal(await phase(name), sampled, `nothing is read to ${name}`);
  const updated = await phase('update');
  const again = await phase('sample');
  t.diagnostic(`reads: ${updated - sampled} an update, ${again - updated} a rollout of at most 2 turns; longest gap between frames ${(await page.evaluate(() => window.gap)).toFixed(0)} ms`);
  assert.equal(updated - sampled, 1, 'one read an update, the checkpoint included');
  assert.ok(again - updated <= 2, `${again - updated} reads in a rollout of at most two turns`);
  assertClean(session);
});

/** Runs in the page: a worker of its own, configured and trained to the end. */
function drive({ worker: url, config, device }) {
  const started = performance.now();
  const worker = new Worker(url, { type: 'module' });
  const seen = { tokens: [], losses: [], norms: [], device: null };
  return new Promise((resolve, reject) => {
    worker.onerror = event => reject(new Error(event.message));
    worker.onmessage = ({ data }) => {
      if (data.type === 'loaded') worker.postMessage({ type: 'configure', config, device, resume: false });
      if (data.type === 'device') seen.device = data.device;
      if (data.type === 'ready') worker.postMessage({ type: 'train' });
      if (data.type === 'phase' && data.batch) seen.tokens.push(data.batch.trajectories.map(trajectory => [...trajectory.tokens]));
      if (data.type === 'phase' && data.report) {
        seen.losses.push(data.report.update.loss);
        seen.norms.push(data.report.update.gradient_norm);
      }
      if (data.type === 'broken' || data.type === 'failed') reject(new Error(JSON.stringify(data)));
      if (data.type === 'stopped') {
        worker.terminate();
        resolve({ ...seen, seconds: (performance.now() - started) / 1000 });
      }
    };
    worker.postMessage({ type: 'start', base: document.baseURI, device });
  });
}
