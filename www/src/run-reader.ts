/** Reads a run from parsed JSON. A file may be older than the page, cut short, edited or somebody else's: every field that the page relies on is checked, by name. */

import type { Batch, End, Facts, PartKind, RecordedRun, Report, RewardTerm } from './protocol';

type Fields = Record<string, unknown>;

/** Largest count and largest number that a run can hold. */
const MOST = 1e9;
const LARGEST = 1e12;

/** Says which field is not what it should be. */
export class Unreadable extends Error {}

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
  check(Number.isSafeInteger(value) && (value as number) >= 0, path, 'not a whole number');
  check((value as number) <= MOST, path, `above ${MOST}`);
  return value as number;
}

/** A number of a report. What was not finite stands in the file as null, or as a number too large to be one: it is marked as such. */
function number(value: unknown, path: string): void {
  if (value !== null && (typeof value !== 'number' || Number.isFinite(value))) finite(value, path);
}

/** A number that can be drawn. */
function finite(value: unknown, path: string): void {
  check(typeof value === 'number', path, 'not a number');
  check(Math.abs(value) <= LARGEST, path, `beyond ${LARGEST}`);
}

function text(value: unknown, path: string): string {
  check(typeof value === 'string', path, 'not a text');
  return value as string;
}

function flag(value: unknown, path: string): void {
  check(typeof value === 'boolean', path, 'not true or false');
}

/** Numbers alone. */
function numbers(value: unknown, path: string, length?: number, one = finite): void {
  for (const [i, entry] of list(value, path, length).entries()) one(entry, `${path}[${i}]`);
}

/** A table of numbers with the rows' lengths. */
function rows(value: unknown, path: string, lengths: number[], one = finite): void {
  for (const [i, row] of list(value, path, lengths.length).entries()) numbers(row, `${path}[${i}]`, lengths[i], one);
}

/** One of some words. */
function word(value: unknown, path: string, known: Record<string, true>): void {
  check(typeof value === 'string' && Object.hasOwn(known, value), path, 'not a known word');
}

const FACTS: Record<keyof Facts, true> = {
  answered: true,
  answer_right: true,
  format_right: true,
  valid_call: true,
  repeated_call: true,
  malformed: true,
  step_right: true,
  judged: true,
  clean_result: true,
  error_result: true,
  new_page: true,
  lucky: true,
};
const TERMS: Record<RewardTerm, true> = {
  answer_right: true,
  luck: true,
  valid_call: true,
  format_right: true,
  malformed: true,
  repeated_call: true,
  turn: true,
  step_right: true,
  clean_result: true,
  error_result: true,
  new_page: true,
  kl: true,
};
const KINDS: Record<PartKind, true> = {
  episode: true,
  outcome: true,
  turn_reward: true,
  process_reward: true,
  return_to_go: true,
  state: true,
  temporal_difference: true,
};
const ENDS: Record<End, true> = { terminated: true, turn_limit: true, context_end: true };

function config(value: unknown): void {
  const fields = object(value, 'config');
  text(fields.environment, 'config.environment');
  for (const name of ['iterations', 'seed']) count(fields[name], `config.${name}`);
  object(fields.parameters, 'config.parameters');
}

/** Numbers that were not finite are that again. */
function restore(fields: Fields): void {
  for (const [name, value] of Object.entries(fields)) if (value === null && name !== 'critic') fields[name] = Number.NaN;
}

/** What the curves show; other numbers may be missing, for reports grow. */
function report(fields: Fields, path: string): void {
  count(fields.iteration, `${path}.iteration`);
  finite(fields.seconds, `${path}.seconds`);
  for (const name of ['train_success', 'held_out_success', 'mean_return', 'no_signal_groups', 'tokens_per_second']) {
    number(fields[name], `${path}.${name}`);
  }
  count(fields.held_out_episodes, `${path}.held_out_episodes`);
  const update = object(fields.update, `${path}.update`);
  for (const name of ['entropy', 'approximate_kl', 'clip_fraction', 'ratio_deviation', 'gradient_norm']) {
    number(update[name], `${path}.update.${name}`);
  }
  restore(fields);
  restore(update);
  for (const [entry, at] of objects(fields.by_type, `${path}.by_type`)) {
    count(entry.episodes, `${at}.episodes`);
    for (const name of ['success', 'calls']) number(entry[name], `${at}.${name}`);
  }
}

