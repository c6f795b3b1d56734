// What the training worker tells the page, and when: messages of short steps wait for each other, nothing else does.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { modules } from './modules.js';

let Outbox;
before(async () => {
  ({ Outbox } = await modules('outbox.ts'));
});

/** An outbox on a clock that is moved by hand, and what it has posted, as times and names. */
function outbox(context, together) {
  let now = 1000;
  context.mock.method(performance, 'now', () => now);
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const posted = [];
  const name = message => (message.type === 'phase' ? message.done : message.type);
  const box = new Outbox(message => posted.push([now - 1000, ...(message.type === 'several' ? message.messages : [message]).map(name)]));
  box.together = together;
  const pass = milliseconds => {
    for (const end = now + milliseconds; now < end; ) {
      now += 10;
      context.mock.timers.tick(10);
    }
  };
  const phase = done => box.send({ type: 'phase', done, report: done.startsWith('update') ? {} : null });
  /** A step with two phases told of, which takes so many milliseconds. */
  const step = (number, milliseconds) => {
    pass(milliseconds / 2);
    phase(`sample ${number}`);
    pass(milliseconds / 2);
    phase(`update ${number}`);
  };
  return { box, posted, pass, step };
}

test('short steps come several at a time and in their order, the last ones when their time has come', context => {
  const { posted, pass, step } = outbox(context, true);
  for (let i = 0; i < 12; i++) step(i, 20);
  pass(200);
  const told = posted.flatMap(([, ...names]) => names);
  assert.deepEqual(told, Array.from({ length: 12 }, (_, i) => [`sample ${i}`, `update ${i}`]).flat());
  const times = posted.map(([time]) => time);
  // The first step may be a long one, as far as is known.
  assert.deepEqual(times, [10, 20, 30, 130, 230, 330], JSON.stringify(posted));
});

test('long steps are told phase by phase, as they go', context => {
  const { posted, step } = outbox(context, true);
  for (let i = 0; i < 3; i++) step(i, 400);
  assert.deepEqual(posted.map(([time]) => time), [200, 400, 600, 800, 1000, 1200]);
});

test('what is not a phase waits for nothing, and what waits goes before it', context => {
  const { box, posted, step } = outbox(context, true);
  for (let i = 0; i < 3; i++) step(i, 20);
  box.send({ type: 'stopped' });
  assert.deepEqual(posted.at(-1), [60, 'update 1', 'sample 2', 'update 2', 'stopped'], JSON.stringify(posted));
});

test('nothing waits where nobody asked for it', context => {
  const { posted, step } = outbox(context, false);
  for (let i = 0; i < 4; i++) step(i, 20);
  assert.equal(posted.length, 8);
});
