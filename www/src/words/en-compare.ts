/** The sentences of comparison, seeds and links, in English. */

const seeds = (count: number) => (count === 1 ? '1 seed' : `${count} seeds`);

export const compareEn = {
  /** Ends a sentence. */
  stop: '.',

  /** Between two sentences. */
  gap: ' ',

  compare: {
    pin: 'Pin this run',
    pinHelp: 'Keeps these curves, dashed, beside those of the next runs.',
    unpin: 'Unpin',
    ghost: 'pinned',
    mean: 'mean',
    seed: (seed: number) => `seed ${seed}`,
    band: (count: number) => `${seeds(count)}: mean, band = lowest to highest.`,
    ghostBand: (count: number) => `Pinned: ${seeds(count)}, mean dashed, band = lowest to highest.`,
    dashed: 'Dashed: the pinned run.',
    otherTask: 'The pinned run is of another environment: its curves are not drawn beside these.',
    same: 'It is the run on show.',
    equal: 'It has the same settings and the same seed as the run on show.',
    otherSeed: (pinned: number, shown: number) => `Same settings, other seed: ${pinned}, here ${shown}.`,
    differs: (what: string) => `It differs from the run on show: ${what}`,
    difference: (name: string, pinned: string, shown: string) => `${name} ${pinned || '–'} (here ${shown || '–'})`,
    alsoSeed: (pinned: number, shown: number) => `seed ${pinned} (here ${shown})`,
    link: 'Compared with another configuration:',
    linkDifference: (name: string, first: string, second: string) => `${name} ${second || '–'} (here: ${first || '–'})`,
    linkEqual: 'it now equals this one.',
    sameSeed: 'Both get the same seed.',
    both: 'Train both',
    bothHelp: 'Trains the other configuration and pins it, then trains the one in the form.',
    swap: 'Swap',
    swapHelp: 'Puts the other configuration into the form and keeps this one as the other.',
    drop: 'Drop',
    dropHelp: 'Forgets the other configuration.',
    second: 'the other configuration',
    first: 'the configuration in the form',
    seedOf: (index: number, of: number) => `seed ${index} of ${of}`,
    seeds: 'Seeds',
    seedsHelp:
      'How many runs Train makes one after another, with this seed and the next ones, 1 to 5: the band shows how much is luck.',
    notFinite: (what: string) => `× on an axis: not a finite number. ${what}`,
    notFiniteOf: (name: string, iterations: string) => `${name} at iteration ${iterations}`,
    more: (count: number) => `and ${count} more`,
  },

  reproduce: {
    backends: { cpu: 'CPU', webgpu: 'WebGPU' },
    waiting: (steps: number, backend: string) =>
      `The link says what its first ${steps} iterations gave (${backend}): train to see whether this device gives the same.`,
    pending: (done: number, steps: number) => `Reproduces the linked run so far: ${done} of ${steps} iterations.`,
    reproduced: (iteration: number) => `Reproduces the linked run up to iteration ${iteration}.`,
    differs: (iteration: number, device: string) =>
      `Differs from the linked run from iteration ${iteration} (this device: ${device}). The settings are the same; another processor or browser may round differently.`,
    otherBackend: (linked: string, here: string) =>
      `The linked run was computed on ${linked}, this one on ${here}: they need not agree, so they are not compared.`,
  },

  share: {
    title: 'Share this experiment',
    compare: 'with the comparison',
    compareHelp: 'Also holds the other configuration: that of the link that you opened, or of the pinned run.',
    reproduce: 'with what it should reproduce',
    reproduceHelp: 'Also says what your run gave, so that the page can tell the reader whether theirs is the same.',
    copy: 'Copy link',
    markdown: 'Copy as Markdown',
    untitled: 'Turnwise experiment',
    tooMuch: 'These two differ in too much for one link: it holds the first one only.',
    oneSeed: 'Both configurations get the seed of the form.',
  },
};
