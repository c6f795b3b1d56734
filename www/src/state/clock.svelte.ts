/** How long a run has trained: a clock that stands still while nothing is trained. */

/** How often the time on show moves, in milliseconds. */
const TICK = 500;

export class Clock {
  private passed = $state(0);
  private since = $state<number | null>(null);
  private now = $state(0);
  private timer: ReturnType<typeof setInterval> | undefined;

  /** Seconds trained so far. */
  seconds = $derived((this.passed + (this.since === null ? 0 : Math.max(0, this.now - this.since))) / 1000);

  constructor() {
    // A page that the browser puts away for Back stands still, and its worker with it.
    let away = false;
    addEventListener('pagehide', () => {
      away = this.since !== null;
      this.stop();
    });
    addEventListener('pageshow', () => {
      if (away) this.start();
      away = false;
    });
  }

  start(): void {
    this.since = performance.now();
    this.now = this.since;
    clearInterval(this.timer);
    this.timer = setInterval(() => {
      this.now = performance.now();
    }, TICK);
  }

  stop(): void {
    clearInterval(this.timer);
    if (this.since !== null) this.passed += performance.now() - this.since;
    this.since = null;
  }

  /** Stands at `seconds`, trained before. */
  reset(seconds = 0): void {
    this.stop();
    this.passed = seconds * 1000;
  }
}
