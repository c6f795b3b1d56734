// What the page saves: curves, episodes, runs, settings, figures, links. Each is read back and compared with what the page shows.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readFileSync } from 'node:fs';
import { address, assertClean, context, launch, open, PHONE, until } from './support.js';
import { choose, download, menu, pngSize, saved } from './files.js';

const RECORDED = JSON.parse(readFileSync(new URL('../../www/public/recorded/search.json', import.meta.url), 'utf8'));

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

async function ready(options = {}, fragment = '') {
  const session = await open(await context(browser, options), fragment);
  await session.page.getByTestId('group').waitFor();
  return session;
}

/** Every number of a report under its dotted name. */
function flat(value, path = '') {
  if (value === null || typeof value !== 'object') return { [path]: value };
  return Object.assign({}, ...Object.entries(value).map(([key, part]) => flat(part, path ? `${path}.${key}` : key)));
}

test('curves as CSV: a line a step, every number of its report, the link above; the same in a locale with decimal commas', async () => {
  for (const locale of ['en-US', 'de-DE']) {
    const session = await ready({ locale });
    const { name, text } = await saved(session.page, 'Curves (CSV)');
    assert.equal(name, 'turnwise-search-seed-2-curves.csv');
    const lines = text.trimEnd().split('\n');
    assert.ok(lines[0].startsWith(`# Turnwise ${address}#v=1&env=search&`), lines[0]);
    assert.equal(lines[1], '# by_type.0: 0 hops');
    const [head, ...rows] = lines.filter(line => !line.startsWith('#')).map(line => line.split(','));
    assert.equal(rows.length, RECORDED.reports.length);
    rows.forEach((row, i) => {
      assert.equal(row.length, head.length);
      for (const [field, value] of Object.entries(flat(RECORDED.reports[i]))) {
        if (value === null) assert.ok(!head.includes(field) || row[head.indexOf(field)] === '', field);
        else assert.equal(Number(row[head.indexOf(field)]), value, `${field} in step ${i}`);
      }
    });
    // What the page prints at the end of its curve is in the last line.
    const shown = await session.page.locator('.chart .end').first().evaluate(() => Array.from(document.querySelectorAll('.chart .end'), end => end.textContent).join(' '));
    assert.ok(shown.includes(`held-out ${Math.round(Number(rows.at(-1)[head.indexOf('held_out_success')]) * 100)}%`), shown);
    assertClean(session);
  }
});

test('episodes as JSON lines: those on show under the credit on show, all kept ones under their own', { timeout: 120_000 }, async () => {
  const session = await ready();
  const { page } = session;
  const check = line => {
    const { tokens, loss_mask, log_probs, turns } = line.trajectory;
    for (const array of [loss_mask, log_probs, line.token_names]) assert.equal(array.length, tokens.length);
    for (const array of [line.rewards, line.returns_to_go, line.advantages]) assert.equal(array.length, turns.length);
    assert.equal(line.text, line.token_names.join(' '));
    assert.ok(turns.every(turn => typeof turn.facts.answered === 'boolean'));
    assert.ok(line.hidden_state.length > 0);
  };
  const batch = RECORDED.batches.find(entry => entry.iteration === 7);
  const truth = RECORDED.measured.find(entry => entry.iteration === 7);
  const shown = await saved(page, 'Episodes on show (JSON lines)');
  const lines = shown.text.trimEnd().split('\n').map(line => JSON.parse(line));
  assert.equal(lines.length, batch.trajectories.length);
  lines.forEach((line, i) => {
    check(line);
    assert.deepEqual(line.trajectory.tokens, batch.trajectories[i].tokens);
    assert.deepEqual(line.advantages, batch.credit.advantages[i]);
    assert.deepEqual(line.true_credit, truth.credit.credits[i]);
    assert.equal(line.credit_method, RECORDED.config.credit_method);
  });

  // Another discount: the credit on show is saved, the kept episodes keep theirs.
  await page.getByRole('slider', { name: /Discount/ }).focus();
  await page.keyboard.press('Home');
  await page.getByTestId('again').waitFor();
  const again = await saved(page, 'Episodes on show (JSON lines)');
  const other = again.text.trimEnd().split('\n').map(line => JSON.parse(line));
  assert.notDeepEqual(other.map(line => line.returns_to_go), lines.map(line => line.returns_to_go));
  const all = await saved(page, 'All kept episodes (JSON lines)');
  const every = all.text.trimEnd().split('\n').map(line => JSON.parse(line));
  assert.equal(every.length, RECORDED.batches.reduce((sum, entry) => sum + entry.trajectories.length, 0));
  every.forEach(check);
  assert.deepEqual(every.filter(line => line.iteration === 7).map(line => line.advantages), batch.credit.advantages);
  assert.ok(every.filter(line => line.iteration === 2).every(line => !('true_credit' in line)), 'nothing was measured there');
  assertClean(session);
});

