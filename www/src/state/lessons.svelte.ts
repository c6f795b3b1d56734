/** The lessons: which one the settings are, which one is on the card, and the way to what it is about. */

import type { Quantity } from '../credit-scale';
import type { Difference, ExperimentConfig, Focus, LessonEntry } from '../protocol';
import { comparison } from './comparison.svelte';
import { changesBetween, experiment } from './experiment.svelte';
import { store, stored } from './ui.svelte';
import { view } from './view.svelte';

/** Where a region begins: the id of its heading, or of the region itself where it has none. */
const PLACES: Record<Focus, string> = {
  run: 'controls',
  curves: 'curves-title',
  episodes: 'episodes-title',
  why: 'why-title',
  credit_check: 'right-title',
};

const FOLDED = 'turnwise-lesson-folded';

/** How long a region is marked, in milliseconds. */
const MARKED = 2500;

/** A configuration as text that can be compared, seed and title aside. All come from the wasm module, in the same order. */
const textOf = (config: ExperimentConfig) => JSON.stringify({ ...config, seed: 0, title: '' });

class Lessons {
  /** Every lesson, in the order of the course. */
  entries: LessonEntry[] = $derived(experiment.module?.lessons() ?? []);

  private texts = $derived(this.entries.map(entry => textOf(entry.config)));

  /** The lesson whose settings the form has, whatever the seed; -1 where it is none. */
  private found = $derived(experiment.config ? this.texts.indexOf(textOf(experiment.config)) : -1);

  /** The lesson that was chosen or opened last: its card stays when a setting is moved, be it to those of another lesson. */
  private last = $state(-1);
  /** How many links had been opened by then. */
  private opened = $state(-1);

  /** The lesson on the card; -1 for none. A link that is opened brings its own. */
  index = $derived(this.last >= 0 && this.opened === experiment.opened ? this.last : this.found >= 0 ? this.found : this.last);
  entry: LessonEntry | null = $derived(this.entries[this.index] ?? null);

  /** Whether the form has the settings of the lesson on the card. */
  current = $derived(this.index >= 0 && experiment.config !== null && this.texts[this.index] === textOf(experiment.config));

  /** In what the form (second value) differs from the lesson on the card (first value). */
  changes: Difference[] = $derived.by(() => {
    const { entry, current } = this;
    const { config } = experiment;
    return entry && config && !current ? withoutSeed(entry.config, config) : [];
  });

  /** In what the run that it is compared with (second value) differs from the lesson (first value). */
  compared: Difference[] = $derived(this.entry?.other ? withoutSeed(this.entry.config, this.entry.other) : []);

  folded = $state(stored(FOLDED) === '1');

  fold(folded: boolean): void {
    this.folded = folded;
    store(FOLDED, folded ? '1' : '0');
  }

  /** Keeps the lesson on the card, that of a link too. */
  remember(): void {
    this.last = this.index;
    this.opened = experiment.opened;
  }

  /** Takes over the settings of a lesson. Starts nothing. */
  choose(entry: LessonEntry | undefined): void {
    if (!entry) return;
    this.last = this.entries.indexOf(entry);
    comparison.leave();
    experiment.choose(entry.config, entry.other);
    view.quantity = entry.lesson.quantity as Quantity;
  }

  /** Goes to the region that the lesson is about, and marks it for a moment. */
  show(): void {
    const { entry } = this;
    const place = entry && document.getElementById(PLACES[entry.lesson.focus]);
    const region = place?.closest<HTMLElement>('.panel');
    if (!place || !region) return;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    region.scrollIntoView({ behavior: still ? 'auto' : 'smooth', block: 'start' });
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
    region.classList.add('pointed');
    setTimeout(() => region.classList.remove('pointed'), MARKED);
  }
}

const withoutSeed = (a: ExperimentConfig, b: ExperimentConfig) => changesBetween(a, b).filter(({ name }) => name !== 'seed');

export const lessons = new Lessons();
