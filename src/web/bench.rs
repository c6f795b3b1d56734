//! What the page of measurements (`bench.html`) needs of the engine: one policy of a given shape, updated and sampled through the
//! same learner and the same rollout as in training, on numbers that other libraries can be given too.

use js_sys::{Array, Float32Array, Uint8Array};
use wasm_bindgen::prelude::*;

use super::from_js;
#[cfg(feature = "cpu")]
use super::pool;
use crate::config::ExperimentConfig;
use crate::device::open;
use crate::environment::REGISTRY;
use crate::learner::{Learner, TrainingExample, UpdateSettings};
use crate::policy::{Policy, PolicyConfig, Weights};
use crate::rollout::{Episode, Sampling, roll_out};
use crate::seed::RootSeed;
use crate::trainer::GroupStart;
use crate::vocabulary::EOT;

/// One policy under measurement.
#[wasm_bindgen]
pub struct Bench {
    weights: Weights,
    policy: Policy,
    learner: Learner,
    examples: Vec<TrainingExample>,
    steps: usize,
}

#[wasm_bindgen]
impl Bench {
    /// Opens the device of a `DeviceReport`, with a policy of initial weights. `shape` has the fields of a checkpoint's
    /// `turnwise_policy`. Updates are cut into `micro_batches`, which on the CPU the workers of a `Pool` share; `null` for none.
    ///
    /// # Errors
    /// When the shape is not one or the device is refused.
    pub async fn open(shape: JsValue, device: JsValue, micro_batches: usize, others: JsValue) -> Result<Bench, JsValue> {
        console_error_panic_hook::set_once();
        let shape: PolicyConfig = from_js(shape)?;
        let chosen = open(from_js(device)?).await.map_err(|refused| JsValue::from_str(&refused.detail))?;
        let weights = without_end(Weights::initial(&shape, RootSeed(0)));
        let policy = shape.init(&chosen.device).with_weights(&weights).map_err(words)?;
        let learner = Learner::new(&policy, settings(micro_batches));
        #[cfg(feature = "cpu")]
        pool::share(others);
        #[cfg(not(feature = "cpu"))]
        drop(others);
        Ok(Bench { weights, policy, learner, examples: Vec::new(), steps: 0 })
    }

    /// The weights that updates and decoding start from: a list of `[name, shape, Float32Array]`.
    pub fn weights(&self) -> Array {
        let entry = |weight: &crate::policy::NamedWeight| {
            let shape: Array = weight.shape.iter().map(|&length| JsValue::from(length as u32)).collect();
            Array::of3(&weight.name.as_str().into(), &shape.into(), &Float32Array::from(weight.values.as_slice()).into())
        };
        self.weights.0.iter().map(entry).collect()
    }

    /// The batch of the updates: trajectories of `length` tokens each, one after the other. A token is trained where
    /// `loss_mask` is not 0.
    pub fn set_batch(&mut self, length: usize, tokens: &[u8], loss_mask: &[u8], old_log_probs: &[f32], advantages: &[f32]) {
        let rows = tokens.chunks_exact(length).zip(loss_mask.chunks_exact(length));
        let numbers = old_log_probs.chunks_exact(length).zip(advantages.chunks_exact(length));
        let example = |(group, ((tokens, mask), (old, advantages))): (usize, ((&[u8], &[u8]), (&[f32], &[f32])))| {
            let loss_mask: Vec<bool> = mask.iter().map(|&trained| trained != 0).collect();
            TrainingExample {
                group,
                tokens: tokens.to_vec(),
                sampled: loss_mask.clone(),
                loss_mask,
                old_log_probs: old.to_vec(),
                advantages: advantages.to_vec(),
                legal: Vec::new(),
            }
        };
        self.examples = rows.zip(numbers).enumerate().map(example).collect();
    }

    /// One update on the batch; gives its loss.
    ///
    /// # Errors
    /// When the device fails or something is not a finite number.
    pub async fn step(&mut self) -> Result<f64, JsValue> {
        let statistics = self.learner.update(&self.examples, self.steps).await.map_err(words)?;
        self.steps += 1;
        Ok(statistics.loss)
    }

    /// What [`Bench::decode`] starts from and draws with: the prompts of all sequences, one after the other, and `count`
    /// uniform numbers for each, as `[Uint8Array, Float32Array]`.
    pub fn draws(&self, sequences: usize, count: usize) -> Array {
        let episodes = self.episodes(&self.decoding(sequences, count));
        let prompts: Vec<u8> = episodes.iter().flat_map(|episode| episode.prefix.tokens.clone()).collect();
        let of = |episode: &Episode| {
            let first = episode.prefix.tokens.len();
            (first..first + count).map(|position| episode.sampling.unit_at(position as u32)).collect::<Vec<f32>>()
        };
        let uniforms: Vec<f32> = episodes.iter().flat_map(of).collect();
        Array::of2(&Uint8Array::from(prompts.as_slice()).into(), &Float32Array::from(uniforms.as_slice()).into())
    }

    /// Samples one turn of `count` tokens for every sequence, after prompts that all differ, in one batch; gives the sampled
    /// tokens, sequence by sequence. The policy never ends a turn early: the head gives `<eot>` no weight.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn decode(&self, sequences: usize, count: usize) -> Result<Vec<u8>, JsValue> {
        let config = self.decoding(sequences, count);
        let played = roll_out(&self.policy, self.episodes(&config), &Sampling::of(&config)).await.map_err(words)?;
        Ok(played.iter().flat_map(|trajectory| trajectory.tokens[trajectory.prompt_length..].to_vec()).collect())
    }

    /// One turn of search questions, one member each.
    fn decoding(&self, sequences: usize, count: usize) -> ExperimentConfig {
        ExperimentConfig {
            groups: sequences,
            num_generations: 1,
            turn_limit: 1,
            turn_tokens: count,
            context_length: self.policy.context_length(),
            ..ExperimentConfig::defaults("search", REGISTRY)
        }
    }

    fn episodes(&self, config: &ExperimentConfig) -> Vec<Episode> {
        let of = |group: usize| GroupStart::new(config, 0, group as u32).episodes(config, 0, group).collect::<Vec<_>>();
        (0..config.groups).flat_map(of).collect()
    }
}

/// The default update in so many micro-batches, without what the other libraries would have to be taught: no entropy bonus, no bound on
/// the gradient.
fn settings(micro_batches: usize) -> UpdateSettings {
    let defaults = ExperimentConfig::default();
    UpdateSettings::of(&ExperimentConfig { micro_batches, entropy_coefficient: 0.0, max_grad_norm: 0.0, ..defaults })
}

/// Makes `<eot>` as good as impossible: the first feature of the last norm becomes the constant 1, and the head gives it a large
/// negative weight for `<eot>` and none for anything else.
fn without_end(mut weights: Weights) -> Weights {
    for weight in &mut weights.0 {
        match (weight.name.as_str(), weight.shape.last().copied()) {
            ("norm.gamma", _) => weight.values[0] = 0.0,
            ("norm.beta", _) => weight.values[0] = 1.0,
            ("head.weight", Some(outputs)) => {
                weight.values[..outputs].fill(0.0);
                weight.values[EOT as usize] = -30.0;
            }
            _ => {}
        }
    }
    weights
}

fn words(error: impl std::fmt::Display) -> JsValue {
    JsValue::from_str(&error.to_string())
}
