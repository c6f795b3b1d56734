// Runs that are begun, changed, dropped and left; a recorded run that is not what it should be.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { assertClean, context, iterations, launch, open, until } from './support.js';

/** Long enough that no machine is at its end before a person has pressed Pause. */
const SMALL = '#v=1&env=search&seed=0&groups=2&num_generations=4&held_out=16&iterations=1000';
const RECORDED = new URL('../../www/public/recorded/search.json', import.meta.url);

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Trains until some steps are done, then pauses. */
async function trainAndPause(page, steps = 2) {
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor({ timeout: 120_000 });
  await until(async () => (await iterations(page)) >= steps, 120, 'steps');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
}

/** Whether leaving the page asks back. */
async function asksOnLeaving(page) {
  let asked = false;
  page.once('dialog', dialog => {
    asked = dialog.type() === 'beforeunload';
    void dialog.dismiss();
  });
  await page.close({ runBeforeUnload: true });
  await until(async () => asked || page.isClosed(), 20, 'the page closes or asks');
  return asked;
}

test('a paused run says what would drop it, and leaving does not ask: it is kept', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), SMALL);
  const { page } = session;
  await trainAndPause(page);
  const changed = page.getByTestId('changed');
  assert.equal(await changed.count(), 0);

  await page.getByText('More settings').click();
  await page.getByLabel('Device', { exact: true }).selectOption('cpu');
  assert.match(await changed.textContent(), /drop this run.*Device CPU \(run: Automatic\)/);
  await page.getByRole('button', { name: 'Train', exact: true }).waitFor();
  await page.getByLabel('Device', { exact: true }).selectOption('auto');
  assert.equal(await changed.count(), 0);
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor();

  // Another environment has other defaults and parameters: only what the person did is named.
  await page.getByLabel('Environment', { exact: true }).selectOption('calculator');
  await page.getByRole('slider', { name: /Discount/ }).focus();
  await page.keyboard.press('Home');
  const what = (await changed.textContent()) ?? '';
  assert.match(what, /Environment Calculator \(run: Search\)/);
  assert.match(what, /Discount γ 0 \(run: /);
  assert.equal(what.match(/\(run: /g)?.length, 2, what);

  assertClean(session);
  assert.equal(await asksOnLeaving(page), false);
});

test('leaving asks while something is trained', { timeout: 240_000 }, async () => {
  const { page } = await open(await context(browser), SMALL);
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor({ timeout: 120_000 });
  assert.equal(await asksOnLeaving(page), true);
});

test('leaving does not ask where nothing was trained', async () => {
  const { page } = await open(await context(browser), SMALL);
  await page.getByRole('button', { name: 'New seed' }).click();
  assert.equal(await asksOnLeaving(page), false);
});

test('a reset ends the worker at once; the next run has a new one', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=0&groups=64&num_generations=64&d_model=128&layers=4&warm_start=none');
  const { page } = session;
  const step = page.getByRole('button', { name: 'Step', exact: true });
  await step.click();
  await page.getByText('Working', { exact: true }).waitFor({ timeout: 120_000 });
  assert.equal(page.workers().length, 1);
  await page.getByRole('button', { name: 'Reset', exact: true }).click();
  await page.getByText('Recorded run', { exact: true }).waitFor();
  await until(async () => page.workers().length === 0, 5, 'the worker is gone');
  await page.evaluate(hash => {
    location.hash = hash;
  }, SMALL);
  await step.click();
  await page.getByText('Sampled, not scored yet').waitFor({ timeout: 120_000 });
  assertClean(session);
});

test('a curve is drawn, and grows with every step', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), SMALL.replace('iterations=1000', 'iterations=40'));
  const { page } = session;
  const step = page.getByRole('button', { name: 'Step', exact: true });
  const train = async iteration => {
    for (const phase of ['sample', 'score', 'credit', 'update']) {
      await step.click();
      await page.locator('[aria-current="step"]', { hasText: phase }).waitFor({ timeout: 120_000 });
      await step.and(page.locator(':enabled')).waitFor();
    }
    assert.equal(await iterations(page), iteration);
    await page.locator('.chart').first().getByText(/held-out \d+%/).waitFor();
  };
  // Pixels as dark as the held-out curve, between the axes.
  const ink = () =>
    page.evaluate(() => {
      const canvas = document.querySelector('.chart canvas');
      const { width, height } = canvas;
      const { data } = canvas.getContext('2d').getImageData(24, 0, width - 124, height - 24);
      let dark = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && data[i] + data[i + 1] + data[i + 2] < 120) dark += 1;
      return dark;
    });
  await train(1);
  let before = await ink();
  assert.ok(before > 0, 'the first point is drawn');
  for (const iteration of [2, 3]) {
    await train(iteration);
    await until(async () => (await ink()) > before, 5, `the curve grows in step ${iteration}`);
    before = await ink();
  }
  assertClean(session);
});

/** Opens the page with a recorded run that `change` was done to. */
async function openWith(change, viewport) {
  const within = await context(browser, viewport ? { viewport } : {});
  await within.route('**/recorded/search.json', route => route.fulfill({ body: change(JSON.parse(readFileSync(RECORDED, 'utf8'))), contentType: 'application/json' }));
  return open(within);
}

