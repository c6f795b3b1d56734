/** The small wasm module of the main thread: settings, links and credit, without the engine. Its calls are synchronous. */

import type { Description, Difference, ExperimentConfig, ReadConfig, Recredit, Trajectory } from './protocol';
import init, * as wasm from './wasm/page/turnwise_page.js';
import wasmUrl from './wasm/page/turnwise_page_bg.wasm?url';

export interface PageModule {
  /** Every setting and environment, as declared in Rust. */
  describe(): Description;
  /** The defaults of an environment. */
  defaults(environment: string): ExperimentConfig;
  /** Reads a link, whole or the fragment alone. Never fails: what could not be read is in the notes. */
  read_link(text: string): ReadConfig;
  /** The fragment of the link, without `#`. */
  to_link(config: ExperimentConfig): string;
  /** Reads the JSON form. Never fails: a value that is out of bounds or of the wrong kind is replaced and noted. */
  read_json(text: string): ReadConfig;
  /** Changes the environment; settings that stood at the old default move to the new one. */
  with_environment(config: ExperimentConfig, name: string): ExperimentConfig;
  /** Rewards and credit of frozen episodes under other settings. */
  recredit(config: ExperimentConfig, trajectories: Trajectory[]): Recredit;
  /** The settings in which two experiments differ. */
  differences(a: ExperimentConfig, b: ExperimentConfig): Difference[];
  /** Names of the tokens, indexed by token id. */
  token_names(): string[];
}

/** Fetches and starts the module. Rejects when it cannot be fetched or is refused by the browser. */
export async function loadPageModule(): Promise<PageModule> {
  await init({ module_or_path: wasmUrl });
  return wasm as unknown as PageModule;
}
