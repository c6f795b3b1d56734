/** The experiment that the form shows: read from the link, changed by the person, written back to the link. */

import { loadPageModule, type PageModule } from '../page-module';
import type {
  Description,
  Difference,
  EnvironmentDeclaration,
  Expectation,
  ExperimentConfig,
  Note,
  ReadConfig,
  Setting,
  Value,
} from '../protocol';
import { pageAddress } from './embed';
import { notices } from './notices.svelte';

type Status = 'loading' | 'ready' | 'failed';

class Experiment {
  status = $state<Status>('loading');
  module = $state.raw<PageModule | null>(null);
  description = $state.raw<Description | null>(null);
  /** Names of the tokens, indexed by token id. */
  tokenNames = $state.raw<string[]>([]);
  config = $state.raw<ExperimentConfig | null>(null);
  /** A second configuration for comparison, with the same seed. */
  other = $state.raw<ExperimentConfig | null>(null);
  /** How many seeds Train makes runs of. */
  seeds = $state(1);
  /** What the link says that its run gave, until a setting changes. */
  expectation = $state.raw<Expectation | null>(null);
  /** What was clamped or refused in the last link or change. */
  notes = $state.raw<Note[]>([]);
  /** Where the notes are from. */
  notesFrom = $state<'link' | 'form' | 'file'>('link');
  /** Counts the links and files that were opened. */
  opened = $state(0);
  /** Counts settled changes: a slider that is still dragged does not count. */
  settled = $state(0);

  environment: EnvironmentDeclaration | null = $derived(
    this.description?.environments.find(entry => entry.name === this.config?.environment) ?? null,
  );

  /** Every setting of the form by name, the environment's own included. */
  settings: Map<string, Setting> = $derived(
    new Map([...(this.description?.settings ?? []), ...(this.environment?.settings ?? [])].map(entry => [entry.name, entry])),
  );

  /** The published recipe whose choices the settings have; null for none. */
  recipe: string | null = $derived((this.config && this.module?.recipe_of(this.config)) ?? null);

  /** Reward weights that this environment uses, or that the person has set: they stand above, the others under More. */
  weights: string[] = $derived.by(() => {
    const { config, description } = this;
    if (!config || !description) return [];
    const usual = description.defaults[config.environment];
    const used = (name: string) => usual?.[name as keyof ExperimentConfig] !== 0 || config[name as keyof ExperimentConfig] !== 0;
    return description.settings
      .filter(({ section, kind }) => section === 'reward' && kind.type === 'number')
      .map(({ name }) => name)
      .filter(used);
  });

  /** Settings that the person moved away from what was usual then: another task does not take them back. */
  private readonly moved = new Set<string>();

  /** Called before a link replaces the experiment, so that a run in progress can stop. */
  onLinkOpened: () => void = () => {};

  /** Settles when the module is there or failed. */
  readonly loaded: Promise<void>;
  private settleLoaded: () => void = () => {};

  constructor() {
    this.loaded = new Promise(resolve => {
      this.settleLoaded = resolve;
    });
  }

  async load(): Promise<void> {
    await this.start();
    this.settleLoaded();
  }

  private async start(): Promise<void> {
    try {
      const module = await loadPageModule();
      this.description = module.describe();
      this.tokenNames = module.token_names();
      this.module = module;
      this.readLink(location.hash);
      this.status = 'ready';
    } catch (error) {
      this.status = 'failed';
      notices.show({ id: 'module', text: words => words.notices.moduleFailed, detail: String(error), reload: true });
      return;
    }
    addEventListener('hashchange', () => {
      this.onLinkOpened();
      this.readLink(location.hash);
    });
  }

  /** Takes over the experiment of a link. Starts nothing and leaves the address as it is. */
  readLink(hash: string): void {
    if (!this.module) return;
    const read = this.module.read_link(hash);
    this.moved.clear();
    this.config = read.config;
    this.other = read.other;
    this.seeds = read.seeds;
    this.expectation = read.expectation;
    this.notes = hash.length > 1 ? read.notes : [];
    this.notesFrom = 'link';
    this.opened += 1;
    this.settled += 1;
  }

  /** Takes over the experiment of a run, with the settings added since it was made; the address follows. */
  adopt(config: ExperimentConfig): ExperimentConfig | null {
    const { config: first, other } = this;
    const alike = (one: ExperimentConfig | null) => one !== null && this.alike(one, config);
    // The run of the second configuration: the first is not lost, but takes its place.
    if (alike(other) && !alike(first)) this.other = first;
    this.opened += 1;
    this.moved.clear();
    this.take(config, true);
    return this.config;
  }

  /** Whether two configurations differ in seed and title at most. */
  private alike(a: ExperimentConfig, b: ExperimentConfig): boolean {
    return (this.module?.differences(a, b) ?? []).every(({ name }) => name === 'seed' || name === 'title');
  }

  value(name: string): Value | undefined {
    const config = this.config;
    if (!config) return undefined;
    if (name in config.parameters) return config.parameters[name];
    return config[name as keyof ExperimentConfig] as Value;
  }

