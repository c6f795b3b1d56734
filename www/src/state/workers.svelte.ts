/** How many workers compute a run on the CPU. Results do not depend on it, so no link and no file says it. */

import type { Workers as Told } from '../worker';
import { notices } from './notices.svelte';

/** Most workers at a time: each has the memory of an engine of its own, and there are few jobs of a step to share. */
const MOST = 8;

class Workers {
  /** As many as there are cores, as far as the browser says. */
  readonly most = Math.max(1, Math.min(navigator.hardwareConcurrency || 1, MOST));
  /** One core is left to the page, so that it draws while a run goes on. */
  wanted = $state(Math.max(1, this.most - 1));
  /** How many compute the run; null before one is set up, and on a graphics device. */
  count = $state<number | null>(null);

  /** What the training worker says of them. */
  told({ count, lost, detail }: Told): void {
    this.count = count;
    if (lost) notices.show({ id: 'workers', text: words => words.notices.workerLost(count), detail });
  }
}

export const workers = new Workers();
