// What went wrong on other people's pages must not go wrong here. Numbers in titles are those of the cases in the page's design.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { address, assertClean, context, engineMemory, inWorker, iterations, launch, open, until } from './support.js';

const SMALL = '#v=1&env=search&seed=0&groups=2&num_generations=4&held_out=16';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const press = (page, name) => page.getByRole('button', { name, exact: true }).click();

/** Has every report that comes out of the worker changed by `change`, a function's source, before the page sees it. */
const changeReports = (within, change) =>
  within.addInitScript(source => {
    const change = new Function('report', source);
    const handler = Object.getOwnPropertyDescriptor(Worker.prototype, 'onmessage');
    Object.defineProperty(Worker.prototype, 'onmessage', {
      ...handler,
      set(receive) {
        handler.set.call(this, event => {
          for (const message of event.data?.messages ?? [event.data]) if (message?.report) change(message.report);
          receive.call(this, event);
        });
      },
    });
  }, change);

test('case 3: the highest learning rate without any clipping never goes on with numbers that are none', { timeout: 300_000 }, async t => {
  // Beyond what the form allows: every value is brought to its upper bound, and said to be.
  const session = await open(await context(browser), `${SMALL}&iterations=60&learning_rate=1e9&max_grad_norm=1e9&epsilon=1e9&epsilon_high=1e9&inner_epochs=1e9`);
  const { page } = session;
  await page.getByTestId('notes').getByText(/[5-9] remarks/).waitFor();
  await press(page, 'Train');
  const stopped = page.getByTestId('notice-stopped');
  await until(async () => (await page.getByText('Finished', { exact: true }).count()) > 0 || (await stopped.count()) > 0, 240, 'the end of the run');
  if ((await stopped.count()) > 0) {
    assert.match(await stopped.textContent(), /Training stopped in iteration \d+: .* is not a finite number/);
    await page.getByText('Stopped: not a number', { exact: true }).waitFor();
  } else assert.equal(await iterations(page), 60);
  t.diagnostic(`after ${await iterations(page)} steps: ${(await stopped.count()) > 0 ? 'stopped' : 'finite to the end'}`);
  const labels = await page.locator('.chart .end').allTextContents();
  assert.ok(labels.length > 0 && labels.every(label => !label.includes('NaN')), labels.join(', '));
  await press(page, 'Share link');
  await press(page, 'Copied');
  assert.ok((await page.evaluate(() => navigator.clipboard.readText())).startsWith(`${address}#v=1`));
  await press(page, 'Reset');
  await page.getByText('Recorded run', { exact: true }).waitFor();
  assertClean(session);
});

test('case 4: a measure that is no number is marked in curve and table, and spoils no axis', { timeout: 180_000 }, async () => {
  const within = await context(browser);
  await changeReports(within, 'if (report.iteration === 1) { report.train_success = NaN; report.update.entropy = NaN; report.mean_return = Infinity; }');
  const session = await open(within, `${SMALL}&iterations=4`);
  const { page } = session;
  await press(page, 'Train');
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
  // A cross is a path of two strokes on the base line of a small curve.
  await until(async () => (await page.locator('.line path[d*="11l4 5m0 -5l-4 5"]').count()) === 2, 10, 'two crosses');
  // The curves beside the gap are still drawn between their axes.
  const dark = () => page.locator('.chart canvas').first().evaluate(canvas => {
    const { data } = canvas.getContext('2d').getImageData(40, 4, canvas.width - 140, canvas.height - 28);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && data[i] + data[i + 1] + data[i + 2] < 120) count += 1;
    return count;
  });
  // Curves are drawn in a frame of their own.
  await until(async () => (await dark()) > 20, 10, 'more than 20 dark pixels');
  const labels = () => page.locator('.chart .end').allTextContents();
  await until(async () => (await labels()).some(label => /train \d+%/.test(label)), 10, 'the label of the curve beside the gap');
  // In the file it stands as what it is.
  await page.getByRole('button', { name: 'Save / open' }).click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Curves (CSV)' }).click()]);
  const { readFileSync } = await import('node:fs');
  const rows = readFileSync(await file.path(), 'utf8').split('\n').filter(line => line && !line.startsWith('#')).map(line => line.split(','));
  const column = name => rows.slice(1).map(row => row[rows[0].indexOf(name)]);
  assert.equal(column('train_success')[1], 'NaN');
  assert.equal(column('mean_return')[1], 'Infinity');
  assert.ok(column('held_out_success').every(value => Number.isFinite(Number(value)) && value !== ''));
  assertClean(session);
});