function trajectory(fields: Fields, path: string, groups: number, vocabulary: number): number {
  check(count(fields.group, `${path}.group`) < groups, `${path}.group`, 'no such group');
  for (const name of ['member', 'question_type']) count(fields[name], `${path}.${name}`);
  const tokens = list(fields.tokens, `${path}.tokens`);
  const { length } = tokens;
  for (const [i, token] of tokens.entries()) {
    check(count(token, `${path}.tokens[${i}]`) < vocabulary, `${path}.tokens[${i}]`, 'no such token');
  }
  for (const [i, entry] of list(fields.loss_mask, `${path}.loss_mask`, length).entries()) flag(entry, `${path}.loss_mask[${i}]`);
  numbers(fields.log_probs, `${path}.log_probs`, length);
  word(fields.end, `${path}.end`, ENDS);
  const turns = objects(fields.turns, `${path}.turns`);
  check(turns.length > 0, `${path}.turns`, 'empty');
  let before = count(fields.prompt_length, `${path}.prompt_length`);
  for (const [turn, at] of turns) {
    const start = count(turn.start, `${at}.start`);
    const action = count(turn.action_end, `${at}.action_end`);
    const end = count(turn.end, `${at}.end`);
    check(before <= start && start < action && action <= end && end <= length, at, 'bounds out of order');
    before = end;
    const facts = object(turn.facts, `${at}.facts`);
    for (const name of Object.keys(FACTS)) flag(facts[name], `${at}.facts.${name}`);
  }
  return turns.length;
}

function credit(fields: Fields, path: string, turns: number[], groups: number): void {
  for (const name of ['rewards', 'returns_to_go', 'values', 'baselines', 'scales', 'peers', 'advantages']) {
    rows(fields[name], `${path}.${name}`, turns);
  }
  for (const [i, row] of list(fields.parts, `${path}.parts`, turns.length).entries()) {
    for (const [k, parts] of list(row, `${path}.parts[${i}]`, turns[i]).entries()) {
      for (const [part, at] of objects(parts, `${path}.parts[${i}][${k}]`)) {
        word(part.kind, `${at}.kind`, KINDS);
        for (const name of ['turn', 'peers']) count(part[name], `${at}.${name}`);
        for (const name of ['weight', 'value', 'baseline', 'scale']) finite(part[name], `${at}.${name}`);
      }
    }
  }
  for (const [i, entry] of list(fields.whitening, `${path}.whitening`, groups).entries()) {
    if (entry === null) continue;
    const whitening = object(entry, `${path}.whitening[${i}]`);
    for (const name of ['mean', 'scale', 'tokens']) number(whitening[name], `${path}.whitening[${i}].${name}`);
  }
  for (const [i, entry] of list(fields.no_signal, `${path}.no_signal`, groups).entries()) flag(entry, `${path}.no_signal[${i}]`);
}

/** The turns of each trajectory of a batch. */
function batch(fields: Fields, path: string, vocabulary: number): number[] {
  count(fields.iteration, `${path}.iteration`);
  const groups = objects(fields.groups, `${path}.groups`);
  check(groups.length > 0, `${path}.groups`, 'empty');
  for (const [group, at] of groups) {
    for (const [i, token] of list(group.prompt, `${at}.prompt`).entries()) {
      check(count(token, `${at}.prompt[${i}]`) < vocabulary, `${at}.prompt[${i}]`, 'no such token');
    }
    text(group.hidden_state, `${at}.hidden_state`);
  }
  const turns = objects(fields.trajectories, `${path}.trajectories`).map(([entry, at]) =>
    trajectory(entry, at, groups.length, vocabulary),
  );
  check(turns.length > 0, `${path}.trajectories`, 'empty');
  if (fields.rewards !== null) {
    const paid = list(object(fields.rewards, `${path}.rewards`).turns, `${path}.rewards.turns`, turns.length);
    for (const [i, row] of paid.entries()) {
      const at = `${path}.rewards.turns[${i}]`;
      for (const [k, terms] of list(row, at, turns[i]).entries()) {
        for (const [term, place] of objects(terms, `${at}[${k}]`)) {
          word(term.term, `${place}.term`, TERMS);
          finite(term.weight, `${place}.weight`);
        }
      }
    }
  }
  if (fields.credit !== null) credit(object(fields.credit, `${path}.credit`), `${path}.credit`, turns, groups.length);
  if (fields.values !== null) rows(fields.values, `${path}.values`, turns);
  return turns;
}

