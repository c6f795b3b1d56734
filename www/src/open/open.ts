/** Opens what a person chose, dropped or pasted: a run, settings, a checkpoint, a link. A file that is wrong changes nothing. */

import { experiment } from '../state/experiment.svelte';
import { notices } from '../state/notices.svelte';
import { runOf } from '../state/recorded';
import type { Run } from '../state/run.svelte';
import { trainer } from '../state/trainer.svelte';
import { view } from '../state/view.svelte';
import { type MenuWords, menuWords } from '../words/menu';
import { checkpointHeader } from './safetensors';
import { FILE_LIMIT, findLink, sniff } from './sniff';

/** Asks whether a run that was trained here may be dropped. */
export type MayDrop = (name: string) => Promise<boolean>;

function say(text: (words: MenuWords) => string, detail = ''): void {
  notices.show({ id: 'file', text: () => text(menuWords()), detail });
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Opens one file. */
export async function openFile(file: File, mayDrop: MayDrop): Promise<void> {
  const name = shortened(file.name);
  const { module } = experiment;
  if (!module) return say(w => w.wrong.module);
  if (file.size > FILE_LIMIT) return say(w => w.wrong.large(name, (file.size / 1e6).toFixed(0)));
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch (error) {
    return say(w => w.wrong.unread(name), reason(error));
  }
  if (/\.safetensors$/i.test(file.name) && bytes.length > 0) return openCheckpoint(bytes, name, mayDrop);
  const found = sniff(bytes);
  if (found.kind === 'wrong') return say(w => w.wrong[found.why](name), found.detail);
  if (found.kind === 'link') {
    openFragment(found.fragment);
    return say(w => w.opened.link(name));
  }
  if (found.kind === 'settings') {
    experiment.open(module.read_json(found.text));
    return say(w => w.opened.settings(name));
  }
  let run: Run;
  try {
    run = runOf(found.value);
  } catch (error) {
    return say(w => w.wrong.run(name), reason(error));
  }
  if (mustAsk() && !(await mayDrop(name))) return;
  // The form follows, so that the credit on show is that of the run.
  const { config } = found.value as { config: unknown };
  experiment.open(module.read_json(JSON.stringify(config)));
  trainer.open(run);
  view.look();
  say(w => w.opened.run(name));
}

/** The experiment of the file in the form, and a run that goes on from its weights once Train is pressed. */
async function openCheckpoint(bytes: Uint8Array, name: string, mayDrop: MayDrop): Promise<void> {
  const { module } = experiment;
  if (!module) return;
  try {
    const { experiment: made, iteration } = checkpointHeader(bytes);
    const { config } = made === '' ? { config: experiment.config } : module.read_link(made);
    if (!config) return;
    if (iteration !== null && iteration > config.iterations) {
      throw new Error(`it is of step ${iteration}, its run has ${config.iterations} steps`);
    }
    if (mustAsk() && !(await mayDrop(name))) return;
    trainer.importCheckpoint(bytes, config, iteration ?? 0);
    view.look();
    say(w => w.opened.checkpoint(name, iteration));
  } catch (error) {
    say(w => w.wrong.checkpointBad(name), reason(error));
  }
}

/** Opens the first of the files; says so where there are more. */
export async function openFiles(files: Iterable<File>, mayDrop: MayDrop): Promise<void> {
  const [first, second] = files;
  if (!first) return;
  notices.close('files');
  await openFile(first, mayDrop);
  if (second) notices.show({ id: 'files', text: () => menuWords().wrong.several });
}

/** Opens the link in a text; false where there is none. */
export function openText(text: string): boolean {
  const fragment = findLink(text);
  if (!fragment || !experiment.module) return false;
  openFragment(fragment);
  say(w => w.opened.pasted);
  return true;
}

/** As if the link had been opened in this tab: a run in progress stops, and Back leads to the experiment before it. */
function openFragment(fragment: string): void {
  location.hash = fragment;
}

/** Something that was trained here would be lost. */
function mustAsk(): boolean {
  return trainer.live !== null && (trainer.busy || trainer.live.reports.length > 0 || trainer.live.batches.length > 0);
}

const shortened = (name: string): string => (name.length > 60 ? `${name.slice(0, 40)}…${name.slice(-15)}` : name);
