// Links as they come from outside: hostile, damaged, one after another in the same tab; and as they go out. Numbers of cases are
// those of public bug reports of web playgrounds.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { address, assertClean, context, iterations, launch, open, until } from './support.js';

const CORPUS = readFileSync(new URL('../links/links.jsonl', import.meta.url), 'utf8').trim().split('\n').map(line => JSON.parse(line));
const TINY = '#v=1&env=search&seed=4&groups=2&gen=4&d=32&warm=none&held=16';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const press = (page, name) => page.getByRole('button', { name, exact: true }).click();
const hash = page => page.evaluate(() => location.hash);
const gamma = async page => Number(await page.getByTestId('gamma-value').textContent());

/** Another link in the same tab; settles when it is read. */
async function go(page, fragment) {
  await page.evaluate(text => {
    const before = location.href;
    location.hash = text;
    if (location.href === before) return undefined;
    return new Promise(resolve => addEventListener('hashchange', () => setTimeout(resolve), { once: true }));
  }, fragment);
}

/** All remarks on the link, in one text. */
async function notes(page) {
  const found = page.getByTestId('notes');
  return (await found.count()) ? ((await found.textContent()) ?? '') : '';
}

/** The page can be used and nothing was started. */
async function assertUsable(page, what) {
  assert.ok(await page.getByRole('button', { name: 'Train', exact: true }).isEnabled(), what);
  assert.equal(page.workers().length, 0, `${what}: nothing was started`);
}

test('case 1: numbers far out of bounds, or none, are clamped and named; the page loads soon and stays small', { timeout: 240_000 }, async () => {
  const heap = page => page.evaluate(() => performance.memory.usedJSHeapSize);
  let started = Date.now();
  const plain = await open(await context(browser), '#v=1&env=search&seed=1');
  const usual = Date.now() - started;
  await plain.page.getByTestId('weight').waitFor();
  const base = await heap(plain.page);
  await plain.page.close();
  const keys = ['iters', 'held', 'groups', 'gen', 'turns', 'd', 'layers', 'ctx', 'epochs', 'micro', 'demos', 'im_steps'];
  started = Date.now();
  const session = await open(await context(browser), `#v=1&env=search&seed=1&${keys.map(key => `${key}=1e309`).join('&')}`);
  const took = Date.now() - started;
  assert.ok(took < usual + 3000, `${took} ms to load, usually ${usual}`);
  const { page } = session;
  await page.getByTestId('weight').waitFor();
  assert.ok((await heap(page)) < 2 * base, `heap ${await heap(page)}, usually ${base}`);
  await page.getByText('More settings').click();
  for (const value of ['1000000', '-1', '0', '1e309', 'NaN', '', '-0', '0x10', 'constructor']) {
    await go(page, `v=1&env=search&seed=1&groups=${value}&lr=${value}&b.groups=${value}`);
    const text = await notes(page);
    for (const name of ['groups', 'learning_rate', 'b.groups']) assert.ok(text.includes(name), `${name}=${value}: ${text}`);
    const groups = Number(await page.locator('#groups').inputValue());
    assert.ok(groups >= 1 && groups <= 64, `${value}: ${groups} groups`);
    await assertUsable(page, value);
  }
  for (const key of ['__proto__', 'constructor', 'b.__proto__', 'b.b.gamma', 'toString']) {
    await go(page, `v=1&env=search&seed=1&${key}=1`);
    assert.ok((await notes(page)).includes(key), key);
    await assertUsable(page, key);
  }
  assertClean(session);
});

test('a link may ask for 100,000 steps; for more it gets as many, and the remark names them', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=1&iters=100000');
  const { page } = session;
  await page.getByText('More settings').click();
  assert.equal(await page.locator('#iterations').inputValue(), '100000');
  assert.doesNotMatch(await notes(page), /iterations/);
  await go(page, 'v=1&env=search&seed=1&iters=100001');
  assert.match(await notes(page), /iterations: 100001 is not a whole number from 1 to 100000; 100000 is used instead/);
  assert.equal(await page.locator('#iterations').inputValue(), '100000');
  await assertUsable(page, 'beyond the bound');
  assertClean(session);
});