test('case 7: a browser without WebGPU trains on the CPU and says why', { timeout: 180_000 }, async () => {
  const within = await context(browser);
  const none = "Object.defineProperty(navigator, 'gpu', { value: undefined })";
  await within.addInitScript(none);
  await inWorker(within, none);
  const session = await open(within, `${SMALL}&iterations=2`);
  const { page } = session;
  await press(page, 'Train');
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
  await page.getByText('This browser has no WebGPU, so training runs on the CPU.').first().waitFor({ state: 'attached' });
  assertClean(session);
});

test('case 10: an adapter that refuses its device: the run falls back to the CPU, with one notice', { timeout: 240_000 }, async t => {
  const own = await launch({ webgpu: true });
  t.after(() => own.close());
  const within = await context(own);
  await inWorker(within, "GPUAdapter.prototype.requestDevice = () => Promise.reject(new DOMException('limits not supported', 'OperationError'))");
  const session = await open(within, `${SMALL}&iterations=2`);
  const { page } = session;
  await page.getByText('More settings').click();
  await page.getByLabel('Device', { exact: true }).selectOption('gpu');
  await press(page, 'Train');
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 200_000 });
  assert.equal(await page.getByTestId('notice-device').count(), 1);
  assert.match(await page.getByTestId('notice-device').textContent(), /refused to open, so training runs on the CPU/);
  assert.equal(await iterations(page), 2);
  assertClean(session);
});

test('an adapter that never comes: after ten seconds the run goes on on the CPU, and the badge says why', { timeout: 120_000 }, async t => {
  const own = await launch({ webgpu: true });
  t.after(() => own.close());
  const within = await context(own);
  await inWorker(within, 'GPU.prototype.requestAdapter = () => new Promise(() => {})');
  const session = await open(within, `${SMALL}&iterations=2`);
  const { page } = session;
  await press(page, 'Train');
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 60_000 });
  await page.getByText(/no adapter within 10 s/).first().waitFor({ state: 'attached' });
  assert.equal(await iterations(page), 2);
  assertClean(session);
});

test('case 12: memory stays flat over steps, resets and changes of environment', { timeout: 570_000 }, async t => {
  const within = await context(browser);
  const engines = await engineMemory(within);
  const session = await open(within, `${SMALL}&iterations=1000`);
  const { page } = session;
  const cdp = await within.newCDPSession(page);
  const heap = async () => {
    await cdp.send('HeapProfiler.collectGarbage');
    return (await cdp.send('Runtime.getHeapUsage')).usedSize;
  };
  const environment = page.getByLabel('Environment', { exact: true });
  const round = async (name, steps) => {
    await environment.selectOption(name);
    await press(page, 'Train');
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor({ timeout: 120_000 });
    await until(async () => (await page.getByText('Training', { exact: true }).count()) > 0 && (await iterations(page)) >= steps, 200, `${steps} steps of ${name}`);
    await press(page, 'Pause');
    await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
    const bytes = await engines(page);
    await press(page, 'Reset');
    await page.getByText('Recorded run', { exact: true }).waitFor();
    return bytes;
  };
  // Warm-up: every environment that comes later, once.
  for (const name of ['calculator', 'search']) await round(name, 12);
  const [heapBefore, engineBefore] = [await heap(), await round('search', 12)];
  for (const name of ['calculator', 'search', 'calculator']) await round(name, 12);
  const [engineAfter, heapAfter] = [await round('search', 12), await heap()];
  const megabytes = (...all) => all.map(bytes => (bytes / 1e6).toFixed(1)).join(' and ');
  t.diagnostic(`heap ${megabytes(heapBefore)} to ${megabytes(heapAfter)} MB, engines ${megabytes(...engineBefore)} to ${megabytes(...engineAfter)} MB`);
  assert.ok(heapAfter <= heapBefore * 1.1 + 1e6, `heap: ${heapBefore} to ${heapAfter}`);
  assert.ok(engineBefore.length > 0 && engineAfter.length === engineBefore.length, `engines: ${engineBefore} to ${engineAfter}`);
  engineBefore.forEach((before, index) => assert.ok(engineAfter[index] <= before * 1.1, `engines: ${engineBefore} to ${engineAfter}`));
  assertClean(session);
});

