// The page of measurements: both languages, a short measurement whose results agree, and wrong results that make a row void.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { address, assertClean, context, launch, PHONE, until } from './support.js';

const axe = readFileSync(createRequire(new URL('../../www/package.json', import.meta.url)).resolve('axe-core/axe.min.js'), 'utf8');

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Opens the page; `errors` and `requests` collect as in `support.js`. */
async function bench(within, query = '') {
  const page = await within.newPage();
  const [errors, requests] = [[], []];
  page.on('pageerror', error => errors.push(`page error: ${error.message}`));
  page.on('console', message => {
    if (message.type() === 'error') errors.push(`console: ${message.text()}`);
  });
  page.on('request', request => requests.push(request.url()));
  await page.goto(`${address}bench.html${query}`);
  await page.getByTestId('updates').waitFor();
  return { page, errors, requests };
}

/** Presses a table's button, waits until it is done, and gives its lines as cells. */
async function measured(page, id, seconds) {
  const section = page.getByTestId(id);
  const button = section.getByRole('button');
  await button.click();
  await until(async () => await button.isEnabled(), seconds, `${id} measured`);
  const lines = await section.locator('tbody tr').evaluateAll(rows => rows.map(row => Array.from(row.cells, cell => cell.textContent.trim())));
  return lines;
}

async function violations(page) {
  await page.evaluate(axe);
  return page.evaluate(async () => (await window.axe.run()).violations.map(found => `${found.id}: ${found.nodes.map(node => node.target).join(', ')}`));
}

test('the page is there in both languages, names machine and versions, and passes axe', async () => {
  for (const [language, heading] of [['en', 'One policy-gradient update'], ['zh', '一次策略梯度更新']]) {
    for (const theme of ['light', 'dark']) {
      const within = await context(browser);
      const session = await bench(within, `?lang=${language}&theme=${theme}`);
      await session.page.getByRole('heading', { name: heading }).waitFor();
      const machine = await session.page.locator('dl').innerText();
      assert.match(machine, /turnwise \d+\.\d+\.\d+, @jax-js\/jax 0\.1\.25, @tensorflow\/tfjs-core 4\.22\.0/);
      assert.match(machine, /Chrome\/\d+/);
      assert.deepEqual(await violations(session.page), []);
      assertClean(session);
      await within.close();
    }
  }
  const within = await context(browser, { viewport: PHONE });
  const { page } = await bench(within);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing wider than a phone');
  await within.close();
});

test('the first visit of the playground asks for nothing of it', async () => {
  const html = await (await fetch(address)).text();
  assert.ok(!/bench|tfjs/.test(html), 'index.html names no part of it');
});

test('updates of all libraries have the same losses, and the row of one with wrong losses is void', { timeout: 600_000 }, async t => {
  const within = await context(browser);
  const session = await bench(within);
  const lines = await measured(session.page, 'updates', 300);
  lines.forEach(line => t.diagnostic(line.join(' | ')));
  const two = (await session.page.evaluate(() => navigator.hardwareConcurrency)) > 1 ? 1 : 0;
  assert.deepEqual(lines.map(line => line[5]), ['ours', ...Array(2 + two).fill('agrees')]);
  if (two) assert.match(lines[1][0], /^turnwise .*, 2 workers$/);
  lines.slice(1).forEach(line => assert.ok(Number(line[4]) <= 1e-3, `losses apart by ${line[4]}`));
  assert.match(lines[1][3], /^\d/, 'a ratio with quartiles');
  assertClean(session);

  const wrong = `{ const post = self.postMessage.bind(self); self.postMessage = message => {
    if (message.answer?.losses) message.answer.losses = message.answer.losses.map(loss => loss + 0.002);
    post(message);
  }; }`;
  await within.route(/\/assets\/bench-jax.*\.js$/, async route => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `${wrong};\n${await response.text()}` });
  });
  const again = await bench(within);
  const verdicts = (await measured(again.page, 'updates', 300)).map(line => line[5]);
  assert.match(verdicts[1 + two], /^void/);
  assert.equal(verdicts[2 + two], 'agrees');
});

test('64 tokens are decoded alike by all libraries', { timeout: 600_000 }, async t => {
  const session = await bench(await context(browser));
  const lines = await measured(session.page, 'decoding', 300);
  lines.forEach(line => t.diagnostic(line.join(' | ')));
  assert.deepEqual(lines.map(line => line[7]), ['ours', 'agrees', 'agrees', 'ours', 'agrees', 'agrees']);
  assertClean(session);
});

test('the whole training step is measured in the worker of the playground', { timeout: 300_000 }, async t => {
  const session = await bench(await context(browser));
  const lines = await measured(session.page, 'iterations', 200);
  lines.forEach(line => t.diagnostic(line.join(' | ')));
  const two = (await session.page.evaluate(() => navigator.hardwareConcurrency)) > 1;
  assert.deepEqual(lines.map(line => / 2 workers$/.test(line[1])), two ? [false, true] : [false], 'no adapter, no row');
  for (const line of lines) {
    assert.match(line[2], /^\d/, line.join(' | '));
    assert.ok(Number(line[3]) > 2000, 'tokens of 256 episodes');
  }
  if (two) assert.equal(lines[0][3], lines[1][3], 'the same episodes');
  assertClean(session);
});
