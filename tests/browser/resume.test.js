// Runs that break off and go on: a reload, a crash of the worker, a lost device, blocked storage, a step back; checkpoints and
// policies as files.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { address, assertClean, context, inWorker, iterations, launch, open, until } from './support.js';

/** Long enough that no machine is at its end before a person has pressed Pause. */
const SMALL = '#v=1&env=search&seed=3&groups=2&num_generations=4&held_out=16&iterations=1000';
/** The same, long enough that it still trains after a test has waited for seconds. */
const LONG = SMALL.replace('iterations=1000', 'iterations=100000');
/** Small enough for a software GPU. */
const TINY = '#v=1&env=search&seed=4&groups=1&num_generations=2&turn_limit=1&d_model=32&layers=1&heads=2&held_out=0&iterations=1000&warm_start=none&micro_batches=1';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const button = (page, name) => page.getByRole('button', { name, exact: true });

async function trainUntil(page, steps, name = 'Train') {
  if (name) await button(page, name).click();
  await button(page, 'Pause').waitFor({ timeout: 120_000 });
  await until(async () => (await iterations(page)) >= steps, 180, `${steps} steps`);
}

async function pause(page) {
  await button(page, 'Pause').click();
  await button(page, 'Go on').waitFor({ timeout: 60_000 });
}

/** Graphics devices that the page can have taken away; it counts those that were given and those that are gone. */
async function mortal(within) {
  await inWorker(
    within,
    `{ const prototype = globalThis.GPUAdapter?.prototype; const request = prototype?.requestDevice;
    if (request) prototype.requestDevice = async function (descriptor) { const device = await request.call(this, descriptor);
    new BroadcastChannel('kill').onmessage = () => device.destroy(); new BroadcastChannel('given').postMessage(1);
    void device.lost.then(() => new BroadcastChannel('lost').postMessage(1)); return device; }; }`,
  );
  await within.addInitScript(() => {
    for (const name of ['given', 'lost']) {
      window[name] = 0;
      new BroadcastChannel(name).onmessage = () => {
        window[name] += 1;
      };
    }
  });
}

const kill = page => page.evaluate(() => new BroadcastChannel('kill').postMessage(1));

/** The file that an entry of the menu saves. */
async function saved(page, entry) {
  await page.getByRole('button', { name: 'Save / open' }).click();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: entry }).click()]);
  const file = { name: download.suggestedFilename(), path: await download.path() };
  await page.keyboard.press('Escape');
  return file;
}

/** Training success by step, from the exported curves. */
async function curve(page) {
  const { path } = await saved(page, 'Curves (CSV)');
  const [head, ...rows] = readFileSync(path, 'utf8').trimEnd().split('\n').filter(line => !line.startsWith('#')).map(line => line.split(','));
  const columns = ['iteration', 'train_success', 'mean_return', 'update.loss', 'update.gradient_norm'].map(name => head.indexOf(name));
  return rows.map(row => columns.map(column => row[column]).join(' '));
}

/** The steps whose episodes the page has, with a mark of what they are, from the exported JSON lines. */
async function episodes(page) {
  const { path } = await saved(page, 'All kept episodes (JSON lines)');
  const found = new Map();
  for (const line of readFileSync(path, 'utf8').trimEnd().split('\n').map(text => JSON.parse(text))) {
    found.set(line.iteration, `${found.get(line.iteration) ?? ''}${line.text} ${line.advantages.join(' ')}\n`);
  }
  return found;
}

test('page.md case 15: after a reload in mid-run the run goes on, as if it had not been interrupted, its episodes with it', { timeout: 400_000 }, async t => {
  const within = await context(browser);
  const session = await open(within, SMALL);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await trainUntil(page, 4);
  await page.reload();
  const offer = page.getByTestId('interrupted');
  await offer.waitFor();
  const step = Number((await offer.textContent())?.match(/step (\d+) of 1000/)?.[1]);
  assert.ok(step >= 4, `one step is lost at most: ${step}`);
  await button(page, 'Go on with it').click();
  await trainUntil(page, step + 3, null);
  await pause(page);
  assert.equal(await offer.count(), 0);
  assert.match(page.url(), /seed=3/);
  const resumed = await curve(page);
  const kept = await episodes(page);
  const earlier = [...kept.keys()].filter(iteration => iteration < step);
  assert.ok(earlier.length >= 1, `episodes from before the reload are there: ${[...kept.keys()]}`);
  // They can be looked at, and are not mistaken for those that the worker could play on from.
  const slider = page.getByRole('slider', { name: 'Iteration shown below' });
  await slider.focus();
  await page.keyboard.press('Home');
  await page.getByTestId('group').getByText(new RegExp(`iteration ${earlier[0]} `)).waitFor();
  await page.getByTestId('weight').waitFor();
  assert.equal(await button(page, 'Play on').and(page.locator(':enabled')).count(), 0);

  const other = await open(await context(browser), SMALL);
  await trainUntil(other.page, resumed.length);
  await pause(other.page);
  assert.deepEqual((await curve(other.page)).slice(0, resumed.length), resumed);
  const whole = await episodes(other.page);
  const both = earlier.filter(iteration => whole.has(iteration));
  for (const iteration of both) assert.equal(kept.get(iteration), whole.get(iteration), `the episodes of step ${iteration}`);
  t.diagnostic(`kept over the reload: episodes of ${earlier.join(' ')}; compared: ${both.join(' ')}`);
  assertClean(session);
  assertClean(other);
});

