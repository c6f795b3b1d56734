/** The small wasm module of the main thread: settings, links and credit, without the engine. Its calls are synchronous. */

import type {
  Batch,
  Description,
  Difference,
  ExperimentConfig,
  MethodCredit,
  Provenance,
  ReadConfig,
  Recredit,
  Report,
  Warning,
} from './protocol';
import init, * as wasm from './wasm/page/turnwise_page.js';
import wasmUrl from './wasm/page/turnwise_page_bg.wasm?url';

/** Frozen episodes on the module's side: the settings move often, the episodes do not. */
export interface Frozen {
  /** Rewards and credit under other settings. Costs of KL and values of states stay those of the batch. */
  recredit(config: ExperimentConfig): Recredit;
  /** The advantages that every method gives under the other choices of these settings. */
  recredit_all(config: ExperimentConfig): MethodCredit[];
  /** Where the weight of a token comes from; null for the prompt and beyond the end. */
  provenance(config: ExperimentConfig, trajectory: number, position: number): Provenance | null;
  /** Gives the memory back. */
  free(): void;
}

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
  /** The settings with the choices of a published recipe; unchanged for an unknown name. */
  with_recipe(config: ExperimentConfig, name: string): ExperimentConfig;
  /** The recipe whose choices the settings have. */
  recipe_of(config: ExperimentConfig): string | undefined;
  /** Takes frozen episodes over to the module. Throws where their arrays do not fit together. */
  Frozen: new (
    batch: Batch,
  ) => Frozen;
  /** The settings in which two experiments differ. */
  differences(a: ExperimentConfig, b: ExperimentConfig): Difference[];
  /** What the reports of a run say is going wrong, in the order of its steps. */
  warnings(reports: Report[], config: ExperimentConfig): Warning[];
  /** Names of the tokens, indexed by token id. */
  token_names(): string[];
}

/** Fetches and starts the module. Rejects when it cannot be fetched or is refused by the browser. */
export async function loadPageModule(): Promise<PageModule> {
  await init({ module_or_path: wasmUrl });
  return wasm as unknown as PageModule;
}
