/** The small wasm module of the main thread: settings, links and credit, without the engine. Its calls are synchronous. */

import type {
  Batch,
  Description,
  DeviceKind,
  Difference,
  Expectation,
  ExperimentConfig,
  LessonEntry,
  MethodCredit,
  Provenance,
  ReadConfig,
  ReadLink,
  Recredit,
  Report,
  Reproduction,
  TrueCredit,
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

/** A run that is watched: a step costs the same however many came before it. */
export interface Watch {
  /** Takes the reports of the next steps; gives all warnings so far, in the order of the steps. */
  add(reports: Report[]): Warning[];
  /** Gives the memory back. */
  free(): void;
}

export interface PageModule {
  /** Every setting and environment, as declared in Rust. */
  describe(): Description;
  /** The defaults of an environment. */
  defaults(environment: string): ExperimentConfig;
  /** Reads a link, whole or the fragment alone. Never fails: what could not be read is in the notes. */
  read_link(text: string): ReadLink;
  /** The fragment of the link, without `#`. */
  to_link(config: ExperimentConfig): string;
  /**
   * The same with a second configuration for comparison, a number of seeds, and what the run should reproduce; undefined where
   * the configurations differ in too much for one link.
   */
  write_link(
    config: ExperimentConfig,
    other: ExperimentConfig | null,
    seeds: number,
    expectation: Expectation | null,
  ): string | undefined;
  /** What a link can say of a run; undefined or null before its first report. */
  expectation_of(reports: Report[], backend: DeviceKind): Expectation | null | undefined;
  /** Whether a run gives what a link says. */
  compare_expectation(expectation: Expectation, reports: Report[], backend: DeviceKind): Reproduction;
  /** Reads the JSON form. Never fails: a value that is out of bounds or of the wrong kind is replaced and noted. */
  read_json(text: string): ReadConfig;
  /** The JSON form, every setting under its full name. */
  to_json(config: ExperimentConfig): string;
  /** Episodes as JSON lines, with the credit that stands in the batch and what was measured of them. */
  episode_lines(batch: Batch, config: ExperimentConfig, truth: TrueCredit | null): string;
  /** Changes the environment; settings that stood at the old default move to the new one. */
  with_environment(config: ExperimentConfig, name: string): ExperimentConfig;
  /** The settings with the choices of a published recipe; unchanged for an unknown name. */
  with_recipe(config: ExperimentConfig, name: string): ExperimentConfig;
  /** The recipe whose choices the settings have. */
  recipe_of(config: ExperimentConfig): string | undefined;
  /** The lessons, in the order of the course. */
  lessons(): LessonEntry[];
  /** Takes frozen episodes over to the module. Throws where their arrays do not fit together. */
  Frozen: new (
    batch: Batch,
  ) => Frozen;
  /** The settings in which two experiments differ. */
  differences(a: ExperimentConfig, b: ExperimentConfig): Difference[];
  /** Watches a run for what its reports say is going wrong. */
  Watch: new (
    config: ExperimentConfig,
  ) => Watch;
  /** The tokens that may follow the beginning of an action under the environment's grammar; none after its end. */
  legal_tokens(config: ExperimentConfig, beginning: Uint8Array): Uint8Array;
  /** Names of the tokens, indexed by token id. */
  token_names(): string[];
}

/** Fetches and starts the module. Rejects when it cannot be fetched or is refused by the browser. */
export async function loadPageModule(): Promise<PageModule> {
  await init({ module_or_path: wasmUrl });
  return wasm as unknown as PageModule;
}