/** All that a store of the page's database holds. */
const stored = (page, store) =>
  page.evaluate(
    store =>
      new Promise((done, failed) => {
        const request = indexedDB.open('turnwise');
        request.onerror = () => failed(request.error);
        request.onsuccess = () => {
          const all = request.result.transaction(store).objectStore(store).getAll();
          all.onsuccess = () => {
            request.result.close();
            done(all.result);
          };
        };
      }),
    store,
  );

/** Writes over some bytes of the last step in the journals, from a place of its half on. */
const damage = (page, place) =>
  page.evaluate(async place => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('turnwise-journal');
    let last = { updated: -1 };
    for await (const file of folder.values()) {
      const whole = await file.getFile();
      for (const start of [0, whole.size / 2]) {
        try {
          const length = new DataView(await whole.slice(start, start + 4).arrayBuffer()).getUint32(0, true);
          const { updated } = JSON.parse(await whole.slice(start + 4, start + 4 + length).text());
          if (updated > last.updated) last = { file, start, updated };
        } catch {
          // Empty, or damaged before.
        }
      }
    }
    const writer = await last.file.createWritable({ keepExistingData: true });
    await writer.write({ type: 'write', position: last.start + place, data: new Uint8Array(64).fill(255) });
    await writer.close();
  }, place);

/** From now on a page notes the steps that its worker tells it of, over a reload too. */
const noteSteps = within =>
  within.addInitScript(() => {
    const own = Object.getOwnPropertyDescriptor(Worker.prototype, 'onmessage');
    Object.defineProperty(Worker.prototype, 'onmessage', {
      ...own,
      set(listener) {
        own.set.call(this, event => {
          for (const message of event.data.messages ?? [event.data]) {
            if (message.type === 'phase' && message.report) sessionStorage.setItem('steps', message.iteration + 1);
          }
          listener.call(this, event);
        });
      },
    });
  });

/** The step at which an interrupted run is offered. */
const offered = async page => Number((await page.getByTestId('interrupted').textContent())?.match(/step (\d+) of/)?.[1]);

const NO_JOURNAL = 'delete FileSystemFileHandle.prototype.createSyncAccessHandle';
for (const [name, code] of [['a journal', ''], ['no journal', NO_JOURNAL]]) {
  test(`with ${name} a reload costs one step at most, and what stands is in the database alone`, { timeout: 240_000 }, async t => {
    const within = await context(browser);
    await noteSteps(within);
    if (code) await inWorker(within, code);
    const session = await open(within, LONG);
    const { page } = session;
    page.on('dialog', dialog => dialog.accept());
    await trainUntil(page, 60);
    await page.reload();
    const [step, told] = [await offered(page), Number(await page.evaluate(() => sessionStorage.steps))];
    t.diagnostic(`offered at step ${step}, told of ${told}`);
    assert.ok(told >= 60 && step >= told - 1, `offered at step ${step}, told of ${told}`);
    await button(page, 'Go on with it').click();
    await trainUntil(page, step + 20, null);
    await pause(page);
    const done = await iterations(page);
    assert.deepEqual((await curve(page)).map(line => Number(line.split(' ')[0])), Array.from({ length: done }, (_, i) => i));
    await page.waitForTimeout(500);
    await page.reload();
    await page.getByTestId('interrupted').waitFor();
    await page.evaluate(async () => (await navigator.storage.getDirectory()).removeEntry('turnwise-journal', { recursive: true }).catch(() => {}));
    await page.reload();
    await page.getByTestId('interrupted').waitFor();
    assert.equal(await offered(page), done);
    assertClean(session);
  });
}

