/** What the worker was asked for and has not answered yet. A worker that ends answers nothing. */

import type { Checkpoint } from '../storage';
import type { ExportedPolicy, LatestCheckpoint, ToWorker } from '../worker';

export class Asked {
  private policy: ((answer: ExportedPolicy) => void) | null = null;
  private checkpoint: ((answer: Checkpoint | null) => void) | null = null;

  constructor(private readonly post: (message: ToWorker) => void) {}

  /** The policy as files that Hugging Face transformers loads. */
  forPolicy(): Promise<ExportedPolicy> {
    return new Promise(resolve => {
      this.policy = resolve;
      this.post({ type: 'export_policy' });
    });
  }

  /** The checkpoint after the last step; null where there is none. */
  forCheckpoint(): Promise<Checkpoint | null> {
    return new Promise(resolve => {
      this.checkpoint = resolve;
      this.post({ type: 'send_checkpoint' });
    });
  }

  answered(event: ExportedPolicy | LatestCheckpoint): void {
    if (event.type === 'policy') {
      this.policy?.(event);
      this.policy = null;
    } else {
      this.checkpoint?.(event.checkpoint);
      this.checkpoint = null;
    }
  }

  /** The worker is gone: there is no policy, for this reason, and the checkpoint is the one that the page has. */
  gone(detail: string, checkpoint: Checkpoint | null): void {
    this.answered({ type: 'policy', files: [], detail });
    this.answered({ type: 'checkpoint', checkpoint });
  }
}