const DAMAGE = {
  'no JSON': () => '{"config":',
  'no batches': ({ batches, ...rest }) => JSON.stringify({ ...rest, reports: [...rest.reports] }),
  'a report without its update': file => {
    delete file.reports[3].update;
    return JSON.stringify(file);
  },
  'a turn without facts': file => {
    delete file.batches[0].trajectories[0].turns[0].facts;
    return JSON.stringify(file);
  },
  'a credit row too short': file => {
    file.batches[1].credit.advantages[2].pop();
    return JSON.stringify(file);
  },
};

for (const [name, damage] of Object.entries(DAMAGE)) {
  test(`a recorded run that is unreadable is said to be, and the page works: ${name}`, async () => {
    const session = await openWith(damage);
    const { page } = session;
    await page.getByText('The recorded run is unreadable').waitFor();
    await page.getByRole('slider', { name: /Discount/ }).focus();
    await page.keyboard.press('Home');
    assert.match(await page.evaluate(() => location.hash), /gamma=0(&|$)/);
    assertClean(session);
  });
}

test('a recorded run made before a setting was added is completed', async () => {
  const session = await openWith(file => {
    delete file.config.scale_rewards;
    return JSON.stringify(file);
  });
  const { page } = session;
  await page.getByTestId('group').waitFor();
  await page.getByRole('slider', { name: /Discount/ }).focus();
  await page.keyboard.press('Home');
  await page.getByTestId('again').waitFor();
  assertClean(session);
});

test('what goes wrong in a run is said under its curves, in both languages; a healthy run says nothing', async () => {
  const healthy = await open(await context(browser));
  await healthy.page.getByTestId('weight').waitFor();
  assert.equal(await healthy.page.getByTestId('warning').innerText(), '');
  const session = await openWith(file => {
    for (const report of file.reports.slice(10)) {
      report.update.entropy = 0.01;
      report.train_success = 0.2;
      report.held_out_success = 0.2;
    }
    return JSON.stringify(file);
  });
  const { page } = session;
  const warning = page.getByTestId('warning');
  await warning.getByText(/^Warning at iteration \d+: The return rose/).waitFor();
  await warning.getByText('(and 1 earlier)').click();
  await warning.getByText(/^Warning at iteration \d+: The policy hardly varies/).waitFor();
  await page.getByText('中文', { exact: true }).click();
  await warning.getByText(/次迭代的警告：回报从/).waitFor();
  assertClean(session);
});

/** Every episode of the first batch gets five turns like its first one. */
function fiveTurns(file) {
  // What was measured belongs to the turns that were there.
  file.measured = [];
  const batch = file.batches[0];
  batch.trajectories.forEach((trajectory, index) => {
    const { start, action_end, end, facts } = trajectory.turns[0];
    const part = name => Array.from({ length: 5 }, () => trajectory[name].slice(start, end)).flat();
    for (const name of ['tokens', 'loss_mask', 'log_probs']) trajectory[name] = [...trajectory[name].slice(0, start), ...part(name)];
    trajectory.turns = Array.from({ length: 5 }, (_, turn) => ({
      start: start + turn * (end - start), action_end: action_end + turn * (end - start), end: end + turn * (end - start), facts,
    }));
    for (const map of Object.values(batch.credit)) if (Array.isArray(map?.[index])) map[index] = Array(5).fill(map[index][0]);
    batch.rewards.turns[index] = Array(5).fill([]);
  });
  return JSON.stringify(file);
}

test('five turns fit the panel at 1280 pixels, and shorter ones get their size back', async () => {
  const session = await openWith(fiveTurns);
  const { page } = session;
  const head = page.getByRole('slider', { name: 'Iteration shown below' });
  await head.focus();
  await page.keyboard.press('Home');
  await page.getByRole('group', { name: 'Tokens of the group' }).getByText('turn 5', { exact: true }).waitFor();
  const overflow = () => page.locator('.scroll').evaluate(element => element.scrollWidth - element.clientWidth);
  const small = async () => (await page.locator('.episode.small:visible').count()) > 0;
  await until(small, 5, 'small tokens');
  assert.ok((await overflow()) <= 0, `wider by ${await overflow()} px`);
  const tokens = await page.locator('.episode:visible .turn').evaluateAll(turns => turns.filter(turn => turn.scrollWidth > turn.clientWidth + 1).length);
  assert.equal(tokens, 0, 'no turn is wider than its column');
  await head.focus();
  await page.keyboard.press('End');
  await until(async () => !(await small()), 5, 'tokens of the usual size');
  assertClean(session);
});

test('nothing scrolls sideways on a window of 320 pixels', async () => {
  for (const locale of ['en-US', 'zh-CN']) {
    const session = await open(await context(browser, { viewport: { width: 320, height: 640 }, locale }));
    const { page } = session;
    await page.getByTestId('read-out').waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${locale}: scrolls sideways by ${wide} px`);
    assertClean(session);
  }
});