test('a step that was torn in the journal costs that step: the one before it is whole', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const session = await open(within, LONG);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  /** Trains on and reloads; gives the step at which the run is offered, which is in the journal alone. */
  const interrupted = async () => {
    for (let tries = 0; tries < 10; tries++) {
      const resumed = (await page.getByTestId('interrupted').count()) > 0;
      const from = resumed ? await offered(page) : 0;
      await button(page, resumed ? 'Go on with it' : 'Train').click();
      await trainUntil(page, from + 40, null);
      await page.reload();
      await page.getByTestId('interrupted').waitFor();
      // What was on its way to the database when the page went is there now, or never.
      await page.waitForTimeout(300);
      await page.reload();
      await page.getByTestId('interrupted').waitFor();
      const step = await offered(page);
      const [run] = await stored(page, 'runs');
      if (run.iteration < step - 1) return step;
    }
    assert.fail('the database has every step');
  };
  // In the text that says where the run stands; then in the checkpoint, whose header comes first.
  let step = await interrupted();
  await damage(page, 2);
  await page.reload();
  await page.getByTestId('interrupted').waitFor();
  assert.equal(await offered(page), step - 1);
  step = await interrupted();
  await damage(page, (1 << 18) + 64);
  await button(page, 'Go on with it').click();
  await page.getByTestId('notice-resume').getByText(`it goes on from step ${step - 1}, the last intact one`).waitFor();
  await trainUntil(page, step + 5, null);
  await pause(page);
  assert.deepEqual((await curve(page)).map(line => Number(line.split(' ')[0])), Array.from({ length: await iterations(page) }, (_, i) => i));
  assertClean(session);
});

test('a run that is taken up and broken off at once, again and again, loses no report', { timeout: 240_000 }, async t => {
  const within = await context(browser);
  await noteSteps(within);
  // What the run goes on from is slow to get from the journal to the database, and nobody's clock is to be relied on.
  await inWorker(
    within,
    `{ const { arrayBuffer } = Blob.prototype; Blob.prototype.arrayBuffer = function () {
    return new Promise(done => setTimeout(done, this.size > 1e5 ? 500 : 0)).then(() => arrayBuffer.call(this)); };
    const { now } = Date; const wrong = Math.floor(Math.random() * 1e7); Date.now = () => now() - wrong; }`,
  );
  // Meanwhile there is time enough to open the journal.
  await within.addInitScript(() => {
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message, ...rest) {
      setTimeout(() => postMessage.call(this, message, ...rest), message.type === 'train' ? 300 : 0);
    };
  });
  const session = await open(within, LONG);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  const steps = [];
  for (let i = 0; i < 6; i++) {
    await button(page, i === 0 ? 'Train' : 'Go on with it').click();
    // Every other time far enough that the last steps are in the journal alone.
    const more = i % 2 === 0 ? 50 : 1;
    await until(async () => (await iterations(page)) >= (steps.at(-1) ?? 0) + more, 60, 'steps more', 10);
    await page.reload();
    await page.getByTestId('interrupted').waitFor();
    steps.push(await offered(page));
    const told = Number(await page.evaluate(() => sessionStorage.steps));
    assert.ok(steps.at(-1) >= told - 1, `offered at ${steps.join(' ')}, told of ${told}`);
  }
  t.diagnostic(`broken off at ${steps.join(' ')}`);
  await button(page, 'Go on with it').click();
  await trainUntil(page, steps.at(-1) + 5, null);
  await pause(page);
  assert.deepEqual((await curve(page)).map(line => Number(line.split(' ')[0])), Array.from({ length: await iterations(page) }, (_, i) => i));
  assertClean(session);
});

test('a run that was reset is not offered as interrupted', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), SMALL);
  const { page } = session;
  await trainUntil(page, 2);
  await pause(page);
  await button(page, 'Reset').click();
  await page.waitForTimeout(500);
  await page.reload();
  await button(page, 'Train').waitFor();
  await page.waitForTimeout(500);
  assert.equal(await page.getByTestId('interrupted').count(), 0);
  // Nor is one that gave way to a run of other settings.
  await trainUntil(page, 2);
  await pause(page);
  await button(page, 'New seed').click();
  await trainUntil(page, 2);
  await pause(page);
  const seed = page.url().match(/seed=(\d+)/)[1];
  await page.waitForTimeout(500);
  page.on('dialog', dialog => dialog.accept());
  await page.reload();
  await button(page, 'Go on with it').click();
  await trainUntil(page, 3, null);
  await pause(page);
  assert.match(page.url(), new RegExp(`seed=${seed}(&|$)`));
  await button(page, 'Reset').click();
  await page.waitForTimeout(500);
  await page.reload();
  await button(page, 'Train').waitFor();
  await page.waitForTimeout(500);
  assert.equal(await page.getByTestId('interrupted').count(), 0, 'no older run takes its place');
  assertClean(session);
});

test('a run that another tab has is not offered, and a forgotten one is gone', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const first = await open(within, SMALL);
  await trainUntil(first.page, 2);
  await pause(first.page);
  const second = await open(within);
  await second.page.waitForTimeout(500);
  assert.equal(await second.page.getByTestId('interrupted').count(), 0);
  await first.page.close();
  await second.page.reload();
  await second.page.getByTestId('interrupted').waitFor();
  await button(second.page, 'Forget it').focus();
  await second.page.keyboard.press('Enter');
  await second.page.waitForTimeout(500);
  await second.page.reload();
  await button(second.page, 'Train').waitFor();
  await second.page.waitForTimeout(500);
  assert.equal(await second.page.getByTestId('interrupted').count(), 0);
  assertClean(second);
});

