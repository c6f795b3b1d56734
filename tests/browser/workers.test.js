// Several workers on the CPU: the run of one worker to the last bit, its work shared, and none the worse for a worker that ends.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { initSync, read_link } from '../../www/src/wasm/page/turnwise_page.js';
import { assertClean, context, inWorker, iterations, launch, open, until } from './support.js';

initSync({ module: readFileSync(new URL('../../www/src/wasm/page/turnwise_page_bg.wasm', import.meta.url)) });
const asset = readdirSync(new URL('../../www/dist/assets', import.meta.url)).find(name => /^worker.*\.js$/.test(name));
const worker = `./assets/${asset}`;
const of = (link, changes = {}) => ({ ...read_link(link).config, ...changes });

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Makes helpers end when the page says so on the channel `end-helper`: no error, no word, as if the browser had taken them. */
async function mortal(within) {
  const code = `{ const helpers = [], Plain = Worker;
  globalThis.Worker = class extends Plain { constructor(...args) { super(...args); helpers.push(this); } };
  new BroadcastChannel('end-helper').onmessage = () => helpers.pop()?.terminate(); }`;
  await inWorker(within, code);
}

/** Two runs are one but for their times. */
function same(found, wanted, what) {
  const plain = reports => reports.map(({ seconds, rollout_seconds, tokens_per_second, ...report }) => report);
  assert.deepEqual(found.tokens, wanted.tokens, `${what}: tokens`);
  assert.deepEqual(found.logProbs, wanted.logProbs, `${what}: log-probabilities`);
  assert.deepEqual(plain(found.reports), plain(wanted.reports), `${what}: reports`);
  // Not told apart by assert: it would print two megabytes.
  assert.ok(found.checkpoint === wanted.checkpoint, `${what}: weights and moments`);
}

test('any number of workers gives the same run: episodes, curves, weights', { timeout: 600_000 }, async t => {
  const session = await open(await context(browser));
  const links = [
    '#v=1&env=search&seed=5&groups=12&held_out=70&iterations=3',
    '#v=1&env=calculator&seed=1&groups=10&num_generations=8&held_out=0&iterations=2&beta=0.1&inner_epochs=2&loss_mask=0',
  ];
  for (const link of links) {
    const run = workers => session.page.evaluate(drive, { worker, config: of(link), workers });
    const alone = await run(1);
    assert.equal(alone.count, 1);
    assert.ok(alone.checkpoint.length > 100_000 && alone.reports.at(-1).update.gradient_norm > 0);
    for (const workers of [2, 3]) {
      const shared = await run(workers);
      assert.equal(shared.count, workers, 'as many compute as were asked for');
      same(shared, alone, `${workers} workers, ${link}`);
      t.diagnostic(`${link}: ${alone.seconds.toFixed(2)} s alone, ${shared.seconds.toFixed(2)} s with ${workers}`);
    }
  }
  assertClean(session);
});

test('a helper that ends in mid-run is made up for: the same numbers, and the page is told', { timeout: 300_000 }, async () => {
  const within = await context(browser);
  await mortal(within);
  const session = await open(within);
  const config = of('#v=1&env=search&seed=5&groups=12&held_out=70&iterations=4');
  const alone = await session.page.evaluate(drive, { worker, config, workers: 1 });
  const shared = await session.page.evaluate(drive, { worker, config, workers: 2, endAfter: 2 });
  same(shared, alone, 'after the loss');
  assert.deepEqual(shared.told.map(({ count, lost }) => ({ count, lost })), [{ count: 2, lost: false }, { count: 1, lost: true }]);
  assertClean(session);
});

test('the badge says how many workers compute, and so does a message when one is lost', { timeout: 300_000 }, async () => {
  const within = await context(browser);
  await mortal(within);
  const session = await open(within, '#v=1&env=search&seed=2&groups=12&held_out=16&iterations=200');
  const { page } = session;
  await page.getByText('More settings').click();
  const choice = page.getByLabel('Workers on the CPU');
  const cores = await page.evaluate(() => navigator.hardwareConcurrency);
  assert.equal(await choice.inputValue(), String(Math.max(1, Math.min(cores, 8) - 1)), 'one core is left to the page');
  await choice.selectOption('2');
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  const badge = page.locator('.badge');
  await badge.filter({ hasText: 'CPU: WebAssembly SIMD, 2 workers' }).waitFor({ timeout: 120_000 });
  await until(async () => (await iterations(page)) >= 1, 120, 'the first step');
  await page.evaluate(() => new BroadcastChannel('end-helper').postMessage(null));
  await badge.filter({ hasText: '1 worker' }).waitFor({ timeout: 30_000 });
  await page.getByTestId('notice-workers').getByText('training goes on with 1 worker').waitFor();
  const at = await iterations(page);
  await until(async () => (await iterations(page)) >= at + 2, 120, 'two steps more');
  // Pause is as quick as a phase, and the next run has all workers again.
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 30_000 });
  await choice.selectOption('1');
  await choice.selectOption('2');
  await badge.filter({ hasText: '2 workers' }).waitFor({ timeout: 30_000 });
  assert.ok(!(await page.evaluate(() => location.hash)).includes('worker'), 'no link says it');
  assertClean(session);
});

