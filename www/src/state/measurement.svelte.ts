/** The measurement of true credit as it goes: how far it is, how long it takes, and how many of its commands are on their way. */

export class Measurement {
  /** Continuations of each state that were asked for. */
  wanted = $state(0);
  rolls = $state(0);
  /** Seconds of work on the episodes of `iteration`. */
  seconds = $state(0);
  /** The step whose episodes are measured; null before the first answer. */
  iteration = $state<number | null>(null);

  private commands = 0;
  private stopping = false;
  private begun = 0;

  /** One more command goes out. */
  ask(rolls: number): void {
    if (this.commands === 0) {
      this.begun = performance.now();
      this.stopping = false;
    }
    this.commands += 1;
    this.wanted = rolls;
  }

  stop(): void {
    this.stopping = true;
  }

  answered(iteration: number, rolls: number): void {
    const now = performance.now();
    if (iteration !== this.iteration) this.seconds = 0;
    this.iteration = iteration;
    this.rolls = rolls;
    this.seconds += (now - this.begun) / 1000;
    this.begun = now;
  }

  /** A command came to its end: what is to be done now. */
  ended(): 'done' | 'wait' | 'stop the next' {
    this.commands -= 1;
    if (this.commands <= 0) {
      this.commands = 0;
      return 'done';
    }
    return this.stopping ? 'stop the next' : 'wait';
  }

  /** Nothing is on its way any more, and nothing is known. */
  clear(): void {
    this.commands = 0;
    this.iteration = null;
    this.rolls = 0;
    this.seconds = 0;
  }
}
