// Files and links that are opened: by the file chooser, by drop, by paste. Wrong ones are named and change nothing.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readFileSync } from 'node:fs';
import { assertClean, context, iterations, launch, open, until } from './support.js';
import { choose, drop } from './files.js';

const RECORDED = readFileSync(new URL('../../www/public/recorded/search.json', import.meta.url), 'utf8');

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

async function ready(fragment = '#v=1&env=search&seed=3') {
  const session = await open(await context(browser), fragment);
  await session.page.getByTestId('group').waitFor();
  return session;
}

const hash = page => page.evaluate(() => location.hash);
const said = page => page.getByTestId('notice-file');

const LINKS = {
  'note.txt': 'See https://example.org/somewhere/#v=1&env=search&seed=21&gamma=0.5 and tell me.',
  'lesson.md': '# A lesson\n\nOpen [the experiment](https://example.org/#v=1&env=search&seed=22&gamma=0.5), then press Train.\n',
  'experiment.url': '[InternetShortcut]\r\nURL=https://example.org/#v=1&env=search&seed=23&gamma=0.5\r\n',
  'fragment.txt': 'v=1&env=search&seed=24&gamma=0.5\n',
};

test('a link in a text, Markdown or shortcut file opens its experiment and starts nothing', async () => {
  const session = await ready();
  const { page } = session;
  let seed = 21;
  for (const [name, text] of Object.entries(LINKS)) {
    await drop(page, name, text);
    await said(page).getByText(`${name}: its link was opened`).waitFor();
    await page.getByText(`seed ${seed}`).first().waitFor();
    assert.match(await page.getByTestId('gamma-value').textContent(), /^0?\.5/);
    await page.getByText('Recorded run', { exact: true }).waitFor();
    seed += 1;
  }
  await page.goBack();
  await page.getByText('seed 23').first().waitFor();
  assertClean(session);
});

test('a link is pasted anywhere but into a field', async () => {
  const session = await ready();
  const { page } = session;
  const paste = selector =>
    page.evaluate(selector => {
      const data = new DataTransfer();
      data.setData('text/plain', 'look: https://example.org/#v=1&env=calculator&seed=8');
      document.querySelector(selector).dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true }));
    }, selector);
  await page.getByText('More settings').click();
  const before = await hash(page);
  await paste('input[type="number"]');
  await page.waitForTimeout(300);
  assert.equal(await hash(page), before);
  await paste('body');
  await until(async () => (await hash(page)).includes('seed=8'), 5, 'the link is opened');
  await until(async () => (await page.getByLabel('Environment', { exact: true }).inputValue()) === 'calculator', 5, 'the environment of the link');
  assertClean(session);
});

