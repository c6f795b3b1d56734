// A run of any length as a file, made from a recorded one: for tests of what a long run costs the page.

import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { finished } from 'node:stream/promises';

const RECORDED = new URL('../../www/public/recorded/search.json', import.meta.url);

/** Four digits are enough, and keep the file of 100,000 steps within what the page opens. */
const short = (_, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value);

/** Lists whose entries belong to the groups, or to the trajectories, of a batch are repeated until there are `groups` groups. */
function widened(batch, groups) {
  const members = batch.trajectories.length / batch.groups.length;
  const repeated = (list, size) => {
    const there = list.length / size;
    return Array.from({ length: groups }, (_, group) => list.slice((group % there) * size, ((group % there) + 1) * size)).flat();
  };
  const byGroup = value => {
    if (!Array.isArray(value)) return value;
    if (value.length === batch.groups.length) return repeated(value, 1);
    return value.length === batch.trajectories.length ? repeated(value, members) : value;
  };
  const all = fields => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, byGroup(value)]));
  const trajectories = repeated(batch.trajectories, members).map((trajectory, index) => ({ ...trajectory, group: Math.floor(index / members) }));
  return { ...all(batch), trajectories, rewards: all(batch.rewards), credit: all(batch.credit) };
}

/** The recorded run with `steps` steps, its reports over and over, and with `groups` groups in every batch; `reports` alone change by `change`. */
export function longRun(steps, groups, change = report => report) {
  const file = JSON.parse(readFileSync(RECORDED, 'utf8'));
  const report = iteration => change({ ...structuredClone(file.reports[iteration % file.reports.length]), iteration });
  const rest = { ...file, config: { ...file.config, iterations: steps }, batches: file.batches.map(batch => widened(batch, groups)), measured: [] };
  return { rest, report, steps };
}

/** The same as one value. */
export function whole({ rest, report, steps }) {
  return { ...rest, reports: Array.from({ length: steps }, (_, iteration) => report(iteration)) };
}

/** Writes it to a file, a report at a time. */
export async function write(path, { rest, report, steps }) {
  const { reports: _, ...others } = rest;
  const out = createWriteStream(path);
  out.write(`${JSON.stringify(others, short).slice(0, -1)},"reports":[`);
  for (let iteration = 0; iteration < steps; iteration++) {
    const text = `${iteration > 0 ? ',' : ''}${JSON.stringify(report(iteration), short)}`;
    if (!out.write(text)) await once(out, 'drain');
  }
  out.end(']}');
  await finished(out);
}
