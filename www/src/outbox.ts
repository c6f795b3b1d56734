/** The training worker's messages to the page: what a run in progress tells comes several at a time where steps are short. */

import type { FromWorker, Posted } from './worker';

/** Time between two times that short steps are told, in milliseconds: each message costs the page a task, and it draws no more often. */
const EVERY = 100;

export class Outbox {
  /** Whether messages may wait for others. */
  together = false;
  private waiting: FromWorker[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** When something was posted last, when the last step was told, and how long it took. */
  private posted = Number.NEGATIVE_INFINITY;
  private told = Number.NEGATIVE_INFINITY;
  private took = Number.POSITIVE_INFINITY;

  constructor(private readonly post: (posted: Posted) => void) {}

  /** Posts a message, after those that wait. The phases of short steps wait for each other. */
  send(message: FromWorker): void {
    this.waiting.push(message);
    const now = performance.now();
    if (message.type === 'phase' && message.report) [this.told, this.took] = [now, now - this.told];
    // A long step is told as it goes: the timer may not get its turn before the next phase is done.
    const waits = this.together && message.type === 'phase' && this.took < EVERY && now - this.posted < EVERY;
    if (!waits) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), this.posted + EVERY - now);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.posted = performance.now();
    const messages = this.waiting;
    this.waiting = [];
    const [first] = messages;
    if (first) this.post(messages.length === 1 ? first : { type: 'several', messages });
  }
}