/** Counts the jobs that helpers answer; every report says how many there were in its step. */
async function counted(within) {
  const code = `{ let answers = 0; const Plain = Worker;
  globalThis.Worker = class extends Plain { constructor(...args) { super(...args);
    this.addEventListener('message', ({ data }) => { if (data.type === 'answer') answers += 1; }); } };
  const post = self.postMessage.bind(self);
  self.postMessage = (message, ...rest) => {
    if (message?.report) { message = { ...message, report: { ...message.report, answers } }; answers = 0; }
    post(message, ...rest); }; }`;
  await inWorker(within, code);
}

// How much time it saves is for bench.html and `cargo bench` to say: a test on a shared machine cannot know whether it has two cores.
test('a helper does its part of every step, of playing and of the gradients', { timeout: 300_000 }, async t => {
  const within = await context(browser);
  await counted(within);
  const session = await open(within);
  const config = of('#v=1&env=search&seed=2&iterations=6');
  const seconds = {};
  for (const workers of [1, 2]) {
    const { reports } = await session.page.evaluate(drive, { worker, config, workers });
    const answers = reports.map(report => report.answers);
    // At least one part of the rollout, one of the held-out questions and one of the update.
    assert.ok(workers === 1 ? answers.every(count => count === 0) : answers.every(count => count >= 3), `${workers}: ${answers}`);
    seconds[workers] = reports.slice(2).map(report => report.seconds);
    t.diagnostic(`${workers}: ${answers.join(' ')} answers of helpers; ${seconds[workers].map(value => value.toFixed(3)).join(' ')} s a step`);
  }
  assertClean(session);
});

/** Runs in the page: a worker of its own, configured for the CPU and trained to the end. */
function drive({ worker: url, config, workers, endAfter }) {
  const started = performance.now();
  const worker = new Worker(url, { type: 'module' });
  const seen = { tokens: [], logProbs: [], reports: [], told: [], count: 0, checkpoint: '' };
  return new Promise((resolve, reject) => {
    worker.onerror = event => reject(new Error(event.message));
    worker.onmessage = ({ data }) => {
      if (data.type === 'loaded') {
        worker.postMessage({ type: 'keep', id: `workers-${Math.random()}`, config, checkpoint: null });
        worker.postMessage({ type: 'configure', config, device: 'cpu', resume: false });
      }
      if (data.type === 'workers') {
        seen.count = data.count;
        seen.told.push(data);
      }
      if (data.type === 'ready') worker.postMessage({ type: 'train' });
      if (data.type === 'phase' && data.batch) {
        seen.tokens.push(data.batch.trajectories.map(trajectory => [...trajectory.tokens]));
        seen.logProbs.push(data.batch.trajectories.map(trajectory => [...trajectory.log_probs]));
      }
      if (data.type === 'phase' && data.report) {
        seen.reports.push(data.report);
        if (seen.reports.length === endAfter) new BroadcastChannel('end-helper').postMessage(null);
      }
      if (data.type === 'broken' || data.type === 'failed') reject(new Error(JSON.stringify(data)));
      if (data.type === 'stopped') worker.postMessage({ type: 'send_checkpoint' });
      if (data.type === 'checkpoint') {
        worker.terminate();
        // All weights and moments, as text that can be compared; what the file says of itself before them is in any order.
        const { bytes } = data.checkpoint;
        const header = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
        const checkpoint = Array.from(bytes.subarray(8 + header), byte => byte.toString(16).padStart(2, '0')).join('');
        resolve({ ...seen, checkpoint, seconds: (performance.now() - started) / 1000 });
      }
    };
    worker.postMessage({ type: 'start', base: document.baseURI, device: 'cpu' });
    worker.postMessage({ type: 'share', workers });
  });
}
