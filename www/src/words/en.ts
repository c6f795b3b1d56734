/** Every sentence of the page in English. The Chinese file has the same keys: the compiler sees to it. */

import type { RewardMode, RewardTerm } from '../protocol';
import { compareEn } from './en-compare';
import { creditEn } from './en-credit';
import { filesEn } from './en-files';
import { lessonsEn } from './en-lessons';
import { whatIfEn } from './en-whatif';

interface Summary {
  groups: string;
  generations: string;
  rate: string;
  low: string;
  high: string;
  beta: string;
  epochs: string;
  turns: string;
  temperature: string;
  seed: string;
}

const episodes = (count: number) => (count === 1 ? '1 episode' : `${count} episodes`);

export const en = {
  ...compareEn,
  ...creditEn,
  ...whatIfEn,
  ...filesEn,
  ...lessonsEn,
  comma: ', ',
  colon: ': ',
  close: 'Close',
  reload: 'Reload',
  turn: (number: number) => `turn ${number}`,

  bar: {
    tagline: 'multi-turn reinforcement learning, in this tab',
    language: 'Language',
    light: 'Light',
    dark: 'Dark',
    share: 'Share link',
    copied: 'Copied',
    copiedLong: 'The link is in the clipboard.',
    denied: 'The browser did not let the page copy. Copy the link by hand:',
    linkLabel: 'Link to this experiment',
  },

  device: {
    label: 'Device',
    before: 'chosen at Train',
    beforeReason: 'The device is chosen when you press Train: WebGPU where the browser offers a graphics adapter, else the CPU.',
    choices: { auto: 'Automatic', gpu: 'GPU (WebGPU)', cpu: 'CPU' },
    workers: (count: number) => (count === 1 ? '1 worker' : `${count} workers`),
    reasons: {
      adapter_found: 'The browser offers a graphics adapter.',
      chosen: 'You chose this device.',
      no_webgpu: 'This browser has no WebGPU, so training runs on the CPU.',
      insecure_page: 'The page is not served securely (https or localhost), which hides WebGPU, so training runs on the CPU.',
      no_adapter: 'The browser has WebGPU but offers no graphics adapter, so training runs on the CPU.',
      software_adapter: 'The only WebGPU adapter is software, slower than the CPU path, so training runs on the CPU.',
      device_refused: 'The graphics adapter refused to open, so training runs on the CPU.',
      device_lost: 'The graphics device was lost. Training goes on from the last good weights.',
    },
  },

  messages: {
    title: 'Experiment:',
    link: 'Link:',
    form: 'Settings:',
    file: 'File:',
    notes: (count: number) => `${count} remarks.`,
  },

  notices: {
    moduleFailed:
      'The settings module could not be started, so nothing can be changed or trained. The recorded run can still be read.',
    recordedFailed: 'The recorded run could not be loaded. Press Train to make one of your own.',
    creditFailed:
      'The credit of these episodes could not be computed again; what is on show is the credit they were trained with.',
    recordedUnreadable: 'The recorded run is unreadable. Press Train to make one of your own.',
    nonFinite: (quantity: string, iteration: number) =>
      `Training stopped in iteration ${iteration}: ${quantity} is not a finite number any more, most often because the learning rate is too high. The last good weights and the curve are kept.`,
    broken: {
      download: 'The training module could not be downloaded. Check the connection and press Train again.',
      module: 'The browser refused the training module: it may lack WebAssembly features such as SIMD.',
      panic:
        'Training broke off because of an error in the program; the worker was replaced and the curve is kept. Press Train for a new run.',
      device_lost: 'The GPU was lost before there was anything to go on from. Press Train for a new run.',
    },
    brokenGoesOn:
      'Training broke off because of an error in the program; the worker was replaced. The run is kept up to its last step: Go on takes it up from there.',
    deviceLost: (iteration: number, training: boolean) =>
      `The GPU was lost. ${training ? 'Training goes on' : 'The run can go on'} from step ${iteration} with the last good weights, on a new device or on the CPU: the badge says which.`,
    workerLost: (left: number) =>
      `A worker stopped. Nothing is lost: its jobs are done by the others, and training goes on with ${left === 1 ? '1 worker' : `${left} workers`}.`,
    notKept:
      'This browser keeps nothing for this page (storage is blocked or full). Training works, but a reload loses the run; save a checkpoint to keep it.',
    workerEnded: 'the worker that had it has ended',
    elsewhere: 'Another tab of this browser has taken up that run.',
    notResumed: 'The interrupted run could not be read back from this browser.',
    olderCheckpoint: (iteration: number) =>
      `The last checkpoint of the run is damaged: it goes on from step ${iteration}, the last intact one.`,
    noCheckpoint: 'That checkpoint is no longer in this browser, or is damaged. The run stays where it is.',
    checkpointRefused: 'The checkpoint could not be used; the run began from its warm start instead.',
    interrupted: (what: string, iteration: number, total: number, when: string) =>
      `A run was interrupted: ${what}, step ${iteration} of ${total}, ${when}.`,
    resume: 'Go on with it',
    discard: 'Forget it',
  },

  run: {
    train: 'Train',
    goOn: 'Go on',
    pause: 'Pause',
    pausing: 'Pausing…',
    step: 'Step',
    reset: 'Reset',
    newSeed: 'New seed',
    trainHelp: 'Trains to the end of the run, or until Pause.',
    pauseHelp: 'Stops after the phase in progress; Go on continues from there.',
    stepHelp: 'Does one phase: sample, score, credit or update.',
    resetHelp: 'Drops your run and shows the recorded one again. The settings stay.',
    newSeedHelp: 'Draws another seed: other questions and other samples under the same settings.',
    phasesLabel: 'The four phases of a training step',
    phases: { sample: 'sample', score: 'score', credit: 'credit', update: 'update' },
    phaseHelp: {
      sample: 'The policy answers every question of the batch several times and uses the tools.',
      score: 'Facts such as “answer right” are turned into reward.',
      credit: 'Rewards become one advantage for every turn.',
      update: 'The loss moves the weights of the policy.',
    },
    none: 'No run yet',
    loading: 'Loading the trainer',
    preparing: 'Setting up',
    firstStep: 'First step',
    compiling: 'First step: compiling for the GPU',
    training: 'Training',
    stepping: 'Working',
    measuring: 'Measuring true credit',
    ready: 'Ready',
    recorded: 'Recorded run',
    stops: { finished: 'Finished', paused: 'Paused', non_finite: 'Stopped: not a number' },
    elapsed: (time: string) => time,
    left: (time: string) => ` · about ${time} left`,
    elapsedOf: (time: string, total: string) => `${time} of ${total}`,
    progressLabel: 'Progress of the run',
    on: 'on',
    off: 'off',
    counter: (done: number, total: number) => `${done} of ${total} iterations`,
    download: (done: string, total: string) => (total ? `Downloading: ${done} of ${total} MB` : `Downloading: ${done} MB`),
    imitation: (done: number, total: number) => `Imitation: ${done} of ${total} updates`,
    madeWith: 'Made with',
    closeFile: 'Close this run',
    closeFileHelp: 'Shows the recorded run of the page again. The file itself is not touched.',
    warmStart: {
      shipped: (parameters: number) => `${parameters.toLocaleString('en')} parameters, begun from the shipped warm start.`,
      live: (parameters: number) => `${parameters.toLocaleString('en')} parameters, warm start made here by imitation.`,
      none: (parameters: number) => `${parameters.toLocaleString('en')} parameters, begun from random weights.`,
      checkpoint: (parameters: number) => `${parameters.toLocaleString('en')} parameters, gone on from a checkpoint.`,
    },
    longer: (steps: number) => `More steps than the run had: Go on trains it further, to step ${steps}.`,
    changed: (what: string) => `Settings changed, Train starts a new run: ${what}`,
    changedDrops: (what: string) => `Settings changed: Train and Step drop this run and start a new one. ${what}`,
    difference: (name: string, now: string, before: string) => `${name} ${now || '–'} (run: ${before || '–'})`,
  },

  back: {
    label: 'Checkpoint',
    step: (iteration: number) => (iteration === 0 ? 'the start' : `step ${iteration}`),
    go: 'Go there',
    help: 'Takes the run to this checkpoint. Nothing is trained until you press Go on; later steps are dropped only then.',
  },

  controls: {
    region: 'Controls',
    loading: 'Loading the settings…',
    failed: 'The settings could not be loaded.',
    perTurn: 'per turn',
    gammaMeans: (share: string) => `A reward 3 turns later counts ${share}.`,
    maskHint: 'Train only on tokens the policy wrote.',
    recipe: 'Recipe',
    customRecipe: 'Custom',
    customRecipeHelp: 'A recipe sets credit and objective as its paper does; rewards, discount and sizes stay.',
    modes: { outcome: 'Outcome', process: 'Process', mixed: 'Mixed' } as Record<RewardMode, string>,
  },

  more: {
    title: 'More settings',
    device: 'Device',
    deviceHelp: 'What the next run computes on. GPU also takes a software adapter, which is slow.',
    workers: 'Workers on the CPU',
    workersHelp:
      'How many processor cores compute at a time. Results do not depend on it. A running run takes a change in when it is paused.',
    summary: (v: Summary) => [
      `groups ${v.groups}`,
      `G ${v.generations}`,
      `lr ${v.rate}`,
      `ε ${v.low}/${v.high}`,
      `β ${v.beta}`,
      `epochs ${v.epochs}`,
      `turns ≤ ${v.turns}`,
      `T ${v.temperature}`,
      `seed ${v.seed}`,
    ],
  },

  curves: {
    title: 'Training',
    loading: 'Loading the recorded run…',
    empty: 'No run yet.',
    waiting: 'Your run: the first point comes after the first step.',
    recorded: (environment: string, seed: number) => `Recorded: ${environment}, seed ${seed}. Press Train for a run of your own.`,
    live: 'Your run, trained in this tab.',
    success: 'Success, share of episodes',
    calls: 'Tool calls per episode, by question',
    others: 'Other measures',
    train: 'train',
    heldOut: 'held-out',
    type: (number: number) => `type ${number}`,
    iteration: 'iteration',
    imitation: 'imitation',
    imitationHelp: (updates: number, loss: string) => `Before iteration 0: ${updates} imitation updates, loss ${loss}.`,
    shown: (iteration: number) => `shown below: ${iteration}`,
    headLabel: 'Iteration shown below',
    warning: (iteration: number, text: string) => `Warning at iteration ${iteration}: ${text}`,
    moreWarnings: (count: number) => `(and ${count} earlier)`,
    measure: 'measure',
    course: 'course',
    none: 'none',
    at: (iteration: number) => `it. ${iteration}`,
    measures: {
      mean_return: 'mean return',
      entropy: 'entropy, nats',
      approximate_kl: 'approx. KL, nats',
      clip_fraction: 'clip fraction',
      ratio_deviation: 'ratio deviation',
      gradient_norm: 'gradient norm',
      no_signal: 'groups, no signal',
      speed: 'tokens/s',
    },
    help: {
      mean_return: 'Mean discounted return of the training episodes.',
      entropy: 'How undecided the policy is over the tokens it samples.',
      approximate_kl: 'How far the policy moved in this step from the one that sampled (k3 estimate).',
      clip_fraction: 'Share of tokens whose probability ratio was clipped.',
      ratio_deviation:
        'Largest distance of the probability ratio from 1; with one update a step it is the rounding between sampling and training.',
      gradient_norm: 'Length of the gradient before clipping.',
      no_signal: 'Share of groups in which all returns are equal, so that nothing can be learned from them.',
      speed: 'Tokens of the training episodes per second of the step.',
    },
  },

  episodes: {
    title: 'Episodes',
    where: (iteration: number, group: number, groups: number, count: number, succeed: string) =>
      `iteration ${iteration} · group ${group} of ${groups} · ${episodes(count)}, ${succeed}`,
    succeed: (count: number) => (count === 1 ? '1 succeeds' : `${count} succeed`),
    meanSuccess: (share: string) => `success ${share}`,
    colour: 'Colour:',
    quantities: { advantage: 'advantage', return_to_go: 'return-to-go', log_prob: 'log-prob', true_credit: 'true credit' },
    onShow: 'of these episodes',
    byMethod: 'assigned by method',
    lacking: {
      values:
        'This method needs values of states, from a critic or from re-rolls, and these episodes have none: train with it to see its credit.',
      measurement: 'True credit of these episodes has not been measured: see “Is the credit right?” below.',
    },
    needsValues:
      'The credit method needs values of states, from a critic or from re-rolls, and these episodes have none: all credit is 0.',
    follow: 'Newest',
    followHelp: 'This iteration is held. Show the newest episodes as they come.',
    previous: 'Previous group',
    next: 'Next group',
    table: 'Table',
    rows: 'Rows',
    loading: 'Loading the recorded run…',
    soon: 'Episodes appear with the first step.',
    empty: 'No episodes yet. They come with the next step of the run.',
    noNames: 'The names of the tokens come with the settings module, which could not be started.',
    start: (count: number) => (count === 1 ? 'It starts from' : `All ${count} start from`),
    hidden: 'Hidden from the policy:',
    reveal: 'show',
    hide: 'hide',
    unscored: 'Sampled, not scored yet: no reward and no credit.',
    uncredited: 'Scored, no credit yet.',
    noSignal: 'No signal: all returns of this group are equal, so it teaches nothing.',
    again: 'Credited again under the settings on the left: nothing was sampled or trained anew.',
    maskOff: 'Loss mask off: tool tokens would be trained too.',
    gridLabel: 'Tokens of the group by episode and turn. Arrow keys move: left and right by token, up and down by episode.',
    nobody: 'nobody got here',
    reached: (count: number) => (count === 1 ? '1 got here' : `${count} got here`),
    noPeer: 'no peer',
    peers: (count: number) => `${count} peers`,
    mean: 'mean',
    std: 'std',
    returnOk: 'return · ok',
    sampled: 'as sampled',
    byReturn: 'by return',
    sortHelp: 'Order of the rows: as sampled, or by return.',
    rowLabel: (number: number, value: string | null, success: string) =>
      `Episode ${number}${value === null ? '' : `, return ${value}`}, ${success}`,
    partly: (share: string) => `${share} right`,
    row: 'Episode',
    success: 'success',
    failure: 'failure',
    cut: 'cut',
    ends: {
      terminated: 'Ended by the rules.',
      turn_limit: 'Cut by the turn limit.',
      context_end: 'Cut by the end of the context.',
    },
    tool: 'tool result',
    trained: 'trained',
    untrained: 'not trained',
  },

  table: {
    heads: ['episode', 'turn', 'token', 'text', 'written by', 'trained', 'advantage', 'return-to-go', 'log-prob, nats', 'reward'],
    policy: 'policy',
    tool: 'tool',
  },

  terms: {
    answer_right: 'right answer',
    valid_call: 'well-formed call',
    format_right: 'answer in form',
    malformed: 'malformed turn',
    repeated_call: 'repeated call',
    turn: 'turn',
    luck: 'luck',
    step_right: 'judged step',
    clean_result: 'clean result',
    error_result: 'error result',
    new_page: 'new page',
    kl: 'KL cost',
  } as Record<RewardTerm, string>,

  read: {
    selected: 'Selected',
    pointed: 'Pointer on',
    where: (episode: number, turn: number, token: number, of: number) =>
      `episode ${episode} · turn ${turn} · token ${token}/${of}`,
    tool: 'tool result, not trained',
    toolTrained: 'tool result, trained: mask off',
    noPeer: 'no peer at this turn, so no credit',
    truthHelp: 'Measured by re-rolling the policy from before and after the turn; ± one standard error.',
    formulaHelp: '(value − baseline) ÷ scale: what the credit method compares, with what, and what the difference is divided by',
    probability: (share: string) => `(probability ${share})`,
    keys: '← → token · ↑ ↓ episode',
  },

  legend: {
    low: { advantage: 'worse than peers', return_to_go: 'return', true_credit: 'prospects fell' } as Record<string, string>,
    high: { advantage: 'better', return_to_go: '', true_credit: 'rose' } as Record<string, string>,
    sure: 'expected',
    surprising: 'surprising',
    clampHelp: 'The colour scale ends at the 95 % quantile of the whole batch, and stands still while a slider is dragged.',
    tool: 'tool result, loss mask 0',
    toolTrained: 'tool result, trained: mask off',
    mask: 'loss mask 1',
    eot: '⏎ end of turn',
    reward: 'reward earned',
    peers: 'peers of the selection',
  },
};

export type Words = typeof en;