test('settings as JSON are taken over, and what is out of bounds is named', async () => {
  const session = await ready();
  const { page } = session;
  await choose(page, { name: 'experiment.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify({ version: 1, environment: 'search', seed: 31, gamma: 7, nonsense: 1 })) });
  await said(page).getByText('experiment.json: its settings were taken over').waitFor();
  const notes = page.getByTestId('notes');
  await notes.locator('summary').click();
  const text = await notes.textContent();
  for (const word of ['File:', 'gamma', 'nonsense']) assert.ok(text.includes(word), `${word} in: ${text}`);
  assert.match(await hash(page), /seed=31/);
  assertClean(session);
});

/** Files that cannot be opened, with what is said of each. `true` stands for the chooser's own text. */
const WRONG = {
  'empty.json': ['', 'is empty'],
  'blank.txt': ['  \n ', 'is empty'],
  'picture.png': ['\u0089PNG\r\n\u001a\n\0\0', 'is not text'],
  'page.html': ['<!doctype html><title>x</title>', 'is a web page'],
  'cut.json': [RECORDED.slice(0, 5000), 'is not valid JSON'],
  'list.json': ['[1, 2]', 'neither a run'],
  'other.json': ['{"name": "x"}', 'neither a run'],
  'null.json': ['null', 'neither a run'],
  'episodes.jsonl': ['{"iteration":0,"trajectory":{}}\n{"iteration":0,"trajectory":{}}\n', 'holds episodes as JSON lines'],
  'story.txt': ['Once upon a time.', 'holds no link'],
  'policy.safetensors': ['\u0008\0\0\0\0\0\0\0{}      ', 'is a checkpoint'],
};

test('wrong files are named, with what was expected; the form and the run stay', { timeout: 120_000 }, async () => {
  const session = await ready();
  const { page } = session;
  const group = await page.getByTestId('group').textContent();
  for (const [name, [text, message]] of Object.entries(WRONG)) {
    await drop(page, name, text);
    await said(page).getByText(name).waitFor();
    assert.ok((await said(page).textContent()).includes(message), `${name}: ${await said(page).textContent()}`);
    assert.equal(await hash(page), '#v=1&env=search&seed=3');
    assert.equal(await page.getByTestId('group').textContent(), group);
  }
  // In Chinese as well: the message follows the language.
  await page.getByText('中文', { exact: true }).click();
  await said(page).getByText('policy.safetensors 是检查点').waitFor();
  assertClean(session);
});

test('a file that is too large is not even read', async () => {
  const session = await ready();
  const { page } = session;
  await page.evaluate(() => {
    const file = new File(['{}'], 'large.json');
    Object.defineProperty(file, 'size', { value: 201e6 });
    file.arrayBuffer = () => {
      throw new Error('read');
    };
    const data = new DataTransfer();
    const event = new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
    Object.defineProperty(event, 'dataTransfer', { value: { types: ['Files'], files: [file] } });
    document.body.dispatchEvent(event);
  });
  await said(page).getByText('large.json has 201 MB; the page opens files of at most 200 MB').waitFor();
  assertClean(session);
});

/** One thing wrong in a run, and the field that the message must name. */
const DAMAGE = {
  'reports': file => { file.reports = []; },
  'reports[3].update': file => { delete file.reports[3].update; },
  'reports[5].iteration': file => { file.reports[5].iteration = 2; },
  'reports[2].train_success': file => { file.reports[2].train_success = '0.5'; },
  'config.environment': file => { file.config.environment = 7; },
  'made_with': file => { file.made_with = ['x']; },
  'batches[0].trajectories[1].tokens[2]': file => { file.batches[0].trajectories[1].tokens[2] = 9999; },
  'batches[0].trajectories[0].loss_mask': file => { file.batches[0].trajectories[0].loss_mask.pop(); },
  'batches[1].trajectories[2].turns[0]': file => { file.batches[1].trajectories[2].turns[0].end = 1e6; },
  'batches[1].trajectories[0].end': file => { file.batches[1].trajectories[0].end = 'constructor'; },
  'batches[2].groups[0].hidden_state': file => { file.batches[2].groups[0].hidden_state = { html: '<b>' }; },
  'batches[2].credit.advantages[4]': file => { file.batches[2].credit.advantages[4].push(1); },
  'batches[0].rewards.turns[0][0][0].term': file => { file.batches[0].rewards.turns[0][0] = [{ term: '__proto__', weight: 1 }]; },
  'measured[0].credit.credits': file => { file.measured[0].credit.credits.pop(); },
  'measured[1].accuracy.methods[0].all_turns.pearson.value': file => { file.measured[1].accuracy.methods[0].all_turns.pearson = { value: 'high', interval: null }; },
};

test('a run with one bad field is refused, and the field is named', { timeout: 240_000 }, async () => {
  const session = await ready();
  const { page } = session;
  const group = await page.getByTestId('group').textContent();
  for (const [field, damage] of Object.entries(DAMAGE)) {
    const file = JSON.parse(RECORDED);
    damage(file);
    await drop(page, 'run.json', JSON.stringify(file));
    await said(page).getByText(`${field}:`).waitFor();
    assert.equal(await page.getByTestId('group').textContent(), group, field);
  }
  assertClean(session);
});

test('text of a file is text, and its settings are bounded', async () => {
  const session = await ready();
  const { page } = session;
  const file = JSON.parse(RECORDED);
  file.made_with = '<img src=x onerror="window.hacked=1">';
  file.batches[3].groups[0].hidden_state = '<script>window.hacked=1</script>';
  Object.assign(file.config, { gamma: 1e9, title: '"><script>window.hacked=1</script>' });
  await drop(page, '<img src=x onerror=window.hacked=1>.json', JSON.stringify(file));
  await said(page).getByText('the run is on show').waitFor();
  await page.getByText('<img src=x onerror="window.hacked=1">').waitFor();
  await page.waitForTimeout(300);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.getByTestId('notes').getByText(/gamma/).waitFor();
  assertClean(session);
});

test('a run of another task is opened with its settings, stands in for the recording of its task, and can be closed', { timeout: 240_000 }, async () => {
  const session = await ready();
  const { page } = session;
  const file = JSON.parse(readFileSync(new URL('../../www/public/recorded/calculator.json', import.meta.url), 'utf8'));
  file.made_with = 'made elsewhere';
  file.config.seed = 77;
  file.config.groups = 2;
  file.config.num_generations = 4;
  file.config.held_out = 8;
  await drop(page, 'calculator.json', JSON.stringify(file));
  await said(page).getByText('calculator.json: the run is on show').waitFor();
  await page.getByText('Recorded: Calculator, seed 77').waitFor();
  await page.getByText('made elsewhere').waitFor();
  assert.equal(await page.locator('#environment').inputValue(), 'calculator');
  assert.match(await hash(page), /env=calculator.*seed=77/);
  assert.equal(await page.getByTestId('again').count(), 0, 'the form follows the run');
  assert.match(await page.getByTestId('hidden-state').textContent(), /\d+ [+−×] \d+ = \d+/, 'its hidden state, in its words');
  await page.getByTestId('weight').waitFor();
  // Another task in the form has its own recording; the opened run is not lost for that.
  await page.locator('#environment').selectOption('spin');
  await page.getByText('Recorded: Spin, seed 2').waitFor();
  await page.locator('#environment').selectOption('calculator');
  await page.getByText('Recorded: Calculator, seed 77').waitFor();
  // A run of its own settings is trained from there, and Reset leads back to it.
  await page.getByRole('button', { name: 'Step', exact: true }).click();
  await page.getByText('Sampled, not scored yet').waitFor({ timeout: 120_000 });
  await page.getByRole('button', { name: 'Reset', exact: true }).click();
  await page.getByText('Recorded: Calculator, seed 77').waitFor();
  // It can be closed.
  await page.getByRole('button', { name: 'Close this run' }).click();
  await page.getByText('Recorded: Calculator, seed 2').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Close this run' }).count(), 0);
  assertClean(session);
});

test('opening a run asks before one that was trained here is dropped', { timeout: 240_000 }, async () => {
  const session = await ready('#v=1&env=search&seed=0&groups=2&num_generations=4&held_out=16&iterations=2');
  const { page } = session;
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 120_000 });
  await drop(page, 'run.json', RECORDED);
  const question = page.getByRole('dialog').filter({ hasText: 'drops the run that was trained in this tab' });
  await question.waitFor();
  await question.getByRole('button', { name: 'Keep my run' }).click();
  await question.waitFor({ state: 'detached' });
  assert.equal(await iterations(page), 2);
  await drop(page, 'run.json', RECORDED);
  await question.waitFor();
  await page.keyboard.press('Escape');
  await question.waitFor({ state: 'detached' });
  await page.getByText('Finished', { exact: true }).waitFor();
  await drop(page, 'run.json', RECORDED);
  await question.getByRole('button', { name: 'Open and drop my run' }).click();
  await page.getByText('Recorded run', { exact: true }).waitFor();
  assertClean(session);
});

