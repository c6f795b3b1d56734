//! Checks of whole configurations: every value within its bounds, and settings against each other.

use super::experiment::{ExperimentConfig, SETTINGS, find_environment};
use super::note::{Note, NoteKind};
use super::read::{ReadOutcome, fit, fit_title, names};
use super::setting::{ContextNeed, Kind, Registry};
use super::value::{Parameters, Value};

/// Tokens that any prompt may take; an environment may ask for more. The context has to hold a prompt and one action.
pub const PROMPT_ROOM: usize = 8;

/// Most tokens of one training step: `groups * num_generations * context_length`.
pub const STEP_TOKENS: usize = 1 << 17;

/// Most activations of one layer width kept for one gradient: `tokens * d_model * layers` of a micro-batch or of an imitation
/// batch. A training pass keeps about 200 bytes for each, so this is some 1.6 GB, which a browser tab still gives.
pub const GRADIENT_ACTIVATIONS: usize = 1 << 23;

/// Checks a configuration that came from anywhere, for example from a form: every value that is out of bounds is clamped or
/// replaced by the environment's default, parameters of other environments are dropped and missing ones added, and the
/// settings are checked against each other. A checked configuration comes back unchanged.
pub fn check(config: &ExperimentConfig, registry: &Registry) -> ReadOutcome {
    let mut notes = Vec::new();
    let mut checked = config.clone();
    let defaults = ExperimentConfig::defaults(&config.environment, registry);
    if find_environment(&config.environment, registry).is_none() {
        notes.push(Note::no_environment(&config.environment, &defaults.environment, &names(registry)));
        checked.environment = defaults.environment.clone();
    }
    let short = fit_title(&config.title);
    if short.len() < config.title.len() {
        notes.push(Note::long_title(&config.title, short));
        checked.title = short.to_owned();
    }
    checked.parameters = Parameters::default();
    let declared = find_environment(&checked.environment, registry).map_or(&[][..], |environment| environment.settings);
    for setting in SETTINGS.iter().chain(declared) {
        let default = defaults.value(setting.name).unwrap_or_else(|| setting.default_value());
        let Some(given) = config.value(setting.name) else {
            checked.assign(setting.name, &default);
            continue;
        };
        let shown = given.to_string();
        let value = fit(setting, given).unwrap_or_else(|near| {
            let note = near.as_ref().map(|near| Note::clamped(setting, &shown, near));
            notes.push(note.unwrap_or_else(|| Note::refused(setting, &shown, &default)));
            near.unwrap_or(default)
        });
        checked.assign(setting.name, &value);
    }
    let unknown = config.parameters.iter().filter(|(name, _)| declared.iter().all(|setting| setting.name != *name));
    notes.extend(unknown.map(|(name, value)| Note::unknown(name, &value.to_string(), &checked.environment)));
    notes.extend(reconcile(&mut checked, registry));
    ReadOutcome { config: checked, notes }
}

/// Brings settings that are each within bounds into agreement, so that a step can be computed and fits into memory.
pub(super) fn reconcile(config: &mut ExperimentConfig, registry: &Registry) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut change = |config: &mut ExperimentConfig, name: &str, used: usize, en: String, zh: String| {
        let given = config.value(name).map(|value| value.to_string()).unwrap_or_default();
        let text_en = format!("{name}: {given} {en}; {used} is used instead.");
        let text_zh = format!("{name}：{given} {zh}，改用 {used}。");
        notes.push(Note::new(name, NoteKind::Clamped, &given, &used.to_string(), text_en, text_zh));
        config.assign(name, &Value::Number(used as f64));
    };

    // With too long a context for any setting, episodes have to be shorter.
    let turns = config.turn_limit;
    let most = longest_context();
    let fits = |turn_limit: &usize| {
        context_need(&ExperimentConfig { turn_limit: *turn_limit, ..config.clone() }, registry).episode <= most
    };
    let fitting = (1..=turns).rev().find(fits).unwrap_or(1);
    if fitting < turns {
        let en = format!("turns of the environment \"{}\" do not fit into any context: at most {fitting}", config.environment);
        let zh = format!("轮在环境“{}”里超出任何上下文，至多 {fitting}", config.environment);
        change(config, "turn_limit", fitting, en, zh);
    }
    let ContextNeed { prompt, episode } = context_need(config, registry);
    let room = prompt.max(PROMPT_ROOM);
    let least = (room + config.turn_tokens).max(episode.min(most));
    if config.context_length < least {
        let (tokens, name) = (config.turn_tokens, &config.environment);
        let (en, zh) = if episode < least {
            (
                format!("holds no prompt ({room} tokens) and one action (turn_tokens {tokens}): at least {least}"),
                format!("容不下提示（{room} 个词元）和一次动作（turn_tokens 为 {tokens}），至少要 {least}"),
            )
        } else {
            (
                format!("holds no episode of the environment \"{name}\" under these settings: at least {least}"),
                format!("容不下环境“{name}”在此设置下的一条轨迹，至少要 {least}"),
            )
        };
        change(config, "context_length", least, en, zh);
    }
    let group = config.num_generations * config.context_length;
    if config.groups * group > STEP_TOKENS {
        let used = (STEP_TOKENS / group).max(1);
        let en = format!("times num_generations times context_length is more than {STEP_TOKENS} tokens a step");
        let zh = format!("乘以 num_generations 再乘以 context_length 超过每步 {STEP_TOKENS} 个词元");
        change(config, "groups", used, en, zh);
    }
    let episodes = config.groups * config.num_generations;
    if config.micro_batches > episodes {
        let en = format!("is more than the {episodes} episodes of a step (groups times num_generations)");
        let zh = format!("多于每步的 {episodes} 条轨迹（groups 乘以 num_generations）");
        change(config, "micro_batches", episodes, en, zh);
    }
    let per_episode = config.context_length * config.d_model * config.layers;
    let pieces = episodes.div_ceil((GRADIENT_ACTIVATIONS / per_episode).max(1));
    if config.micro_batches < pieces {
        let en = format!(
            "needs too much memory for {episodes} episodes with this context_length, d_model and layers: at least {pieces}"
        );
        let zh = format!("太少：{episodes} 条轨迹在此 context_length、d_model 和 layers 下内存不够，至少要 {pieces}");
        change(config, "micro_batches", pieces, en, zh);
    }
    let batch = (GRADIENT_ACTIVATIONS / per_episode).max(1);
    if config.imitation_batch > batch {
        let en = format!("needs too much memory with this context_length, d_model and layers: at most {batch}");
        let zh = format!("在此 context_length、d_model 和 layers 下内存不够，至多 {batch}");
        change(config, "imitation_batch", batch, en, zh);
    }
    notes
}

/// What the environment asks of the context.
fn context_need(config: &ExperimentConfig, registry: &Registry) -> ContextNeed {
    let environment = find_environment(&config.environment, registry);
    environment.map_or(ContextNeed { prompt: 0, episode: 0 }, |environment| (environment.context)(config))
}

/// The upper bound of `context_length`.
fn longest_context() -> usize {
    let bound = SETTINGS.iter().find(|setting| setting.name == "context_length").map(|setting| setting.kind);
    if let Some(Kind::Integer { max, .. }) = bound { max as usize } else { usize::MAX }
}
