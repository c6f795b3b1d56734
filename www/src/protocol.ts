// Generated from src/web/protocol.rs by `UPDATE_TYPES=1 cargo test --no-default-features --lib types`; do not edit.

/**
 * Agreement of assigned with true credit.
 */
export type Accuracy = { turns: number, pearson: Agreement | null, spearman: Agreement | null, sign_agreement: Agreement | null };

/**
 * From token losses to one loss.
 */
export type Aggregation = "token_mean" | "sequence_mean" | "constant" | "group_mean";

/**
 * An agreement between -1 and 1 (or 0 and 1), with its 95 % interval.
 */
export type Agreement = { value: number, interval: [number, number] | null };

/**
 * The episodes of one training step, frozen: they can be credited again without a new rollout.
 */
export type Batch = { iteration: number, groups: Array<GroupInfo>, trajectories: Array<Trajectory>, rewards: RewardTable | null, credit: CreditMap | null, values: Array<Array<number>> | null, valued_by: CreditMethod | null };

/**
 * For which calls the terms on calls pay: well-formed call, clean result, error result.
 */
export type CallPayment = "every" | "distinct" | "capped";

/**
 * One option of a choice.
 */
export type ChoiceOption = { value: string, label: Text };

/**
 * From the page to the worker.
 */
export type Command = { "type": "configure", config: ExperimentConfig, device: DeviceChoice, resume: boolean } | { "type": "train", episodes_every?: number } | { "type": "pause" } | { "type": "step" } | { "type": "measure_credit", rolls: number } | { "type": "counterfactual", trajectory: number, turn: number, replacement: Array<number> | null, rolls: number };

/**
 * One turn of a frozen episode changed, and what became of it.
 */
export type Counterfactual = { iteration: number, trajectory: number, turn: number, replacement: Array<number> | null, original: Trajectory, changed: Trajectory, original_rewards: Array<Array<WeightedTerm>>, changed_rewards: Array<Array<WeightedTerm>>, original_reward: number, changed_reward: number, original_value: number | null, original_error: number | null, changed_value: number | null, changed_error: number | null, rolls: number };

/**
 * Every method's accuracy on the same episodes, and what it rests on.
 */
export type CreditAccuracy = { methods: Array<MethodAccuracy>, reliability: number | null, rolls: number, states: number, turns: number };

/**
 * Which turns of a group count as being in the same state.
 */
export type CreditAnchor = "history" | "observation";

/**
 * The chain from facts to the advantage of one turn, which all its tokens get.
 */
export type CreditChain = { trajectory: number, turn: number, parts: Array<PartProvenance>, whitening: Whitening | null, advantage: number };

/**
 * The advantage of every turn and how it came about. Arrays are `[trajectory][turn]`.
 *
 * `advantage = (sum of weight * (value - baseline) / scale over the parts - whitening.mean) / whitening.scale`, the whitening
 * only where the group has one. `values`, `baselines` and `scales` say the same as one comparison, whitening folded in:
 * `advantage = (value - baseline) / scale`.
 */
export type CreditMap = { rewards: Array<Array<number>>, returns_to_go: Array<Array<number>>, values: Array<Array<number>>, baselines: Array<Array<number>>, scales: Array<Array<number>>, peers: Array<Array<number>>, advantages: Array<Array<number>>, parts: Array<Array<Array<Part>>>, whitening: Array<Whitening | null>, no_signal: Array<boolean>, equal_returns: Array<boolean>, needs_values: boolean };

/**
 * How rewards become advantages.
 */
export type CreditMethod = "grpo" | "rloo" | "reinforce_pp" | "reinforce_pp_baseline" | "process" | "return_to_go" | "mt_grpo" | "gigpo" | "tree" | "monte_carlo" | "gae";

/**
 * How a critic fits the returns of a step.
 */
export type CriticStatistics = { loss: number, explained_variance: number };

/**
 * All settings, for the page's form.
 */
export type Description = { sections: Array<SectionDescription>, environment: FieldDescription, title: FieldDescription, title_limit: number, settings: Array<Setting>, recipes: Array<Recipe>, environments: Array<EnvironmentDeclaration>, defaults: { [key in string]: ExperimentConfig } };

/**
 * Which device the person wants.
 */
export type DeviceChoice = "auto" | "gpu" | "cpu";

/**
 * What a device is.
 */
export type DeviceKind = "webgpu" | "cpu";

/**
 * Why this device. The page says it in the person's language.
 */
export type DeviceReason = "adapter_found" | "chosen" | "no_webgpu" | "insecure_page" | "no_adapter" | "software_adapter" | "device_refused" | "device_lost";

/**
 * What a run computes on, and why.
 */
export type DeviceReport = { kind: DeviceKind, name: string, reason: DeviceReason, detail: string };

/**
 * One setting in which two configurations differ.
 */
