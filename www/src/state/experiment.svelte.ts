/** The experiment that the form shows: read from the link, changed by the person, written back to the link. */

import { loadPageModule, type PageModule } from '../page-module';
import type { Description, Difference, EnvironmentDeclaration, ExperimentConfig, Note, Setting, Value } from '../protocol';
import { notices } from './notices.svelte';

type Status = 'loading' | 'ready' | 'failed';

class Experiment {
  status = $state<Status>('loading');
  module = $state.raw<PageModule | null>(null);
  description = $state.raw<Description | null>(null);
  /** Names of the tokens, indexed by token id. */
  tokenNames = $state.raw<string[]>([]);
  config = $state.raw<ExperimentConfig | null>(null);
  /** What was clamped or refused in the last link or change. */
  notes = $state.raw<Note[]>([]);
  /** Where the notes are from. */
  notesFrom = $state<'link' | 'form'>('link');
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
    this.config = read.config;
    this.notes = hash.length > 1 ? read.notes : [];
    this.notesFrom = 'link';
    this.settled += 1;
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
    const changed =
      name in config.parameters
        ? { ...config, parameters: { ...config.parameters, [name]: value } }
        : { ...config, [name]: value };
    this.take(changed as ExperimentConfig, settled);
  }

  chooseEnvironment(name: string): void {
    if (this.config && this.module) this.take(this.module.with_environment(this.config, name), true);
  }

  /**
   * What the person changed since an experiment. Another environment brings defaults and parameters of its own: of those, only
   * what was changed on top is named.
   */
  changesFrom(before: ExperimentConfig): Difference[] {
    const { config, module } = this;
    if (!config || !module || before === config) return [];
    if (before.environment === config.environment) return module.differences(before, config);
    const environment = module.differences(before, config).filter(({ name }) => name === 'environment');
    return [...environment, ...module.differences(module.with_environment(before, config.environment), config)];
  }

  /** The configuration of a file with the settings that have been added since it was made. */
  completed(config: ExperimentConfig): ExperimentConfig {
    return this.module ? this.module.read_json(JSON.stringify(config)).config : config;
  }

  /** Makes the choices of a published recipe; everything that it does not decide stays. */
  chooseRecipe(name: string): void {
    if (this.config && this.module) this.take(this.module.with_recipe(this.config, name), true);
  }

  /** A seed that nobody chose, short enough to read aloud. */
  newSeed(): void {
    this.set('seed', (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) % 100_000);
  }

  /** Marks the end of a drag. */
  settle(): void {
    this.settled += 1;
  }

  /** The whole link. */
  link(): string {
    const { origin, pathname, search } = location;
    const fragment = this.module && this.config ? `#${this.module.to_link(this.config)}` : location.hash;
    return `${origin === 'null' ? 'file://' : origin}${pathname}${search}${fragment}`;
  }

  private take(config: ExperimentConfig, settled: boolean): void {
    if (!this.module) return;
    const read = this.module.read_json(JSON.stringify(config));
    this.config = read.config;
    this.notes = read.notes;
    this.notesFrom = 'form';
    if (settled) this.settled += 1;
    history.replaceState(null, '', `#${this.module.to_link(read.config)}`);
  }
}

export const experiment = new Experiment();
