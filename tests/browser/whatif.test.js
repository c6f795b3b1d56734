// What if: frozen episodes credited again beside the grid, one turn changed and played on from; and what stands around the loop:
// its picture, the kinds of turns, the hidden state.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { recordTasks, said, summary } from './tasks.js';
import { assertClean, context, launch, open, PHONE, until } from './support.js';

const TINY = '#v=1&env=search&seed=0&groups=2&num_generations=3&held_out=0&iterations=4&turn_limit=2';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const sentence = async page => (await page.getByTestId('what-if-sentence').textContent()) ?? '';
const panels = page => page.getByTestId('slopes').getByRole('img');

/** The advantages of the batch on show, from the table: one number an episode and turn. */
async function advantages(page) {
  await page.getByRole('button', { name: 'Table', exact: true }).click();
  const rows = await page.locator('table:has-text("written by") tbody tr').allInnerTexts();
  await page.getByRole('button', { name: 'Rows', exact: true }).click();
  const found = new Map();
  for (const row of rows.map(text => text.split('\t').map(cell => cell.trim()))) {
    if (row[4] === 'policy') found.set(`${row[0]} ${row[1]}`, Number(row[6].replace('−', '-').replace('+', '')));
  }
  return found;
}

const sign = value => (Math.abs(value) < 0.005 ? 0 : Math.sign(value));

test('other settings are tried beside the grid, by mouse and by keyboard; the sentence counts what changes', { timeout: 120_000 }, async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await panels(page).first().waitFor();
  assert.match(await sentence(page), /the settings that the episodes were trained with/);
  const trained = await advantages(page);
  const before = await page.evaluate(() => location.hash);

  await page.getByLabel('Credit by', { exact: true }).selectOption('return_to_go');
  await page.getByLabel(/^γ from 0.95 to/).focus();
  await page.keyboard.press('Home');
  assert.equal(await page.getByTestId('whatif-gamma-value').textContent(), '0');
  // It is drawn in frames: once with the method alone, then with the discount.
  await page.locator('[data-testid="what-if-sentence"][aria-busy="false"]').waitFor();
  const said = await sentence(page);
  assert.match(said, /^Selected turn/);
  assert.equal(await page.evaluate(() => location.hash), before, 'the settings stay as they are');
  assert.equal(await page.getByTestId('again').count(), 0, 'and so does the credit of the grid');

  // The same values in the form credit the grid again: the count must be that of the numbers in its table.
  await page.getByRole('button', { name: 'Train with this' }).click();
  await page.getByTestId('copied').waitFor();
  assert.equal(await page.getByLabel('Credit method', { exact: true }).inputValue(), 'return_to_go');
  assert.match(await page.evaluate(() => location.hash), /gamma=0&.*credit=return_to_go|credit=return_to_go.*gamma=0/);
  await page.getByText('Recorded run', { exact: true }).first().waitFor();
  await page.getByTestId('again').waitFor();
  const changed = await advantages(page);
  assert.deepEqual([...changed.keys()], [...trained.keys()]);
  const flips = [...trained].filter(([key, value]) => sign(value) * sign(changed.get(key)) < 0).length;
  const zeros = [...trained].filter(([key, value]) => sign(value) !== 0 && sign(changed.get(key)) === 0).length;
  assert.ok(said.includes(`In this group ${flips} of ${trained.size} turns`), `${said} against ${flips} of ${trained.size}`);
  assert.equal(said.match(/(\d+) becomes? zero/)?.[1] ?? '0', String(zeros), said);
  const whole = /In the whole batch (\d+) of (\d+) turns/.exec(said);
  assert.ok(whole && Number(whole[2]) > trained.size && Number(whole[1]) >= flips, said);

  await page.getByRole('button', { name: 'Back to the trained settings' }).click();
  await until(async () => /were trained with/.test(await sentence(page)), 10, 'back');
  assert.equal(await page.getByTestId('whatif-gamma-value').textContent(), '0.95');
  assert.equal(await page.getByLabel('Credit method', { exact: true }).inputValue(), 'return_to_go', 'the form keeps what was copied');
  assertClean(session);
});