test('back to an earlier checkpoint, then on: the same steps again', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), SMALL);
  const { page } = session;
  await trainUntil(page, 5);
  await pause(page);
  const whole = await curve(page);
  const back = page.getByTestId('checkpoints');
  // Of a run that came far before it stood, not every step is kept.
  const kept = await back.locator('option').evaluateAll(options => options.map(({ value }) => Number(value)));
  const early = Math.min(...kept.filter(step => step >= 2));
  assert.ok(early < whole.length, `${kept}`);
  await back.locator('select').selectOption(String(early));
  await back.getByRole('button').click();
  await until(async () => (await iterations(page)) === early, 10, 'the run is back at that step');
  // Nothing is lost until the next step: forward again, and back.
  await back.locator('select').selectOption(String(whole.length));
  await back.getByRole('button').click();
  await until(async () => (await iterations(page)) === whole.length, 10, 'the run is where it was');
  await back.locator('select').selectOption(String(early));
  await back.getByRole('button').click();
  await until(async () => (await iterations(page)) === early, 10, 'and back');
  await button(page, 'Go on').click();
  await trainUntil(page, whole.length, null);
  await pause(page);
  assert.deepEqual((await curve(page)).slice(0, whole.length), whole);
  assertClean(session);
});

test('a worker that crashes is replaced, and Go on takes the run up from its last step', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  await inWorker(within, "new BroadcastChannel('crash').onmessage = () => { throw new Error('made to crash'); }");
  const { page } = await open(within, SMALL);
  await trainUntil(page, 3);
  await page.evaluate(() => new BroadcastChannel('crash').postMessage(1));
  const notice = page.getByTestId('notice-broken');
  await notice.waitFor({ timeout: 20_000 });
  assert.match((await notice.textContent()) ?? '', /kept up to its last step.*made to crash/s);
  const step = await iterations(page);
  assert.ok(step >= 3);
  await button(page, 'Go on').click();
  await trainUntil(page, step + 2, null);
  await pause(page);
  assert.deepEqual((await curve(page)).map(line => line.split(' ')[0]).slice(0, step + 2), Array.from({ length: step + 2 }, (_, i) => String(i)));
});

test('where the browser keeps nothing, training works and the page says so', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const blocked = "Object.defineProperty(globalThis, 'indexedDB', { get() { throw new DOMException('blocked', 'SecurityError'); } })";
  await inWorker(within, blocked);
  await within.addInitScript(blocked);
  const session = await open(within, SMALL);
  await trainUntil(session.page, 2);
  assert.match((await session.page.getByTestId('notice-storage').textContent()) ?? '', /keeps nothing.*blocked/s);
  await pause(session.page);
  assert.equal(await session.page.getByTestId('checkpoints').count(), 0);
  assertClean(session);
});

test('a checkpoint can be saved, opened elsewhere and gone on with; a damaged one is refused in words', { timeout: 400_000 }, async () => {
  const session = await open(await context(browser), SMALL);
  await trainUntil(session.page, 3);
  await pause(session.page);
  const whole = await curve(session.page);
  const file = await saved(session.page, 'Checkpoint (safetensors)');
  assert.match(file.name, /checkpoint\.safetensors$/);
  const bytes = readFileSync(file.path);

  const other = await open(await context(browser));
  const choose = async (name, buffer) => {
    await other.page.getByRole('button', { name: 'Save / open' }).click();
    const [chooser] = await Promise.all([other.page.waitForEvent('filechooser'), other.page.getByRole('button', { name: /Open a file/ }).click()]);
    await chooser.setFiles({ name, mimeType: 'application/octet-stream', buffer });
  };
  const said = () => other.page.getByTestId('notice-file').textContent();
  await choose('cut.safetensors', bytes.subarray(0, 100));
  await until(async () => /cut\.safetensors.*not a readable safetensors file/s.test((await said()) ?? ''), 10, 'the cut file is refused');
  await choose('run.safetensors', bytes);
  await until(async () => /run\.safetensors: the checkpoint was opened, after step/.test((await said()) ?? ''), 10, 'the file is opened');
  assert.match(other.page.url(), /seed=3/);
  await button(other.page, 'Train').click();
  await until(async () => (await other.page.getByText(/gone on from a checkpoint/).count()) > 0, 60, 'the checkpoint is used');
  await button(other.page, 'Pause').waitFor({ timeout: 60_000 });
  await until(async () => (await iterations(other.page)) >= whole.length + 2, 60, 'two steps more');
  await pause(other.page);
  const rest = await curve(other.page);
  assert.equal(rest[0].split(' ')[0], String(whole.length), 'it goes on with the step after the checkpoint');

  // Weights that were cut off behind an intact header: nothing is lost for it.
  const done = await iterations(other.page);
  await choose('half.safetensors', bytes.subarray(0, bytes.length - 1000));
  await until(async () => /half\.safetensors.*bytes of weights/s.test((await said()) ?? ''), 10, 'the cut weights are refused');
  assert.equal(await iterations(other.page), done);
  assertClean(session);
  assertClean(other);
});

