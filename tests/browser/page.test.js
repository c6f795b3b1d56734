// What a person sees and does before training: the recorded run, languages, keyboard, links good and bad.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { address, assertClean, context, launch, open, PHONE, until } from './support.js';

const require = createRequire(new URL('../../www/package.json', import.meta.url));
let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test('the page opens on a recorded run that says what it was made with', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await page.getByText('Recorded run', { exact: true }).waitFor();
  await page.getByText('turnwise train').waitFor();
  assert.match((await page.getByTestId('group').textContent()) ?? '', /16 episodes/);
  assert.ok((await page.locator('[data-testid="iteration"]').textContent()).includes('/ 60'));
  assertClean(session);
});

test('every task has a recorded run of its own, shown while none was trained, with credit and measured truth', { timeout: 180_000 }, async () => {
  const session = await open(await context(browser));
  const { page, requests } = session;
  const environments = await page.locator('#environment option').evaluateAll(options => options.map(({ value, label }) => [value, label]));
  assert.ok(environments.length >= 6);
  const asked = () => requests.map(url => url.match(/recorded\/(\w+)\.json/)?.[1]).filter(Boolean);
  assert.deepEqual(asked(), ['search'], 'a first visit fetches the first one only');
  for (const [name, label] of [...environments.slice(1), environments[0]]) {
    await page.locator('#environment').focus();
    await page.locator('#environment').selectOption(name);
    await page.getByText(`Recorded: ${label}, seed`).waitFor();
    assert.equal(await page.getByTestId('other-task').count(), 0, name);
    await page.getByTestId('group').waitFor();
    await page.getByTestId('weight').waitFor();
    await page.getByTestId('accuracy').waitFor();
    assert.ok((await page.getByTestId('hidden-state').textContent()).trim().length > 0, name);
    assert.equal(await page.getByTestId('again').count(), 0, `${name}: the credit on show is that of the recording`);
  }
  assert.deepEqual(asked().toSorted(), environments.map(([name]) => name).toSorted(), 'each is fetched once');
  assertClean(session);
});

test('a recording that cannot be fetched is said to be, and the one before it stays', async () => {
  const within = await context(browser);
  await within.route('**/recorded/code.json', route => route.fulfill({ status: 200, contentType: 'application/json', body: '{"config": 1}' }));
  const session = await open(within);
  const { page } = session;
  await page.getByText('Recorded: Search, seed').waitFor();
  await page.locator('#environment').selectOption('code');
  await page.getByText('The recorded run is unreadable').waitFor();
  await page.getByTestId('other-task').getByText('a run of another task: Search').waitFor();
  await page.getByText('Recorded: Search, seed').waitFor();
  await page.locator('#environment').selectOption('spin');
  await page.getByText('Recorded: Spin, seed').waitFor();
  assert.equal(await page.getByTestId('other-task').count(), 0);
  assertClean(session);
});

for (const [language, viewport] of [['en', undefined], ['zh', undefined], ['en', PHONE], ['zh', PHONE]]) {
  for (const theme of ['light', 'dark']) {
    test(`accessible: ${language}, ${viewport ? 'phone' : 'desktop'}, ${theme}`, async () => {
      const session = await open(await context(browser, viewport ? { viewport } : {}));
      const { page } = session;
      if (language === 'zh') await page.getByText('中文', { exact: true }).click();
      if (theme === 'dark') await page.getByRole('button', { name: language === 'zh' ? '深色' : 'Dark', exact: true }).click();
      // All regions are there, those on credit included.
      await page.getByTestId('accuracy').waitFor();
      await page.getByTestId('weight').waitFor();
      await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
      const found = await page.evaluate(async () => {
        const { violations } = await window.axe.run();
        return violations.map(v => `${v.id}: ${v.nodes.map(node => node.target.join(' ')).join(', ')}`);
      });
      assert.deepEqual(found, []);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `scrolls sideways by ${wide} px`);
      assertClean(session);
    });
  }
}

test('gamma by keyboard credits the frozen episodes again, and the link follows', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  const before = await page.evaluate(() => location.hash);
  const gamma = page.getByRole('slider', { name: /Discount/ });
  await gamma.focus();
  assert.equal(await page.evaluate(() => location.hash), before, 'focus does not touch the link');
  await page.keyboard.press('Home');
  await until(async () => (await page.getByTestId('gamma-value').textContent()) === '0', 5, 'gamma 0');
  await page.getByTestId('again').waitFor();
  assert.match(await page.evaluate(() => location.hash), /gamma=0(&|$)/);
  assert.ok(await gamma.getAttribute('aria-valuetext'));
  assertClean(session);
});