test('one selection drives all: a turn of What if selects it in the grid, and the grid moves the thick line', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await panels(page).first().waitFor();
  await page.getByLabel('Credit by', { exact: true }).selectOption('return_to_go');
  const button = page.getByTestId('slopes').getByRole('button', { name: 'turn 1', exact: true });
  await button.focus();
  await page.keyboard.press('Enter');
  assert.equal(await button.getAttribute('aria-pressed'), 'true');
  await page.getByTestId('read-out').getByText(/episode 1 · turn 1 ·/).waitFor();
  const lines = await page.getByTestId('slopes').locator('svg').first().locator('g').count();
  assert.ok(lines > 1, 'a line for each episode');
  assert.equal(await page.getByTestId('slopes').locator('svg').first().locator('g.on').count(), 1);
  // A click near the lowest line selects an episode that lost.
  const picture = panels(page).first();
  await picture.scrollIntoViewIfNeeded();
  const spot = await picture.evaluate(svg => {
    const low = [...svg.querySelectorAll('circle.filled')].reduce((a, b) => (Number(a.getAttribute('cy')) >= Number(b.getAttribute('cy')) ? a : b));
    const box = low.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  });
  await page.mouse.click(spot.x, spot.y);
  await page.getByTestId('read-out').getByText(/advantage −/).waitFor();
  assertClean(session);
});

test('re-crediting follows the slider with under 50 ms of work', async t => {
  const within = await context(browser);
  // What the page does in its frames, apart from what the browser and the machine do between them.
  await within.addInitScript(() => {
    globalThis.inFrames = 0;
    const real = globalThis.requestAnimationFrame.bind(globalThis);
    globalThis.requestAnimationFrame = callback =>
      real(time => {
        const start = performance.now();
        callback(time);
        // What the callback leaves for its end, such as the effects of a change, comes before this.
        queueMicrotask(() => queueMicrotask(() => {
          globalThis.inFrames += performance.now() - start;
        }));
      });
  });
  const session = await open(within);
  const { page } = session;
  await panels(page).first().waitFor();
  await until(async () => (await page.locator('.episode:visible').count()) === 16, 30, 'all rows');
  await page.getByLabel('Credit by', { exact: true }).selectOption('return_to_go');
  await page.getByTestId('what-if').scrollIntoViewIfNeeded();
  await page.waitForTimeout(500);
  const stopRecording = await recordTasks(browser, page);
  const moves = await page.evaluate(async () => {
    const slider = document.getElementById('whatif-gamma');
    const frame = () => new Promise(resolve => setTimeout(() => requestAnimationFrame(() => setTimeout(resolve))));
    const drawn = () => Array.from(document.querySelectorAll('[data-testid="slopes"] .filled'), dot => dot.getAttribute('cy')).join();
    const moves = [];
    for (let stop = 0; stop < 40; stop++) {
      const before = drawn();
      globalThis.inFrames = 0;
      const start = performance.now();
      slider.value = String(stop);
      slider.dispatchEvent(new Event('input', { bubbles: true }));
      await Promise.resolve();
      const input = performance.now() - start;
      let frames = 0;
      while (drawn() === before && frames < 10) {
        await frame();
        frames += 1;
      }
      moves.push({ frames, work: input + globalThis.inFrames, seen: performance.now() - start });
    }
    return moves;
  });
  const tasks = summary(await stopRecording());
  const of = name => moves.map(move => move[name]).sort((a, b) => a - b);
  const middle = list => list[Math.floor(list.length / 2)];
  t.diagnostic(`work of a move: median ${middle(of('work')).toFixed(1)} ms, longest ${of('work').at(-1).toFixed(1)} ms; drawn after ${middle(of('seen')).toFixed(0)} ms`);
  t.diagnostic(`main-thread tasks while the slider moves: ${said(tasks)}`);
  assert.ok(moves.every(({ frames }) => frames < 10), 'every move is drawn');
  assert.ok(middle(of('frames')) <= 2, 'in the next frame or the one after it');
  assert.ok(middle(of('work')) < 50, `a move takes ${middle(of('work')).toFixed(1)} ms`);
  assert.equal(tasks.cpu.over50, 0, 'tasks that compute for more than 50 ms');
  assertClean(session);
});

