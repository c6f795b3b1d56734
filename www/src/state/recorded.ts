/** Reads the recorded run. It may be older than the page, cut short or edited: what the page relies on is checked, by name. */

import type { Facts, RecordedRun } from '../protocol';
import { experiment } from './experiment.svelte';
import { notices } from './notices.svelte';
import { Run } from './run.svelte';

type Fields = Record<string, unknown>;

/** Says which field is not what it should be. */
class Unreadable extends Error {}

function check(good: boolean, path: string, what: string): asserts good {
  if (!good) throw new Unreadable(`${path}: ${what}`);
}

function object(value: unknown, path: string): Fields {
  check(typeof value === 'object' && value !== null && !Array.isArray(value), path, 'not an object');
  return value as Fields;
}

function list(value: unknown, path: string, length?: number): unknown[] {
  check(Array.isArray(value), path, 'not a list');
  check(length === undefined || value.length === length, path, `${value.length} entries, not ${length}`);
  return value;
}

/** Each entry of a list as an object, with its path. */
function objects(value: unknown, path: string, length?: number): [Fields, string][] {
  return list(value, path, length).map((entry, i) => [object(entry, `${path}[${i}]`), `${path}[${i}]`]);
}

/** A whole number, not negative. */
function count(value: unknown, path: string): number {
  check(Number.isInteger(value) && (value as number) >= 0, path, 'not a whole number');
  return value as number;
}

/** Numbers alone; what was not finite stands in the file as null. */
function numbers(value: unknown, path: string, length?: number): void {
  for (const [i, entry] of list(value, path, length).entries()) {
    check(typeof entry === 'number' || entry === null, `${path}[${i}]`, 'not a number');
  }
}

function config(value: unknown): void {
  const fields = object(value, 'config');
  check(typeof fields.environment === 'string', 'config.environment', 'not a text');
  for (const name of ['iterations', 'seed']) count(fields[name], `config.${name}`);
  object(fields.parameters, 'config.parameters');
}

function report(fields: Fields, path: string): void {
  count(fields.iteration, `${path}.iteration`);
  check(typeof fields.seconds === 'number', `${path}.seconds`, 'not a number');
  object(fields.update, `${path}.update`);
  objects(fields.by_type, `${path}.by_type`);
}

const FACTS: (keyof Facts)[] = [
  'answered',
  'answer_right',
  'format_right',
  'valid_call',
  'repeated_call',
  'malformed',
  'step_right',
  'judged',
  'clean_result',
  'error_result',
  'new_page',
  'lucky',
];

function trajectory(fields: Fields, path: string, groups: number): number {
  check(count(fields.group, `${path}.group`) < groups, `${path}.group`, 'no such group');
  count(fields.member, `${path}.member`);
  const { length } = list(fields.tokens, `${path}.tokens`);
  numbers(fields.tokens, `${path}.tokens`);
  list(fields.loss_mask, `${path}.loss_mask`, length);
  numbers(fields.log_probs, `${path}.log_probs`, length);
  check(typeof fields.end === 'string', `${path}.end`, 'not a text');
  const turns = objects(fields.turns, `${path}.turns`);
  check(turns.length > 0, `${path}.turns`, 'empty');
  for (const [turn, at] of turns) {
    const start = count(turn.start, `${at}.start`);
    const action = count(turn.action_end, `${at}.action_end`);
    const end = count(turn.end, `${at}.end`);
    check(start <= action && action <= end && end <= length, at, 'bounds out of order');
    const facts = object(turn.facts, `${at}.facts`);
    for (const name of FACTS) check(typeof facts[name] === 'boolean', `${at}.facts.${name}`, 'not true or false');
  }
  return turns.length;
}

function batch(fields: Fields, path: string): void {
  count(fields.iteration, `${path}.iteration`);
  const groups = objects(fields.groups, `${path}.groups`);
  check(groups.length > 0, `${path}.groups`, 'empty');
  for (const [group, at] of groups) numbers(group.prompt, `${at}.prompt`);
  const turns = objects(fields.trajectories, `${path}.trajectories`).map(([entry, at]) => trajectory(entry, at, groups.length));
  if (fields.rewards !== null) {
    const rewards = list(object(fields.rewards, `${path}.rewards`).turns, `${path}.rewards.turns`, turns.length);
    for (const [i, paid] of rewards.entries()) {
      const at = `${path}.rewards.turns[${i}]`;
      for (const [k, terms] of list(paid, at, turns[i]).entries()) objects(terms, `${at}[${k}]`);
    }
  }
  if (fields.credit !== null) {
    const credit = object(fields.credit, `${path}.credit`);
    for (const name of ['returns_to_go', 'values', 'baselines', 'scales', 'peers', 'advantages']) {
      const rows = list(credit[name], `${path}.credit.${name}`, turns.length);
      for (const [i, row] of rows.entries()) numbers(row, `${path}.credit.${name}[${i}]`, turns[i]);
    }
    for (const [i, row] of list(credit.parts, `${path}.credit.parts`, turns.length).entries()) {
      for (const [k, parts] of list(row, `${path}.credit.parts[${i}]`, turns[i]).entries())
        objects(parts, `${path}.credit.parts[${i}][${k}]`);
    }
    list(credit.whitening, `${path}.credit.whitening`, groups.length);
    list(credit.no_signal, `${path}.credit.no_signal`, groups.length);
  }
  if (fields.values !== null) list(fields.values, `${path}.values`, turns.length);
}

function measured(fields: Fields, path: string): void {
  count(fields.iteration, `${path}.iteration`);
  const credit = object(fields.credit, `${path}.credit`);
  for (const name of ['credits', 'standard_errors', 'values']) {
    for (const [i, row] of list(credit[name], `${path}.credit.${name}`).entries()) numbers(row, `${path}.credit.${name}[${i}]`);
  }
  const accuracy = object(fields.accuracy, `${path}.accuracy`);
  for (const name of ['rolls', 'states', 'turns']) count(accuracy[name], `${path}.accuracy.${name}`);
  for (const [method, at] of objects(accuracy.methods, `${path}.accuracy.methods`)) {
    check(typeof method.method === 'string', `${at}.method`, 'not a text');
    for (const name of ['all_turns', 'tool_turns']) object(method[name], `${at}.${name}`);
  }
}

/** The run of a parsed file. Throws an error that names the first field that is not as it should be. */
function readRecorded(value: unknown): RecordedRun {
  const file = object(value, 'file');
  config(file.config);
  check(typeof file.made_with === 'string', 'made_with', 'not a text');
  const reports = objects(file.reports, 'reports');
  check(reports.length > 0, 'reports', 'empty');
  for (const [entry, path] of reports) report(entry, path);
  for (const [entry, path] of objects(file.batches, 'batches')) batch(entry, path);
  for (const [entry, path] of objects(file.measured, 'measured')) measured(entry, path);
  return value as RecordedRun;
}

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Fetches and reads the recorded run; null, and a notice, where that fails. */
export async function loadRecorded(): Promise<Run | null> {
  let text: string;
  try {
    const response = await fetch(new URL('recorded/search.json', document.baseURI));
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    text = await response.text();
  } catch (error) {
    notices.show({ id: 'recorded', text: ({ notices }) => notices.recordedFailed, detail: words(error) });
    return null;
  }
  await experiment.loaded;
  try {
    const file = readRecorded(JSON.parse(text));
    return Run.recorded({ ...file, config: experiment.completed(file.config) });
  } catch (error) {
    notices.show({ id: 'recorded', text: ({ notices }) => notices.recordedUnreadable, detail: words(error) });
    return null;
  }
}
