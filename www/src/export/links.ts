/** The link in other forms: as Markdown, and as HTML for another page to embed. */

/** What an embedded page shows. */
export type EmbedView = 'lesson' | 'episodes' | 'curves';

const MARKDOWN = /[\\`*_[\]<>]/g;

/** `[title](link)`; parentheses of the link are coded, so that they do not end it. */
export function markdownLink(title: string, link: string): string {
  const text = title.replaceAll(/\s+/g, ' ').replaceAll(MARKDOWN, sign => `\\${sign}`);
  return `[${text}](${link.replaceAll('(', '%28').replaceAll(')', '%29')})`;
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/**
 * An iframe. Its sandbox allows what the page needs: scripts and workers of its own origin, files to be saved, and the link that
 * opens the whole page in another tab.
 */
export function embedCode(link: string, view: EmbedView, language: string, title: string): string {
  const url = new URL(link);
  url.searchParams.set('embed', view);
  if (language === 'zh') url.searchParams.set('lang', 'zh');
  const text = (value: string) => value.replaceAll(/[&<>"]/g, sign => ENTITIES[sign] ?? sign);
  const sandbox = 'allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-downloads';
  return `<iframe src="${text(url.href)}" title="${text(title)}" width="640" height="420" sandbox="${sandbox}" loading="lazy"></iframe>`;
}
