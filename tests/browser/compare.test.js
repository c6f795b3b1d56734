// A run beside another: pinned, from a link with two configurations, over several seeds; and what a link says its run should give.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { address, assertClean, context, iterations, launch, open, PHONE, until } from './support.js';

const require = createRequire(new URL('../../www/package.json', import.meta.url));
const RECORDED = new URL('../../www/public/recorded/search.json', import.meta.url);
const TINY = '#v=1&env=search&seed=4&groups=2&gen=4&d=32&warm=none&held=16';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const press = (page, name) => page.getByRole('button', { name, exact: true }).click();
const hash = page => page.evaluate(() => location.hash);
/** The labels at the ends of the curves of success. */
const labels = page => page.locator('.chart').first().locator('.end').allTextContents();
const finished = page => page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
const place = async page => ((await page.getByTestId('place').count()) ? await page.getByTestId('place').textContent() : '');

/** Share, with these boxes checked; gives the link. */
async function shared(page, boxes) {
  await press(page, 'Share link');
  for (const name of ['with the comparison', 'with what it should reproduce']) {
    const box = page.getByRole('checkbox', { name });
    if (await box.count()) await box.setChecked(boxes.includes(name));
    else assert.ok(!boxes.includes(name), `${name} is offered`);
  }
  const link = await page.getByRole('textbox', { name: 'Link to this experiment' }).inputValue();
  await press(page, 'Copy link');
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === link, 5, 'the link is copied');
  await page.keyboard.press('Escape');
  assert.equal(await page.getByRole('group', { name: 'Share this experiment' }).count(), 0);
  return link;
}

test('a link with two configurations says so and starts nothing; Train both gives two curves and a sentence', { timeout: 240_000 }, async () => {
  const link = `${TINY}&iters=3&gamma=0.5&b.gamma=1&b.mask=0`;
  const session = await open(await context(browser), link);
  const { page } = session;
  const second = page.getByTestId('second');
  assert.match(await second.innerText(), /another configuration: Discount γ 1 \(here: 0\.5\), Loss mask off \(here: on\)\. Both get the same seed\./);
  assert.equal(await page.getByTestId('gamma-value').textContent(), '0.5', 'the form shows the first');
  await page.getByText('Recorded run', { exact: true }).waitFor();
  assert.equal(page.workers().length, 0);

  await press(page, 'Train both');
  await until(async () => (await place(page)) === 'the other configuration', 60, 'the other one is trained first');
  await until(async () => (await place(page)) === 'the configuration in the form', 120, 'then that in the form');
  await finished(page);
  await until(async () => (await labels(page)).some(label => /^pinned \d+%$/.test(label)), 10, 'the pinned curve has its label');
  await until(async () => (await labels(page)).some(label => /^held-out \d+%$/.test(label)), 10, 'and so has the run on show');
  const sentence = 'Dashed: the pinned run. It differs from the run on show: Discount γ 1 (here 0.5), Loss mask off (here on).';
  assert.ok((await page.getByTestId('pinned').innerText()).includes(sentence), await page.getByTestId('pinned').innerText());
  assert.equal(await page.getByTestId('changed').count(), 0, 'the form is that of the run');
  assert.equal(await hash(page), link, 'the address is as it was opened');

  // The link of both, canonical, opens as the same two.
  const again = await shared(page, ['with the comparison']);
  assert.match(again, /&gamma=0\.5&.*&b\.gamma=1&b\.mask=0&c=[0-9a-f]{8}$/);
  const other = await open(await context(browser), again.slice(address.length));
  assert.equal(await other.page.getByTestId('notes').count(), 0);
  assert.equal(await other.page.getByTestId('second').innerText(), await second.innerText());

  await press(page, 'Swap');
  assert.equal(await page.getByTestId('gamma-value').textContent(), '1');
  assert.match(await second.innerText(), /Discount γ 0\.5 \(here: 1\)/);
  assert.match(await hash(page), /&gamma=1&.*&b\.gamma=0\.5/);
  await press(page, 'Drop');
  assert.equal(await second.count(), 0);
  assert.doesNotMatch(await hash(page), /&b\./);
  await press(page, 'Unpin');
  await until(async () => !(await labels(page)).some(label => label.startsWith('pinned')), 10, 'the ghost is gone');
  assertClean(session);
  assertClean(other);
});

