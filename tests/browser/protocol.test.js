// What the training worker sends while it trains, driven by hand: the page shows the episodes of few steps, and is sent no more.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { initSync, read_link } from '../../www/src/wasm/page/turnwise_page.js';
import { assertClean, context, launch, open } from './support.js';

initSync({ module: readFileSync(new URL('../../www/src/wasm/page/turnwise_page_bg.wasm', import.meta.url)) });
const asset = readdirSync(new URL('../../www/dist/assets', import.meta.url)).find(name => /^worker.*\.js$/.test(name));
const worker = `./assets/${asset}`;
const TINY = '#v=1&env=search&seed=4&groups=2&num_generations=4&d_model=32&held_out=0&warm_start=none';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** In the page: trains to the end, or until `pauseAfter` steps are told of, then measures the credit of the last episodes. */
function drive({ worker: url, config, every, pauseAfter }) {
  const worker = new Worker(url, { type: 'module' });
  const seen = { steps: 0, sent: [], late: [], measured: null, seconds: 0 };
  let begun = 0;
  return new Promise((resolve, reject) => {
    worker.onerror = event => reject(new Error(event.message));
    worker.onmessage = ({ data }) => {
      if (data.type === 'loaded') worker.postMessage({ type: 'configure', config, device: 'cpu', resume: false });
      if (data.type === 'ready') {
        begun = performance.now();
        worker.postMessage({ type: 'train', ...(every === null ? {} : { episodes_every: every }) });
      }
      if (data.type === 'phase' && data.batch) {
        if (data.done !== 'credit' || data.batch.credit === null) reject(new Error(`episodes after ${data.done}`));
        seen.sent.push(data.batch.iteration);
      }
      if (data.type === 'episodes') seen.late.push(data.batch.iteration);
      if (data.type === 'phase' && data.report) {
        seen.steps = data.report.iteration + 1;
        if (seen.steps === pauseAfter) worker.postMessage({ type: 'pause' });
      }
      if (data.type === 'true_credit') seen.measured = data.measured.iteration;
      if (data.type === 'broken' || data.type === 'failed') reject(new Error(JSON.stringify(data)));
      if (data.type === 'stopped' && seen.seconds === 0) {
        seen.seconds = (performance.now() - begun) / 1000;
        worker.postMessage({ type: 'measure_credit', rolls: 1 });
      } else if (data.type === 'stopped') {
        worker.terminate();
        resolve(seen);
      }
    };
    worker.postMessage({ type: 'start', base: document.baseURI, device: 'cpu' });
  });
}

test('episodes are sent as often as they were asked for, and those of the last step always', { timeout: 240_000 }, async t => {
  const session = await open(await context(browser));
  const { config } = read_link(TINY);
  const run = (steps, every, pauseAfter = 0) =>
    session.page.evaluate(drive, { worker, config: { ...config, iterations: steps }, every, pauseAfter });

  const all = await run(20, null);
  assert.deepEqual([all.sent, all.late], [Array.from({ length: 20 }, (_, step) => step), []], 'of every step where nothing is said');

  // Longer than the run takes: those of the first step, and at the end those of the last.
  const few = await run(200, 1e6);
  assert.deepEqual([few.sent, few.late, few.measured], [[0], [199], 199]);

  // Paused: the last that were credited, which are those whose credit is then measured.
  const paused = await run(100_000, 1e6, 60);
  assert.deepEqual(paused.sent, [0]);
  assert.equal(paused.late.length, 1);
  assert.ok(paused.late[0] >= 59, `${paused.late}`);
  assert.equal(paused.measured, paused.late[0]);

  const sometimes = await run(100_000, 50, 300);
  const { sent, late, seconds, steps } = sometimes;
  t.diagnostic(`${steps} steps in ${seconds.toFixed(2)} s, episodes of ${sent.length} sent`);
  assert.ok(sent.length >= 2 && sent.length <= seconds * 20 + 1, `${sent.length} in ${seconds} s`);
  assert.ok(steps > 2 * sent.length, `${steps} steps, episodes of ${sent.length}`);
  assert.equal(sometimes.measured, late[0] ?? sent.at(-1));
  assertClean(session);
});