export type Difference = { name: string, label: Text, a: string, b: string };

/**
 * A reward that a value is made of.
 */
export type DiscountedReward = { turn: number, facts: Facts, terms: Array<WeightedTerm>, discount: number, amount: number };

/**
 * How an episode ended.
 */
export type End = "terminated" | "turn_limit" | "context_end";

/**
 * What an environment says about itself.
 */
export type EnvironmentDeclaration = { name: string, label: Text, help: Text, settings: Array<Setting>, question_types: Array<Text>, capabilities: Array<string> };

/**
 * From the worker to the page.
 */
export type Event = { "type": "loaded" } | { "type": "device", device: DeviceReport } | { "type": "progress", stage: Stage, done: number, total: number } | { "type": "imitation", step: number, loss: number } | { "type": "ready", warm_start: WarmStartReport, iteration: number } | { "type": "phase", iteration: number, done: Phase, next: Phase, batch: Batch | null, report: Report | null } | { "type": "episodes", batch: Batch } | { "type": "true_credit", wanted: number, measured: MeasuredCredit } | { "type": "counterfactual", counterfactual: Counterfactual } | { "type": "stopped", reason: StopReason, iteration: number } | { "type": "failed", message: string };

/**
 * What a run gave on one kind of device, step by step, as far as a link holds it. Made and compared in
 * `crate::metrics`.
 */
export type Expectation = { backend: DeviceKind, codes: string };

/**
 * Everything that decides what a run does, apart from the device. Two equal configurations give the same episodes.
 */
export type ExperimentConfig = { title: string, environment: string, seed: number, iterations: number, held_out: number, reward_mode: RewardMode, outcome_weight: number, luck_weight: number, valid_call_weight: number, format_weight: number, malformed_weight: number, repeated_call_weight: number, turn_weight: number, step_right_weight: number, clean_result_weight: number, error_result_weight: number, new_page_weight: number, call_payment: CallPayment, call_cap: number, gamma: number, credit_method: CreditMethod, scale_rewards: ScaleRewards, turn_baseline: TurnBaseline, credit_anchor: CreditAnchor, step_weight: number, turn_coefficient: number, gae_lambda: number, monte_carlo_samples: number, turn_limit: number, turn_tokens: number, context_length: number, groups: number, num_generations: number, temperature: number, legal_token_mask: boolean, loss_mask: boolean, policy_loss: PolicyLoss, ratio_level: RatioLevel, epsilon: number, epsilon_high: number, dual_clip: number, aggregation: Aggregation, beta: number, kl_estimator: KlEstimator, kl_placement: KlPlacement, kl_times_ratio: boolean, truncated: Truncated, no_signal_groups: NoSignalGroups, dpo_beta: number, entropy_coefficient: number, learning_rate: number, learning_rate_schedule: LearningRateSchedule, max_grad_norm: number, inner_epochs: number, micro_batches: number, adam_beta1: number, adam_beta2: number, critic_learning_rate: number, critic_epochs: number, value_clip: number, d_model: number, layers: number, heads: number, warm_start: WarmStart, imitation_steps: number, imitation_batch: number, imitation_learning_rate: number, demonstrations: number, parameters: Parameters };

/**
 * What happened in one turn. Worth is given to facts by `reward`, elsewhere.
 *
 * A turn is exactly one of `answered`, `valid_call` and `malformed`, and a valid call has exactly one of `clean_result` and
 * `error_result`.
 */
export type Facts = { answered: boolean, answer_right: boolean, format_right: boolean, valid_call: boolean, repeated_call: boolean, malformed: boolean, step_right: boolean, judged: boolean, clean_result: boolean, error_result: boolean, new_page: boolean, lucky: boolean };

/**
 * A field that is not in the table of settings.
 */
export type FieldDescription = { label: Text, help: Text };

/**
 * A region of the page that a lesson is about.
 */
export type Focus = "run" | "curves" | "episodes" | "why" | "credit_check";

/**
 * What the members of a group share.
 */
export type GroupInfo = { prompt: Array<number>, question_type: number, hidden_state: string };

/**
 * What values a setting takes. Bounds are inclusive.
 */
export type Kind = { "type": "number", default: number, min: number, max: number, step: number, scale: Scale } | { "type": "integer", default: number, min: number, max: number } | { "type": "integer_choice", default: number, options: Array<number> } | { "type": "switch", default: boolean } | { "type": "choice", default: string, options: Array<ChoiceOption> };

/**
 * How the KL divergence to the warm start is estimated.
 */
export type KlEstimator = "k3" | "k1" | "k2" | "k3_plus";

/**
 * Where the KL divergence acts.
 */
export type KlPlacement = "loss" | "reward";

/**
 * How the learning rate goes over the run.
 */
export type LearningRateSchedule = "constant" | "linear" | "cosine";

