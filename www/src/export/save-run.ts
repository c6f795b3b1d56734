/** The entries of the menu that save: what is on the page becomes a file. Gives the name of the file and what there is to say. */

import { experiment } from '../state/experiment.svelte';
import type { Run } from '../state/run.svelte';
import { trainer } from '../state/trainer.svelte';
import { view } from '../state/view.svelte';
import { reportsCsv } from './csv';
import { episodeLines } from './jsonl';
import { runFile } from './run-file';
import { fileName, save } from './save';

export interface Saved {
  name: string;
  /** Steps whose episodes the file holds, of those that are kept; null where all are there. */
  part: { kept: number; of: number } | null;
}

const saved = (name: string): Saved => ({ name, part: null });

/** The reports of the run on show as CSV. */
export async function saveCurves(run: Run): Promise<Saved> {
  const environment = experiment.description?.environments.find(entry => entry.name === run.config.environment);
  const types = (environment?.question_types ?? []).map((type, i) => `by_type.${i}: ${type.en}`);
  const name = fileName(run.config, 'curves', 'csv');
  save(name, await reportsCsv(run.reports, [`Turnwise ${experiment.linkOf(run.config)}`, ...types]), 'text/csv');
  return saved(name);
}

/** The episodes on show, under the credit on show. */
export async function saveEpisodes(run: Run): Promise<Saved> {
  const { module } = experiment;
  const { shown, config, measured } = view;
  if (!module || !shown || !config) throw new Error('no episodes');
  const batch = { ...shown.batch, rewards: shown.rewards, credit: shown.credit };
  const name = fileName(run.config, `step-${batch.iteration}-episodes`, 'jsonl');
  save(name, await episodeLines(module, [{ batch, config, truth: measured?.credit ?? null }]), 'application/jsonl');
  return saved(name);
}

/** All kept episodes, under the credit that they were trained with. */
export async function saveAllEpisodes(run: Run): Promise<Saved> {
  const { module } = experiment;
  if (!module) throw new Error('no module');
  const truthOf = (iteration: number) => run.measured.find(entry => entry.iteration === iteration)?.credit ?? null;
  const entries = run.batches.map(batch => ({ batch, config: run.config, truth: truthOf(batch.iteration) }));
  const name = fileName(run.config, 'episodes', 'jsonl');
  save(name, await episodeLines(module, entries), 'application/jsonl');
  return saved(name);
}

/** The run as a file that can be opened again. */
export async function saveRun(run: Run): Promise<Saved> {
  const { config, reports, batches, measured } = run;
  const device = run.device && (run.device.kind === 'webgpu' ? ` (WebGPU, ${run.device.name})` : ' (CPU)');
  const link = experiment.module ? `#${experiment.module.to_link(config)}` : '';
  const madeWith = run.madeWith || `Turnwise '${link}'${device ?? ''}`;
  const { parts, kept } = await runFile({ config, madeWith, reports, batches, measured }, view.batch?.iteration ?? null);
  const name = fileName(config, 'run', 'json');
  save(name, parts, 'application/json');
  return { name, part: kept < batches.length ? { kept, of: batches.length } : null };
}

/** The settings of the form. */
export function saveSettings(): Saved {
  const { module, config } = experiment;
  if (!module || !config) throw new Error('no settings');
  const name = fileName(config, 'experiment', 'json');
  save(name, [module.to_json(config), '\n'], 'application/json');
  return saved(name);
}

/** The policy of the live run as a folder for Hugging Face transformers, in a zip archive. */
export async function savePolicy(run: Run): Promise<Saved> {
  // It stands still now; it may go on before all is there.
  const { steps } = trainer;
  const { files, detail } = await trainer.exportPolicy();
  if (files.length === 0) throw new Error(detail);
  const { zipSync } = await import('fflate');
  const folder = `turnwise-${run.config.environment}`;
  const archive = zipSync(Object.fromEntries(files.map(([name, bytes]) => [`${folder}/${name}`, bytes])));
  const name = fileName(run.config, `step-${steps}-policy`, 'zip');
  save(name, [archive], 'application/zip');
  return saved(name);
}

/** The checkpoint after the last step of the live run. */
export async function saveCheckpoint(run: Run): Promise<Saved> {
  const checkpoint = await trainer.exportCheckpoint();
  if (!checkpoint) throw new Error('no step is done yet');
  const name = fileName(run.config, `step-${checkpoint.iteration}-checkpoint`, 'safetensors');
  save(name, [checkpoint.bytes as Uint8Array<ArrayBuffer>], 'application/octet-stream');
  return saved(name);
}
