/** When the batches of a run in progress are shown: no more often than they can be followed, and only once the last one is drawn. */

import { drawInTurn, stopDrawing } from '../frames.svelte';
import type { Batch } from '../protocol';

/** Least time between two batches shown while training, in milliseconds: none can be read faster. */
const INTERVAL = 1000;

/** The engine offers those of a step this often while it trains, in milliseconds: of what it would send besides, nothing is shown. */
export const EPISODES_EVERY = 500;

export class BatchPace {
  /** Whether the page is still busy with the batch it was given last. */
  drawing: () => boolean = () => false;
  /** The newest batch, until the page has time to show it, and who shows it. */
  private waiting: { batch: Batch; show: (batch: Batch) => void } | null = null;
  private last = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Has a batch shown when it is time; one that waits gives way to it. */
  later(batch: Batch, show: (batch: Batch) => void): void {
    this.waiting = { batch, show };
    this.wait();
  }

  /** Shows what waits at once. */
  now(): void {
    this.dropTimer();
    const { waiting } = this;
    this.waiting = null;
    this.last = performance.now();
    waiting?.show(waiting.batch);
  }

  /** Forgets what waits. */
  clear(): void {
    this.dropTimer();
    this.waiting = null;
    this.last = 0;
  }

  private wait(): void {
    clearTimeout(this.timer);
    const wait = Math.max(this.drawing() ? 100 : 0, this.last + INTERVAL - performance.now());
    this.timer = setTimeout(() => {
      if (this.drawing() && !document.hidden) this.wait();
      else drawInTurn(this, this.show);
    }, wait);
  }

  private show = (): boolean => {
    this.now();
    return false;
  };

  private dropTimer(): void {
    clearTimeout(this.timer);
    stopDrawing(this);
  }
}