test('case 14: in a hidden tab training goes on, and the curve is whole when it is looked at again', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  // What a hidden tab is to a page: it says so, and no frame is drawn.
  await within.addInitScript(() => {
    let hidden = false;
    const frame = window.requestAnimationFrame.bind(window);
    const held = [];
    window.requestAnimationFrame = callback => (hidden ? held.push(callback) : frame(callback));
    Object.defineProperty(Document.prototype, 'hidden', { get: () => hidden });
    Object.defineProperty(Document.prototype, 'visibilityState', { get: () => (hidden ? 'hidden' : 'visible') });
    window.hide = value => {
      hidden = value;
      document.dispatchEvent(new Event('visibilitychange'));
      if (!hidden) for (const callback of held.splice(0)) frame(callback);
    };
  });
  const session = await open(within, `${SMALL}&iterations=1000`);
  const { page } = session;
  await press(page, 'Train');
  await until(async () => (await page.getByText('Training', { exact: true }).count()) > 0 && (await iterations(page)) >= 2, 120, 'two steps');
  await page.evaluate(() => window.hide(true));
  const before = await iterations(page);
  await until(async () => (await iterations(page)) >= before + 5, 60, 'five more steps while hidden');
  await page.evaluate(() => window.hide(false));
  await press(page, 'Pause');
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Save / open' }).click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Curves (CSV)' }).click()]);
  const { readFileSync } = await import('node:fs');
  const steps = readFileSync(await file.path(), 'utf8').split('\n').filter(line => /^\d/.test(line)).map(line => Number(line.split(',')[0]));
  assert.deepEqual(steps, steps.map((_, i) => i), 'no step is missing');
  assert.equal(steps.length, await iterations(page));
  assertClean(session);
});

test('case 20: training leaves the link as it is', { timeout: 180_000 }, async () => {
  const session = await open(await context(browser), `${SMALL}&iterations=20`);
  const { page } = session;
  const before = await page.evaluate(() => location.href);
  await press(page, 'Train');
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 150_000 });
  assert.equal(await page.evaluate(() => location.href), before);
  await press(page, 'Share link');
  const link = await page.evaluate(() => navigator.clipboard.readText());
  // Canonical, with a check code, and nothing of the results.
  assert.ok(link.length <= before.length + 12, `${link.length} characters: ${link}`);
  assertClean(session);
});

