/** 页面上保存、打开与嵌入的中文文字；菜单的文字见 `zh-menu.ts`。 */

import type { filesEn } from './en-files';

export const filesZh: typeof filesEn = {
  files: {
    menu: '保存 / 打开',
    menuLabel: '保存、打开与分享',
    figure: '图',
    figureLabel: what => `保存为图：${what}`,
    figureFailed: '图无法绘制。',
    drop: '拖到这里',
    dropHelp: '由本页保存的运行或设置（.json），或含有链接的文本',
    failed: '页面的这一部分无法加载。请检查网络后重试。',
    loading: '正在加载……',
  },
  embed: {
    open: '在 Turnwise 中打开',
    label: '嵌入的 Turnwise',
    unknown: view => `没有名为“${view}”的嵌入视图（只有 lesson、episodes 和 curves），因此显示完整页面。`,
  },
};
