/** What the person set about the page itself: language, theme, width of the window. Kept in this browser where it allows that. */

import type { Language } from '../format';
import type { Text } from '../protocol';
import { en, type Words } from '../words/en';
import { zh } from '../words/zh';
import { fromQuery } from './embed';

export type Theme = 'light' | 'dark';

/** What this browser keeps under a key. */
export function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Keeps a text in this browser. */
export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage is blocked or full: the choice lasts as long as the page is open.
  }
}

function firstLanguage(): Language {
  const asked = fromQuery('lang', ['en', 'zh'] as const);
  if (asked) return asked;
  const kept = stored('turnwise-language');
  if (kept === 'en' || kept === 'zh') return kept;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

function firstTheme(): Theme {
  const asked = fromQuery('theme', ['light', 'dark'] as const);
  if (asked) return asked;
  const kept = stored('turnwise-theme');
  if (kept === 'light' || kept === 'dark') return kept;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

class Ui {
  language = $state<Language>(firstLanguage());
  theme = $state<Theme>(firstTheme());
  phone = $state(false);

  constructor() {
    const narrow = matchMedia('(max-width: 640px)');
    this.phone = narrow.matches;
    let settling: ReturnType<typeof setTimeout> | undefined;
    narrow.addEventListener('change', () => {
      // A window may be narrow for a moment, as while the whole page is captured: rows made anew for that would take many frames.
      clearTimeout(settling);
      settling = setTimeout(() => {
        this.phone = narrow.matches;
      }, 150);
    });
    this.apply();
  }

  setLanguage(language: Language): void {
    this.language = language;
    store('turnwise-language', language);
    this.apply();
  }

  toggleTheme(): void {
    this.theme = this.theme === 'dark' ? 'light' : 'dark';
    store('turnwise-theme', this.theme);
    this.apply();
  }

  /** The root element says both, so that style sheets, fonts and screen readers know. */
  private apply(): void {
    document.documentElement.dataset.theme = this.theme;
    document.documentElement.lang = this.language === 'zh' ? 'zh-CN' : 'en';
  }
}

export const ui = new Ui();

/** The words of the chosen language. */
export function words(): Words {
  return ui.language === 'zh' ? zh : en;
}

/** A text from the Rust declarations in the chosen language. */
export function say(text: Text): string {
  return text[ui.language];
}
