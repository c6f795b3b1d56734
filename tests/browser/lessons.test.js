// The lessons as a newcomer uses them: chosen by mouse and by keyboard, in both languages; nothing starts by itself.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { assertClean, context, iterations, launch, open, PHONE, until } from './support.js';

const require = createRequire(new URL('../../www/package.json', import.meta.url));

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const hash = page => page.evaluate(() => location.hash);
const card = page => page.getByTestId('lesson');
const select = page => page.getByLabel('Lesson', { exact: true }).and(page.locator('select'));

test('a newcomer sees the first lesson, what the page is, and the words', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const lesson = card(page);
  await lesson.getByText(/Lesson 1 of \d+/).waitFor();
  assert.equal(await select(page).inputValue(), 'search-again');
  for (const text of ['Do', 'Watch', 'It means', 'Measured:', 'learns from reward']) {
    assert.ok(await lesson.getByText(text).first().isVisible(), text);
  }
  const place = await lesson.boundingBox();
  assert.ok(place.y + place.height < 800, 'on the first screen');
  await lesson.getByRole('button', { name: 'Words' }).click();
  const glossary = page.getByTestId('glossary');
  for (const word of ['policy', 'token', 'turn', 'episode', 'reward', 'advantage', 'loss mask']) {
    assert.ok(await glossary.locator('dt').getByText(word, { exact: true }).isVisible(), word);
  }
  await page.keyboard.press('Escape');
  assert.equal(await glossary.isVisible(), false);
  assert.equal(await hash(page), '', 'reading leaves the address alone');
  assertClean(session);
});

test('a lesson by mouse: its settings, its address, its colours, what it is compared with, and nothing starts', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await select(page).selectOption('gamma');
  await until(async () => (await page.getByTestId('gamma-value').textContent()) === '1', 5, 'gamma 1');
  assert.match(await hash(page), /gamma=1&b\.gamma=0\.5(&|$)/);
  assert.equal(await page.getByLabel('Colour:').inputValue(), 'return_to_go');
  await card(page).getByText('What the discount γ does').waitFor();
  const compared = card(page).getByTestId('lesson-compared');
  assert.match(await compared.innerText(), /0\.5 \(here 1\)/);
  assert.equal(await compared.getByRole('button', { name: 'Train both' }).isEnabled(), true);
  // Moving a setting is no lesson any more; the card stays and leads back.
  await page
    .getByRole('slider', { name: /Discount/ })
    .first()
    .focus();
  await page.keyboard.press('Home');
  await until(async () => (await select(page).inputValue()) === '', 5, 'no lesson');
  await card(page)
    .getByTestId('lesson-changed')
    .getByText(/0 \(lesson: 1\)/)
    .waitFor();
  assert.equal(await compared.getByRole('button').count(), 0);
  await card(page).getByRole('button', { name: 'Back to the lesson' }).click();
  assert.equal(await select(page).inputValue(), 'gamma');
  // A lesson that compares nothing leaves nothing to compare.
  await select(page).selectOption('poisoned');
  await until(async () => /env=poisoned/.test(await hash(page)), 5, 'another task');
  assert.doesNotMatch(await hash(page), /b\./);
  await page.getByText('Recorded: Poisoned document, seed 2').waitFor();
  assertClean(session);
});

test('a recording with other settings than the lesson says so', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const other = page.getByTestId('other-settings');
  await page.getByText('Recorded: Search, seed 2').waitFor();
  assert.equal(await other.count(), 0);
  await select(page).selectOption('hacked');
  await page.getByText('Recorded: Code, seed 2').waitFor();
  assert.match(await other.textContent(), /made with other settings: .*Reward mode Outcome \(here Mixed\)/);
  assert.doesNotMatch(await other.textContent(), /Seed/);
  await page.getByText('中文', { exact: true }).click();
  assert.match(await other.textContent(), /录制的运行用的是其他设置：/);
  assertClean(session);
});

test('lessons by keyboard, and the way to what they are about', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await select(page).focus();
  await page.keyboard.press('ArrowDown');
  await until(async () => (await select(page).inputValue()) === 'loop', 5, 'the second lesson');
  const next = card(page).getByRole('button', { name: 'Next lesson' });
  await next.focus();
  await page.keyboard.press('Enter');
  await card(page)
    .getByText(/Lesson 3 of/)
    .waitFor();
  await card(page).getByRole('button', { name: 'Previous lesson' }).press('Enter');
  await card(page)
    .getByText(/Lesson 2 of/)
    .waitFor();
  await select(page).selectOption('which-credit');
  await card(page).getByRole('button', { name: 'Show me' }).press('Enter');
  await until(
    async () => (await page.evaluate(() => document.activeElement?.id)) === 'right-title',
    5,
    'the region has the focus',
  );
  await until(
    async () =>
      page.locator('#right-title').evaluate(title => {
        const { top } = title.getBoundingClientRect();
        return top >= 0 && top < innerHeight;
      }),
    5,
    'the region is on the screen',
  );
  const fold = card(page).getByRole('button', { name: 'Fold' });
  await fold.press('Enter');
  assert.equal(await card(page).getByText('It means').count(), 0);
  assertClean(session);
});