test('the policy leaves as a zip with a model folder for Hugging Face transformers', { timeout: 240_000 }, async () => {
  const session = await open(await context(browser), SMALL);
  await trainUntil(session.page, 1);
  await pause(session.page);
  const file = await saved(session.page, /Policy for Hugging Face/);
  const bytes = readFileSync(file.path);
  assert.match(file.name, /policy\.zip$/);
  assert.equal(bytes.readUInt32LE(0), 0x04034b50);
  for (const name of ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json']) assert.ok(bytes.includes(`turnwise-search/${name}`), name);
  assertClean(session);
});

/** Puts entries into the page's storage as they are. */
const put = (page, store, entries) =>
  page.evaluate(
    ([store, entries]) =>
      new Promise((done, failed) => {
        const request = indexedDB.open('turnwise');
        request.onerror = () => failed(request.error);
        request.onsuccess = () => {
          const transaction = request.result.transaction(store, 'readwrite');
          for (const [value, key] of entries) transaction.objectStore(store).put(value, key);
          transaction.oncomplete = () => {
            request.result.close();
            done();
          };
        };
      }),
    [store, entries],
  );

test('damaged records in storage are passed over: runs, reports, episodes, checkpoints', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const session = await open(within, SMALL);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await put(page, 'runs', [
    [{ id: 'x', updated: 1, iteration: 3, finished: false }],
    [{ id: 'y', config: { environment: 'search', iterations: 50 }, updated: null, iteration: 3, finished: false }],
    [{ id: 'z', config: null, updated: 1e18, iteration: 'a', finished: 0 }],
  ]);
  await page.reload();
  await trainUntil(page, 3);
  await pause(page);
  assert.equal(await page.getByTestId('interrupted').count(), 0);
  await page.waitForTimeout(500);
  const id = await page.evaluate(async () => (await navigator.locks.query()).held.map(({ name }) => name.replace('turnwise-run-', ''))[0]);
  await put(page, 'episodes', [[{ iteration: 1, groups: '<b>' }, [id, 1]], ['text', [id, 0]]]);
  await page.reload();
  await button(page, 'Go on with it').click();
  await trainUntil(page, 5, null);
  await pause(page);
  // The last checkpoint is damaged: the one before it serves.
  await page.waitForTimeout(500);
  const step = await iterations(page);
  const text = ['not a checkpoint', [id, step]];
  await put(page, 'checkpoints', [text]);
  await page.reload();
  await button(page, 'Go on with it').click();
  await page.getByTestId('notice-resume').getByText(`it goes on from step ${step - 1}, the last intact one`).waitFor();
  await trainUntil(page, step + 2, null);
  await pause(page);
  assert.deepEqual((await curve(page)).map(line => Number(line.split(' ')[0])), Array.from({ length: await iterations(page) }, (_, i) => i));
  await page.waitForTimeout(500);
  await put(page, 'reports', [[{ iteration: 1, update: 'none' }, [id, 1]]]);
  await page.reload();
  await button(page, 'Go on with it').click();
  await page.getByTestId('notice-resume').getByText('could not be read back').waitFor();
  assertClean(session);
});

test('another tab with an older version of the storage does not slow training down: nothing is kept, and the page says so', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const older = await within.newPage();
  await older.goto(new URL('favicon.svg', address).href);
  await older.evaluate(() => new Promise(done => {
    const request = indexedDB.open('turnwise', 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore('runs', { keyPath: 'id' });
      for (const name of ['reports', 'checkpoints']) request.result.createObjectStore(name);
    };
    request.onsuccess = () => {
      window.held = request.result;
      done();
    };
  }));
  const session = await open(within, LONG);
  await trainUntil(session.page, 2);
  await session.page.getByTestId('notice-storage').getByText('keeps nothing').waitFor({ timeout: 30_000 });
  const before = await iterations(session.page);
  await until(async () => (await iterations(session.page)) >= before + 20, 20, 'training goes on at its pace');
  assertClean(session);
});

