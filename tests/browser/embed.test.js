// The page in a frame of somebody else's page, on another origin, with the snippet that the page itself gives.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { address, assertClean, context, launch, open } from './support.js';

let browser;
let host;
/** What the embedding page holds. */
let body = '';
before(async () => {
  browser = await launch();
  host = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><html lang="en"><title>An article</title><link rel="icon" href="data:,"><h1>An article</h1>${body}</html>`);
  });
  await new Promise(resolve => host.listen(0, '127.0.0.1', resolve));
});
after(async () => {
  await browser.close();
  host.close();
});

/** A page on another origin with these frames in it. */
async function article(html, viewport) {
  body = html;
  const within = await context(browser, viewport ? { viewport } : {});
  const page = await within.newPage();
  const errors = [];
  page.on('pageerror', error => errors.push(error.message));
  page.on('console', message => message.type() === 'error' && errors.push(message.text()));
  await page.goto(`http://127.0.0.1:${host.address().port}/`);
  return { page, within, errors };
}

test('the snippet of the page works in a sandbox on another origin; its link opens the same experiment', { timeout: 180_000 }, async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=5&groups=2&num_generations=4&held_out=16&iterations=2');
  await session.page.getByRole('button', { name: 'Save / open' }).click();
  await session.page.getByRole('button', { name: 'Copy embed code: curves and controls' }).click();
  await session.page.getByText('Copied to the clipboard.').waitFor();
  const code = await session.page.evaluate(() => navigator.clipboard.readText());
  assertClean(session);

  const { page, within, errors } = await article(code);
  const frame = page.frameLocator('iframe');
  await frame.getByRole('button', { name: 'Train', exact: true }).and(frame.locator(':enabled')).waitFor();
  assert.equal(await frame.getByRole('button', { name: 'Share link' }).count(), 0, 'no bar');
  assert.equal(await frame.getByTestId('group').count(), 0, 'no episodes in this view');
  await frame.getByRole('button', { name: 'Train', exact: true }).click();
  await frame.getByText('Finished', { exact: true }).waitFor({ timeout: 150_000 });
  const link = frame.getByRole('link', { name: 'Open in Turnwise' });
  assert.equal(await link.getAttribute('rel'), 'noopener');
  const [whole] = await Promise.all([within.waitForEvent('page'), link.click()]);
  await whole.getByRole('button', { name: 'Share link' }).waitFor();
  assert.ok(whole.url().startsWith(`${address}#v=1&env=search&seed=5`), whole.url());
  await whole.getByRole('button', { name: 'Train', exact: true }).and(whole.locator(':enabled')).waitFor();
  assert.deepEqual(errors, []);
});

for (const [view, size] of [['lesson', [640, 420]], ['episodes', [640, 420]], ['curves', [640, 420]], ['episodes', [390, 600]], ['curves', [390, 600]], ['lesson', [390, 600]]]) {
  test(`embedded: ${view} at ${size.join(' x ')}, in Chinese and dark`, async () => {
    const [width, height] = size;
    const src = `${address}?embed=${view}&lang=zh&theme=dark#v=1&env=search&seed=4`;
    const { page, errors } = await article(`<iframe src="${src.replaceAll('&', '&amp;')}" width="${width}" height="${height}" style="border:0"></iframe>`);
    const frame = page.frameLocator('iframe');
    await frame.getByRole('link', { name: '在 Turnwise 中打开' }).waitFor();
    if (view === 'episodes') await frame.getByTestId('read-out').waitFor();
    else await frame.getByText(/留出集 \d+%/).waitFor();
    const found = await frame.locator('html').evaluate(root => ({
      theme: root.dataset.theme,
      wide: root.scrollWidth - root.clientWidth,
      kept: (() => {
        try {
          return [localStorage.getItem('turnwise-language'), localStorage.getItem('turnwise-theme')];
        } catch {
          return [null, null];
        }
      })(),
    }));
    assert.equal(found.theme, 'dark');
    assert.ok(found.wide <= 0, `scrolls sideways by ${found.wide} px`);
    assert.deepEqual(found.kept, [null, null], 'a choice of the embedding page is not kept');
    assert.deepEqual(errors, []);
  });
}

test('an unknown view is the whole page, and is said to be', async () => {
  const session = await open(await context(browser), '?embed=%3Cb%3Ex#v=1&env=search&seed=4');
  await session.page.getByTestId('notice-embed').getByText('There is no embedded view “<b>x”').waitFor();
  await session.page.getByTestId('group').waitFor();
  await session.page.getByRole('button', { name: 'Share link' }).click();
  const link = await session.page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(`${address}#v=1`), link);
  assertClean(session);
});
