// The page's main job, done as a person does it, on the CPU (without the flag Chromium gives no WebGPU adapter).

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { recordTasks, said, summary } from './tasks.js';
import { address, assertClean, context, episodes, heldOut, iterations, launch, open, until } from './support.js';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test('press Train, reach 90 %, send the link, get the same experiment', { timeout: 400_000 }, async t => {
  const within = await context(browser);
  // The defaults, but longer: a fast machine must not be at the end before Pause is pressed.
  const first = await open(within, '#v=1&env=search&seed=2&iterations=300');
  const { page } = first;
  // Found before the recording: looking for roles and texts takes the page's own time.
  const train = await page.getByRole('button', { name: 'Train', exact: true }).elementHandle();
  const status = await page.getByRole('status').filter({ hasText: 'Recorded run' }).elementHandle();
  const stopRecording = await recordTasks(browser, page);
  const pressed = Date.now();
  await train.click();
  await until(async () => (await iterations(page)) >= 1 && (await status.textContent()) === 'Training', 120, 'the first step');
  t.diagnostic(`press to first step: ${((Date.now() - pressed) / 1000).toFixed(1)} s`);
  await until(async () => (await heldOut(page)) >= 90 && (await iterations(page)) > 0, 240, '90 % held-out success');
  t.diagnostic(`press to 90 %: ${((Date.now() - pressed) / 1000).toFixed(1)} s, ${await iterations(page)} iterations`);
  const tasks = summary(await stopRecording());
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 30_000 });
  t.diagnostic(`main-thread tasks while training: ${said(tasks)}`);
  assert.equal(tasks.cpu.over50, 0, 'tasks that compute for more than 50 ms');
  assert.ok(tasks.cpu.p95 <= 30, `95 % of the tasks compute for at most 30 ms, not ${tasks.cpu.p95}`);

  const badge = page.getByText('CPU', { exact: false }).first();
  assert.match((await badge.textContent()) ?? '', /CPU/);
  assert.ok((await page.getByText('offers no graphics adapter').count()) > 0, 'the badge gives the reason');

  await page.getByRole('button', { name: 'Share link' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(`${address}#v=1&`), link);

  // The other tab opens the link: nothing starts by itself, the settings are the same, and so are the first episodes.
  const second = await open(within, link.slice(address.length));
  assert.equal(await second.page.evaluate(() => location.href), link);
  assert.equal(await second.page.getByTestId('notes').count(), 0, 'a link of our own has no remarks');
  assert.equal(await second.page.getByText('Recorded run', { exact: true }).count() > 0, true, 'opening a link starts nothing');
  await second.page.getByRole('button', { name: 'Step', exact: true }).click();
  await second.page.getByText('Sampled, not scored yet').waitFor({ timeout: 120_000 });
  await page.getByRole('slider', { name: 'Iteration shown below' }).focus();
  await page.keyboard.press('Home');
  await until(async () => ((await page.getByTestId('group').textContent()) ?? '').includes('iteration 0 '), 10, 'iteration 0 on show');
  for (const shown of [page, second.page]) await firstGroup(shown);
  const tokens = rows => rows.map(row => row.trim()).join('\n');
  assert.equal(tokens(await episodes(second.page)), tokens(await episodes(page)));
  assertClean(first);
  assertClean(second);
});

/** Shows group 1. */
async function firstGroup(page) {
  const where = async () => (await page.getByTestId('group').textContent()) ?? '';
  for (let press = 0; press < 64 && !/group 1 of/.test(await where()); press++) {
    await page.getByRole('button', { name: 'Previous group' }).click();
  }
  assert.match(await where(), /group 1 of/);
}

test('a task of the main thread that computes for long is seen', async () => {
  const { page } = await open(await context(browser));
  const stopRecording = await recordTasks(browser, page);
  await page.evaluate(() => {
    const start = performance.now();
    while (performance.now() - start < 400);
  });
  assert.ok(summary(await stopRecording()).cpu.over50 >= 1);
});

test('step through the four phases, then reset', { timeout: 180_000 }, async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const step = page.getByRole('button', { name: 'Step', exact: true });
  for (const [phase, seen] of [['sample', 'Sampled, not scored yet'], ['score', 'Scored, no credit yet'], ['credit', null], ['update', null]]) {
    await step.click();
    await page.locator('[aria-current="step"]', { hasText: phase }).waitFor({ timeout: 120_000 });
    if (seen) await page.getByText(seen).waitFor();
    await step.and(page.locator(':enabled')).waitFor();
  }
  assert.equal(await iterations(page), 1);
  await page.getByRole('button', { name: 'Reset', exact: true }).click();
  await page.getByText('Recorded run', { exact: true }).waitFor();
  assertClean(session);
});

test('turn limit 1 trains, and says what changed', { timeout: 180_000 }, async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=0&turn_limit=1&groups=4&iterations=2&held_out=16');
  const { page } = session;
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
  assert.equal(await iterations(page), 2);
  assertClean(session);
});