test('storage that refuses after a while breaks nothing: training goes on past its time limit', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const newer = await within.newPage();
  await newer.goto(new URL('favicon.svg', address).href);
  await newer.evaluate(() => new Promise(done => {
    const request = indexedDB.open('turnwise', 99);
    request.onsuccess = () => {
      request.result.close();
      done();
    };
  }));
  const session = await open(within, LONG);
  await trainUntil(session.page, 2);
  await session.page.getByTestId('notice-storage').getByText('keeps nothing').waitFor({ timeout: 30_000 });
  await session.page.waitForTimeout(6500);
  const before = await iterations(session.page);
  await until(async () => (await iterations(session.page)) >= before + 5, 20, 'training goes on');
  assert.equal(await session.page.getByTestId('notice-broken').count(), 0);
  assertClean(session);
});

/** Holds the page's database from another page for some seconds: no other transaction gets its turn. */
async function holdStorage(within, seconds) {
  const other = await within.newPage();
  await other.goto(new URL('favicon.svg', address).href);
  await other.evaluate(
    seconds =>
      new Promise((done, failed) => {
        const request = indexedDB.open('turnwise');
        request.onerror = () => failed(request.error);
        request.onsuccess = () => {
          const store = request.result.transaction([...request.result.objectStoreNames], 'readwrite').objectStore('runs');
          const end = performance.now() + 1000 * seconds;
          const again = () => {
            if (performance.now() > end) request.result.close();
            else store.get('').onsuccess = again;
          };
          again();
          done();
        };
      }),
    seconds,
  );
}

test('storage that does not answer for a while does not hold training up, and the run is kept again after that', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const session = await open(within, LONG);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await trainUntil(page, 20);
  await holdStorage(within, 7);
  await page.waitForTimeout(4500);
  const before = await iterations(page);
  await until(async () => (await iterations(page)) >= before + 20, 2, 'training goes on at its pace');
  await page.waitForTimeout(3000);
  await pause(page);
  await page.waitForTimeout(500);
  assert.equal(await page.getByTestId('notice-storage').count(), 0);
  const done = await iterations(page);
  await page.reload();
  await page.getByTestId('interrupted').waitFor();
  assert.equal(await offered(page), done);
  await button(page, 'Go on with it').click();
  await trainUntil(page, done + 5, null);
  await pause(page);
  assert.deepEqual((await curve(page)).map(line => Number(line.split(' ')[0])), Array.from({ length: await iterations(page) }, (_, i) => i));
  assertClean(session);
});

test('a run that gets more steps while storage does not answer loses no report', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const session = await open(within, SMALL.replace('iterations=1000', 'iterations=50000'));
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await trainUntil(page, 60);
  await holdStorage(within, 8);
  // Meanwhile a write waits, and what the journal has alone grows.
  await page.waitForTimeout(1000);
  await pause(page);
  await page.evaluate(() => {
    for (const fold of document.querySelectorAll('details')) fold.open = true;
  });
  const steps = page.locator('input#iterations').first();
  await steps.fill('60000');
  await steps.press('Enter');
  await button(page, 'Train').or(button(page, 'Go on')).first().click();
  await trainUntil(page, (await iterations(page)) + 5, null);
  await page.waitForTimeout(8000);
  await pause(page);
  await page.waitForTimeout(500);
  await page.reload();
  await page.getByTestId('interrupted').waitFor();
  const done = await offered(page);
  await button(page, 'Go on with it').click();
  await trainUntil(page, done + 5, null);
  await pause(page);
  assert.deepEqual((await curve(page)).map(line => Number(line.split(' ')[0])), Array.from({ length: await iterations(page) }, (_, i) => i));
  assertClean(session);
});

test('where storage does not answer for ten seconds the page says that nothing is kept, and trains on', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  // The database is there, and held before the run begins.
  const session = await open(within, LONG);
  const { page } = session;
  await holdStorage(within, 40);
  await trainUntil(page, 2);
  await page.getByTestId('notice-storage').getByText('has not answered for 10 s').waitFor({ timeout: 30_000 });
  const before = await iterations(page);
  await until(async () => (await iterations(page)) >= before + 50, 5, 'training goes on at its pace');
  await pause(page);
  assertClean(session);
});

test('a run that is reset the moment it stands is not written once more', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  // The worker's writes come late.
  await inWorker(within, '{ const { getAllKeys } = IDBObjectStore.prototype; IDBObjectStore.prototype.getAllKeys = function (...a) { const end = performance.now() + 100; while (performance.now() < end); return getAllKeys.apply(this, a); }; }');
  const session = await open(within, LONG);
  const { page } = session;
  for (let i = 0; i < 3; i++) {
    await trainUntil(page, 5);
    await page.evaluate(() => {
      const named = name => [...document.querySelectorAll('button')].find(({ textContent }) => textContent.trim() === name);
      named('Pause').click();
      return new Promise(done => {
        const look = () => {
          if (named('Go on')) done(named('Reset').click());
          else setTimeout(look);
        };
        look();
      });
    });
    await button(page, 'Train').waitFor();
    await page.waitForTimeout(1000);
    assert.deepEqual(await stored(page, 'runs'), []);
  }
  assertClean(session);
});

