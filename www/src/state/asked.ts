/** What the worker was asked for and has not answered yet. A worker that ends answers nothing. */

import type { Checkpoint } from '../storage';
import type { ExportedPolicy, LatestCheckpoint, ToWorker } from '../worker';

export class Asked {
  private policy: ((answer: ExportedPolicy) => void)[] = [];
  private checkpoint: ((answer: Checkpoint | null) => void)[] = [];

  constructor(private readonly post: (message: ToWorker) => void) {}

  /** The policy as files that Hugging Face transformers loads. */
  forPolicy(): Promise<ExportedPolicy> {
    return new Promise(resolve => {
      this.policy.push(resolve);
      this.post({ type: 'export_policy' });
    });
  }

  /** The checkpoint after the last step; null where there is none. */
  forCheckpoint(): Promise<Checkpoint | null> {
    return new Promise(resolve => {
      this.checkpoint.push(resolve);
      this.post({ type: 'send_checkpoint' });
    });
  }

  /** The worker answers in the order in which it was asked. */
  answered(event: ExportedPolicy | LatestCheckpoint): void {
    if (event.type === 'policy') this.policy.shift()?.(event);
    else this.checkpoint.shift()?.(event.checkpoint);
  }

  /** The worker is gone: there is no policy, for this reason, and the checkpoint is the one that the page has. */
  gone(detail: string, checkpoint: Checkpoint | null): void {
    for (const answer of this.policy.splice(0)) answer({ type: 'policy', files: [], detail });
    for (const answer of this.checkpoint.splice(0)) answer(checkpoint);
  }
}