test('case 17: a second link in the same tab stops what runs and starts nothing; back and forward follow', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), `${TINY}&iters=2000&seeds=2`);
  const { page } = session;
  await press(page, 'Train');
  await until(async () => (await iterations(page)) >= 1, 120, 'the first step');
  await page.evaluate(() => {
    location.hash = 'v=1&env=search&seed=77&gamma=0.5';
  });
  await until(async () => (await gamma(page)) === 0.5, 10, 'the second link');
  await page.getByText('Paused', { exact: true }).waitFor({ timeout: 60_000 });
  const done = await iterations(page);
  await page.waitForTimeout(1500);
  assert.equal(await iterations(page), done, 'nothing goes on');
  assert.match(await page.getByTestId('changed').innerText(), /drop this run/);
  await page.goBack();
  await until(async () => (await gamma(page)) === 0.95, 10, 'back');
  assert.equal(await hash(page), `${TINY}&iters=2000&seeds=2`);
  assert.equal(await page.getByRole('combobox', { name: 'Seeds' }).inputValue(), '2');
  await page.goForward();
  await until(async () => (await gamma(page)) === 0.5, 10, 'forward');
  assert.equal(await page.getByRole('combobox', { name: 'Seeds' }).inputValue(), '1');
  await page.waitForTimeout(500);
  assert.equal(await iterations(page), done);
  assertClean(session);
});

test('cases 19 and 20: the address stays as it was opened until a setting changes, and no result gets into the link', { timeout: 240_000 }, async () => {
  const link = `${TINY}&iters=400&gamma=0.50&b.gamma=1`;
  const session = await open(await context(browser), link);
  const { page } = session;
  await press(page, 'Share link');
  const before = await page.getByRole('textbox', { name: 'Link to this experiment' }).inputValue();
  await page.keyboard.press('Escape');
  await page.getByText('More settings').click();
  await page.getByRole('slider', { name: /Discount/ }).focus();
  await page.setViewportSize({ width: 700, height: 600 });
  await page.mouse.wheel(0, 800);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByText('中文', { exact: true }).click();
  await page.getByText('English', { exact: true }).click();
  await press(page, 'Dark');
  await press(page, 'Train');
  await until(async () => (await iterations(page)) >= 20, 120, '20 steps');
  await press(page, 'Pause');
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
  await press(page, 'Pin this run');
  await press(page, 'Reset');
  assert.equal(await hash(page), link);
  await press(page, 'Share link');
  assert.equal(await page.getByRole('textbox', { name: 'Link to this experiment' }).inputValue(), before);
  await page.keyboard.press('Escape');
  await page.getByRole('slider', { name: /Discount/ }).focus();
  await page.keyboard.press('Home');
  assert.match(await hash(page), /&gamma=0&.*&b\.gamma=1&c=[0-9a-f]{8}$/, 'a change writes the link anew, the second configuration included');
  assertClean(session);
});

test('case 22: cut at every length or changed anywhere, a link gives a usable page and a remark', { timeout: 300_000 }, async () => {
  const { link } = CORPUS.find(entry => entry.name === 'comparison with expectation');
  const session = await open(await context(browser), `#${link}`);
  const { page } = session;
  assert.equal(await notes(page), '', 'whole, it has none');
  // Every place is tried in Rust; here those that a page could stumble over: with the browser's own decoding in between.
  const damaged = [];
  for (let end = 1; end < link.length; end += 5) damaged.push(link.slice(0, end));
  for (let at = 2; at < link.length; at += 9) for (const sign of ['%', '漢', '#']) damaged.push(link.slice(0, at) + sign + link.slice(at + 1));
  for (const fragment of damaged.filter(text => text !== link)) {
    await go(page, fragment);
    assert.notEqual(await notes(page), '', fragment);
    await assertUsable(page, fragment);
  }
  assertClean(session);
});