test('several seeds are trained one after another and drawn as a band; Pause, Go on and Reset work among them', { timeout: 300_000 }, async () => {
  const session = await open(await context(browser), `${TINY}&iters=100`);
  const { page } = session;
  await page.getByRole('combobox', { name: 'Seeds' }).selectOption('3');
  assert.match(await hash(page), /&seeds=3&/);
  await press(page, 'Train');
  await until(async () => (await place(page)) === 'seed 2 of 3' && (await iterations(page)) >= 1, 120, 'the second seed');
  await press(page, 'Pause');
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
  assert.equal(await place(page), 'seed 2 of 3');
  assert.equal(await page.getByTestId('changed').count(), 0, 'another seed of the series is no change of the settings');
  await press(page, 'Go on');
  await until(async () => (await place(page)) === 'seed 3 of 3', 120, 'the third seed');
  await finished(page);
  assert.equal(await page.getByTestId('band').innerText(), '3 seeds: mean, band = lowest to highest.');
  await until(async () => (await labels(page)).some(label => /^mean \d+%$/.test(label)), 10, 'the mean has its label');
  // The band fills what lies between the lowest and the highest: pixels of its light ink are there.
  const grey = await page.evaluate(() => {
    const canvas = document.querySelector('.chart canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 20 && data[i + 3] < 50) count += 1;
    return count;
  });
  assert.ok(grey > 50, `${grey} pixels of the band`);

  // Pinned, all seeds stay; the next series stands beside them.
  await press(page, 'Pin this run');
  await press(page, 'New seed');
  await press(page, 'Train');
  await until(async () => (await place(page)) === 'seed 2 of 3', 120, 'the next series');
  assert.match(await page.getByTestId('pinned').innerText(), /Same settings, other seed: 4, here \d+\. Pinned: 3 seeds/);
  await press(page, 'Reset');
  await page.getByText('Recorded run', { exact: true }).waitFor();
  await page.waitForTimeout(1500);
  assert.equal(await page.getByText('Recorded run', { exact: true }).count(), 1, 'no seed follows a reset');
  assertClean(session);
});

test('a Pause that comes too late for a seed holds the next one until Go on', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  // As when it is pressed during the very last update: the run reaches its end all the same.
  await within.addInitScript(() => {
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (message, ...rest) {
      if (message.type !== 'pause') post.call(this, message, ...rest);
    };
  });
  const session = await open(within, `${TINY}&iters=100`);
  const { page } = session;
  await page.getByRole('combobox', { name: 'Seeds' }).selectOption('3');
  await press(page, 'Train');
  await press(page, 'Pause');
  await page.getByRole('button', { name: 'Go on', exact: true }).waitFor({ timeout: 60_000 });
  assert.equal(await place(page), 'seed 1 of 3');
  assert.equal(await iterations(page), 100, 'the seed is done');
  await page.waitForTimeout(1000);
  assert.equal(await place(page), 'seed 1 of 3', 'nothing follows by itself');
  await press(page, 'Go on');
  await until(async () => (await place(page)) === 'seed 3 of 3', 120, 'the other seeds');
  await finished(page);
  assert.equal(await page.getByTestId('band').innerText(), '3 seeds: mean, band = lowest to highest.');
  assertClean(session);
});