test('kinds of turns and the hidden state stand beside what the policy saw', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await until(async () => (await page.locator('.episode:visible').count()) === 16, 30, 'all rows');
  assert.match((await page.getByTestId('hidden-state').textContent()) ?? '', /^[A-J] [>=] /);
  await page.getByRole('button', { name: 'hide', exact: true }).click();
  assert.equal(await page.getByTestId('hidden-state').count(), 0);
  // Every turn says its kind, as its first token has it.
  const turns = await page.locator('.episode:visible .turn[data-turn]').evaluateAll(found =>
    found.map(turn => [turn.getAttribute('aria-label'), turn.querySelector('.token').textContent.trim(), turn.querySelector('[data-kind]').dataset.kind]));
  assert.ok(turns.length > 16);
  for (const [label, first, kind] of turns) {
    if (kind === 'malformed') assert.match(label, /malformed/);
    else if (first.startsWith('search')) assert.match(label, /tool: search/);
    else assert.match(label, /text: answer/);
  }
  assert.ok(turns.some(([, , kind]) => kind === 'call') && turns.some(([, , kind]) => kind === 'answer'));
  assert.match((await page.getByTestId('turn-kind').textContent()) ?? '', /tool: search|text: answer/);
  assert.match((await page.getByTestId('capabilities').textContent()) ?? '', /tool use.*planning/s);
  assertClean(session);
});

test('a picture of the full page has no blank rows', async () => {
  const session = await open(await context(browser));
  const { page } = session;
  await until(async () => (await page.locator('.episode:visible').count()) === 16, 30, 'all rows');
  const blank = () => page.locator('.episode:visible').evaluateAll(rows =>
    16 - rows.filter(row => row.querySelector('.token').checkVisibility({ contentVisibilityAuto: true })).length);
  assert.equal(await blank(), 0, 'rows whose content is not drawn');
  // Taking it makes the window tiny for a moment: the rows must not be made anew for that.
  const grid = await page.locator('.grid').elementHandle();
  await page.screenshot({ fullPage: true });
  assert.equal(await blank(), 0);
  assert.ok(await grid.evaluate(element => element.isConnected), 'the same grid');
  assertClean(session);
});