test('a run goes into a file and comes back the same', { timeout: 120_000 }, async () => {
  const session = await ready({}, '#v=1&env=search&seed=3');
  const { page } = session;
  const { name, text } = await saved(page, 'This run (JSON)');
  const file = JSON.parse(text);
  assert.deepEqual(file.reports, RECORDED.reports);
  assert.deepEqual(file.batches.map(entry => entry.iteration), RECORDED.batches.map(entry => entry.iteration));
  assert.deepEqual(file.batches[3].trajectories, RECORDED.batches[3].trajectories);
  assert.equal(file.made_with, RECORDED.made_with);
  // Opened again, with something in it that can be told from the shipped run.
  file.config.seed = 41;
  file.made_with = 'somewhere else';
  await choose(page, { name, mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(file)) });
  await page.getByTestId('notice-file').getByText(`${name}: the run is on show`).waitFor();
  await page.getByText('somewhere else').waitFor();
  await page.getByText('seed 41').first().waitFor();
  assert.match(await page.evaluate(() => location.hash), /seed=41/);
  assert.equal(await page.getByTestId('again').count(), 0, 'the form follows the run');
  await page.goBack();
  await until(async () => (await page.evaluate(() => location.hash)).includes('seed=3'), 5, 'Back leads to the experiment before');
  assertClean(session);
});

