/** One-line messages under the bar: what happened, in words, until the person closes them. */

import type { Words } from '../words/en';

export interface Notice {
  id: string;
  /** The sentence, as a function of the words so that it follows the language. */
  text: (words: Words) => string;
  /** The browser's own words, where there are some. */
  detail?: string;
  /** A reload may help. */
  reload?: boolean;
}

class Notices {
  list = $state.raw<Notice[]>([]);

  /** Shows a notice; one with the same id is replaced. */
  show(notice: Notice): void {
    this.list = [...this.list.filter(other => other.id !== notice.id), notice];
  }

  close(id: string): void {
    this.list = this.list.filter(notice => notice.id !== id);
  }
}

export const notices = new Notices();
