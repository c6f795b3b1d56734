//! Two configurations next to each other, and moving one to another environment.

use super::experiment::{ExperimentConfig, find_environment};
use super::read::settings_in;
use super::setting::{Registry, Text, text};

/// One setting in which two configurations differ.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Difference {
    pub name: &'static str,
    pub label: Text,
    /// Value in the first configuration, as in links; empty where it has no such setting.
    pub a: String,
    /// Value in the second one.
    pub b: String,
}

/// What the environment setting is called.
pub(super) const ENVIRONMENT_LABEL: Text = text("Environment", "环境");

/// The settings in which `a` and `b` differ, in the order of the form; titles aside. Parameters of both environments count.
pub fn differences(a: &ExperimentConfig, b: &ExperimentConfig, registry: &Registry) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    if a.environment != b.environment {
        let (a, b) = (a.environment.clone(), b.environment.clone());
        found.push(Difference { name: "environment", label: ENVIRONMENT_LABEL, a, b });
    }
    let first = find_environment(&a.environment, registry);
    let second = find_environment(&b.environment, registry).filter(|second| Some(second.name) != first.map(|first| first.name));
    for setting in settings_in(first).chain(second.map_or(&[][..], |environment| environment.settings)) {
        let (in_a, in_b) = (a.value(setting.name), b.value(setting.name));
        if in_a != in_b && found.iter().all(|difference| difference.name != setting.name) {
            let [a, b] = [in_a, in_b].map(|value| value.map(|value| value.to_string()).unwrap_or_default());
            found.push(Difference { name: setting.name, label: setting.label, a, b });
        }
    }
    found
}

/// The configuration moved to another environment: what had the old environment's default gets the new one's, what a person
/// chose stays, and the parameters are replaced by the new environment's defaults. An unknown name changes nothing. The result
/// may need [`super::check`]: what was chosen for one task can be too short for another.
pub fn with_environment(config: &ExperimentConfig, environment: &str, registry: &Registry) -> ExperimentConfig {
    if environment == config.environment || find_environment(environment, registry).is_none() {
        return config.clone();
    }
    let old = ExperimentConfig::defaults(&config.environment, registry);
    let mut moved = ExperimentConfig { title: config.title.clone(), ..ExperimentConfig::defaults(environment, registry) };
    for setting in settings_in(None) {
        if let Some(value) = config.value(setting.name).filter(|value| old.value(setting.name).as_ref() != Some(value)) {
            moved.assign(setting.name, &value);
        }
    }
    moved
}