test('case 1: a bad link still loads: every bad field is named, what is good is kept', async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=7&gamma=9&lr=NaN&nonsense=1&groups=1e309');
  const { page } = session;
  const notes = page.getByTestId('notes');
  await notes.waitFor();
  const details = notes.locator('summary, button').first();
  if (await details.count()) await details.click();
  const text = await notes.textContent();
  for (const name of ['gamma', 'learning_rate', 'nonsense', 'groups']) assert.ok(text.includes(name), `${name} in: ${text}`);
  await page.getByText('seed 7').waitFor();
  assertClean(session);
});

test('case 17: a second link in the same tab swaps the experiment; back and forward follow', async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=5');
  const { page } = session;
  await page.getByText('seed 5').waitFor();
  await page.evaluate(() => {
    location.hash = 'v=1&env=search&seed=6';
  });
  await page.getByText('seed 6').waitFor();
  await page.goBack();
  await page.getByText('seed 5').waitFor();
  await page.goForward();
  await page.getByText('seed 6').waitFor();
  assertClean(session);
});

test('case 28: hostile text is text', async () => {
  const title = encodeURIComponent('<img src=x onerror="window.hacked=1">"><script>window.hacked=1</script>');
  const session = await open(await context(browser), `#v=1&env=search&seed=1&title=${title}`);
  const { page } = session;
  await page.waitForTimeout(300);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assertClean(session);
});

test('case 26: a refused clipboard is said, and the link can be copied by hand', async () => {
  const within = await context(browser, { clipboard: false });
  const session = await open(within);
  const { page } = session;
  await page.evaluate(() => {
    navigator.clipboard.writeText = () => Promise.reject(new Error('denied'));
  });
  await page.getByRole('button', { name: 'Share link' }).click();
  const field = page.getByRole('textbox', { name: 'Link to this experiment' });
  await field.waitFor();
  assert.ok((await field.inputValue()).startsWith(`${address}#v=1`));
  assertClean(session);
});

test('page.md case 38: every control says what it is for, a run has an end in sight, and a new seed is called one', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await page.getByText('More settings').click();
  const silent = await page.locator('#controls').evaluate(rail => {
    const said = element => {
      const by = (element.getAttribute('aria-describedby') ?? '').split(' ').map(id => document.getElementById(id)?.textContent ?? '').join('');
      return element.title || by.trim() || element.closest('[title]')?.getAttribute('title') || element.labels?.[0]?.title;
    };
    return Array.from(rail.querySelectorAll('button, input, select'), element => [element, said(element)]).filter(([element, text]) => !text && element.checkVisibility()).map(([element]) => element.outerHTML.slice(0, 120));
  });
  assert.deepEqual(silent, []);
  assert.match((await page.getByTestId('iteration').textContent()) ?? '', /\d+ \/ 60/);
  await page.getByRole('button', { name: 'New seed', exact: true }).waitFor();
  assertClean(session);
});

test('a first visit fetches no script or style but those that the page names and the worker', async () => {
  const session = await open(await context(browser));
  await session.page.getByTestId('group').waitFor();
  const html = await (await fetch(address)).text();
  const code = session.requests.map(url => new URL(url).pathname.split('/').at(-1)).filter(name => /\.(js|css)$/.test(name));
  assert.ok(code.length >= 2);
  assert.deepEqual(code.filter(name => !name.startsWith('worker') && !html.includes(name)), []);
  assertClean(session);
});

test('a visitor who trains fetches the engine of the device that there is, not the other one', { timeout: 180_000 }, async () => {
  const session = await open(await context(browser), '#v=1&env=search&groups=2&num_generations=4&iterations=1&held_out=16');
  const { page, requests } = session;
  const engines = () => requests.map(url => /turnwise_(cpu|gpu)/.exec(url)?.[1]).filter(Boolean);
  await page.getByTestId('group').waitFor();
  assert.deepEqual(engines(), [], 'nothing before it is needed');
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
  assert.deepEqual([...new Set(engines())], ['cpu']);
  assertClean(session);
});