test('Step lights the loop; a changed turn is asked of the worker and shown with what came of it', { timeout: 300_000 }, async () => {
  const within = await context(browser);
  // The answer to this one command is made here from the episode itself: what is tested is the page.
  await within.addInitScript(() => {
    const Real = globalThis.Worker;
    globalThis.asked = [];
    globalThis.Worker = class extends Real {
      constructor(...args) {
        super(...args);
        this.addEventListener('message', ({ data }) => {
          for (const message of data.messages ?? [data]) if (message.type === 'phase' && message.batch) this.batch = message.batch;
        });
      }
      postMessage(message, ...rest) {
        if (message.type !== 'counterfactual') return super.postMessage(message, ...rest);
        globalThis.asked.push(message);
        const { type, ...request } = message;
        const original = this.batch.trajectories[request.trajectory];
        const answer = {
          ...request, iteration: this.batch.iteration, original, changed: original, original_reward: 0.25, changed_reward: 1,
          original_rewards: original.turns.map(() => [{ term: 'answer_right', weight: 1 }]), changed_rewards: original.turns.map(() => []),
          original_value: 0.5, original_error: 0.0625, changed_value: 0.75, changed_error: 0.125,
        };
        setTimeout(() => {
          for (const data of [{ type, counterfactual: answer }, { type: 'stopped', reason: { kind: 'paused' }, iteration: 0 }]) this.onmessage({ data });
        }, 50);
      }
    };
  });
  const session = await open(within, TINY);
  const { page } = session;
  const part = page.getByTestId('counterfactual');
  await part.getByTestId('counterfactual-blocked').getByText('no policy to play on with').waitFor();
  assert.equal(await part.getByRole('button', { name: 'Play on' }).isDisabled(), true);
  await page.getByTestId('loop-text').getByText('Step does one phase').waitFor();
  const step = page.getByRole('button', { name: 'Step', exact: true });
  for (const phase of ['sample', 'score', 'credit']) {
    await step.click();
    await page.locator('[aria-current="step"]', { hasText: phase }).waitFor({ timeout: 180_000 });
    assert.equal(await page.locator('.loop').getAttribute('data-lit'), phase);
    assert.equal(await page.locator('.loop .part.on').count(), 1);
    await step.and(page.locator(':enabled')).waitFor();
  }
  await page.getByTestId('loop-text').getByText('Credited:').waitFor();

  const play = part.getByRole('button', { name: 'Play on' });
  await part.getByLabel('Instead').selectOption('own');
  const typed = part.getByLabel('Action in words');
  const message = part.getByTestId('own-action-message');
  for (const [text, says] of [['', /at least one token/], ['serach G', /no token called “serach”/], ['search', /beginning of an action/], ['search G H I J', /6 tokens .* at most 4/], ['G G', /no well-formed action/]]) {
    await typed.fill(text);
    await message.getByText(says).waitFor();
    assert.equal(await play.isDisabled(), !/well-formed/.test(String(says)), text);
  }
  // Put together from the tokens that may follow, by keyboard.
  await typed.fill('');
  await part.getByRole('group', { name: 'Tokens that may follow' }).getByRole('button', { name: 'answer', exact: true }).press('Enter');
  await part.getByRole('group', { name: 'Tokens that may follow' }).getByRole('button', { name: '3', exact: true }).press('Enter');
  await message.getByText(/complete|This is what the policy did/).waitFor();
  assert.equal(await typed.inputValue(), 'answer 3');
  await typed.fill('search G');
  if (await play.isDisabled()) await typed.fill('search H');
  await play.click();
  const result = part.getByTestId('counterfactual-result');
  await result.getByText('Return 0.25 → 1.00, a change of +0.75.').waitFor();
  await result.getByText('0.50 ± 0.06 as played and 0.75 ± 0.13 changed').waitFor();
  await result.getByText('the same random draws').waitFor();
  const [asked] = await page.evaluate(() => globalThis.asked);
  assert.equal(asked.replacement.length, 3);
  assert.equal(asked.rolls, 64);
  await step.and(page.locator(':enabled')).waitFor();
  await page.getByRole('button', { name: 'Reset', exact: true }).click();
  await part.getByTestId('counterfactual-blocked').waitFor();
  assert.equal(await result.count(), 0);
  assertClean(session);
});