test('what a link says its run should give is reproduced, differs from where it differs, or is of another device', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const first = await open(within, `${TINY}&iters=4`);
  await press(first.page, 'Share link');
  assert.equal(await first.page.getByRole('checkbox').count(), 0, 'there is nothing more to share yet');
  await first.page.keyboard.press('Escape');
  await press(first.page, 'Train');
  await finished(first.page);
  const plain = await shared(first.page, []);
  assert.doesNotMatch(plain, /repro/, 'the plain link is the default');
  const link = await shared(first.page, ['with what it should reproduce']);
  const [, codes] = link.match(/&repro=cpu\.([\w-]{4})&c=/) ?? assert.fail(link);

  const second = await open(within, link.slice(address.length));
  const says = second.page.getByTestId('reproduction');
  assert.match(await says.innerText(), /what its first 4 iterations gave \(CPU\)/);
  assert.equal(second.page.workers().length, 0, 'a link starts nothing');
  await press(second.page, 'Train');
  await finished(second.page);
  await until(async () => (await says.innerText()) === 'Reproduces the linked run up to iteration 3.', 10, 'reproduced');

  // The same settings with another statement: the run is there already.
  const other = codes[2] === 'A' ? 'B' : 'A';
  const open2 = async fragment => {
    await second.page.evaluate(text => {
      location.hash = text;
    }, fragment);
  };
  const fragment = link.slice(address.length);
  await open2(fragment.replace(codes, codes.slice(0, 2) + other + codes.slice(3)));
  await until(async () => /^Differs from the linked run from iteration 2 \(this device: CPU\)/.test(await says.innerText()), 10, 'differs');
  await open2(fragment.replace('repro=cpu', 'repro=webgpu'));
  await until(async () => /computed on WebGPU, this one on CPU/.test(await says.innerText()), 10, 'another device');
  await second.page.getByRole('slider', { name: /Discount/ }).focus();
  await second.page.keyboard.press('Home');
  await until(async () => (await says.count()) === 0, 5, 'under other settings the statement is void');
  assert.doesNotMatch(await hash(second.page), /repro/);
  assertClean(first);
  assertClean(second);
});

test('a pinned run says in what it differs from the run on show; the link as Markdown has the title', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser), `${TINY}&iters=2&title=${encodeURIComponent('a [b] 漢')}`);
  const { page } = session;
  await press(page, 'Pin this run');
  assert.match(await page.getByTestId('pinned').innerText(), /It is the run on show/);
  await press(page, 'Train');
  await finished(page);
  assert.match(await page.getByTestId('pinned').innerText(), /It differs from the run on show: .*seed 2 \(here 4\)\./);
  await press(page, 'Share link');
  await press(page, 'Copy as Markdown');
  const link = await page.getByRole('textbox', { name: 'Link to this experiment' }).inputValue();
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === `[a \\[b\\] 漢](${link})`, 5, 'Markdown');
  assertClean(session);
});

/** The page with numbers in its recorded run that are none. JSON holds infinity as a number too large. */
async function openDamaged() {
  const within = await context(browser);
  const file = JSON.parse(readFileSync(RECORDED, 'utf8'));
  file.reports[7].update.entropy = null;
  file.reports[9].held_out_success = null;
  file.reports[12].by_type[0].calls = 'INFINITE';
  const body = JSON.stringify(file).replace('"INFINITE"', '1e999');
  await within.route('**/recorded/search.json', route => route.fulfill({ body, contentType: 'application/json' }));
  return open(within);
}

test('case 4: a value that is not a number is marked on the axis and in words, pinned or not, and destroys no axis', { timeout: 120_000 }, async () => {
  const session = await openDamaged();
  const { page } = session;
  const words = page.getByTestId('not-finite');
  await words.getByText(/not a finite number\. .*held-out at iteration 9; entropy, nats at iteration 7/).waitFor();
  const charts = page.locator('.chart');
  const calls = JSON.parse(readFileSync(RECORDED, 'utf8')).reports.at(-1).by_type[2].calls;
  await charts.nth(1).getByText(`2 hops ${Number.isInteger(calls) ? calls : calls.toFixed(2)}`).waitFor();
  const rows = page.getByRole('row').filter({ hasText: 'entropy' });
  const crosses = () => rows.locator('path[d$="l-4 5"]').count();
  await until(async () => (await crosses()) === 1, 5, 'one cross in the small curve');
  // The line breaks at the value: it is drawn in two stretches.
  assert.equal(((await rows.locator('path:not(.ghost):not(.band):not(.at)').first().getAttribute('d')) ?? '').match(/M/g)?.length, 2);
  await press(page, 'Pin this run');
  await until(async () => ((await rows.locator('path.ghost').getAttribute('d')) ?? '').match(/M/g)?.length === 2, 5, 'nor is the ghost bridged');
  await page.locator('.chart').first().getByText(/^pinned 9\d%$/).waitFor();
  assertClean(session);
});