/** An agreement with its interval, or nothing. */
function agreement(value: unknown, path: string): void {
  if (value === null) return;
  const fields = object(value, path);
  finite(fields.value, `${path}.value`);
  if (fields.interval !== null) numbers(fields.interval, `${path}.interval`, 2);
}

function measured(fields: Fields, path: string, turnsOf: Map<number, number[]>): void {
  const known = turnsOf.get(count(fields.iteration, `${path}.iteration`));
  const truth = object(fields.credit, `${path}.credit`);
  for (const name of ['credits', 'standard_errors', 'values']) {
    const at = `${path}.credit.${name}`;
    // A state that was not rolled often enough has none.
    if (known) rows(truth[name], at, known, number);
    else for (const [i, row] of list(truth[name], at).entries()) numbers(row, `${at}[${i}]`, undefined, number);
  }
  const accuracy = object(fields.accuracy, `${path}.accuracy`);
  for (const name of ['rolls', 'states', 'turns']) count(accuracy[name], `${path}.accuracy.${name}`);
  number(accuracy.reliability ?? null, `${path}.accuracy.reliability`);
  for (const [method, at] of objects(accuracy.methods, `${path}.accuracy.methods`)) {
    text(method.method, `${at}.method`);
    for (const name of ['all_turns', 'tool_turns']) {
      const of = object(method[name], `${at}.${name}`);
      count(of.turns, `${at}.${name}.turns`);
      for (const figure of ['pearson', 'spearman', 'sign_agreement']) agreement(of[figure], `${at}.${name}.${figure}`);
    }
    // Runs from before there was such a thing have none.
    agreement(method.behind ?? null, `${at}.behind`);
  }
}

/** Iterations rise from entry to entry: curves and pages rely on it. */
function rising(entries: [Fields, string][], after = -1): void {
  let before = after;
  for (const [entry, path] of entries) {
    const iteration = count(entry.iteration, `${path}.iteration`);
    check(iteration > before, `${path}.iteration`, `${iteration} after ${before}`);
    before = iteration;
  }
}

/**
 * The run of a parsed file, whose tokens must be among the first `vocabulary`. Throws an error that names the first field that is
 * not as it should be. The settings are checked in Rust, not here.
 */
export function readRun(value: unknown, vocabulary: number): RecordedRun {
  const file = object(value, 'file');
  config(file.config);
  text(file.made_with, 'made_with');
  const reports = objects(file.reports, 'reports');
  check(reports.length > 0, 'reports', 'empty');
  rising(reports);
  const steps = count(object(file.config, 'config').iterations, 'config.iterations');
  for (const [entry, path] of reports) {
    report(entry, path);
    check(count(entry.iteration, `${path}.iteration`) < steps, `${path}.iteration`, `the run has ${steps} steps`);
  }
  const batches = objects(file.batches, 'batches');
  rising(batches);
  const turns = new Map(batches.map(([entry, path]) => [count(entry.iteration, path), batch(entry, path, vocabulary)]));
  for (const [entry, path] of objects(file.measured, 'measured')) measured(entry, path, turns);
  return value as RecordedRun;
}

/** Some of the kept reports of a run, one a step, which come after the step `before`. */
export function readReports(value: unknown, before: number): Report[] {
  const reports = objects(value, 'reports');
  rising(reports, before);
  const plain = (fields: Fields, names: string[], path: string) => {
    for (const name of names) check(typeof fields[name] === 'number', `${path}.${name}`, 'not a number');
  };
  for (const [entry, path] of reports) {
    plain(entry, ['seconds', 'train_success', 'held_out_success', 'held_out_episodes', 'mean_return', 'no_signal_groups'], path);
    objects(entry.by_type, `${path}.by_type`);
    plain(
      object(entry.update, `${path}.update`),
      ['entropy', 'approximate_kl', 'clip_fraction', 'ratio_deviation', 'gradient_norm'],
      path,
    );
  }
  return value as Report[];
}

/** Kept episodes of one step, checked as those of a file are. */
export function readBatch(value: unknown, vocabulary: number): Batch {
  batch(object(value, 'episodes'), 'episodes', vocabulary);
  return value as Batch;
}