test('a turn changed and played on from by the engine itself: the same action changes nothing, another one is played out', { timeout: 300_000 }, async () => {
  const session = await open(await context(browser), '#v=1&env=search&seed=0&groups=2&num_generations=4&held_out=0&iterations=4');
  const { page } = session;
  const step = page.getByRole('button', { name: 'Step', exact: true });
  for (const phase of ['sample', 'score', 'credit']) {
    await step.click();
    await page.locator('[aria-current="step"]', { hasText: phase }).waitFor({ timeout: 180_000 });
    await step.and(page.locator(':enabled')).waitFor();
  }
  const part = page.getByTestId('counterfactual');
  const result = part.getByTestId('counterfactual-result');
  const play = part.getByRole('button', { name: 'Play on' });
  const figures = async () => ((await result.textContent()) ?? '').match(/Return (\S+) → (\S+), /)?.slice(1) ?? [];
  // Well-formed actions that nobody need have taken; the return before is that of the episode, whatever is put in place.
  await part.getByLabel('Instead').selectOption('own');
  const before = [];
  for (const action of ['answer 0', 'answer 1', 'answer 2']) {
    await part.getByLabel('Action in words').fill(action);
    if (await play.isDisabled()) continue;
    await play.click();
    await play.and(page.locator(':enabled')).waitFor({ timeout: 60_000 });
    await result.getByText(/as played and .* changed/).waitFor();
    before.push((await figures())[0]);
  }
  assert.ok(before.length >= 2 && new Set(before).size === 1, before.join(' '));
  await part.getByLabel('Instead').selectOption('remove');
  await play.click();
  await result.getByText('the same random draws').waitFor();
  assert.equal((await figures())[0], before[0]);
  assert.match((await result.textContent()) ?? '', /\d ± \d/);
  assertClean(session);
});

test('the hidden state of other tasks reads in the language of the page', { timeout: 300_000 }, async () => {
  const expected = {
    code: [/^run [A-J] \d = \d, cache [A-J] = \d$/, /^运行 [A-J] \d = \d，缓存 [A-J] = \d$/],
    poisoned: [/^[A-J] = \d, search [A-J] = \d \((tampered with|untouched)\)$/, /^[A-J] = \d，搜索 [A-J] = \d \((被篡改|未被改动)\)$/],
    web: [/^page 1 \w \w \w, page 2 \w \w \w/, /^第 1 页 \w \w \w，第 2 页 \w \w \w/],
    spin: [/page \d pays by luck/, /第 \d 页 凭运气付奖励/],
    calculator: [/^\d+ [+−×] \d+ = \d+/, /^\d+ [+−×] \d+ = \d+/],
  };
  const session = await open(await context(browser));
  const { page } = session;
  for (const [environment, [en, zh]] of Object.entries(expected)) {
    await page.getByRole('button', { name: 'English', exact: true }).click();
    await page.locator('#environment').selectOption(environment);
    await page.getByRole('button', { name: 'Step', exact: true }).click();
    await page.getByText('Sampled, not scored yet').waitFor({ timeout: 120_000 });
    const state = async () => ((await page.getByTestId('hidden-state').textContent()) ?? '').trim();
    assert.match(await state(), en, environment);
    await page.getByRole('button', { name: '中文', exact: true }).click();
    assert.match(await state(), zh, environment);
    await page.getByRole('button', { name: 'English', exact: true }).click();
    await page.getByRole('button', { name: 'Reset', exact: true }).click();
  }
  assertClean(session);
});

for (const [language, viewport] of [['zh', undefined], ['zh', PHONE], ['en', PHONE]]) {
  test(`What if and the loop speak ${language} and stay inside ${viewport ? 'a phone' : 'the window'}`, async () => {
    const session = await open(await context(browser, { ...(viewport ? { viewport } : {}), locale: language === 'zh' ? 'zh-CN' : 'en-US' }));
    const { page } = session;
    const zh = language === 'zh';
    await page.getByRole('heading', { name: zh ? '如果换一种设置？' : 'What if?', exact: true }).waitFor();
    await page.locator('#whatif-method').selectOption('return_to_go');
    await until(async () => (zh ? /^所选的轮（粗线）：.* → .*本组 \d+ 轮中有 \d+ 轮变号/ : /^Selected turn, thick line: .* → /).test(await sentence(page)), 10, 'the sentence');
    assert.equal(await page.getByTestId('loop-text').textContent(), zh ? '“单步”每次做一个阶段，并在这里点亮它。' : 'Step does one phase at a time and lights it here.');
    await page.getByTestId('capabilities').getByText(zh ? '工具使用' : 'tool use').waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `scrolls sideways by ${wide} px`);
    assertClean(session);
  });
}
