/** The words of the menu in the chosen language. */

import { ui } from '../state/ui.svelte';
import { menuEn } from './en-menu';
import { menuZh } from './zh-menu';

export type MenuWords = typeof menuEn;

export function menuWords(): MenuWords {
  return ui.language === 'zh' ? menuZh : menuEn;
}