test('case 23: titles in every script come back as they were', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser));
  const { page } = session;
  for (const { name, link, config } of CORPUS.filter(entry => entry.name.startsWith('title'))) {
    await go(page, link);
    const shown = page.locator('.message', { hasText: 'Experiment:' }).locator('.words');
    assert.equal(await shown.textContent(), config.title, name);
    assert.equal(await notes(page), '', name);
    await press(page, 'Share link');
    assert.equal(await page.getByRole('textbox', { name: 'Link to this experiment' }).inputValue(), `${address}#${link}`, name);
    await page.keyboard.press('Escape');
  }
  assertClean(session);
});

test('case 24: the state is in the fragment alone, and the longest link is short enough', async () => {
  const { link } = CORPUS.find(entry => entry.name === 'the longest');
  const session = await open(await context(browser), `#${link}`);
  const { page, requests } = session;
  assert.equal(await notes(page), '');
  await press(page, 'Share link');
  const shared = await page.getByRole('textbox', { name: 'Link to this experiment' }).inputValue();
  assert.ok(shared.length - address.length <= 1501, `${shared.length} characters`);
  const asked = requests.map(url => url.split('#')[0]).filter(url => /[?&=]|env|seed/.test(url.slice(address.length)));
  assert.deepEqual(asked, []);
  assertClean(session);
});

test('case 26: where there is no clipboard, or it refuses late, nothing is said to be copied', async () => {
  const session = await open(await context(browser, { clipboard: false }), '#v=1&env=search&seed=3');
  const { page } = session;
  for (const there of [false, true]) {
    await page.evaluate(late => {
      const writeText = () => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 300));
      Object.defineProperty(navigator, 'clipboard', { value: late ? { writeText } : undefined, configurable: true });
    }, there);
    await press(page, 'Share link');
    await page.getByText('Copy the link by hand').waitFor();
    assert.equal(await page.getByText('Copied', { exact: true }).count(), 0);
    const field = page.getByRole('textbox', { name: 'Link to this experiment' });
    const selected = () => field.evaluate(input => input === document.activeElement && input.selectionEnd - input.selectionStart === input.value.length);
    await until(selected, 5, 'the link is selected');
    await page.keyboard.press('Escape');
  }
  assertClean(session);
});

test('case 28: no text of a link is run, wherever it stands, and nothing starts before a click', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const hostile = ['<img src=x onerror="window.hacked=1">', 'javascript:window.hacked=1', '"><script>window.hacked=1</script>', '${window.hacked=1}', '{{constructor.constructor("window.hacked=1")()}}'];
  for (const text of hostile.map(encodeURIComponent)) {
    for (const key of ['title', 'env', 'gamma', 'reward', 'recipe', 'seeds', 'repro', 'b.env', 'b.credit', 'v', 'c', text]) {
      await go(page, `v=1&env=search&${key}=${text}`);
      await assertUsable(page, `${key}=${text}`);
    }
  }
  await page.waitForTimeout(500);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('img, iframe, [onerror]').count(), 0);
  assertClean(session);
});

test('a discount that a person chose stays on the way through tasks, one where it is the usual one among them', async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=4');
  const { page } = session;
  const usual = await gamma(page);
  const task = page.getByLabel('Environment', { exact: true });
  await page.getByRole('slider', { name: /^Discount/ }).focus();
  await page.keyboard.press('End');
  await until(async () => (await gamma(page)) === 1, 5, 'the discount is 1');
  for (const name of ['spin', 'web', 'search']) {
    await task.selectOption(name);
    await until(async () => new RegExp(`env=${name}`).test(await hash(page)), 5, name);
    assert.equal(await gamma(page), 1, name);
  }
  // Nobody chose the one that is usual.
  await go(page, '#v=1&env=search&seed=4');
  await task.selectOption('spin');
  await until(async () => (await gamma(page)) === 1, 5, 'the usual one of spin');
  await task.selectOption('search');
  await until(async () => (await gamma(page)) === usual, 5, 'and of search again');
  assertClean(session);
});
