/**
 * Drawing in pieces: every animation frame takes as many as fit into a few milliseconds, so that no task of the main thread is long enough
 * to be felt, and no more frames are drawn than that takes: each costs the page as much again, and other threads.
 */

import { flushSync, untrack } from 'svelte';

/** Within this many milliseconds of a frame another piece is begun. */
const BUDGET = 8;

/** Draws a piece and says whether another one is left. */
type Piece = () => boolean;

/** What the frames have taken up to now, their layout and painting included. */
let spent = 0;
const drawnAt = new MessageChannel();
drawnAt.port1.onmessage = ({ data }: MessageEvent<number>) => {
  spent += performance.now() - data;
};

/** Milliseconds that drawing in pieces has taken since the page was opened. */
export const timeDrawn = (): number => spent;

/** By who draws. Whoever has had a frame goes to the end. */
const waiting = new Map<object, Piece>();
let asked: { frame: number; timer: ReturnType<typeof setTimeout> } | null = null;

/**
 * After so many milliseconds it goes on without a frame: in a hidden tab, and in a page within another that is out of sight, none comes,
 * and what waits may be the next run of a series.
 */
const LATEST = 1000;

/** Puts a drawing in the queue. One that the same owner has there already is replaced and keeps its place. */
export function drawInTurn(owner: object, piece: Piece): void {
  waiting.set(owner, piece);
  ask();
}

/** Takes the owner's drawing out of the queue. */
export function stopDrawing(owner: object): void {
  waiting.delete(owner);
}

/** A value as drawn: it follows `read` when its turn comes. To be called while a component is set up. */
export function inTurn<T>(read: () => T): { readonly current: T } {
  let current = $state.raw(untrack(read));
  const owner = {};
  const follow = () => {
    current = read();
    return false;
  };
  $effect(() => {
    void read();
    drawInTurn(owner, follow);
  });
  $effect(() => () => stopDrawing(owner));
  return {
    get current() {
      return current;
    },
  };
}

/** The same for a value that is there as long as the page is. */
export function alwaysInTurn<T>(read: () => T): { readonly current: T } {
  const drawn: { current: T }[] = [];
  $effect.root(() => {
    drawn.push(inTurn(read));
  });
  return drawn[0] ?? { current: read() };
}

/** A value that comes at once and goes when its turn comes, so that not everything that shows it is taken away in one frame. */
export function lingering<T>(read: () => T | null): { readonly current: T | null } {
  const last = inTurn(read);
  return {
    get current() {
      return read() ?? last.current;
    },
  };
}

function ask(): void {
  asked ??= { frame: requestAnimationFrame(frame), timer: setTimeout(frame, LATEST) };
}

function frame(): void {
  if (asked) {
    cancelAnimationFrame(asked.frame);
    clearTimeout(asked.timer);
  }
  asked = null;
  const begun = performance.now();
  const drawn = new Set<object>();
  try {
    for (const [owner, piece] of waiting) {
      // The next piece of the same drawing waits for the next frame.
      if (drawn.has(owner)) continue;
      drawn.add(owner);
      waiting.delete(owner);
      if (piece()) waiting.set(owner, piece);
      flushSync();
      if (performance.now() >= begun + BUDGET) break;
    }
  } finally {
    if (waiting.size > 0) ask();
    // Comes after the frame was laid out and painted.
    drawnAt.port2.postMessage(begun);
  }
}
