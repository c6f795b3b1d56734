/** The sentences of the menu Save / open and of what comes of it, in English. Loaded with the menu. */

export const menuEn = {
  save: 'Save',
  curves: 'Curves (CSV)',
  curvesHelp: 'One line a training step, every number of its report.',
  episodes: 'Episodes on show (JSON lines)',
  episodesHelp: 'One line an episode: tokens, loss mask, log-probabilities, facts, rewards, credit as on show.',
  allEpisodes: 'All kept episodes (JSON lines)',
  allEpisodesHelp: 'The same for every step whose episodes are kept, with the credit that they were trained with.',
  run: 'This run (JSON)',
  runHelp: 'Settings, curves, kept episodes and measured credit. It can be opened again here, and by anybody else.',
  settings: 'Settings (JSON)',
  settingsHelp: 'Every setting under its full name, as the command line writes it.',
  policy: 'Policy for Hugging Face (zip)',
  policyBusy: 'The policy can be saved while a run of this page stands still.',
  checkpoint: 'Checkpoint (safetensors)',
  checkpointHelp:
    'Everything the run needs to go on: weights, optimizer, settings. Open it here later, or with turnwise train --resume.',
  policyHelp: 'The weights, with a configuration that Hugging Face transformers reads.',

  share: 'Share',
  link: 'Copy link',
  markdown: 'Copy link as Markdown',
  embed: 'Copy embed code',
  embedHelp: 'HTML for an article or a course: a frame with this experiment.',
  views: { lesson: 'curves and controls', episodes: 'episodes', curves: 'curves' },

  open: 'Open',
  openFile: 'Open a file…',
  openHelp:
    'A run or settings (.json), a checkpoint (.safetensors), or a text with a link. You can also drop the file anywhere, or paste a link.',
  nothing: 'There is no run yet, so there is nothing to save.',

  saved: (name: string) => `Saved: ${name}`,
  part: (kept: number, of: number) =>
    `The file holds the episodes of ${kept} of the ${of} kept steps: all would be too large to be opened again.`,
  saveFailed: 'The file could not be made.',
  working: 'Working…',
  copied: 'Copied to the clipboard.',
  denied: 'The browser did not let the page copy. Copy it by hand:',
  untitled: (environment: string, seed: number) => `Turnwise: ${environment}, seed ${seed}`,

  opened: {
    link: (name: string) => `${name}: its link was opened. Nothing has been started.`,
    pasted: 'The link was opened. Nothing has been started.',
    settings: (name: string) => `${name}: its settings were taken over. Nothing has been started.`,
    reading: (name: string, share: number) => `${name} is being read: ${Math.round(share * 100)} %.`,
    run: (name: string) => `${name}: the run is on show, with its settings.`,
    checkpoint: (name: string, iteration: number | null) =>
      `${name}: the checkpoint was opened${iteration === null ? '' : `, after step ${iteration}`}. Train goes on from it.`,
    complete: (name: string, iteration: number) =>
      `${name}: the checkpoint was opened, after step ${iteration}, where its run ends. Ask for more training steps to go on from it.`,
  },
  ask: (name: string) => `Opening ${name} drops the run that was trained in this tab. Save it first if you want to keep it.`,
  askOpen: 'Open and drop my run',
  askKeep: 'Keep my run',

  /** What is wrong with a file. Each sentence names it and what was expected; nothing has changed then. */
  wrong: {
    empty: (name: string) => `${name} is empty. Expected a run or settings (JSON), or a text with a link.`,
    large: (name: string, size: string) => `${name} has ${size} MB; the page opens files of at most 200 MB.`,
    unread: (name: string) => `${name} could not be read. Was it moved, or is it a folder?`,
    binary: (name: string) => `${name} is not text. Expected a run or settings (JSON), or a text with a link.`,
    html: (name: string) =>
      `${name} is a web page, not a file of Turnwise. Expected a run or settings (JSON), or a text with a link.`,
    json: (name: string) => `${name} is not valid JSON, so it may be cut short or damaged.`,
    jsonl: (name: string) =>
      `${name} holds episodes as JSON lines: those are for other programs, the page does not open them. To open episodes again, save the run.`,
    other: (name: string) =>
      `${name} is JSON, but neither a run (with config, reports and batches) nor settings (with environment).`,
    run: (name: string) => `${name} looks like a run, but one field is not as it should be:`,
    link: (name: string) => `${name} holds no link to an experiment (an address with #v=1&…).`,
    checkpointBad: (name: string) => `${name} is a checkpoint that does not fit:`,
    several: 'One file at a time, please: only the first was opened.',
    module: 'The settings module is missing, so no file can be opened.',
  },
};
