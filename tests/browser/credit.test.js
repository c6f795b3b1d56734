// Credit as a person looks at it: recipe, method, colours by any method, true credit measured and compared, and why a weight is what it is.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { assertClean, context, drawn, launch, open, PHONE, until } from './support.js';

const TINY = '#v=1&env=search&seed=0&groups=2&num_generations=3&held_out=0&iterations=4&turn_limit=2';
const RECORDED = JSON.parse(readFileSync(new URL('../../www/public/recorded/search.json', import.meta.url), 'utf8'));

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const weight = async page => Number(((await page.getByTestId('weight').textContent()) ?? '').replace('−', '-'));

/** Background colours of the selected row's tokens. */
const colours = page => page.locator('.episode.on .token').evaluateAll(tokens => tokens.map(token => getComputedStyle(token).backgroundColor).join(' '));

test('a recipe sets its choices, by mouse and by keyboard; a change on top makes it custom', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const recipe = page.getByLabel('Recipe', { exact: true });
  assert.equal(await recipe.inputValue(), '');
  await recipe.selectOption('gigpo');
  assert.equal(await page.getByLabel('Credit method', { exact: true }).inputValue(), 'gigpo');
  assert.match(await page.evaluate(() => location.hash), /credit=gigpo/);
  await page.getByText('arXiv:2505.10978').waitFor();
  await page.getByTestId('again').waitFor();
  await page.getByLabel('Credit method', { exact: true }).focus();
  await page.keyboard.press('ArrowDown');
  await until(async () => (await recipe.inputValue()) === '', 5, 'custom');
  assert.equal(await page.getByLabel('Credit method', { exact: true }).inputValue(), 'tree');
  assertClean(session);
});

test('every method is offered as a colour; one that lacks values says so', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await page.getByTestId('read-out').waitFor();
  const colour = page.getByLabel('Colour:');
  const options = await colour.locator('option').evaluateAll(entries => entries.map(entry => entry.value));
  for (const method of ['grpo', 'rloo', 'gigpo', 'tree', 'monte_carlo', 'gae']) assert.ok(options.includes(`method:${method}`), method);
  await until(async () => (await page.locator('.episode:visible').count()) === 16, 20, 'all rows');
  const before = await colours(page);
  await colour.selectOption('method:tree');
  await until(async () => (await colours(page)) !== before, 20, 'other colours');
  // What is trained is not touched.
  assert.equal(await page.getByTestId('again').count(), 0);
  await page.getByTestId('read-out').getByText(/Tree: change of value/).waitFor();
  await colour.selectOption('method:gae');
  await page.getByTestId('lacking').getByText(/needs values of states/).waitFor();
  await colour.selectOption('true_credit');
  await until(async () => (await page.getByTestId('lacking').count()) === 0, 5, 'true credit is there');
  assertClean(session);
});

test('the recorded measurement is said to be recorded, and a row of its table colours the tokens', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const right = page.getByTestId('right');
  await right.getByText('recorded with the run').waitFor();
  // What a recording leaves out is said where sums are made of the rest.
  const { config, batches } = RECORDED;
  const groups = new Set(batches.map(batch => batch.groups.length));
  assert.ok([...groups].every(count => count < config.groups), 'the recording is thinned');
  await page.getByTestId('thinned').getByText(`keeps ${[...groups][0]} of the ${config.groups} groups`).waitFor();
  const iteration = Number(/Episodes of iteration (\d+)/.exec(await right.innerText())?.[1]);
  const { accuracy } = RECORDED.measured.find(entry => entry.iteration === iteration);
  await right.getByText(`${accuracy.states} states × ${accuracy.rolls}`, { exact: false }).waitFor();
  assert.equal(await right.getByRole('button', { name: /^Measure/ }).isDisabled(), true);
  await right.getByTestId('blocked').getByText('press Train or Step').waitFor();
  const grpo = accuracy.methods.find(entry => entry.method === 'grpo').all_turns.pearson.value;
  const row = right.getByRole('row').filter({ hasText: 'GRPO: whole episode' });
  assert.ok((await row.innerText()).includes(grpo.toFixed(2)));
  assert.match((await right.getByTestId('verdict').textContent()) ?? '', /comes closest here/);
  const tree = right.getByRole('button', { name: /^Tree/ });
  await tree.focus();
  await page.keyboard.press('Enter');
  assert.equal(await tree.getAttribute('aria-pressed'), 'true');
  assert.equal(await page.getByLabel('Colour:').inputValue(), 'method:tree');
  // Other rewards make the truth that of other rewards: said, not hidden.
  assert.equal(await right.getByTestId('stale').count(), 0);
  await page.getByRole('slider', { name: /Discount/ }).focus();
  await page.keyboard.press('Home');
  await right.getByTestId('stale').waitFor();
  assertClean(session);
});