test('settings as JSON, the link as Markdown and as embed code', async () => {
  const session = await ready({}, '#v=1&env=search&seed=5&gamma=0.5&title=A%20%5Bsmall%5D%20test%20(1)');
  const { page } = session;
  const { text } = await saved(page, 'Settings (JSON)');
  const config = JSON.parse(text);
  assert.deepEqual([config.environment, config.seed, config.gamma, config.title], ['search', 5, 0.5, 'A [small] test (1)']);
  const panel = await menu(page);
  const copied = async entry => {
    await panel.getByRole('button', { name: entry, exact: true }).click();
    await panel.getByText('Copied to the clipboard.').waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const link = await copied('Copy link');
  assert.ok(link.startsWith(`${address}#v=1&env=search&`), link);
  const markdown = await copied('Copy link as Markdown');
  assert.ok(markdown.startsWith('[A \\[small\\] test (1)](http'), markdown);
  assert.equal(markdown.match(/\)/g).length, 2, 'the link has no parenthesis of its own');
  const code = await copied('Copy embed code: episodes');
  assert.match(code, /^<iframe src="http[^"]+\?embed=episodes#v=1&amp;env=search&amp;/);
  assert.match(code, /sandbox="allow-scripts allow-same-origin /);
  assertClean(session);
});

test('where the clipboard is denied, what was to be copied can be copied by hand', async () => {
  const session = await ready({ clipboard: false });
  const { page } = session;
  await page.evaluate(() => {
    navigator.clipboard.writeText = () => Promise.reject(new Error('denied'));
  });
  const panel = await menu(page);
  await panel.getByRole('button', { name: 'Copy link as Markdown' }).click();
  const field = panel.getByRole('textbox');
  await field.waitFor();
  assert.match(await field.inputValue(), /^\[Turnwise: .*\]\(http/);
  assert.ok(await field.evaluate(element => element.selectionEnd - element.selectionStart === element.value.length), 'it is selected');
  assertClean(session);
});

/** Regions with the figures that they save: the shapes that must be there, counted in the SVG. */
const FIGURES = [
  { region: 'Training', figure: 'Success, share of episodes', file: 'success', least: { path: 5, text: 10, circle: 8 } },
  { region: 'Training', figure: 'Tool calls per episode, by question', file: 'calls', least: { path: 5, text: 10 } },
  { region: 'Training', figure: 'Other measures', file: 'measures', least: { path: 16, text: 26 } },
  { region: 'Episodes', figure: 'Episodes', file: 'group', least: { rect: 60, path: 40, text: 100 } },
  { region: 'Why this weight?', figure: 'Why this weight?', file: 'weight', least: { rect: 6, text: 20 } },
  { region: 'What if?', figure: 'What if?', file: 'what-if', least: { circle: 32, path: 20, text: 10 } },
  { region: 'Is the credit right?', figure: /Credit by .* a dot a turn/, file: 'credit-scatter', least: { circle: 100, text: 6 } },
  { region: 'Is the credit right?', figure: 'Agreement of every method with true credit', file: 'accuracy', least: { circle: 8, text: 60 } },
];

for (const theme of ['light', 'dark']) {
  test(`figures as SVG and PNG, on white ground in the ${theme} theme, standing alone`, { timeout: 180_000 }, async () => {
    const session = await ready();
    const { page } = session;
    if (theme === 'dark') await page.getByRole('button', { name: 'Dark', exact: true }).click();
    await page.getByTestId('accuracy').waitFor();
    await page.getByTestId('weight').waitFor();
    await page.getByTestId('slopes').waitFor();
    for (const { region, figure, file, least } of FIGURES) {
      const save = async format => {
        await page.getByRole('button', { name: `Save as a figure: ${region}` }).click();
        const name = typeof figure === 'string' ? `${figure}: ${format}` : new RegExp(`${figure.source}: ${format}`);
        return download(page, () => page.getByRole('dialog', { name: `Save as a figure: ${region}` }).getByRole('button', { name }).click());
      };
      const { name, bytes } = await save('SVG');
      assert.equal(name, `turnwise-search-seed-2-${file}.svg`);
      const svg = bytes.toString('utf8');
      const found = await page.evaluate(text => {
        const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
        const count = tag => parsed.getElementsByTagName(tag).length;
        const { documentElement: root } = parsed;
        return {
          error: parsed.querySelector('parsererror')?.textContent ?? null,
          size: [root.getAttribute('width'), root.getAttribute('height')].map(Number),
          ground: parsed.querySelector('rect')?.getAttribute('fill'),
          title: parsed.querySelector('title')?.textContent,
          texts: Array.from(parsed.getElementsByTagName('text'), text => text.textContent).join('\n'),
          rect: count('rect'), path: count('path'), text: count('text'), circle: count('circle'), foreign: count('foreignObject'),
        };
      }, svg);
      assert.equal(found.error, null, file);
      for (const [tag, count] of Object.entries(least)) assert.ok(found[tag] >= count, `${file}: ${found[tag]} of ${tag}, not ${count}`);
      assert.equal(found.foreign, 0);
      assert.equal(found.ground, '#ffffff');
      assert.ok(found.texts.replaceAll('\n', '').includes('#v=1&env=search&'), `${file} has the link: ${found.texts}`);
      assert.ok(found.texts.startsWith(found.title.slice(0, 20)), `${file} has its title`);
      assert.ok(!/NaN|undefined|null/.test(svg), `${file} is complete`);
      assert.ok(!/style=|class=/.test(svg), `${file} needs no style sheet`);
      const png = await save('PNG');
      assert.deepEqual(pngSize(png.bytes), { width: Math.ceil(2 * found.size[0]), height: Math.ceil(2 * found.size[1]) });
      assert.ok(png.bytes.length > 4000, `${file} has ${png.bytes.length} bytes`);
    }
    assertClean(session);
  });
}

test('a figure has its whole link, however long, and no text reaches beyond it', { timeout: 120_000 }, async () => {
  const link = '#v=1&env=search&seed=0&iters=2&reward=mixed&gamma=0.9&credit=return_to_go&groups=2&gen=4&held=8&lr=0.0007&d=32&layers=1&heads=2&warm=none&mask=0';
  const session = await ready({}, link);
  const { page } = session;
  await page.getByRole('button', { name: 'Train', exact: true }).click();
  await page.getByText('Finished', { exact: true }).waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Save as a figure: Training' }).click();
  const panel = page.getByRole('dialog', { name: 'Save as a figure: Training' });
  const { bytes } = await download(page, () => panel.getByRole('button', { name: 'Success, share of episodes: SVG' }).click());
  const { texts, beyond } = await page.evaluate(svg => {
    const holder = document.createElement('div');
    holder.innerHTML = svg;
    document.body.append(holder);
    const figure = holder.querySelector('svg');
    const all = [...figure.querySelectorAll('text')];
    const width = Number(figure.getAttribute('width'));
    const beyond = all.filter(text => { const box = text.getBBox(); return box.x < -0.5 || box.x + box.width > width + 0.5; });
    const found = { texts: all.map(text => text.textContent).join(''), beyond: beyond.map(text => text.textContent) };
    holder.remove();
    return found;
  }, bytes.toString('utf8'));
  assert.deepEqual(beyond, []);
  assert.match(texts, /#v=1&env=search&seed=0&iters=2&.*&gamma=0\.9&.*&lr=0\.0007&.*&warm=none&c=[0-9a-f]{8}$/);
  assertClean(session);
});

test('the menu by keyboard: it opens, arrows move in it, Escape closes it and gives the focus back', async () => {
  const session = await ready();
  const { page } = session;
  const button = page.getByRole('button', { name: 'Save / open' });
  await button.focus();
  await page.keyboard.press('Enter');
  const first = page.getByRole('button', { name: 'Curves (CSV)' });
  await first.waitFor();
  const focused = () => page.evaluate(() => (document.activeElement instanceof HTMLButtonElement ? document.activeElement.textContent?.trim() : null));
  await until(async () => (await focused()) === 'Curves (CSV)', 5, 'the first entry has the focus');
  await page.keyboard.press('ArrowDown');
  assert.equal(await focused(), 'Episodes on show (JSON lines)');
  await page.keyboard.press('Escape');
  await first.waitFor({ state: 'hidden' });
  assert.equal(await focused(), 'Save / open');
  assertClean(session);
});

for (const language of ['en', 'zh']) {
  test(`the menu on a phone: ${language}`, async () => {
    const session = await ready({ viewport: PHONE, locale: language === 'zh' ? 'zh-CN' : 'en-US' });
    const { page } = session;
    await page.getByRole('button', { name: language === 'zh' ? '保存 / 打开' : 'Save / open' }).click();
    await page.getByRole('button', { name: language === 'zh' ? '打开文件……' : 'Open a file…' }).waitFor();
    const box = await page.locator('[popover]:popover-open').boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= PHONE.width && box.y >= 0 && box.y + box.height <= PHONE.height, JSON.stringify(box));
    const axe = readFileSync(new URL('../../www/node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await window.axe.run()).violations.map(v => `${v.id}: ${v.nodes.map(node => node.target.join(' ')).join(', ')}`));
    assert.deepEqual(found, []);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `scrolls sideways by ${wide} px`);
    assertClean(session);
  });
}
