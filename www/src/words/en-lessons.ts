/** The sentences of the lessons and the glossary, in English. The lessons' own texts come from Rust. */

export const lessonsEn = {
  lesson: {
    label: 'Lesson',
    help: 'Puts the settings of a lesson into the form; nothing is trained until you press Train.',
    none: 'None: settings of your own',
    region: 'Lesson',
    of: (number: number, count: number) => `Lesson ${number} of ${count}`,
    previous: 'Previous lesson',
    next: 'Next lesson',
    press: 'Do',
    watch: 'Watch',
    meaning: 'It means',
    measured: 'Measured:',
    show: 'Show me',
    showHelp: (region: string) => `Goes to: ${region}`,
    words: 'Words',
    fold: 'Fold',
    unfold: 'Unfold',
    intro:
      'A small transformer, the policy, answers questions with a tool, turn by turn, and learns from reward. Blue tokens earned credit, orange ones blame.',
    introRecorded: ' On show is a recorded run.',
    otherTask: (task: string) =>
      `What is on show below is a run of another task: ${task}. Press Train or Step for one of your own.`,
    otherSettings: (what: string) =>
      `The recorded run below was made with other settings: ${what}. Press Train for a run with these.`,
    compared: 'Compared with:',
    difference: (name: string, first: string, other: string) => `${name} ${other || '–'} (here ${first || '–'})`,
    changed: (what: string) => `Not the lesson’s settings any more: ${what}`,
    change: (name: string, lesson: string, now: string) => `${name} ${now || '–'} (lesson: ${lesson || '–'})`,
    back: 'Back to the lesson',
    runRegion: 'Train and Step',
  },

  glossary: {
    title: 'Words',
    intro: 'What the page calls things.',
    terms: [
      ['policy', 'The transformer that is trained; given all tokens so far, it gives a probability to each next token.'],
      ['token', 'One symbol: a name, a digit, or a word such as search, answer or ⏎, the end of a turn.'],
      ['turn', 'One action of the policy up to ⏎, with the tool result that follows it.'],
      ['tool result', 'What the world answers, between ‹ and ›; the policy reads it but did not write it.'],
      ['episode', 'A whole conversation from the prompt to the answer or to a limit; also called a trajectory.'],
      ['reward', 'A number paid at the turn that earned it, such as +1 for a right answer.'],
      ['discount γ', 'What a reward is still worth one turn earlier; at 0.9 a reward two turns later counts 0.81.'],
      ['return-to-go', 'All rewards from a turn on, discounted to that turn; of the first turn it is the return of the episode.'],
      ['group', 'Episodes that start from the same question; they are compared with one another, so they are peers.'],
      [
        'advantage',
        'How much better a turn did than its peers on average; blue is better, orange worse, and the update makes it likelier or rarer.',
      ],
      ['credit', 'How the reward of an episode is shared out among its turns; each credit method has its own rule.'],
      [
        'true credit',
        'By how much a turn changed the expected return, measured by playing on from before and after it many times.',
      ],
      ['loss mask', 'Which tokens are trained: those that the policy wrote, not those of the tool.'],
      ['ratio', 'How much likelier the policy makes a token now than when it was sampled; 1 until the first update on it.'],
      ['clip', 'A ratio further from 1 than the bound is not pushed on: one batch may move the policy only so far.'],
      ['aggregation', 'How the losses of all trained tokens become one number: averaged over tokens, or over episodes first.'],
      ['held-out', 'Questions that are never trained on, asked at every step to measure success.'],
    ] as [string, string][],
  },
};