test('where there is no room for episodes the run is kept without them', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  await inWorker(
    within,
    `{ const { put } = IDBObjectStore.prototype; IDBObjectStore.prototype.put = function (value, ...key) {
    if (this.name === 'episodes') throw new DOMException('full', 'QuotaExceededError'); return put.call(this, value, ...key); }; }`,
  );
  const session = await open(within, SMALL);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await trainUntil(page, 4);
  await pause(page);
  assert.equal(await page.getByTestId('notice-storage').count(), 0);
  const done = await iterations(page);
  await page.waitForTimeout(500);
  await page.reload();
  assert.match(await page.getByTestId('interrupted').textContent(), new RegExp(`step ${done} of 1000`));
  assertClean(session);
});

test('a policy that is asked for when the worker crashes is not waited for', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  await inWorker(within, "addEventListener('message', event => { if (event.data.type === 'export_policy') { event.stopImmediatePropagation(); setTimeout(() => { throw new Error('made to crash'); }); } });");
  const { page } = await open(within, SMALL);
  await trainUntil(page, 2);
  await pause(page);
  await page.getByRole('button', { name: 'Save / open' }).click();
  await page.getByRole('button', { name: /Policy for Hugging Face/ }).click();
  await page.getByText('The file could not be made').waitFor();
  await page.getByRole('button', { name: 'Curves (CSV)' }).and(page.locator(':enabled')).waitFor();
  await page.keyboard.press('Escape');
  await button(page, 'Go on').click();
  await trainUntil(page, 4, null);
});

test('page.md case 6: a device that is lost in mid-run is replaced within two seconds, and the run goes on', { timeout: 600_000 }, async t => {
  const gpu = await launch({ webgpu: true });
  try {
    const within = await context(gpu);
    await mortal(within);
    const { page, errors } = await open(within, TINY);
    await page.getByText('More settings').click();
    await page.getByLabel('Device', { exact: true }).selectOption('gpu');
    await trainUntil(page, 1);
    const before = await iterations(page);
    const started = Date.now();
    await kill(page);
    const notice = page.getByTestId('notice-device');
    await notice.waitFor({ timeout: 20_000 });
    const seconds = (Date.now() - started) / 1000;
    t.diagnostic(`said after ${seconds.toFixed(2)} s`);
    assert.ok(seconds <= 2, `${seconds} s`);
    assert.match((await notice.textContent()) ?? '', /The GPU was lost. Training goes on from step \d+/);
    // A new device is asked for and given, and lost at once, while its shaders are compiled: the CPU takes over, and the badge says why.
    const badge = async () => (await page.locator('header').textContent()) ?? '';
    await until(() => page.evaluate(() => window.given === 2), 60, 'a new device');
    await kill(page);
    await until(async () => /CPU/.test(await badge()), 60, 'the badge says CPU');
    await until(async () => (await iterations(page)) >= before + 2, 120, 'the run goes on on the CPU');
    assert.deepEqual(errors.filter(error => error.startsWith('page error')), []);
  } finally {
    await gpu.close();
  }
});

test('a device that is lost while the run is set up is replaced, and the run begins', { timeout: 300_000 }, async () => {
  const gpu = await launch({ webgpu: true });
  try {
    const within = await context(gpu);
    await inWorker(
      within,
      `{ const prototype = globalThis.GPUAdapter?.prototype; const request = prototype?.requestDevice;
      if (request) prototype.requestDevice = async function (descriptor) { const device = await request.call(this, descriptor);
      setTimeout(() => device.destroy(), 400); return device; }; }`,
    );
    const { page, errors } = await open(within, `${TINY.replace('warm_start=none', 'warm_start=live')}&im_steps=200&im_batch=4`);
    await page.getByText('More settings').click();
    await page.getByLabel('Device', { exact: true }).selectOption('gpu');
    await button(page, 'Train').click();
    await page.getByTestId('notice-device').getByText(/The GPU was lost|graphics device was lost/).waitFor({ timeout: 30_000 });
    await page.locator('.badge').filter({ hasText: 'CPU' }).waitFor({ timeout: 60_000 });
    await until(async () => (await iterations(page)) >= 2, 120, 'two steps on the CPU');
    assert.deepEqual(errors.filter(error => error.startsWith('page error')), []);
  } finally {
    await gpu.close();
  }
});

