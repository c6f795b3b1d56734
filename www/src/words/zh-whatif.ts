/** “如果……会怎样”、训练循环图、轮的种类与隐藏状态的中文文字，键与英文文件相同。 */

import type { SignChanges } from '../whatif';
import type { whatIfEn } from './en-whatif';

function changes({ turns, flipped, lost, gained }: SignChanges): string {
  const parts = [`${turns} 轮中有 ${flipped} 轮变号`];
  if (lost > 0) parts.push(`${lost} 轮变为零`);
  if (gained > 0) parts.push(`${gained} 轮不再为零`);
  return parts.join('，');
}

export const whatIfZh: typeof whatIfEn = {
  whatIf: {
    title: '如果换一种设置？',
    intro: '同一批冻结的轨迹，重新分配信用。不重新采样，也不训练。',
    gamma: trained => `γ 由 ${trained} 改为`,
    method: '分配方法',
    mode: '计入的奖励',
    before: '之前',
    after: '之后',
    change: (before, after) => `${before} → ${after}`,
    panel: (turn, episodes, selected) =>
      `第 ${turn} 轮的信用，之前与之后，${episodes} 条轨迹${selected ? `；所选轨迹 ${selected}` : ''}`,
    selectTurn: '选中所选轨迹的这一轮',
    same: '现在就是训练时的设置：改动其中一项，看看谁的信用会变。',
    sentence: (selected, group, batch) =>
      `${selected === null ? '' : `所选的轮（粗线）：${selected}。`}本组 ${changes(group)}。整批 ${changes(batch)}。`,
    legend: '空心：之前，即训练时。实心：之后，内有正负号。粗线：所选轨迹。点击可选中最近的线。',
    copy: '用它训练',
    copyHelp: '把这些值复制到左侧设置。按“开始训练”之前不会启动任何训练。',
    back: '回到训练时的设置',
    copied: '左侧设置已是这些值。按“开始训练”即可用它们开始一次运行。',
    blocked: {
      passing: '训练进行时轨迹不断更新。选中一个词元即可停在当前轨迹，并在这里重新分配信用。',
      nothing: '还没有轨迹。',
      uncredited: '这些轨迹还没有信用：请单步到“分配”阶段完成。',
    },
  },

  other: {
    title: '如果这一轮换个做法？',
    intro: (episode, turn, action) => `轨迹 ${episode}，第 ${turn} 轮：${action}`,
    instead: '改为',
    remove: '去掉这一轮',
    taken: (action, times) => `${action}（本组出现 ${times} 次）`,
    own: '自己写一个动作',
    rolls: '各重新采样次数',
    noRolls: '不采样',
    play: '接着玩',
    playing: '正在从改动的一轮接着玩',
    action: '动作',
    typed: '用文字写动作',
    typedHelp: '词元名称之间用空格隔开；轮次结束符会自动加上。',
    next: '接下来可用的词元',
    undo: '删去最后一个词元',
    complete: '动作已完整。',
    incomplete: '动作还没有写完：请选择接下来的词元。',
    illFormed: '这个动作在这里格式不对；环境会按自己的方式回应。',
    unknown: word => `没有名为“${word}”的词元。`,
    early: '轮次结束符只能放在最后。',
    empty: '请选择或输入至少一个词元。',
    long: (tokens, limit) => `连同轮次结束符共 ${tokens} 个词元；每轮最多 ${limit} 个。`,
    same: '这正是策略当时的做法：请换一个动作。',
    elsewhere: iteration => `策略只能在最近一次分配了信用的轨迹上接着玩，即第 ${iteration} 次迭代。`,
    show: '显示它们',
    original: '原来',
    changed: '改动后',
    removed: '已去掉这一轮',
    turnLabel: turn => `${turn}`,
    ended: { terminated: '结束', turn_limit: '达到轮数上限而截断', context_end: '上下文用完而截断' },
    result: (before, after, change) => `回报 ${before} → ${after}，变化 ${change}。`,
    mean: (rolls, original, changed) =>
      `各重新采样 ${rolls} 次，这一轮之后的平均回报：原来 ${original}，改动后 ${changed}（± 一个标准误）。`,
    randomness: '两段后续逐轮使用相同的随机数：凡有差别，都出自改动的那一轮。',
    of: (iteration, episode, turn) => `第 ${iteration} 次迭代，轨迹 ${episode}，自第 ${turn} 轮起`,
  },

  loop: {
    label: '一个训练步的循环',
    policy: '策略',
    environment: '环境',
    action: '动作',
    observation: '观察',
    start: '“单步”每次做一个阶段，并在这里点亮它。',
    running: '每个训练步依次采样、评分、分配、更新。',
    text: {
      sample: '已采样：策略行动，环境回应，一轮接一轮。',
      score: '已评分：每一轮发生的事变成了奖励。',
      credit: '已分配：奖励变成了每一轮的优势。',
      update: '已更新：损失推动了策略的权重；循环重新开始。',
    },
  },

  kinds: {
    answer: '文字：回答',
    malformed: '格式错误',
    call: tool => `工具：${tool}`,
    tools: { search: '搜索', calc: '计算器', run: '运行', cache: '缓存', verify: '核实', click: '点击', back: '返回' },
    head: '轮的种类',
    legendAnswer: '文字',
    legendCall: '工具调用',
    legendMalformed: '格式错误',
  },

  hidden: {
    page: number => `第 ${number} 页`,
    luck: '凭运气付奖励',
    altered: '被篡改',
    genuine: '未被改动',
  },

  capabilities: {
    title: '考验',
    names: {
      'tool use': '工具使用',
      planning: '规划',
      reasoning: '推理',
      'self-improvement': '自我改进',
      perception: '感知',
      memory: '记忆',
    },
  },
};
