//! What the page asks on its main thread: settings, links, and credit of frozen episodes. Needs no tensors.

use wasm_bindgen::prelude::*;

use super::protocol::{ReadConfig, Recredit};
use super::{from_js, to_js};
use crate::config::{self, ExperimentConfig};
use crate::environment::REGISTRY;
use crate::rollout::Trajectory;
use crate::{credit, reward, vocabulary};

/// A `Description` of all settings.
#[wasm_bindgen]
pub fn describe() -> Result<JsValue, JsValue> {
    console_error_panic_hook::set_once();
    to_js(&config::describe(REGISTRY))
}

/// The default `ExperimentConfig` of an environment.
#[wasm_bindgen]
pub fn defaults(environment: &str) -> Result<JsValue, JsValue> {
    to_js(&ExperimentConfig::defaults(environment, REGISTRY))
}

/// Reads a link (a whole address or its fragment); gives a `ReadConfig`. Never fails on content.
#[wasm_bindgen]
pub fn read_link(text: &str) -> Result<JsValue, JsValue> {
    let outcome = config::from_link(text, REGISTRY);
    to_js(&ReadConfig { config: outcome.config, notes: outcome.notes })
}

/// Reads the JSON form; gives a `ReadConfig`. Never fails on content.
#[wasm_bindgen]
pub fn read_json(text: &str) -> Result<JsValue, JsValue> {
    let outcome = config::from_json(text, REGISTRY);
    to_js(&ReadConfig { config: outcome.config, notes: outcome.notes })
}

/// The fragment of the link of an `ExperimentConfig`, without `#`.
#[wasm_bindgen]
pub fn to_link(config: JsValue) -> Result<String, JsValue> {
    Ok(config::to_link(&from_js::<ExperimentConfig>(config)?, REGISTRY))
}

/// The JSON form of an `ExperimentConfig`.
#[wasm_bindgen]
pub fn to_json(config: JsValue) -> Result<String, JsValue> {
    Ok(config::to_json(&from_js::<ExperimentConfig>(config)?))
}

/// The `ExperimentConfig` moved to another environment: values that were the old default become the new one.
#[wasm_bindgen]
pub fn with_environment(config: JsValue, name: &str) -> Result<JsValue, JsValue> {
    to_js(&config::with_environment(&from_js::<ExperimentConfig>(config)?, name, REGISTRY))
}

/// Checks an `ExperimentConfig`; gives a `ReadConfig` with everything in bounds.
#[wasm_bindgen]
pub fn check(config: JsValue) -> Result<JsValue, JsValue> {
    let outcome = config::check(&from_js::<ExperimentConfig>(config)?, REGISTRY);
    to_js(&ReadConfig { config: outcome.config, notes: outcome.notes })
}

/// Which settings differ: a list of `Difference`.
#[wasm_bindgen]
pub fn differences(a: JsValue, b: JsValue) -> Result<JsValue, JsValue> {
    to_js(&config::differences(&from_js::<ExperimentConfig>(a)?, &from_js::<ExperimentConfig>(b)?, REGISTRY))
}

/// Scores and credits frozen trajectories again under other settings; gives a `Recredit`.
#[wasm_bindgen]
pub fn recredit(config: JsValue, trajectories: JsValue) -> Result<JsValue, JsValue> {
    let config: ExperimentConfig = from_js(config)?;
    let trajectories: Vec<Trajectory> = from_js(trajectories)?;
    let rewards = reward::score(&trajectories, &reward::weighted_terms(&config));
    let groups: Vec<usize> = trajectories.iter().map(|trajectory| trajectory.group).collect();
    let credit = credit::assign(&groups, &rewards.totals(), &config);
    to_js(&Recredit { rewards, credit })
}

/// What each token is called.
#[wasm_bindgen]
pub fn token_names() -> Vec<String> {
    vocabulary::NAMES.iter().map(|name| (*name).to_string()).collect()
}
