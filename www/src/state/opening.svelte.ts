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

  /** What asks; null where it could not be loaded: nothing is dropped then. */
  async question() {
    try {
      return await import('../parts/DropQuestion.svelte');
    } catch (error) {
      this.decide(false);
      this.failed(error);
      return null;
    }
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
      this.failed(error);
      return null;
    }
  }

  private failed(error: unknown): void {
    notices.show({ id: 'file', text: words => words.files.failed, detail: String(error) });
  }
}

export const opening = new Opening();