/**
 * Why a token is no part of the loss.
 */
export type LeftOut = "prompt" | "tool_token" | "truncated" | "no_signal";

/**
 * A lesson.
 */
export type Lesson = { name: string, title: Text, press: Text, watch: Text, meaning: Text, evidence: Text, environment: string, topics: Array<Topic>, focus: Focus, quantity: string };

/**
 * A lesson with its experiments, for the page.
 */
export type LessonEntry = { lesson: Lesson, config: ExperimentConfig, other: ExperimentConfig | null };

/**
 * True credit of the episodes of one step, and how close every method came to it.
 */
export type MeasuredCredit = { iteration: number, credit: TrueCredit, accuracy: CreditAccuracy };

/**
 * How close one method came, over the turns of some frozen episodes.
 */
export type MethodAccuracy = { method: CreditMethod, all_turns: Accuracy, tool_turns: Accuracy, behind: Agreement | null };

/**
 * What one method makes of frozen episodes.
 */
export type MethodCredit = { method: CreditMethod, advantages: Array<Array<number>>, needs_values: boolean };

/**
 * What becomes of groups whose episodes all earned the same.
 */
export type NoSignalGroups = "keep" | "drop" | "resample";

/**
 * What happened to one bad field.
 */
export type Note = { field: string, kind: NoteKind, given: string, used: string, text_en: string, text_zh: string };

/**
 * Why a field was not taken as given.
 */
export type NoteKind = "clamped" | "refused" | "unknown" | "syntax" | "version" | "duplicate" | "expanded";

/**
 * A term of the loss that is not taken apart by tokens here.
 */
export type OtherTerm = { "kind": "entropy", coefficient: number } | { "kind": "kl", beta: number } | { "kind": "preference", beta: number };

/**
 * The environment's own values, by name. Checked configurations hold exactly the names that the environment declares.
 */
export type Parameters = { [key in string]: Value };

/**
 * One summand of an advantage: `weight * (value - baseline) / scale`.
 */
export type Part = { kind: PartKind, turn: number, weight: number, value: number, baseline: number, scale: number, peers: number };

/**
 * What a [`Part`] of an advantage compares.
 */
export type PartKind = "episode" | "outcome" | "turn_reward" | "process_reward" | "return_to_go" | "state" | "temporal_difference";

/**
 * A part of the advantage and what its value is made of.
 */
export type PartProvenance = { part: Part, rewards: Array<DiscountedReward>, value_after: number | null, deviation: number | null };

/**
 * The four phases of a training step.
 */
export type Phase = "sample" | "score" | "credit" | "update";

/**
 * What is made of the probability ratio and the advantage.
 */
export type PolicyLoss = "clip" | "cispo" | "sapo" | "gmpo" | "dpo";

/**
 * The chain from facts to the share of one token in the policy loss and in its gradient.
 */
export type Provenance = { chain: CreditChain, position: number, token: TokenLoss | null, policy_loss: number | null, gradient_sum: number | null, trained_tokens: number | null, other_terms: Array<OtherTerm> };

/**
 * What one probability ratio is about.
 */
export type RatioLevel = "token" | "sequence" | "sequence_token";

/**
 * A configuration read from a link or file, with what was clamped or refused on the way.
 */
export type ReadConfig = { config: ExperimentConfig, notes: Array<Note> };

/**
 * Everything that a link says, with what was clamped or refused on the way.
 */
export type ReadLink = { config: ExperimentConfig, other: ExperimentConfig | null, seeds: number, expectation: Expectation | null, notes: Array<Note> };

/**
 * A published recipe.
 */
export type Recipe = { name: string, label: Text, cite: string, help: Text };

/**
 * A run kept in a file, so that the page is never empty.
 */
export type RecordedRun = { config: ExperimentConfig, made_with: string, reports: Array<Report>, batches: Array<Batch>, measured: Array<MeasuredCredit> };

/**
 * Rewards and credit of frozen episodes under some settings.
 */
export type Recredit = { rewards: RewardTable, credit: CreditMap };

/**
 * Plain numbers of one training step.
 */
export type Report = { iteration: number, train_success: number, held_out_success: number, held_out_episodes: number, mean_return: number, calls: number, by_type: Array<TypeStatistics>, turns: number, truncated: number, malformed: number, right_steps: number, repeated_calls: number, error_results: number, new_pages: number, no_signal_groups: number, update: UpdateStatistics, tokens: number, tokens_per_second: number, seconds: number, rollout_seconds: number };

/**
 * How a run compares with what a link says.
 */
export type Reproduction = { "kind": "reproduced", iterations: number } | { "kind": "differs", iteration: number } | { "kind": "pending", so_far: number } | { "kind": "other_backend" };

/**
 * Which reward terms count.
 */
export type RewardMode = "outcome" | "process" | "mixed";

