/** Figures of what is on the page: the regions give what they draw, here it gets its title, its link and its colours. */

import { methodOf } from '../credit-scale';
import { fixed, percent, promptLabel } from '../format';
import { historyOf } from '../history';
import { MEASURES, measured as number } from '../parts/measures';
import type { Dot } from '../parts/scatter';
import type { CreditAccuracy, CreditMethod, ExperimentConfig, MeasuredCredit, Provenance, Report } from '../protocol';
import { credits } from '../state/credits.svelte';
import { experiment } from '../state/experiment.svelte';
import { trainer } from '../state/trainer.svelte';
import { say, words } from '../state/ui.svelte';
import { view } from '../state/view.svelte';
import { Thinner } from '../thin';
import type { TurnSlopes } from '../whatif';
import { accuracyFigure, scatterFigure } from './credit-figure';
import { type ChartData, chartFigure, measuresFigure } from './curve-figure';
import { episodeFigure } from './episode-figure';
import type { Figure } from './figure';
import { type Caption, lightColours } from './look';
import { slopeFigure } from './slope-figure';
import { chainBoxes, whyFigure } from './why-figure';

/** The experiment in words: environment, seed, what the person called it. */
function about(config: ExperimentConfig | null, rest: string): string {
  if (!config) return rest;
  const environment = experiment.description?.environments.find(entry => entry.name === config.environment);
  const seed = experiment.settings.get('seed');
  const parts = [
    config.title,
    environment ? say(environment.label) : config.environment,
    `${seed ? say(seed.label) : 'seed'} ${config.seed}`,
    rest,
  ];
  return parts.filter(part => part !== '').join(' · ');
}

function caption(title: string, config: ExperimentConfig | null, rest = ''): Caption {
  return { title, about: about(config, rest), link: config ? experiment.linkOf(config) : '' };
}

export type ChartOnPage = Omit<ChartData, 'xLabel' | 'head' | 'imitation'> & { head: number | null; imitated: boolean };

export function chartOnPage(title: string, data: ChartOnPage): Figure {
  const w = words();
  const { head, imitated } = data;
  const more = {
    xLabel: w.curves.iteration,
    head: head === null ? null : { at: head, text: `${w.curves.iteration} ${head}` },
    imitation: imitated ? w.curves.imitation : null,
  };
  return chartFigure(caption(title, trainer.run?.config ?? null), { ...data, ...more }, lightColours());
}

/** Pieces of the axis that a small curve of a figure tells apart. */
const PIECES = 512;

export function measuresOnPage(reports: Report[], xMax: number, head: number | null): Figure {
  const w = words();
  const latest = reports.at(-1);
  const at = reports.findIndex(report => report.iteration === head);
  const { measures } = historyOf(reports);
  const rows = MEASURES.map(({ key, of, format }, i) => {
    const shown = reports[at];
    const column = measures[i];
    const { x, values } = new Thinner().thin(column ? [column] : [], xMax, PIECES);
    return {
      name: w.curves.measures[key],
      x,
      values: values[0] ?? [],
      atHead: shown ? format(number(of(shown))) : '–',
      latest: latest ? format(number(of(latest))) : '–',
    };
  });
  const heads: [string, string] = [
    at >= 0 && head !== null ? w.curves.at(head) : '',
    latest ? w.curves.at(latest.iteration) : '',
  ];
  const data = { rows, length: xMax, at: at >= 0 ? head : null, heads };
  return measuresFigure(caption(w.curves.others, trainer.run?.config ?? null), data, lightColours());
}

export function episodesOnPage(where: string): Figure {
  const w = words();
  const { batch, rows, columns, quantity } = view;
  const group = batch?.groups[view.groupShown];
  const prompt = (group?.prompt ?? []).map(token => promptLabel(experiment.tokenNames[token] ?? '?')).join(' ');
  const meaning = methodOf(quantity) ? 'advantage' : quantity;
  const ends: [string, string] =
    quantity === 'log_prob' ? [w.legend.sure, w.legend.surprising] : [w.legend.low[meaning] ?? '', w.legend.high[meaning] ?? ''];
  const label = (token: number) => view.label(token);
  const data = { rows, columns, label, prompt, quantity: view.nameOf(quantity), ends, lossMask: view.lossMask, words: w };
  return episodeFigure(caption(w.episodes.title, view.config, where), data, lightColours());
}

export function whyOnPage(provenance: Provenance): Figure | null {
  const w = words();
  const { selected } = view;
  const facts = selected?.row.trajectory.turns[selected.turn.turn]?.facts;
  if (!selected || !facts) return null;
  const of = w.why.of(view.label(selected.token.token), selected.row.trajectory.member + 1, selected.turn.turn + 1);
  const where = `${w.curves.iteration} ${view.batch?.iteration ?? ''}${w.comma}${of}`;
  return whyFigure(
    caption(w.why.title, view.config, where),
    chainBoxes(provenance, facts, selected.token.sampled, w),
    lightColours(),
  );
}

/** What if: the credit that the run was trained with against that of other settings, whose link the figure has. */
export function whatIfOnPage(
  panels: TurnSlopes[],
  end: number,
  selected: number | null,
  config: ExperimentConfig | null,
): Figure {
  const w = words();
  const trained = trainer.run?.config;
  const changed = trained && config && experiment.module ? experiment.module.differences(trained, config) : [];
  const differences = changed.map(({ label, a, b }) => `${say(label)} ${a} → ${b}`);
  const where = [`${w.curves.iteration} ${view.batch?.iteration ?? ''}`, ...differences].join(' · ');
  return slopeFigure(caption(w.whatIf.title, config, where), { panels, end, selected }, w, lightColours());
}

/** How true credit was measured. */
function measurement({ iteration, accuracy }: MeasuredCredit): string {
  const w = words();
  const cost = w.right.cost(accuracy.states, accuracy.rolls, '');
  const reliability = accuracy.reliability === null ? '' : ` · ${w.right.reliability(percent(accuracy.reliability))}`;
  return `${w.right.of(iteration)} · ${cost}${reliability}`;
}

export function scatterOnPage(measured: MeasuredCredit, dots: Dot[], method: CreditMethod): Figure {
  const w = words();
  const label = w.right.scatter(view.methodName(method));
  // The accuracy may be over more turns than the run has kept.
  const all = measured.accuracy.methods.find(entry => entry.method === method)?.all_turns;
  const rest = all?.pearson ? ` · ${w.right.pearson} ${fixed(all.pearson.value)}${w.comma}${w.right.allTurns(all.turns)}` : '';
  const said = caption(w.right.title, trainer.run?.config ?? null, measurement(measured) + rest);
  return scatterFigure(said, dots, `${w.right.caption(label)} n = ${dots.length}`, w, lightColours());
}

export function accuracyOnPage(measured: MeasuredCredit): Figure {
  const w = words();
  const config = trainer.run?.config ?? null;
  const accuracy: CreditAccuracy = measured.accuracy;
  const methods = credits.methods.map(method => ({ method, name: view.methodName(method) }));
  const data = { accuracy, methods, used: config?.credit_method ?? null, samples: config?.monte_carlo_samples ?? 0 };
  return accuracyFigure(caption(w.right.table, config, measurement(measured)), data, w, lightColours());
}
