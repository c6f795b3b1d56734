/** What the query string of the address says: which view an embedded page shows, in which language and theme. */

/** The views that another page can embed: a lesson with its curves and controls, a group of episodes, or the curves alone. */
const VIEWS = ['lesson', 'episodes', 'curves'] as const;
export type EmbedView = (typeof VIEWS)[number];

const query = new URLSearchParams(location.search);
const wanted = query.get('embed');

/** The view to show alone; null for the whole page. */
export const embedded: EmbedView | null = VIEWS.find(view => view === wanted) ?? null;

/** A view that was asked for and that there is not. */
export const unknownView: string | null = wanted !== null && embedded === null ? wanted : null;

/** Of what is set in the address, one of `allowed`, or null. */
export function fromQuery<Value extends string>(name: string, allowed: readonly Value[]): Value | null {
  return allowed.find(value => value === query.get(name)) ?? null;
}

/** The address of the whole page, without fragment. */
export function pageAddress(): string {
  const { origin, pathname } = location;
  const rest = new URLSearchParams(location.search);
  for (const name of ['embed', 'lang', 'theme']) rest.delete(name);
  const search = rest.size > 0 ? `?${rest}` : '';
  return `${origin === 'null' ? 'file://' : origin}${pathname}${search}`;
}
