// Tasks of the page's main thread, from the browser's own trace: how long each took on the clock, and how much of that it computed.
// The difference is time in which the operating system ran something else, which says nothing about the page.

import assert from 'node:assert/strict';

const MARK = 'turnwise-tasks';

/** Starts to record; the function returned stops and gives every task as `{ cpu, wall }` in milliseconds. */
export async function recordTasks(browser, page) {
  await browser.startTracing(page, { categories: ['toplevel', 'blink.user_timing'] });
  // Says which of the browser's threads is the page's.
  await page.evaluate(name => performance.mark(name), MARK);
  return async () => {
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
    const mark = traceEvents.find(event => event.name === MARK);
    assert.ok(mark, 'the trace has the mark');
    const all = traceEvents
      .filter(event => event.pid === mark.pid && event.tid === mark.tid && event.ph === 'X' && event.name.endsWith('RunTask'))
      .sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    const tasks = [];
    let end = 0;
    for (const { ts, dur, tdur } of all) {
      // One within another is the same task.
      if (ts < end) continue;
      end = ts + dur;
      // The browser leaves the processor's time out of a task now and then; it is the clock's at most.
      tasks.push({ cpu: (tdur ?? dur) / 1000, wall: dur / 1000 });
    }
    assert.ok(tasks.length > 0, 'the trace has tasks');
    assert.ok(all.some(({ tdur }) => tdur !== undefined), 'the trace has the time on the processor');
    return tasks;
  };
}

/** How long the tasks that do something (5 ms and more) are: sizes in milliseconds by `key`, longest first. */
function sizes(tasks, key) {
  return tasks.map(task => task[key]).filter(size => size >= 5).sort((a, b) => b - a);
}

/** Counts, quantile and the longest ones. */
export function summary(tasks) {
  const of = key => {
    const sorted = sizes(tasks, key);
    return { over50: sorted.filter(size => size > 50).length, p95: sorted[Math.floor(sorted.length * 0.05)] ?? 0, longest: sorted.slice(0, 5) };
  };
  return { cpu: of('cpu'), wall: of('wall') };
}

/** The summary in one line. */
export function said({ cpu, wall }) {
  const part = ({ over50, p95, longest }) =>
    `${over50} over 50 ms, 95 % of those from 5 ms on within ${p95.toFixed(0)} ms, longest ${longest.map(size => size.toFixed(0)).join(' ')}`;
  return `computing: ${part(cpu)}; on the clock: ${part(wall)}`;
}
