/** 对比、多种子与链接的中文文字，键与英文文件相同。 */

import type { compareEn } from './en-compare';

export const compareZh: typeof compareEn = {
  /** Ends a sentence. */
  stop: '。',

  /** Between two sentences. */
  gap: '',

  compare: {
    pin: '固定这次运行',
    pinHelp: '把这些曲线以虚线保留下来，与之后的运行对照。',
    unpin: '取消固定',
    ghost: '固定',
    mean: '平均',
    seed: seed => `种子 ${seed}`,
    band: count => `${count} 个种子：线为平均，色带为最低到最高。`,
    ghostBand: count => `固定的运行：${count} 个种子，虚线为平均，色带为最低到最高。`,
    dashed: '虚线：固定的运行。',
    otherTask: '固定的运行属于另一个环境，它的曲线不画在这里。',
    same: '就是当前显示的运行。',
    equal: '设置和种子都与当前运行相同。',
    otherSeed: (pinned, shown) => `设置相同，种子不同：${pinned}，当前为 ${shown}。`,
    differs: what => `与当前运行的差别：${what}`,
    difference: (name, pinned, shown) => `${name} ${pinned || '–'}（当前 ${shown || '–'}）`,
    alsoSeed: (pinned, shown) => `种子 ${pinned}（当前 ${shown}）`,
    link: '与另一个配置对比：',
    linkDifference: (name, first, second) => `${name} ${second || '–'}（这里：${first || '–'}）`,
    linkEqual: '现在与这一个相同。',
    sameSeed: '两者用同一个种子。',
    both: '两个都训练',
    bothHelp: '先训练另一个配置并固定，再训练表单中的配置。',
    swap: '互换',
    swapHelp: '把另一个配置放进表单，原来的这一个成为另一个。',
    drop: '去掉',
    dropHelp: '不再保留另一个配置。',
    second: '另一个配置',
    first: '表单中的配置',
    seedOf: (index, of) => `第 ${index} / ${of} 个种子`,
    seeds: '种子数',
    seedsHelp: '按下训练后依次做几次运行，从这个种子起逐个加一，1 到 5；色带显示结果里有多少是运气。',
    notFinite: what => `坐标轴上的 ×：不是有限的数。${what}`,
    notFiniteOf: (name, iterations) => `${name}，第 ${iterations} 次迭代`,
    more: count => `另有 ${count} 处`,
  },

  reproduce: {
    backends: { cpu: 'CPU', webgpu: 'WebGPU' },
    waiting: (steps, backend) => `链接记下了前 ${steps} 次迭代的结果（${backend}）：训练后就能看到本设备是否一致。`,
    pending: (done, steps) => `到目前为止与链接的运行一致：${steps} 次迭代中的 ${done} 次。`,
    reproduced: iteration => `到第 ${iteration} 次迭代为止重现了链接的运行。`,
    differs: (iteration, device) =>
      `从第 ${iteration} 次迭代起与链接的运行不同（本设备：${device}）。设置相同，但不同的处理器或浏览器舍入可能不同。`,
    otherBackend: (linked, here) => `链接的运行是在 ${linked} 上算的，这次用的是 ${here}，两者不必一致，因此不作比对。`,
  },

  share: {
    title: '分享这个实验',
    compare: '带上对比',
    compareHelp: '链接里还包含另一个配置：你打开的链接里的，或者固定的运行的。',
    reproduce: '带上应重现的结果',
    reproduceHelp: '链接里还记下你这次运行的结果，页面可以告诉读者他们的运行是否一致。',
    copy: '复制链接',
    markdown: '复制为 Markdown',
    untitled: 'Turnwise 实验',
    tooMuch: '这两个配置差别太多，一个链接放不下，链接里只有表单中的那个。',
    oneSeed: '两个配置都用表单里的种子。',
  },
};