test('case 30: Tab reaches every control, and each has a name; gamma moves by arrows, Home, End and pages', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await page.getByTestId('weight').waitFor();
  await page.getByTestId('accuracy').waitFor();
  // Radio buttons and the tokens of a group are one stop each, moved through by arrows.
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll('button, select, input, a[href], summary, [tabindex="0"]')];
    const stops = all.filter(element => element.checkVisibility({ visibilityProperty: true }) && !element.disabled && element.tabIndex >= 0 && element.type !== 'radio');
    stops.forEach((element, i) => {
      element.dataset.stop = String(i);
    });
    return stops.map(element => element.outerHTML.slice(0, 120));
  });
  assert.ok(wanted.length > 20);
  const reached = new Set();
  for (let presses = 0; presses < wanted.length * 2 + 20 && reached.size < wanted.length; presses++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => document.activeElement?.dataset?.stop ?? null);
    if (at !== null) reached.add(Number(at));
  }
  assert.deepEqual(wanted.filter((_, i) => !reached.has(i)), []);
  const gamma = page.getByRole('slider', { name: /Discount/ });
  const value = async key => {
    await gamma.focus();
    await page.keyboard.press(key);
    const text = await gamma.getAttribute('aria-valuetext');
    assert.ok(text, `${key}: aria-valuetext`);
    return Number((await page.getByTestId('gamma-value').textContent()).replace(/^\./, '0.'));
  };
  assert.equal(await value('Home'), 0);
  const one = await value('ArrowRight');
  const page1 = await value('PageUp');
  assert.ok(0 < one && one < page1, `${one}, ${page1}`);
  assert.ok((await value('PageDown')) < page1);
  assert.equal(await value('End'), 1);
  assert.ok((await value('ArrowLeft')) < 1);
  assertClean(session);
});

test('the keyboard stays on Step and on Train while a phase is done', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser), `${SMALL}&iterations=1000`);
  const { page } = session;
  const step = page.getByRole('button', { name: 'Step', exact: true });
  await step.focus();
  for (const phase of ['sample', 'score', 'credit', 'update']) {
    await page.keyboard.press('Enter');
    await page.locator('[aria-current="step"]', { hasText: phase }).waitFor({ timeout: 60_000 });
    await step.and(page.locator(':enabled')).waitFor();
    await until(async () => (await page.evaluate(() => document.activeElement?.textContent?.trim())) === 'Step', 5, `the focus after ${phase}`);
  }
  await page.getByRole('button', { name: 'Go on', exact: true }).focus();
  await page.keyboard.press('Enter');
  await until(async () => (await page.evaluate(() => document.activeElement?.textContent?.trim())) === 'Pause', 20, 'the focus on Pause');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
  assertClean(session);
});

test('case 32: at 1.6 Mbit/s text is there within 2 s, and the download says how far it is', { timeout: 240_000 }, async t => {
  const within = await context(browser);
  const page = await within.newPage();
  const cdp = await within.newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.emulateNetworkConditions', { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 });
  const begun = Date.now();
  await page.goto(address, { waitUntil: 'commit' });
  await page.getByText('Turnwise').first().waitFor();
  const text = Date.now() - begun;
  t.diagnostic(`first text after ${text} ms`);
  assert.ok(text < 2000, `${text} ms`);
  await page.getByRole('button', { name: 'Train', exact: true }).and(page.locator(':enabled')).waitFor({ timeout: 60_000 });
  t.diagnostic(`ready after ${Date.now() - begun} ms`);
  await press(page, 'Train');
  // Of so many, and more of them as time goes on.
  const bytes = async () => Number((await page.getByText(/^Downloading: [\d.]+ of [\d.]+ MB$/).textContent({ timeout: 60_000 })).match(/[\d.]+/)[0]);
  const first = await bytes();
  await until(async () => (await bytes()) > first, 60, 'more bytes');
});

test('where storage is blocked the page works, trains and says nothing false', { timeout: 180_000 }, async () => {
  const within = await context(browser);
  await within.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB']) {
      Object.defineProperty(window, name, {
        get() {
          throw new DOMException('The operation is insecure.', 'SecurityError');
        },
      });
    }
  });
  const session = await open(within, `${SMALL}&iterations=2`);
  const { page } = session;
  await page.getByRole('button', { name: 'Dark', exact: true }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await press(page, 'Train');
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
  assert.equal(await iterations(page), 2);
  assertClean(session);
});
