// What the browser tests share: a real Chromium, a page that fails on any page or console error, and names for what is on it.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../www/package.json', import.meta.url));
const { chromium } = require('playwright-core');

/** Where the built page is served. `cargo verify` says so; by hand: `cargo serve` in another terminal. */
export const address = process.env.TURNWISE_URL ?? 'http://localhost:8080/';

const QUIET = [
  '--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync',
];

/** Chromium; with `webgpu` it offers its software adapter, without it `navigator.gpu` gives no adapter. */
export function launch({ webgpu = false, args = [] } = {}) {
  return chromium.launch({
    executablePath: process.env.TURNWISE_CHROMIUM ?? '/usr/bin/chromium',
    args: [...QUIET, ...args, ...(webgpu ? ['--enable-unsafe-webgpu', '--enable-features=Vulkan', '--use-webgpu-adapter=swiftshader'] : ['--disable-gpu'])],
  });
}

export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

/** A browser context whose pages collect errors. */
export async function context(browser, { viewport = DESKTOP, locale = 'en-US', clipboard = true } = {}) {
  const made = await browser.newContext({ viewport, locale });
  if (clipboard) await made.grantPermissions(['clipboard-read', 'clipboard-write']);
  return made;
}

/** Opens the page with a fragment and waits until its settings are there. `errors` collects what went wrong in it. */
export async function open(within, fragment = '') {
  const page = await within.newPage();
  const errors = [];
  const requests = [];
  page.on('pageerror', error => errors.push(`page error: ${error.message}`));
  page.on('console', message => {
    if (message.type() === 'error') errors.push(`console: ${message.text()}`);
  });
  page.on('request', request => requests.push(request.url()));
  await page.goto(address + fragment);
  await page.getByRole('button', { name: /^(Train|开始训练|训练)$/ }).and(page.locator(':enabled')).waitFor();
  return { page, errors, requests };
}

/** Puts code in front of that of the training worker and of its helpers, which run the same script. */
export async function inWorker(within, code) {
  await within.route(/\/assets\/worker-[^/]*\.js$/, async route => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `${code};\n${await response.text()}` });
  });
}

/**
 * From now on the workers of new pages can be asked how much memory their engines have, which only ever grows: a function of a page
 * that gives the bytes of each engine that is alive, the largest first. Not those of helpers, whose script does not come by here.
 */
export async function engineMemory(within) {
  await inWorker(within, `
    const made = WebAssembly.instantiate;
    WebAssembly.instantiate = async (...all) => {
      const instance = await made.call(WebAssembly, ...all);
      const { memory } = instance.exports ?? instance.instance.exports;
      new BroadcastChannel('memory of whom').onmessage = () => new BroadcastChannel('memory').postMessage(memory.buffer.byteLength);
      return instance;
    }`);
  return page => page.evaluate(async () => {
    const found = [];
    const answers = new BroadcastChannel('memory');
    answers.onmessage = ({ data }) => found.push(data);
    new BroadcastChannel('memory of whom').postMessage(null);
    await new Promise(done => setTimeout(done, 500));
    answers.close();
    return found.sort((a, b) => b - a);
  });
}

/** No error was seen, and nothing was asked of another host. */
export function assertClean({ errors, requests }) {
  assert.deepEqual(errors, []);
  const host = new URL(address).host;
  const foreign = requests.filter(url => /^(https?|wss?):/.test(url) && new URL(url).host !== host);
  assert.deepEqual(foreign, [], 'requests to other hosts');
}

/** Held-out success in per cent, as the label at the end of its curve says. Asks for little: it is asked while tasks are timed. */
export async function heldOut(page) {
  const labels = await page.evaluate(() => Array.from(document.querySelectorAll('.chart .end'), label => label.textContent));
  const found = labels.map(label => label.match(/held-out\s*(\d+)\s*%/)).find(Boolean);
  return found ? Number(found[1]) : null;
}

/** Iterations done of a run that was begun here, as the counter says; 0 while the recorded run is on show. */
export async function iterations(page) {
  return page.evaluate(() => {
    const counter = document.querySelector('[data-testid="iteration"]');
    return counter?.dataset.run === 'live' ? Number(counter.textContent.split('/')[0]) : 0;
  });
}

/** Waits until `ready()` is true, asking every 200 ms, or as often as is said. */
export async function until(ready, seconds, what, every = 200) {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    if (await ready()) return;
    await new Promise(resolve => setTimeout(resolve, every));
  }
  assert.fail(`not within ${seconds} s: ${what}`);
}

/** The tokens of the group on show, one line an episode. */
export async function episodes(page) {
  await page.getByRole('button', { name: 'Table', exact: true }).click();
  const rows = await page.locator('table:has-text("written by") tbody tr').allInnerTexts();
  await page.getByRole('button', { name: 'Rows', exact: true }).click();
  return rows.map(row => row.split('\t').slice(0, 5).join(' '));
}

/** Waits for as many frames as the page may need for a change: it draws in pieces, one a frame. */
export function drawn(page, frames = 30) {
  return page.evaluate(
    left =>
      new Promise(done => {
        const frame = () => (--left > 0 ? requestAnimationFrame(frame) : done());
        requestAnimationFrame(frame);
      }),
    frames,
  );
}