  /** Changes one setting; `settled` is false while a slider is being dragged. */
  set(name: string, value: Value, settled = true): void {
    const config = this.config;
    if (!config || !this.module) return;
    if (this.description?.defaults[config.environment]?.[name as keyof ExperimentConfig] === value) this.moved.delete(name);
    else this.moved.add(name);
    const changed =
      name in config.parameters
        ? { ...config, parameters: { ...config.parameters, [name]: value } }
        : { ...config, [name]: value };
    this.take(changed as ExperimentConfig, settled);
  }

  /** Another task; what the experiment was compared with is of the one before. */
  chooseEnvironment(name: string): void {
    const { config, module } = this;
    this.other = null;
    if (!config || !module) return;
    // The module takes what is usual in a task for a setting that nobody chose.
    const chosen = [...this.moved].filter(name => !(name in config.parameters)).map(name => [name, this.value(name)]);
    this.take({ ...module.with_environment(config, name), ...Object.fromEntries(chosen) }, true);
  }

  /**
   * What the person changed since an experiment. Another environment brings defaults and parameters of its own: of those, only
   * what was changed on top is named.
   */
  changesFrom(before: ExperimentConfig): Difference[] {
    return this.config ? changesBetween(before, this.config) : [];
  }

  /** How many seeds Train makes runs of; the address follows. */
  setSeeds(count: number): void {
    this.seeds = count;
    this.write();
  }

  /** The second configuration goes into the form, the first becomes the second. */
  swap(): void {
    const { config, other } = this;
    if (!config || !other) return;
    this.other = config;
    this.take({ ...other, title: config.title }, true);
  }

  /** Forgets the second configuration. */
  dropOther(): void {
    this.other = null;
    this.write();
  }

  /** The configuration of a file with the settings that have been added since it was made. */
  completed(config: ExperimentConfig): ExperimentConfig {
    return this.module ? this.module.read_json(JSON.stringify(config)).config : config;
  }

  /** Makes the choices of a published recipe; everything that it does not decide stays. */
  chooseRecipe(name: string): void {
    if (this.config && this.module) this.take(this.module.with_recipe(this.config, name), true);
  }

  /** Takes over an experiment and what it is compared with. Starts nothing; the address follows. */
  choose(config: ExperimentConfig, other: ExperimentConfig | null): void {
    this.other = other;
    this.moved.clear();
    this.take(config, true);
  }

  /** A seed that nobody chose, short enough to read aloud. */
  newSeed(): void {
    this.set('seed', (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) % 100_000);
  }

  /** Marks the end of a drag. */
  settle(): void {
    this.settled += 1;
    this.write();
  }

  /** Takes over the experiment of a file. Starts nothing; the address follows, and Back leads to the experiment before it. */
  open(read: ReadConfig): void {
    const { module } = this;
    if (!module) return;
    this.onLinkOpened();
    this.moved.clear();
    this.config = read.config;
    [this.other, this.seeds, this.expectation] = [null, 1, null];
    this.notes = read.notes;
    this.notesFrom = 'file';
    this.opened += 1;
    this.settled += 1;
    history.pushState(null, '', `#${module.to_link(read.config)}`);
  }

  /** The whole link of some settings. */
  linkOf(config: ExperimentConfig): string {
    return this.module ? `${pageAddress()}#${this.module.to_link(config)}` : pageAddress();
  }

  /** The whole link of the experiment alone. */
  link(): string {
    return (
      this.linkWith(null, null) ??
      `${pageAddress()}${this.module && this.config ? `#${this.module.to_link(this.config)}` : location.hash}`
    );
  }

  /** The whole link with a second configuration and what its run gave; null where that is too much for one link. */
  linkWith(other: ExperimentConfig | null, expectation: Expectation | null): string | null {
    const { module, config, seeds } = this;
    const fragment = module && config ? module.write_link(config, other, seeds, expectation) : undefined;
    return fragment === undefined ? null : `${pageAddress()}#${fragment}`;
  }

  /** The address says what the form holds, from the change on: who copies it right after a key has the key's experiment. */
  private write(): void {
    const { module, config, other, seeds, expectation } = this;
    if (!module || !config) return;
    try {
      history.replaceState(null, '', `#${module.write_link(config, other, seeds, expectation) ?? module.to_link(config)}`);
    } catch {
      // Some browsers refuse after too many changes in a row: the next one is written again, and Share has its own link.
    }
  }

  private take(config: ExperimentConfig, settled: boolean): void {
    if (!this.module) return;
    const read = this.module.read_json(JSON.stringify(config));
    this.config = read.config;
    this.notes = read.notes;
    this.notesFrom = 'form';
    if (settled) this.settled += 1;
    // The link spoke of another run.
    this.expectation = null;
    if (this.other) this.other = { ...this.other, seed: read.config.seed };
    if (settled) this.write();
  }
}

export const experiment = new Experiment();

/**
 * In what one experiment differs from another. Another environment brings defaults and parameters of its own: of those, only
 * what was changed on top is named.
 */
export function changesBetween(before: ExperimentConfig, after: ExperimentConfig): Difference[] {
  const { module } = experiment;
  if (!module || before === after) return [];
  if (before.environment === after.environment) return module.differences(before, after);
  const environment = module.differences(before, after).filter(({ name }) => name === 'environment');
  return [...environment, ...module.differences(module.with_environment(before, after.environment), after)];
}