/**
 * What was earned: per trajectory and turn, the terms that paid (or cost) something.
 */
export type RewardTable = { turns: Array<Array<Array<WeightedTerm>>> };

/**
 * A named reason for reward.
 */
export type RewardTerm = "answer_right" | "luck" | "valid_call" | "format_right" | "malformed" | "repeated_call" | "turn" | "step_right" | "clean_result" | "error_result" | "new_page" | "kl";

/**
 * How a slider maps to a number.
 */
export type Scale = "linear" | "log";

/**
 * What advantages are divided by.
 */
export type ScaleRewards = "group" | "batch" | "none";

/**
 * Where a setting stands in the form, in the order in which data flows.
 */
export type Section = "run" | "environment" | "policy" | "rollout" | "reward" | "credit" | "objective" | "learner" | "warm_start";

/**
 * A section with its heading.
 */
export type SectionDescription = { section: Section, label: Text };

/**
 * One setting.
 */
export type Setting = { name: string, section: Section, kind: Kind, label: Text, unit: Text, help: Text, advanced: boolean };

/**
 * What a progress bar is about.
 */
export type Stage = "download" | "imitation";

/**
 * Why a run stands still.
 */
export type StopReason = { "kind": "finished" } | { "kind": "paused" } | { "kind": "non_finite", quantity: string };

/**
 * A text in both languages of the page.
 */
export type Text = { en: string, zh: string };

/**
 * The part of one token in the policy loss.
 */
export type TokenLoss = { left_out: LeftOut | null, advantage: number, log_prob: number | null, ratio: number, clipped: boolean, loss: number | null, weight: number, share: number | null, gradient: number, gradient_share: number };

/**
 * A claim about reinforcement learning over several turns that lessons make visible.
 */
export type Topic = "turns" | "loop" | "partial_observability" | "tool_calls" | "reward_density" | "discount" | "process_reward" | "credit_assignment" | "loss_mask" | "environment_interface" | "search_again" | "imitation" | "algorithms" | "capabilities" | "verification";

/**
 * One episode: the prompt, then per turn an action of the policy and the observation that followed.
 *
 * All per-token arrays have the length of `tokens`, and entry `t` of each belongs to token `t`.
 */
export type Trajectory = { group: number, member: number, tokens: Array<number>, prompt_length: number, loss_mask: Array<boolean>, log_probs: Array<number>, turns: Array<Turn>, end: End, question_type: number };

/**
 * True credit of every turn. `[trajectory][turn]`; nothing where a state has not been re-rolled (often enough).
 */
export type TrueCredit = { credits: Array<Array<number | null>>, standard_errors: Array<Array<number | null>>, values: Array<Array<number | null>> };

/**
 * What becomes of episodes that a limit cut.
 */
export type Truncated = "failure" | "mask";

/**
 * One turn: `tokens[start..action_end]` is the action, `tokens[action_end..end]` the observation after it.
 */
export type Turn = { start: number, action_end: number, end: number, facts: Facts };

/**
 * What a return-to-go is compared with.
 */
export type TurnBaseline = "turn_index" | "pooled";

/**
 * How one type of question went.
 */
export type TypeStatistics = { episodes: number, success: number | null, calls: number | null };

/**
 * Diagnostics of the update, averaged over the trained tokens of the step's updates unless stated.
 */
export type UpdateStatistics = { loss: number, policy_loss: number, entropy: number, approximate_kl: number, reference_kl: number, ratio_mean: number, ratio_deviation: number, clip_fraction: number, dual_clip_fraction: number, gradient_norm: number, trained_tokens: number, updates: number, critic: CriticStatistics | null };

/**
 * The value of one setting. Whole numbers are numbers too: the declaration knows which is meant.
 */
export type Value = boolean | number | string;

/**
 * Where the policy starts.
 */
export type WarmStart = "shipped" | "live" | "none";

/**
 * Where the policy came from.
 */
export type WarmStartReport = { source: WarmStartSource, note: string, parameters: number };

export type WarmStartSource = "shipped" | "live" | "none" | "checkpoint";

/**
 * One warning.
 */
export type Warning = { kind: WarningKind, iteration: number, figure: number, bound: number, text_en: string, text_zh: string };

/**
 * What is going wrong.
 */
export type WarningKind = "singleton_groups" | "pairs_scaled" | "calling_pays" | "no_signal" | "entropy_collapse" | "entropy_rising" | "reward_hacked" | "ratio_off" | "clip_fraction_high" | "kl_high" | "gradient_spike" | "malformed_rising";

/**
 * One term of the reward: its weight times the fact, which is 0 or 1.
 */
export type WeightedTerm = { term: RewardTerm, weight: number };

/**
 * Centring and division over the trained tokens of a batch: `(x - mean) / scale`.
 */
export type Whitening = { mean: number, scale: number, tokens: number };