test('a link of a lesson opens its card, whatever the seed', async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=7&turns=1&iters=40');
  const { page } = session;
  await card(page).getByText('One turn is not enough').waitFor();
  assert.equal(await select(page).inputValue(), 'single-turn');
  assert.match(await hash(page), /seed=7/, 'the address stays as it was');
  assertClean(session);
});

test('a link with the settings of a lesson alone trains both all the same, and the address says so', async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=1&gamma=1');
  const { page } = session;
  await card(page).getByText('What the discount γ does').waitFor();
  await card(page).getByRole('button', { name: 'Train both' }).click();
  await until(async () => (await hash(page)).includes('b.gamma=0.5'), 10, 'the comparison in the address');
  await page.getByText(/the other configuration/).first().waitFor();
  assertClean(session);
});

test('every lesson sets its experiment without a remark, in both languages', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const names = await select(page)
    .locator('option:not([disabled])')
    .evaluateAll(options => options.map(option => option.value));
  assert.ok(names.length >= 15);
  const seen = new Set();
  for (const name of names) {
    await select(page).selectOption(name);
    await until(async () => (await select(page).inputValue()) === name, 5, name);
    assert.equal(await page.getByTestId('notes').count(), 0, name);
    assert.equal(await page.getByTestId('lesson-changed').count(), 0, name);
    seen.add(await hash(page));
  }
  assert.equal(seen.size, names.length, 'every lesson has an address of its own');
  await page.getByText('中文', { exact: true }).click();
  for (const name of names.filter((_, i) => i % 4 === 0)) {
    await page.locator('#lesson').selectOption(name);
    const text = await card(page).innerText();
    assert.match(text, /第 \d+ 课/);
    assert.match(text, /操作[\s\S]*看什么[\s\S]*含义[\s\S]*实测：/, name);
  }
  assertClean(session);
});

for (const [language, viewport, theme] of [
  ['en', undefined, 'dark'],
  ['zh', PHONE, 'light'],
]) {
  test(`a comparing lesson and the words are accessible: ${language}, ${theme}`, async () => {
    const session = await open(
      await context(browser, viewport ? { viewport } : {}),
      '#v=1&env=search&seed=0&gamma=1&b.gamma=0.5',
    );
    const { page } = session;
    if (language === 'zh') await page.getByText('中文', { exact: true }).click();
    if (theme === 'dark') await page.getByRole('button', { name: 'Dark', exact: true }).click();
    await card(page).getByTestId('lesson-compared').waitFor();
    await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
    const violations = () =>
      page.evaluate(async () => {
        const { violations } = await window.axe.run();
        return violations.map(v => `${v.id}: ${v.nodes.map(node => node.target.join(' ')).join(', ')}`);
      });
    assert.deepEqual(await violations(), []);
    await card(page)
      .getByRole('button', { name: /^(Words|词汇)$/ })
      .click();
    await page.getByTestId('glossary').waitFor();
    assert.deepEqual(await violations(), []);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `scrolls sideways by ${wide} px`);
    assertClean(session);
  });
}

test('a lesson, made small, trains', async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=0&groups=4&gen=8&iters=8');
  const { page } = session;
  await card(page).getByText('The loop, one phase at a time').waitFor();
  await page.evaluate(() => {
    location.hash = 'v=1&env=search&seed=0&groups=4&gen=8&iters=2&held=0';
  });
  await card(page).getByTestId('lesson-changed').waitFor();
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await until(async () => (await iterations(page)) === 2, 120, 'two iterations');
  await page.getByText('Finished', { exact: true }).waitFor();
  assertClean(session);
});

test('a lesson about a demonstrator begins from its own shipped checkpoint', async () => {
  const session = await open(
    await context(browser),
    '#v=1&env=search&seed=0&groups=2&gen=2&held=0&iters=1&two_search_demonstrations=0.05',
  );
  const { page, requests } = session;
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText('begun from the shipped warm start').waitFor({ timeout: 120_000 });
  assert.ok(requests.some(url => url.endsWith('/warm-start/search-few-second-searches.safetensors')), requests.join('\n'));
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
  assertClean(session);
});
