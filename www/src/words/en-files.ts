/** The sentences on saving, opening and embedding that stand on the page itself, in English. The menus have theirs in `en-menu.ts`. */

export const filesEn = {
  files: {
    menu: 'Save / open',
    menuLabel: 'Save, open and share',
    figure: 'Figure',
    figureLabel: (what: string) => `Save as a figure: ${what}`,
    figureFailed: 'The figure could not be drawn.',
    drop: 'Drop it here',
    dropHelp: 'a run or settings saved from this page (.json), or a text with a link',
    failed: 'This part of the page could not be loaded. Check the connection and try again.',
    loading: 'Loading…',
  },
  embed: {
    open: 'Open in Turnwise',
    label: 'Turnwise, embedded',
    unknown: (view: string) =>
      `There is no embedded view “${view}” (there are lesson, episodes and curves): this is the whole page.`,
  },
};