test('the layer for files goes when they have left, be the part of the page below them gone or not', async () => {
  const session = await ready();
  const { page } = session;
  const files = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(['x'], 'x.txt'));
    return data;
  });
  const layer = page.getByTestId('drop-layer');
  // What is replaced under the pointer is left without a word.
  await page.dispatchEvent('body', 'dragenter', { dataTransfer: files });
  await page.dispatchEvent('[data-testid=group]', 'dragenter', { dataTransfer: files });
  await layer.waitFor();
  await layer.waitFor({ state: 'detached', timeout: 3000 });
  // While they are there it stays.
  await page.dispatchEvent('body', 'dragenter', { dataTransfer: files });
  for (let i = 0; i < 8; i++) {
    await page.waitForTimeout(250);
    await page.dispatchEvent('body', 'dragover', { dataTransfer: files });
  }
  assert.equal(await layer.count(), 1);
  await page.dispatchEvent('body', 'dragleave', { dataTransfer: files });
  await layer.waitFor({ state: 'detached', timeout: 800 });
  assertClean(session);
});

test('where the question about a run that would be dropped cannot be loaded, nothing is dropped and the page says so', { timeout: 120_000 }, async () => {
  const within = await context(browser);
  await within.route(/DropQuestion/, route => route.abort());
  const { page, errors } = await open(within, '#v=1&env=search&seed=4&groups=2&gen=4&d=32&warm=none&held=16&iters=20000');
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await until(async () => (await iterations(page)) >= 2, 60, 'training');
  await drop(page, 'run.json', RECORDED);
  await said(page).waitFor();
  const before = await iterations(page);
  await until(async () => (await iterations(page)) > before, 10, 'training goes on');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  assert.deepEqual(errors.filter(error => error.startsWith('page error')), []);
});

test('what was said of a file goes when another run begins', { timeout: 120_000 }, async () => {
  const session = await ready('#v=1&env=search&seed=4&groups=2&gen=4&d=32&warm=none&held=16&iters=3');
  const { page } = session;
  await drop(page, 'run.json', RECORDED);
  await said(page).getByText('the run is on show').waitFor();
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await said(page).waitFor({ state: 'detached' });
  assertClean(session);
});
