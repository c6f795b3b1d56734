//! What the page asks on its main thread: settings, links, and credit of frozen episodes. Needs no tensors.

use wasm_bindgen::prelude::*;

use super::adapter::browser_adapter;
use super::frozen::FrozenBatch;
use super::lines;
use super::protocol::{Batch, ReadConfig, ReadLink};
use super::{from_js, to_js};
use crate::config::{self, Expectation, ExperimentConfig, Link, LinkOutcome, ReadOutcome};
use crate::credit::TrueCredit;
use crate::device;
use crate::environment::{self, REGISTRY};
use crate::lesson;
use crate::metrics::{self, Report};
use crate::vocabulary;

/// The device that a `DeviceChoice` comes to here, and why: a promise of a `DeviceReport`. Nothing is opened.
#[wasm_bindgen]
pub async fn find_device(choice: JsValue) -> Result<JsValue, JsValue> {
    console_error_panic_hook::set_once();
    to_js(&device::plan(from_js(choice)?, browser_adapter).await)
}

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

/// Reads a link (a whole address or its fragment); gives a `ReadLink`. Never fails on content.
#[wasm_bindgen]
pub fn read_link(text: &str) -> Result<JsValue, JsValue> {
    let LinkOutcome { link: Link { config, other, seeds, expectation }, notes } = config::read_link(text, REGISTRY);
    to_js(&ReadLink { config, other, seeds, expectation, notes })
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

/// The fragment of a link with more than an `ExperimentConfig`: a second one for comparison or `null`, how many seeds to train,
/// and an `Expectation` or `null`. `null` where the two configurations differ in too much for one link.
#[wasm_bindgen]
pub fn write_link(config: JsValue, other: JsValue, seeds: u32, expectation: JsValue) -> Result<Option<String>, JsValue> {
    let other = (!other.is_null() && !other.is_undefined()).then(|| read(&other).config);
    let expectation: Option<Expectation> = from_js(expectation)?;
    Ok(config::write_link(&Link { config: read(&config).config, other, seeds, expectation }, REGISTRY))
}

/// What a link can say that a run gave: the `Expectation` of the list of its `Report`s so far and the `DeviceKind` that it was
/// computed on; `null` before the first report.
#[wasm_bindgen]
pub fn expectation_of(reports: JsValue, backend: JsValue) -> Result<JsValue, JsValue> {
    let reports: Vec<Report> = from_js(reports)?;
    to_js(&metrics::expectation_of(&reports, from_js(backend)?))
}

/// Whether a run, by the list of its `Report`s so far and its `DeviceKind`, gives what an `Expectation` says; a `Reproduction`.
#[wasm_bindgen]
pub fn compare_expectation(expectation: JsValue, reports: JsValue, backend: JsValue) -> Result<JsValue, JsValue> {
    let reports: Vec<Report> = from_js(reports)?;
    to_js(&metrics::compare_expectation(&from_js(expectation)?, &reports, from_js(backend)?))
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

/// The lessons, in the order of the course: a list of `LessonEntry`.
#[wasm_bindgen]
pub fn lessons() -> Result<JsValue, JsValue> {
    to_js(&lesson::lesson_entries())
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

/// Episodes as JSON lines: those of a `Batch`, credited with the method of an `ExperimentConfig`, and their `TrueCredit` or `null`.
#[wasm_bindgen]
pub fn episode_lines(batch: JsValue, config: JsValue, truth: JsValue) -> Result<String, JsValue> {
    let (batch, truth): (Batch, Option<TrueCredit>) = (from_js(batch)?, from_js(truth)?);
    let text = lines::episode_lines(&batch, read(&config).config.credit_method, truth.as_ref());
    text.map_err(|error| JsValue::from_str(&error.to_string()))
}

/// Watches a run for what its reports say is going wrong.
#[wasm_bindgen]
pub struct Watch(metrics::Watch);

#[wasm_bindgen]
impl Watch {
    /// Before the first report there is what the settings, an `ExperimentConfig`, alone decide.
    #[wasm_bindgen(constructor)]
    pub fn new(config: JsValue) -> Watch {
        Watch(metrics::Watch::new(&read(&config).config))
    }

    /// Takes the `Report`s of the next steps, in order; gives all warnings so far, a list of `Warning`.
    pub fn add(&mut self, reports: JsValue) -> Result<JsValue, JsValue> {
        let reports: Vec<Report> = from_js(reports)?;
        reports.iter().for_each(|report| self.0.add(report));
        to_js(self.0.warnings())
    }
}

/// The tokens that may follow the beginning of an action under the grammar of the environment that an `ExperimentConfig` names, in
/// the order of their ids; none after its `<eot>` and after a token that is not legal.
#[wasm_bindgen]
pub fn legal_tokens(config: JsValue, beginning: &[u8]) -> Vec<u8> {
    let legal = environment::create(&read(&config).config).grammar().following(beginning);
    (0..vocabulary::SIZE as u8).filter(|&token| legal.contains(token)).collect()
}

/// What each token is called.
#[wasm_bindgen]
pub fn token_names() -> Vec<String> {
    vocabulary::NAMES.iter().map(|name| (*name).to_string()).collect()
}
