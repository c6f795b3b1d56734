// WebGPU against the CPU: the same sampled tokens, and losses within 1e-3, on Chromium's software adapter. The worker is driven
// through the page's own protocol, with a configuration that a software adapter can do in a minute.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { initSync, read_link } from '../../www/src/wasm/page/turnwise_page.js';
import { assertClean, context, launch, open } from './support.js';

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

/** Runs in the page: a worker of its own, configured and trained to the end. */
function drive({ worker: url, config, device }) {
  const started = performance.now();
  const worker = new Worker(url, { type: 'module' });
  const seen = { tokens: [], losses: [], norms: [], device: null };
  return new Promise((resolve, reject) => {
    worker.onerror = event => reject(new Error(event.message));
    worker.onmessage = ({ data }) => {
      if (data.type === 'loaded') worker.postMessage({ type: 'configure', config, device });
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
    worker.postMessage({ type: 'start', base: document.baseURI });
  });
}
