// What curves of very many steps are thinned to, and the columns that they are drawn from.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { modules } from './modules.js';

const { reports: RECORDED } = JSON.parse(readFileSync(new URL('../../www/public/recorded/search.json', import.meta.url), 'utf8'));
const MANY = 100_000;

let Thinner;
let Column;
let History;
let historyOf;
let handOn;
let begins;
let spreadOf;
before(async () => {
  ({ Thinner, Column, History, historyOf, handOn, begins, spreadOf } = await modules('thin.ts', 'history.ts', 'curves.ts'));
});

/** A column of values; null is none, NaN is not a number. */
function column(length, of) {
  const made = new Column();
  for (let i = 0; i < length; i++) made.put(i, of(i));
  return made;
}

const wave = i => Math.sin(i / 9000) + 0.1 * Math.sin(i * 1.7);
const plain = made => Array.from({ length: made.length }, (_, i) => made.at(i));
const numbers = list => list.filter(value => value !== null && !Number.isNaN(value));
/** How many stretches of values there are between the gaps. */
const stretches = list => list.filter((value, i) => Number.isFinite(value) && !Number.isFinite(list[i - 1])).length;

test('a short list stays as it is', () => {
  const values = [0.5, null, 0.25, Number.NaN, 1e9, -3];
  const { x, values: drawn } = new Thinner().thin([column(values.length, i => values[i]), column(3, () => 7)], 60, 256);
  assert.deepEqual(x, [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(drawn, [values, [7, 7, 7, null, null, null]]);
  // As long as there are no more than four values for a piece of the axis.
  const long = column(1024, wave);
  assert.deepEqual(new Thinner().thin([long], 1024, 256).values[0], plain(long));
  assert.deepEqual(new Thinner().thin([], 60, 256), { x: [], values: [] });
});

test('100,000 values become a few for each piece of the axis, in order, with the first, the last and the extremes of each', () => {
  const whole = column(MANY, wave);
  const { x, values: [drawn] } = new Thinner().thin([whole], MANY, 256);
  assert.ok(drawn.length <= 4 * 256 && drawn.length >= 2 * 128, String(drawn.length));
  assert.equal(x.length, drawn.length);
  assert.ok(x.every((place, i) => i === 0 || place > x[i - 1]), 'places rise');
  assert.deepEqual([x[0], x.at(-1)], [0, MANY - 1]);
  assert.deepEqual([drawn[0], drawn.at(-1)], [wave(0), wave(MANY - 1)]);
  const span = 512;
  for (let from = 0; from < MANY; from += span) {
    const there = drawn.filter((_, i) => x[i] >= from && x[i] < from + span);
    const all = plain(whole).slice(from, from + span);
    assert.deepEqual([Math.min(...there), Math.max(...there)], [Math.min(...all), Math.max(...all)], `from ${from}`);
  }
});

for (const at of [0, 1, 511, 512, 77_777, MANY - 1]) {
  test(`a spike, a gap and a value that is not a number at step ${at} of 100,000 are seen`, () => {
    for (const most of [256, 1024]) {
      const of = value => new Thinner().thin([column(MANY, i => (i === at ? value : 0.5))], MANY, most);
      const near = ({ x }, i) => Math.abs(x[i] - at) < MANY / most * 2;
      for (const spike of [9, -9]) {
        const thinned = of(spike);
        const places = thinned.values[0].flatMap((value, i) => (value === spike ? [i] : []));
        assert.ok(places.length > 0 && places.every(i => near(thinned, i)), `spike ${spike}`);
      }
      for (const [value, is] of [[null, entry => entry === null], [Number.NaN, Number.isNaN], [Number.POSITIVE_INFINITY, Number.isNaN], [Number.NEGATIVE_INFINITY, Number.isNaN]]) {
        const thinned = of(value);
        const places = thinned.values[0].flatMap((entry, i) => (is(entry) ? [i] : []));
        assert.ok(places.length > 0 && places.every(i => near(thinned, i)), `${value}`);
        assert.equal(stretches(thinned.values[0]), at === 0 || at === MANY - 1 ? 1 : 2, 'nothing is bridged');
        assert.ok(numbers(thinned.values[0]).every(entry => entry === 0.5));
      }
    }
  });
}

test('gaps everywhere, values everywhere: none is bridged, and there are no more entries than can be told apart', () => {
  // A value says which step it is of.
  const of = i => (i % 3 === 0 ? null : i % 7 === 0 ? Number.NaN : i);
  const { x, values: [drawn, alone] } = new Thinner().thin([column(MANY, of), column(MANY, i => (i % 2 === 0 ? 2 : null))], MANY, 256);
  assert.ok(x.length <= 9 * 256, String(x.length));
  let pairs = 0;
  for (const [i, value] of drawn.entries()) {
    const next = drawn[i + 1];
    if (!Number.isFinite(value) || !Number.isFinite(next)) continue;
    pairs += 1;
    for (let step = value; step <= next; step++) assert.ok(Number.isFinite(of(step)), `${step} is bridged`);
  }
  assert.ok(pairs > 0, 'neighbours stay neighbours');
  assert.ok(alone.every((value, i) => value === null || alone[i + 1] == null), 'each value stands alone');
  assert.ok(drawn.filter(Number.isNaN).length >= 128, 'a cross in each piece of the axis');
  const none = new Thinner().thin([column(MANY, () => Number.NaN)], MANY, 256).values[0];
  assert.ok(none.length <= 256 && none.every(Number.isNaN), 'one for each piece');
});

test('thinned as it grows it is what it would be thinned at once, beside another column that ends earlier or later', () => {
  const grows = new Column();
  const ended = column(3000, wave);
  const longer = column(30_000, i => (i % 1000 === 0 ? null : wave(i)));
  const thinner = new Thinner();
  let axis = 60;
  for (let i = 0; i < 20_000; i++) {
    grows.put(i, i % 4000 === 17 ? Number.NaN : wave(i));
    if (i % 997 !== 0 && i % 512 > 2) continue;
    while (axis < i) axis *= 1.5;
    assert.deepEqual(thinner.thin([grows, ended, longer], axis, 256), new Thinner().thin([grows, ended, longer], axis, 256), String(i));
  }
});

test('the columns of a run hold its numbers by iteration, count what is not a number, and go over to the run with a step more', () => {
  const reports = RECORDED.slice(0, 10).map(report => structuredClone(report));
  reports.splice(4, 1);
  reports[2].update.entropy = null;
  reports[6].train_success = Number.POSITIVE_INFINITY;
  reports[5].held_out_episodes = 0;
  reports[1].by_type = reports[1].by_type.slice(0, 1);
  const history = historyOf(reports);
  const seen = of => plain(of).map(value => (Number.isFinite(value) ? 'value' : value === Number.POSITIVE_INFINITY ? 'unsound' : 'none'));
  assert.deepEqual(seen(history.train), ['value', 'value', 'value', 'value', 'none', 'value', 'value', 'unsound', 'value', 'value']);
  assert.deepEqual(seen(history.heldOut).flatMap((what, i) => (what === 'none' ? [i] : [])), [4, 6]);
  assert.deepEqual(seen(history.measures[1]).indexOf('unsound'), 2);
  assert.deepEqual(history.unsound.map(list => [...list]).filter(list => list.length > 0), [[7], [2]]);
  assert.equal(history.calls.length, 3);
  assert.deepEqual([history.calls[0].at(1), history.calls[2].at(1)], [reports[1].by_type[0].calls, Number.NaN]);
  const seconds = reports.reduce((sum, report) => sum + report.seconds, 0);
  assert.deepEqual([history.seconds(0), history.seconds(reports.length), history.seconds(99)], [0, seconds, seconds]);
  assert.equal(historyOf(reports), history);

  const longer = [...reports, { ...structuredClone(RECORDED[10]), mean_return: null, iteration: 10 }];
  handOn(reports, longer);
  assert.equal(historyOf(longer), history, 'nothing is read again');
  const read = list => {
    const anew = new History();
    anew.take(list);
    return anew;
  };
  const told = of => ({
    count: of.count, judges: of.judges, unsound: of.unsound, seconds: of.seconds(of.count),
    columns: [of.train, of.heldOut, ...of.measures, ...of.calls].map(plain),
  });
  assert.deepEqual(told(history), told(read(longer)));
  // The list that was shorter, and one that is cut short, have columns of their own that go on by themselves.
  assert.deepEqual(told(historyOf(reports)), told(read(reports)));
  const cut = longer.slice(0, 5);
  begins(longer, cut);
  assert.deepEqual(told(historyOf(cut)), told(read(cut)));
  const other = [...cut, { ...structuredClone(RECORDED[20]), iteration: 6 }];
  handOn(cut, other);
  assert.deepEqual(told(historyOf(other)), told(read(other)));
  assert.deepEqual(told(history), told(read(longer)));
});

test('the spread of several runs ends with the shortest, and is not a number where any of them is', () => {
  const { low, mean, high } = spreadOf([column(5, i => i), column(4, i => [2, 2, Number.NaN, null][i]), column(5, () => 1)]);
  const told = of => plain(of).map(value => (Number.isNaN(value) ? null : value));
  assert.deepEqual(told(low), [0, 1, Number.POSITIVE_INFINITY, null, null]);
  assert.deepEqual(told(mean), [1, 4 / 3, Number.POSITIVE_INFINITY, null, null]);
  assert.deepEqual(told(high), [2, 2, Number.POSITIVE_INFINITY, null, null]);
});
