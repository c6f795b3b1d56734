/** Opens what a person chose, dropped or pasted: a run, settings, a checkpoint, a link. A file that is wrong changes nothing. */

import { experiment } from '../state/experiment.svelte';
import { notices } from '../state/notices.svelte';
import { completed, vocabulary } from '../state/recorded';
import { Run } from '../state/run.svelte';
import { trainer } from '../state/trainer.svelte';
import { view } from '../state/view.svelte';
import { type MenuWords, menuWords } from '../words/menu';
import { readFile, stopReading } from './read-file';
import { checkpointHeader } from './safetensors';
import { FILE_LIMIT, findLink } from './sniff';

/** Asks whether a run that was trained here may be dropped. */
export type MayDrop = (name: string) => Promise<boolean>;

function say(text: (words: MenuWords) => string, detail = ''): void {
  notices.show({ id: 'file', text: () => text(menuWords()), detail });
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Opens one file. */
export async function openFile(file: File, mayDrop: MayDrop): Promise<void> {
  stopReading();
  const name = shortened(file.name);
  const { module } = experiment;
  if (!module) return say(w => w.wrong.module);
  if (file.size > FILE_LIMIT) return say(w => w.wrong.large(name, (file.size / 1e6).toFixed(0)));
  if (/\.safetensors$/i.test(file.name) && file.size > 0) {
    let bytes: Uint8Array;
    try {
      bytes = new Uint8Array(await file.arrayBuffer());
    } catch (error) {
      return say(w => w.wrong.unread(name), reason(error));
    }
    return openCheckpoint(bytes, name, mayDrop);
  }
  const found = await readFile(file, vocabulary(), completed, reading(name, file.size));
  if (found.kind === 'given up') return;
  if (found.kind === 'failed') return notices.show({ id: 'file', text: words => words.files.failed, detail: found.detail });
  if (found.kind === 'unread') return say(w => w.wrong.unread(name), found.detail);
  if (found.kind === 'refused') return say(w => w.wrong.run(name), found.detail);
  if (found.kind === 'wrong') return say(w => w.wrong[found.why](name), found.detail);
  if (found.kind === 'link') {
    openFragment(found.fragment);
    return say(w => w.opened.link(name));
  }
  if (found.kind === 'settings') {
    experiment.open(module.read_json(found.text));
    return say(w => w.opened.settings(name));
  }
  const { config } = found.value;
  const run = Run.recorded({ ...found.value, config: completed(config) });
  notices.close('file');
  if (mustAsk() && !(await mayDrop(name))) return;
  // The form follows, so that the credit on show is that of the run.
  experiment.open(module.read_json(JSON.stringify(config)));
  trainer.open(run);
  view.look();
  say(w => w.opened.run(name));
}

/** From how many bytes on the page says that a file is being read, and after which share of it again. */
const LARGE = 4e6;
const SHARE = 0.1;

/** Says how much of a large file has come. */
function reading(name: string, size: number): (share: number) => void {
  if (size < LARGE) return () => {};
  let said = 0;
  say(w => w.opened.reading(name, 0));
  return share => {
    if (share < said + SHARE) return;
    said = share;
    say(w => w.opened.reading(name, share));
  };
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
    const complete = iteration !== null && iteration >= config.iterations;
    say(w => (complete ? w.opened.complete(name, iteration) : w.opened.checkpoint(name, iteration)));
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
  stopReading();
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