test('a device that is lost while the run is on the CPU is nothing to that run, and the next one gets a new device', { timeout: 600_000 }, async () => {
  const gpu = await launch({ webgpu: true });
  try {
    const within = await context(gpu);
    await mortal(within);
    const session = await open(within, TINY.replace('iterations=1000', 'iterations=100000'));
    const { page } = session;
    const on = device => page.getByLabel('Device', { exact: true }).selectOption(device);
    const badge = () => page.getByRole('banner').innerText();
    await page.getByText('More settings').click();
    await on('gpu');
    await trainUntil(page, 1);
    await pause(page);
    await button(page, 'Reset').click();
    await on('cpu');
    await trainUntil(page, 2);
    await kill(page);
    await until(() => page.evaluate(() => window.lost === 1), 30, 'the device is gone');
    const at = await iterations(page);
    await until(async () => (await iterations(page)) >= at + 5, 60, 'the run goes on');
    assert.match(await badge(), /CPU/);
    assert.equal(await page.getByTestId('notice-device').count(), 0);
    await pause(page);
    await button(page, 'Reset').click();
    await on('gpu');
    await trainUntil(page, 1);
    assert.match(await badge(), /WebGPU/);
    await page.getByTestId('notice-device').getByText(/The GPU was lost/).waitFor();
    assertClean(session);
  } finally {
    await gpu.close();
  }
});

test('with more steps in the form a finished run is gone on with, and so is its checkpoint; the steps are those of a longer run', { timeout: 400_000 }, async () => {
  const link = steps => SMALL.replace('iterations=1000', `iterations=${steps}`);
  const finished = page => page.getByText('Finished', { exact: true }).waitFor({ timeout: 60_000 });
  const whole = await open(await context(browser), link(9));
  await button(whole.page, 'Train').click();
  await finished(whole.page);
  const wanted = await curve(whole.page);
  assert.equal(wanted.length, 9);

  const session = await open(await context(browser), link(4));
  const { page } = session;
  const longer = async (on, steps) => {
    const field = on.getByLabel(/^Training steps/).and(on.locator('input'));
    await on.evaluate(() => {
      for (const fold of document.querySelectorAll('details')) fold.open = true;
    });
    await field.first().fill(String(steps));
    await field.first().press('Enter');
    await on.getByTestId('changed').getByText(`trains it further, to step ${steps}`).waitFor();
  };
  await button(page, 'Train').click();
  await finished(page);
  await longer(page, 7);
  await button(page, 'Go on').click();
  await until(async () => (await iterations(page)) === 7, 60, 'seven steps');
  await finished(page);
  assert.deepEqual(await curve(page), wanted.slice(0, 7));

  const file = await saved(page, 'Checkpoint (safetensors)');
  const other = await open(await context(browser));
  await other.page.getByRole('button', { name: 'Save / open' }).click();
  const [chooser] = await Promise.all([other.page.waitForEvent('filechooser'), other.page.getByRole('button', { name: /Open a file/ }).click()]);
  await chooser.setFiles({ name: 'done.safetensors', mimeType: 'application/octet-stream', buffer: readFileSync(file.path) });
  await other.page.getByTestId('notice-file').getByText('after step 7, where its run ends').waitFor();
  await finished(other.page);
  await longer(other.page, 9);
  await button(other.page, 'Go on').or(button(other.page, 'Train')).click();
  await until(async () => (await iterations(other.page)) === 9, 60, 'nine steps');
  await finished(other.page);
  assert.deepEqual(await curve(other.page), wanted.slice(7));
  for (const one of [whole, session, other]) assertClean(one);
});

test('a link that is opened while an interrupted run is read back stays, and the run is offered again', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const session = await open(within, LONG);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await trainUntil(page, 30);
  await pause(page);
  await page.waitForTimeout(500);
  await page.reload();
  await page.getByTestId('interrupted').waitFor();
  const step = await offered(page);
  await holdStorage(within, 4);
  await button(page, 'Go on with it').click();
  await page.getByText('Setting up', { exact: true }).waitFor();
  await page.evaluate(() => {
    location.hash = '#v=1&env=code&seed=9';
  });
  await page.getByTestId('interrupted').waitFor({ timeout: 15_000 });
  assert.equal(await offered(page), step);
  assert.match(await page.evaluate(() => location.hash), /env=code&seed=9/);
  assert.equal(await iterations(page), 0, 'nothing trains');
  assertClean(session);
});

test('an interrupted run that storage does not give in time is said to be unreadable, and the page can be used', { timeout: 240_000 }, async () => {
  const within = await context(browser);
  const session = await open(within, LONG);
  const { page } = session;
  page.on('dialog', dialog => dialog.accept());
  await trainUntil(page, 30);
  await pause(page);
  await page.waitForTimeout(500);
  await page.reload();
  await page.getByTestId('interrupted').waitFor();
  await holdStorage(within, 30);
  await button(page, 'Go on with it').click();
  await page.getByTestId('notice-resume').getByText('could not be read back').waitFor({ timeout: 20_000 });
  await trainUntil(page, 3);
  await pause(page);
  assertClean(session);
});
