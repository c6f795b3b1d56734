/** Opening files and pasted links: what does it is loaded when it is needed; a question about a run that would be lost waits here. */

import { notices } from './notices.svelte';

class Opening {
  /** The file that would drop a trained run; null while there is nothing to ask. */
  asking = $state<string | null>(null);
  private answer: ((drop: boolean) => void) | null = null;

  /** Opens the first of some files. */
  async files(files: File[]): Promise<void> {
    const opener = await this.load();
    await opener?.openFiles(files, name => this.ask(name));
  }

  /** Opens the link in a pasted text, if it has one. */
  async text(text: string): Promise<void> {
    const opener = await this.load();
    opener?.openText(text);
  }

  /** The person's answer to the question. */
  decide(drop: boolean): void {
    this.answer?.(drop);
    this.answer = null;
    this.asking = null;
  }

  private ask(name: string): Promise<boolean> {
    this.decide(false);
    this.asking = name;
    return new Promise(resolve => {
      this.answer = resolve;
    });
  }

  private async load() {
    try {
      return await import('../open/open');
    } catch (error) {
      notices.show({ id: 'file', text: words => words.files.failed, detail: String(error) });
      return null;
    }
  }
}

export const opening = new Opening();
