/** How the page talks to a contender in its worker: one call after the other, each with one answer. */

import type { Counts } from './count';
import type { Batch, Draws, Shape, Weight } from './shape';

/** What a contender can be asked. The page gives weights to those that others are compared with; ours gives its own. */
export interface Calls {
  open(argument: { gpu: boolean; workers: number; shape: Shape; weights: Weight[] | null; base: string }): {
    device: string;
    weights: Weight[];
  };
  batch(argument: Batch): void;
  step(count: number): { losses: number[]; seconds: number[] };
  draws(argument: { sequences: number; count: number }): Draws;
  decode(draws: Draws): { tokens: Uint8Array; seconds: number };
  counts(argument: null): Counts;
}

type Argument<Name extends keyof Calls> = Parameters<Calls[Name]>[0];
type Answer<Name extends keyof Calls> = ReturnType<Calls[Name]>;

/** The worker's side: the functions that answer. */
export type Handlers = { [Name in keyof Calls]?: (argument: Argument<Name>) => Answer<Name> | Promise<Answer<Name>> };

interface Question {
  id: number;
  name: keyof Calls;
  argument: never;
}

interface Reply {
  id: number;
  answer?: unknown;
  error?: string;
}

/** Answers the page, in a worker. */
export function serve(handlers: Handlers): void {
  addEventListener('message', async ({ data }: MessageEvent<Question>) => {
    // Jobs of a helper are not for us.
    if (!data.name) return;
    const reply: Reply = { id: data.id };
    try {
      const handler = handlers[data.name] as ((argument: never) => unknown) | undefined;
      if (!handler) throw new Error(`no ${data.name} here`);
      reply.answer = await handler(data.argument);
    } catch (error) {
      reply.error = error instanceof Error ? error.message : String(error);
    }
    postMessage(reply);
  });
}

/** The page's side. */
export class Remote {
  private next = 0;
  private readonly waiting = new Map<number, { resolve: (answer: never) => void; reject: (error: Error) => void }>();

  constructor(private readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      const asked = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error === undefined) asked?.resolve(data.answer as never);
      else asked?.reject(new Error(data.error));
    };
    worker.onerror = event => {
      event.preventDefault();
      for (const { reject } of this.waiting.values()) reject(new Error(event.message || 'the worker did not start'));
      this.waiting.clear();
    };
  }

  call<Name extends keyof Calls>(name: Name, argument: Argument<Name>): Promise<Answer<Name>> {
    const id = this.next;
    this.next += 1;
    return new Promise<Answer<Name>>((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (answer: never) => void, reject });
      this.worker.postMessage({ id, name, argument });
    });
  }

  close(): void {
    this.worker.terminate();
  }
}
