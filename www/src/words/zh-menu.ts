/** “保存 / 打开”菜单及其结果的中文文字，随菜单加载。 */

import type { menuEn } from './en-menu';

export const menuZh: typeof menuEn = {
  save: '保存',
  curves: '曲线（CSV）',
  curvesHelp: '每个训练步一行，含报告里的全部数值。',
  episodes: '当前轨迹（JSON Lines）',
  episodesHelp: '每条轨迹一行：词元、损失掩码、对数概率、事实、奖励，以及当前显示的信用。',
  allEpisodes: '全部保留的轨迹（JSON Lines）',
  allEpisodesHelp: '所有保留下来的训练步的轨迹，信用是训练时所用的。',
  run: '本次运行（JSON）',
  runHelp: '设置、曲线、保留的轨迹和测得的信用。在这里或别人那里都能再次打开。',
  settings: '设置（JSON）',
  settingsHelp: '每项设置都用全名，与命令行写出的一致。',
  policy: 'Hugging Face 格式的策略（zip）',
  policyBusy: '本页的运行停下时才能保存策略。',
  checkpoint: '检查点（safetensors）',
  checkpointHelp: '继续训练所需的一切：权重、优化器状态、设置。以后可在此打开，或用 turnwise train --resume。',
  policyHelp: '权重，附 Hugging Face transformers 可读的配置。',

  share: '分享',
  link: '复制链接',
  markdown: '复制 Markdown 链接',
  embed: '复制嵌入代码',
  embedHelp: '用于文章或课程的 HTML：内含本实验的框架。',
  views: { lesson: '曲线与控制', episodes: '轨迹', curves: '曲线' },

  open: '打开',
  openFile: '打开文件……',
  openHelp: '运行或设置（.json）、检查点（.safetensors），或含有链接的文本。也可以把文件拖到页面任意处，或直接粘贴链接。',
  nothing: '还没有运行，没有可保存的内容。',

  saved: name => `已保存：${name}`,
  part: (kept, of) => `保留了轨迹的训练步有 ${of} 个，文件只收入其中 ${kept} 个：全部收入就会大到无法再次打开。`,
  saveFailed: '无法生成文件。',
  working: '正在处理……',
  copied: '已复制到剪贴板。',
  denied: '浏览器不允许页面写入剪贴板，请手动复制：',
  untitled: (environment, seed) => `Turnwise：${environment}，种子 ${seed}`,

  opened: {
    link: name => `${name}：已打开其中的链接，没有启动任何运行。`,
    pasted: '已打开链接，没有启动任何运行。',
    settings: name => `${name}：已采用其中的设置，没有启动任何运行。`,
    reading: (name, share) => `正在读取 ${name}：${Math.round(share * 100)}%。`,
    run: name => `${name}：正在显示其中的运行，设置也随之更新。`,
    checkpoint: (name, iteration) =>
      `${name}：已打开检查点${iteration === null ? '' : `（第 ${iteration} 步之后）`}。按“开始训练”即从这里继续。`,
    complete: (name, iteration) =>
      `${name}：已打开检查点（第 ${iteration} 步之后，该运行到此结束）。调大训练步数，即可从这里继续。`,
  },
  ask: name => `打开 ${name} 会丢弃在本标签页里训练的运行。如需保留，请先保存。`,
  askOpen: '打开，丢弃我的运行',
  askKeep: '保留我的运行',

  wrong: {
    empty: name => `${name} 是空文件。需要的是运行或设置（JSON），或含有链接的文本。`,
    large: (name, size) => `${name} 有 ${size} MB；本页能打开的文件不超过 200 MB。`,
    unread: name => `${name} 无法读取。它是否已被移走，或者是文件夹？`,
    binary: name => `${name} 不是文本。需要的是运行或设置（JSON），或含有链接的文本。`,
    html: name => `${name} 是网页，不是 Turnwise 的文件。需要的是运行或设置（JSON），或含有链接的文本。`,
    json: name => `${name} 不是有效的 JSON，可能被截断或损坏。`,
    jsonl: name => `${name} 是 JSON Lines 格式的轨迹，供其他程序使用，本页不打开它。想再次打开轨迹，请保存整个运行。`,
    other: name => `${name} 是 JSON，但既不是运行（含 config、reports、batches），也不是设置（含 environment）。`,
    run: name => `${name} 像是一次运行，但有一个字段不对：`,
    link: name => `${name} 里没有实验的链接（含 #v=1&… 的地址）。`,
    checkpointBad: name => `${name} 是检查点，但与本页不符：`,
    several: '一次只能打开一个文件：只打开了第一个。',
    module: '设置模块缺失，无法打开任何文件。',
  },
};