test('a click in the picture selects the turn of the dot', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const picture = page.getByRole('img', { name: /against true credit, a dot a turn/ });
  await picture.scrollIntoViewIfNeeded();
  await page.waitForTimeout(500);
  const before = await page.getByTestId('read-out').innerText();
  // The dot nearest to the lower left corner: credit that is low and rightly so.
  const { x, y, width, height } = await picture.boundingBox();
  const dot = await picture.locator('canvas').evaluate(canvas => {
    const { data, width: w, height: h } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let best = null;
    for (let i = 0; i < data.length; i += 4) {
      const [left, top] = [(i / 4) % w, Math.floor(i / 4 / w)];
      if (left > w / 2 - 4 || top < h / 2 + 4 || data[i] - data[i + 2] < 60) continue;
      const distance = left + (h - top);
      if (!best || distance < best.distance) best = { distance, left: left / w, top: top / h };
    }
    return best;
  });
  assert.ok(dot, 'a dot is drawn there');
  await page.mouse.click(x + dot.left * width + 1, y + dot.top * height - 1);
  await until(async () => (await page.getByTestId('read-out').innerText()) !== before, 10, 'another turn is selected');
  assert.match(await page.getByTestId('read-out').innerText(), /true credit −/);
  assertClean(session);
});

test('the weight is explained by the parts it is made of, for an episode-wise, a turn-wise and a whitened method', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const why = page.getByTestId('why');
  await page.getByTestId('weight').waitFor();
  const numbers = text => [...text.matchAll(/[−-]?\d+\.\d{4}/g)].map(([found]) => Number(found.replace('−', '-')));
  for (const method of ['grpo', 'tree', 'gigpo', 'reinforce_pp']) {
    await page.getByLabel('Credit method', { exact: true }).selectOption(method);
    await until(async () => (await page.getByTestId('again').count()) === (method === 'grpo' ? 0 : 1), 10, method);
    await drawn(page);
    const parts = await why.locator('.parts p .number').allInnerTexts();
    assert.ok(parts.length > 0, method);
    let sum = parts.reduce((total, part) => total + numbers(part).at(-1), 0);
    if (method === 'reinforce_pp') {
      const [, mean, scale] = numbers((await why.getByText('whitened over').locator('..').innerText()));
      sum = (sum - mean) / scale;
    }
    assert.ok(Math.abs(sum - (await weight(page))) < 2e-3, `${method}: ${sum} against ${await weight(page)}`);
  }
  assertClean(session);
});

test('true credit is measured, raised while it goes on, stopped and gone on with', { timeout: 400_000 }, async () => {
  // Long episodes that differ: what is to be stopped has to last for a while.
  const session = await open(await context(browser), '#v=1&env=spin&seed=0&groups=8&num_generations=8&held_out=0&iterations=4');
  const { page } = session;
  const right = page.getByTestId('right');
  const step = page.getByRole('button', { name: 'Step', exact: true });
  for (const phase of ['sample', 'score', 'credit']) {
    await step.click();
    await page.locator('[aria-current="step"]', { hasText: phase }).waitFor({ timeout: 180_000 });
    await step.and(page.locator(':enabled')).waitFor();
    if (phase === 'score') await right.getByTestId('blocked').getByText('No credit yet').waitFor();
  }
  await right.getByRole('button', { name: 'Measure, 32 re-rolls' }).click();
  await right.getByRole('button', { name: 'Raise to 128' }).click({ timeout: 60_000 });
  await right.getByTestId('accuracy').waitFor({ timeout: 120_000 });
  assert.equal(await page.getByRole('button', { name: 'Train', exact: true }).isDisabled(), true, 'one thing at a time');
  await right.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Go on', exact: true }).or(page.getByRole('button', { name: 'Train', exact: true })).and(page.locator(':enabled')).waitFor({ timeout: 120_000 });
  const rolls = async () => Number(/states × (\d+)/.exec((await right.innerText()))?.[1] ?? 0);
  const first = await rolls();
  assert.ok(first > 0 && first < 512, `${first} re-rolls`);
  const more = right.getByRole('button', { name: /^(Raise to|Measure)/ });
  await more.click();
  await until(async () => (await rolls()) > first, 120, 'it goes on where it stood');
  await page.getByRole('button', { name: 'Reset', exact: true }).click();
  await right.getByText('recorded with the run').waitFor();
  assertClean(session);
});

for (const [language, viewport] of [['en', undefined], ['zh', PHONE]]) {
  test(`the regions on credit speak ${language} and stay inside ${viewport ? 'a phone' : 'the window'}`, async () => {
    const session = await open(await context(browser, { ...(viewport ? { viewport } : {}), locale: language === 'zh' ? 'zh-CN' : 'en-US' }));
    const { page } = session;
    await page.getByText(language === 'zh' ? '信用分对了吗？' : 'Is the credit right?', { exact: true }).waitFor();
    await page.getByText(language === 'zh' ? '为什么是这个权重？' : 'Why this weight?', { exact: true }).waitFor();
    await page.getByTestId('accuracy').waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `scrolls sideways by ${wide} px`);
    assertClean(session);
  });
}