for (const [language, viewport] of [['en', undefined], ['zh', PHONE]]) {
  test(`comparison, seeds and sharing are accessible: ${language}`, { timeout: 120_000 }, async () => {
    const session = await open(await context(browser, viewport ? { viewport } : {}), `${TINY}&iters=2&b.gamma=1&repro=cpu.AAAA`);
    const { page } = session;
    if (language === 'zh') await page.getByText('中文', { exact: true }).click();
    await press(page, language === 'zh' ? '固定这次运行' : 'Pin this run');
    await press(page, language === 'zh' ? '分享链接' : 'Share link');
    await page.getByRole('checkbox').first().waitFor();
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

test('what a comparison pinned goes with the next lesson; a pin of another task is said, not drawn; a plain run is no part of a comparison', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), `${TINY}&iters=2&gamma=1&b.gamma=0.5`);
  const { page } = session;
  const pinned = page.getByTestId('pinned');
  const drawn = async () => (await labels(page)).some(label => label.startsWith('pinned'));
  await press(page, 'Train both');
  await pinned.waitFor({ timeout: 60_000 });
  await finished(page);
  assert.equal(await place(page), 'the configuration in the form');
  await until(drawn, 10, 'the pinned run is drawn');
  await page.getByLabel('Lesson', { exact: true }).and(page.locator('select')).selectOption('dense');
  await pinned.waitFor({ state: 'detached' });

  // One that the person pins stays, and is not drawn beside the curves of another task.
  await page.evaluate(hash => {
    location.hash = hash;
  }, `${TINY}&iters=2`);
  await press(page, 'Train');
  await finished(page);
  assert.equal(await place(page), '', 'no comparison was asked for');
  await press(page, 'Pin this run');
  await until(drawn, 10, 'it is drawn');
  await page.getByLabel('Lesson', { exact: true }).and(page.locator('select')).selectOption('gamma');
  assert.equal(await pinned.count(), 1, 'it stays');
  await page.evaluate(hash => {
    location.hash = hash;
  }, `${TINY.replace('env=search', 'env=calculator')}&iters=2`);
  await press(page, 'Train');
  await finished(page);
  await until(async () => /another environment/.test(await pinned.innerText()), 10, 'that it is of another task');
  assert.equal(await drawn(), false);
  assert.equal(await place(page), '', 'no comparison was asked for');
  assertClean(session);
});

test('a series goes on where no frame is drawn, as in a hidden tab', { timeout: 120_000 }, async () => {
  const within = await context(browser);
  await within.addInitScript(() => {
    const real = window.requestAnimationFrame;
    window.requestAnimationFrame = piece => real.call(window, time => !window.noFrames && piece(time));
  });
  const session = await open(within, `${TINY}&iters=4&seeds=3`);
  const { page } = session;
  await press(page, 'Train');
  await until(async () => (await iterations(page)) >= 1, 60, 'the first seed trains', 20);
  await page.evaluate(() => {
    window.noFrames = true;
  });
  await page.waitForTimeout(500);
  await until(async () => /seed 3 of 3/.test(await place(page)), 30, 'the last seed');
  await finished(page);
  assertClean(session);
});

test('the run of the second configuration is gone on with after a reload, and the first is not lost', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), `${TINY}&iters=20000&gamma=0.9&b.gamma=0.5`);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await press(page, 'Train both');
  await until(async () => (await place(page)) === 'the other configuration' && (await iterations(page)) >= 30, 60, 'the other one trains');
  await page.reload();
  await press(page, 'Go on with it');
  await until(async () => (await iterations(page)) >= 30, 60, 'it goes on');
  await press(page, 'Pause');
  assert.equal(await page.getByTestId('gamma-value').textContent(), '0.5');
  assert.match(await page.getByTestId('second').innerText(), /another configuration: Discount γ 0\.9 \(here: 0\.5\)/);
  assert.match(await hash(page), /[#&]gamma=0\.5&.*b\.gamma=0\.9|b\.gamma=0\.9.*[#&]gamma=0\.5/);
  assertClean(session);
});
