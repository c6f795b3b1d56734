//! Which shipped checkpoint a run begins from. Every task has one under its defaults, named like the task; a few more ship for
//! demonstrators and documents that would take a minute to imitate live.

use super::declaration;
use crate::config::ExperimentConfig;

/// A shipped checkpoint beside that of a task's defaults.
#[derive(Debug)]
pub struct ExtraWarmStart {
    /// The file's name without `.safetensors`.
    pub name: &'static str,
    /// The task.
    pub environment: &'static str,
    /// The settings, as text, that it was made with and that differ from the task's defaults.
    pub settings: &'static [(&'static str, &'static str)],
}

/// The shipped checkpoints beside those of the tasks' defaults.
pub static EXTRA_WARM_STARTS: &[ExtraWarmStart] = &[
    ExtraWarmStart {
        name: "search-long-documents",
        environment: "search",
        settings: &[("random_tokens", "8"), ("turn_limit", "4"), ("context_length", "60"), ("two_search_demonstrations", "0.2")],
    },
    ExtraWarmStart {
        name: "search-one-search",
        environment: "search",
        settings: &[("random_tokens", "0"), ("two_search_demonstrations", "0")],
    },
    ExtraWarmStart {
        name: "search-few-second-searches",
        environment: "search",
        settings: &[("random_tokens", "0"), ("two_search_demonstrations", "0.05")],
    },
    ExtraWarmStart { name: "web-deep", environment: "web", settings: &[("pages", "5"), ("right_clicks", "0.25")] },
];

/// The name of the shipped checkpoint that comes nearest to what an experiment asks for: one of [`EXTRA_WARM_STARTS`] where all
/// its settings are as it was made, else that of the task's defaults. Whether it fits in all respects is checked when it is read.
pub fn warm_start_name(config: &ExperimentConfig) -> &'static str {
    let has = |&(name, wanted): &(&str, &str)| config.value(name).is_some_and(|value| value.to_string() == wanted);
    let task = declaration(config).name;
    let found = EXTRA_WARM_STARTS.iter().find(|extra| extra.environment == task && extra.settings.iter().all(has));
    found.map_or(task, |extra| extra.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::environment::REGISTRY;

    #[test]
    fn every_task_has_its_own_and_a_few_settings_have_another() {
        for task in REGISTRY {
            let config = ExperimentConfig::defaults(task.name, REGISTRY);
            assert_eq!(warm_start_name(&config), task.name);
            let other = ExperimentConfig { gamma: 0.3, seed: 4, turn_limit: 3, ..config };
            assert_eq!(warm_start_name(&other), task.name, "what imitation knows nothing of does not count");
        }
        for extra in EXTRA_WARM_STARTS {
            let mut config = ExperimentConfig::defaults(extra.environment, REGISTRY);
            for (name, value) in extra.settings {
                assert_eq!(config::set(&mut config, name, value, REGISTRY), None, "{}: {name}", extra.name);
            }
            assert_eq!(config::check(&config, REGISTRY).notes, [], "{}", extra.name);
            assert_eq!(warm_start_name(&config), extra.name);
        }
    }
}
