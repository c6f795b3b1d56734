//! What the page asks on its main thread: settings, links, and credit of frozen episodes. Needs no tensors.

use wasm_bindgen::prelude::*;

use super::frozen::FrozenBatch;
use super::protocol::ReadConfig;
use super::{from_js, to_js};
use crate::config::{self, ExperimentConfig, ReadOutcome};
use crate::environment::REGISTRY;
use crate::metrics::{self, Report};
use crate::vocabulary;

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

/// A configuration that the page holds, brought into bounds. Never fails on content: a form may hold any number, which need not
/// fit the field's type.
fn read(config: &JsValue) -> ReadOutcome {
    let text = js_sys::JSON::stringify(config).ok().and_then(|text| text.as_string()).unwrap_or_default();
    config::from_json(&text, REGISTRY)
}

/// The fragment of the link of an `ExperimentConfig`, without `#`.
#[wasm_bindgen]
pub fn to_link(config: JsValue) -> Result<String, JsValue> {
    Ok(config::to_link(&read(&config).config, REGISTRY))
}

/// The JSON form of an `ExperimentConfig`.
#[wasm_bindgen]
pub fn to_json(config: JsValue) -> Result<String, JsValue> {
    Ok(config::to_json(&read(&config).config))
}

/// The `ExperimentConfig` moved to another environment: values that were the old default become the new one.
#[wasm_bindgen]
pub fn with_environment(config: JsValue, name: &str) -> Result<JsValue, JsValue> {
    to_js(&config::with_environment(&read(&config).config, name, REGISTRY))
}

/// The `ExperimentConfig` with the choices of a published recipe; unchanged for an unknown name.
#[wasm_bindgen]
pub fn with_recipe(config: JsValue, name: &str) -> Result<JsValue, JsValue> {
    let config = from_js::<ExperimentConfig>(config)?;
    to_js(&config::with_recipe(&config, name, REGISTRY).unwrap_or(config))
}

/// The name of the recipe whose choices an `ExperimentConfig` has, or `null`.
#[wasm_bindgen]
pub fn recipe_of(config: JsValue) -> Result<Option<String>, JsValue> {
    Ok(config::recipe_of(&from_js::<ExperimentConfig>(config)?, REGISTRY).map(str::to_string))
}

/// Checks an `ExperimentConfig`; gives a `ReadConfig` with everything in bounds.
#[wasm_bindgen]
pub fn check(config: JsValue) -> Result<JsValue, JsValue> {
    let outcome = read(&config);
    to_js(&ReadConfig { config: outcome.config, notes: outcome.notes })
}

/// Which settings differ: a list of `Difference`.
#[wasm_bindgen]
pub fn differences(a: JsValue, b: JsValue) -> Result<JsValue, JsValue> {
    to_js(&config::differences(&read(&a).config, &read(&b).config, REGISTRY))
}

/// The frozen episodes of a `Batch`, kept on this side: the settings move often, the episodes do not, and handing those over takes
/// longer than crediting them.
#[wasm_bindgen]
pub struct Frozen(FrozenBatch);

#[wasm_bindgen]
impl Frozen {
    /// Takes a `Batch`. An error if its arrays do not fit together.
    #[wasm_bindgen(constructor)]
    pub fn new(batch: JsValue) -> Result<Frozen, JsValue> {
        let batch = FrozenBatch::new(from_js(batch)?);
        batch.map(Frozen).map_err(|error| JsValue::from_str(&error.to_string()))
    }

    /// Scores and credits the episodes under an `ExperimentConfig`; gives a `Recredit`. Costs of KL and values of states, which
    /// depend on policies and not on settings, are those of the batch.
    pub fn recredit(&self, config: JsValue) -> Result<JsValue, JsValue> {
        to_js(&self.0.recredit(&from_js(config)?))
    }

    /// The advantages that every method gives under the other choices of an `ExperimentConfig`; a list of `MethodCredit`.
    pub fn recredit_all(&self, config: JsValue) -> Result<JsValue, JsValue> {
        to_js(&self.0.recredit_all(&from_js(config)?))
    }

    /// The `Provenance` of the token at `position` of a trajectory under an `ExperimentConfig`; `null` for the prompt and beyond
    /// the end.
    pub fn provenance(&self, config: JsValue, trajectory: usize, position: usize) -> Result<JsValue, JsValue> {
        to_js(&self.0.provenance(&from_js(config)?, trajectory, position))
    }
}

/// [`Frozen::recredit`] of a `Batch` that is asked about once.
#[wasm_bindgen]
pub fn recredit(config: JsValue, batch: JsValue) -> Result<JsValue, JsValue> {
    Frozen::new(batch)?.recredit(config)
}

/// Early warnings of a run with some settings: a list of `Warning`. `reports` are those of all its steps so far, in order; an
/// empty list gives what the settings alone decide.
#[wasm_bindgen]
pub fn warnings(reports: JsValue, config: JsValue) -> Result<JsValue, JsValue> {
    let reports: Vec<Report> = from_js(reports)?;
    to_js(&metrics::warnings(&reports, &read(&config).config))
}

/// What each token is called.
#[wasm_bindgen]
pub fn token_names() -> Vec<String> {
    vocabulary::NAMES.iter().map(|name| (*name).to_string()).collect()
}
