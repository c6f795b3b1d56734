// page.md case 11: what a person can press while the policy lives on WebGPU, on Chromium's software adapter. Reading from
// the device is asynchronous there, and a read that is not makes a panic: none of them may cause one.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { choose, download, menu, saved } from './files.js';
import { assertClean, context, iterations, launch, open, until } from './support.js';

const TINY =
  '#v=1&env=search&seed=4&groups=2&num_generations=3&turn_limit=2&d_model=32&layers=1&heads=2&held_out=2&iterations=100&warm_start=none&legal_token_mask=1&reward=mixed&micro_batches=1';
const SLOW = { timeout: 300_000 };

let browser;
before(async () => {
  browser = await launch({ webgpu: true });
});
after(() => browser.close());

const button = (page, name) => page.getByRole('button', { name, exact: true });

/** Waits until nothing runs: Step can be pressed again. */
const rests = page => button(page, 'Step').and(page.locator(':enabled')).waitFor(SLOW);

async function onGpu(fragment) {
  const session = await open(await context(browser), fragment);
  await session.page.getByText('More settings').click();
  await session.page.getByLabel('Device', { exact: true }).selectOption('gpu');
  return session;
}

/** The phases of one step, one by one. */
async function oneStep(page) {
  for (const phase of ['sample', 'score', 'credit', 'update']) {
    await button(page, 'Step').click();
    await page.locator('[aria-current="step"]', { hasText: phase }).waitFor(SLOW);
    await rests(page);
  }
}

test('train, pause, go on, measure, play on, save, open, go back, pin, reset: no panic', { timeout: 900_000 }, async () => {
  const session = await onGpu(TINY);
  const { page } = session;
  await oneStep(page);
  assert.match(await page.getByRole('banner').innerText(), /WebGPU/, 'the policy is on WebGPU');
  const engines = session.requests.map(url => /turnwise_(cpu|gpu)/.exec(url)?.[1]).filter(Boolean);
  assert.deepEqual([...new Set(engines)], ['gpu'], 'no other engine is fetched');

  // Credit is measured by re-rolling, and a turn is changed and played on from.
  const right = page.getByTestId('right');
  await right.getByRole('button', { name: /^Measure/ }).click();
  await right.getByTestId('accuracy').waitFor(SLOW);
  // Pressed where it is still there.
  await right.getByRole('button', { name: 'Stop' }).evaluateAll(found => found.forEach(stop => stop.click()));
  await rests(page);
  const other = page.getByTestId('counterfactual');
  await other.getByLabel(/re-rolls|Re-rolls/).selectOption('16');
  await other.getByRole('button', { name: 'Play on' }).click();
  await page.getByTestId('counterfactual-result').waitFor(SLOW);
  await rests(page);

  // Everything that can be saved.
  let checkpoint = null;
  for (const entry of [
    'Curves (CSV)',
    'Episodes on show (JSON lines)',
    'All kept episodes (JSON lines)',
    'This run (JSON)',
    'Settings (JSON)',
  ]) {
    assert.ok((await saved(page, entry)).text.length > 0, entry);
  }
  for (const entry of ['Policy for Hugging Face (zip)', 'Checkpoint (safetensors)']) {
    const panel = await menu(page);
    checkpoint = await download(page, () => panel.getByRole('button', { name: entry, exact: true }).click());
    assert.ok(checkpoint.bytes.length > 10_000, entry);
    await panel.getByText(`Saved: ${checkpoint.name}`).waitFor();
    await page.keyboard.press('Escape');
  }

  // Training goes on, rests, goes on to its end.
  await button(page, 'Go on').click();
  await button(page, 'Pause').click();
  await rests(page);
  const after = await iterations(page);
  assert.ok(after >= 1);
  if (after < 100) {
    await button(page, 'Go on').click();
    await until(async () => (await iterations(page)) === 100, 300, 'the last step');
    await rests(page);
  }

  // Back to an earlier step, and on from there.
  await page.getByTestId('checkpoints').getByRole('button').first().click();
  await rests(page);
  await oneStep(page);

  // What looks at the run only: groups, table, colours, figures, comparison, sharing.
  for (const name of ['Next group', 'Previous group', 'Table', 'Rows', 'Share link']) await button(page, name).click();
  await page.getByRole('button', { name: /^Pin/ }).first().click();
  for (const select of ['Colour']) await page.getByLabel(select).selectOption({ index: 2 });

  // The checkpoint is opened again: weights and moments go to the device.
  await button(page, 'Reset').click();
  await choose(page, { name: checkpoint.name, mimeType: 'application/octet-stream', buffer: checkpoint.bytes });
  await page.getByTestId('notice-file').getByText('Train goes on from it').waitFor();
  await oneStep(page);
  assert.match(await page.getByRole('banner').innerText(), /WebGPU/);
  await button(page, 'New seed').click();
  await button(page, 'Reset').click();
  assertClean(session);
});

test('the shipped weights are loaded onto WebGPU, and a live warm start is trained there', { timeout: 900_000 }, async () => {
  for (const fragment of [
    '#v=1&env=search&seed=4&groups=1&num_generations=2&turn_limit=1&held_out=0&warm_start=shipped&micro_batches=1',
    `${TINY.replace('warm_start=none', 'warm_start=live')}&im_steps=2&im_batch=4`,
  ]) {
    const session = await onGpu(fragment);
    const { page } = session;
    await button(page, 'Step').click();
    await page.locator('[aria-current="step"]', { hasText: 'sample' }).waitFor(SLOW);
    await rests(page);
    assert.match(await page.getByRole('banner').innerText(), /WebGPU/);
    assertClean(session);
    await page.close();
  }
});

// A critic has no kernels of its own: this is the reference path, from automatic differentiation to Adam, on the device.
test('a run with a critic trains on WebGPU', { timeout: 900_000 }, async () => {
  const session = await onGpu(`${TINY.replace('iterations=100', 'iterations=2')}&credit=gae`);
  const { page } = session;
  await button(page, 'Train').click();
  await page.getByText('Finished', { exact: true }).waitFor(SLOW);
  assert.match(await page.getByRole('banner').innerText(), /WebGPU/);
  assert.equal(await iterations(page), 2);
  assertClean(session);
});

// An engine keeps its device, which cannot be opened twice: coming back to it must not end on the CPU.
test('a person goes back and forth between the CPU and WebGPU in one page', { timeout: 900_000 }, async () => {
  const session = await onGpu(TINY.replace('iterations=100', 'iterations=1'));
  const { page } = session;
  for (const [device, said] of [['gpu', /WebGPU/], ['cpu', /CPU/], ['gpu', /WebGPU/], ['cpu', /CPU/]]) {
    await page.getByLabel('Device', { exact: true }).selectOption(device);
    await button(page, 'Train').click();
    await page.getByText('Finished', { exact: true }).waitFor(SLOW);
    assert.match(await page.getByRole('banner').innerText(), said);
    assert.equal(await page.getByTestId('notice-device').count(), 0);
    await button(page, 'Reset').click();
  }
  assertClean(session);
});
