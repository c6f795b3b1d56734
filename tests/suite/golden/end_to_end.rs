//! Ten Adam updates of a tiny transformer: policy, objective and optimizer together, against PyTorch.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use pollster::block_on;
use turnwise::config::LearningRateSchedule;
use turnwise::learner::{Learner, OptimizerSettings, TokenBatch, TrainingExample, UpdateSettings};
use turnwise::objective::{
    Aggregation, ClipBounds, ObjectiveSettings, PolicyLossSettings, RatioLevel, Surrogate, entropy, masked_mean, policy_loss,
};
use turnwise::policy::{Activation, NamedWeight, Policy, PolicyConfig, Weights, log_distribution, taken_log_probs};
use turnwise::vocabulary::Token;

use super::case::{Case, Rows, Stop, does_not_apply};
use super::tensors::count;
use crate::support::{cpu, gpu, numbers, rows, weights};

/// The case, by what it states.
pub fn ten_updates(case: &Case) -> Result<(), Stop> {
    if case.word("aggregation") != "token-mean" {
        return does_not_apply("another aggregation than the token mean");
    }
    let Some(shape) = shape(case) else { return does_not_apply("unknown shape of the network") };
    let optimizer = case.raw("optimizer");
    let (Some(steps), Some(learning_rate)) = (optimizer["steps"].as_u64(), optimizer["lr"].as_f64()) else {
        return does_not_apply("unknown optimizer");
    };
    if optimizer["name"] != "Adam" || optimizer["weight_decay"] != 0.0 || !optimizer["grad_clip"].is_null() {
        return does_not_apply("another optimizer than Adam without weight decay");
    }
    let policy = shape.init(&cpu()).with_weights(&load(case, &shape)?).map_err(|error| Stop::Failed(error.to_string()))?;
    let mut examples = examples(case)?;

    let (logits, log_probs, entropies) = look(&policy, &examples);
    case.close_rows("logits_step0_row0", &logits)?;
    case.close_rows("logp_old", &log_probs)?;
    case.close_rows("entropy_step0", &entropies)?;
    for (example, log_probs) in examples.iter_mut().zip(&log_probs) {
        example.old_log_probs = log_probs.iter().map(|&value| value as f32).collect();
    }
    let bounds = ClipBounds { low: case.number("clip_low")?, high: case.number("clip_high")? };
    let surrogate = Surrogate::Clip { bounds, dual: None, ceiling: None };
    let clip = PolicyLossSettings { surrogate, ratio_level: RatioLevel::Token, log_ratio_limit: None };
    for (name, values) in gradient(&policy, &examples, clip) {
        case.close_entry("grad_step0", &name, &values)?;
    }

    let constant = |name: &str| optimizer[name].as_f64().ok_or_else(|| Stop::DoesNotApply("unknown optimizer".to_string()));
    let settings = UpdateSettings {
        optimizer: OptimizerSettings {
            beta1: constant("beta1")?,
            beta2: constant("beta2")?,
            epsilon: constant("eps")?,
            max_grad_norm: 0.0,
        },
        learning_rate,
        schedule: LearningRateSchedule::Constant,
        iterations: steps as usize,
        objective: ObjectiveSettings {
            policy_loss: clip,
            aggregation: Aggregation::TokenMean,
            kl: None,
            entropy_coefficient: 0.0,
            preference: None,
        },
        temperature: 1.0,
        inner_epochs: 1,
        micro_batches: 1,
        kernels: true,
    };
    compare(case, &shape, &mut Learner::new(&policy, settings.clone()), &examples)?;
    if let Some(device) = gpu("ten_updates") {
        let policy = policy_on(&shape, &weights(&policy), &device)?;
        let mut learner = Learner::new(&policy, settings);
        if !learner.uses_kernels() {
            return Err(Stop::Failed("there are no kernels for this policy".to_string()));
        }
        compare(case, &shape, &mut learner, &examples)?;
    }
    case.done()
}

fn policy_on(shape: &PolicyConfig, weights: &Weights, device: &Device) -> Result<Policy, Stop> {
    shape.init(device).with_weights(weights).map_err(|error| Stop::Failed(error.to_string()))
}

/// The updates of a learner.
fn compare(case: &Case, shape: &PolicyConfig, learner: &mut Learner, examples: &[TrainingExample]) -> Result<(), Stop> {
    let (steps, clip) = (learner.settings().iterations, learner.settings().objective.policy_loss);
    let mut updates = Vec::new();
    for step in 0..steps {
        let policy = policy_on(shape, &weights(&learner.policy()), &cpu())?;
        for (name, values) in gradient(&policy, examples, clip) {
            let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
            norms_at_step(case, &name, step, norm)?;
        }
        updates.push(block_on(learner.update(examples, step)).map_err(|error| Stop::Failed(error.to_string()))?);
    }
    let of = |read: fn(&turnwise::metrics::UpdateStatistics) -> f64| updates.iter().map(read).collect::<Vec<_>>();
    case.close_list("loss", &of(|update| update.loss))?;
    case.close_list("grad_norm", &of(|update| update.gradient_norm))?;
    case.close_list("clip_fraction", &of(|update| update.clip_fraction))?;
    case.close_list("approx_kl_k3", &of(|update| update.approximate_kl))?;

    let trained = policy_on(shape, &weights(&learner.policy()), &cpu())?;
    case.close_rows("logp_after_last_update", &look(&trained, examples).1)?;
    for (name, values) in split(&weights(&trained)) {
        let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        case.close_entry("tensor_norms_after_last_update", &name, &[norm])?;
        case.close_entry("tensor_sums_after_last_update", &name, &[values.iter().sum()])?;
    }
    let last = block_on(learner.update(examples, 0)).map_err(|error| Stop::Failed(error.to_string()))?;
    case.close("loss_after_last_update", last.loss)
}

/// Compares one step of a tensor's gradient norms; the table holds a list over steps.
fn norms_at_step(case: &Case, name: &str, step: usize, norm: f64) -> Result<(), Stop> {
    let Some(expected) = case.expects("tensor_grad_norms").and_then(|table| table[name][step].as_f64()) else { return Ok(()) };
    if case.within("tensor_grad_norms", norm, expected) {
        return Ok(());
    }
    Err(Stop::Failed(format!("the gradient norm of {name} before update {} is {norm}, expected {expected}", step + 1)))
}

/// The network, if it is one that the policy can be.
fn shape(case: &Case) -> Option<PolicyConfig> {
    let config = case.raw("config");
    let size = |name: &str| config[name].as_u64().map(|size| size as usize);
    let known = config["gelu"] == "exact erf" && config["tied_head"] == false && config["layer_norm_eps"] == 1e-5;
    known.then_some(PolicyConfig {
        vocabulary: size("vocab")?,
        context_length: size("context")?,
        d_model: size("d_model")?,
        layers: size("n_layers")?,
        heads: size("n_heads")?,
        hidden: size("mlp_hidden")?,
        activation: Activation::Gelu,
        bias: true,
    })
}

fn examples(case: &Case) -> Result<Vec<TrainingExample>, Stop> {
    let (tokens, mask, advantages) = (case.rows("tokens")?, case.rows("loss_mask")?, case.advantages()?);
    let example = |row: usize| {
        let sampled: Vec<bool> = mask[row].iter().map(|&trained| trained != 0.0).collect();
        TrainingExample {
            group: 0,
            tokens: tokens[row].iter().map(|&token| token as Token).collect(),
            loss_mask: sampled.clone(),
            sampled,
            old_log_probs: vec![0.0; tokens[row].len()],
            advantages: advantages[row].iter().map(|&value| value as f32).collect(),
            legal: Vec::new(),
        }
    };
    Ok((0..tokens.len()).map(example).collect())
}

/// Logits `[T, V]` of the first row, log-probabilities and entropies `[B, T]` by token (0 for the first, which nothing predicts).
fn look(policy: &Policy, examples: &[TrainingExample]) -> (Rows, Rows, Rows) {
    let all: Vec<Vec<f64>> = examples.iter().map(|example| example.tokens.iter().map(|&t| f64::from(t)).collect()).collect();
    let tokens = crate::support::integers(&all, &cpu());
    let [batch, length] = tokens.dims();
    let logits = policy.forward(tokens.clone());
    let size = logits.dims()[2];
    let first = rows(logits.clone().slice([0..1, 0..length, 0..size]).reshape([length, size]));
    let distribution = log_distribution(logits, 1.0, None);
    let entropies = rows(entropy(distribution.clone()));
    let predicted = distribution.slice([0..batch, 0..length - 1, 0..size]);
    let taken = rows(taken_log_probs(predicted, tokens.slice([0..batch, 1..length])));
    let shifted = taken.into_iter().map(|row| std::iter::once(0.0).chain(row).collect()).collect();
    (first, shifted, entropies)
}

/// The gradient of the loss by tensor of the case.
fn gradient(policy: &Policy, examples: &[TrainingExample], clip: PolicyLossSettings) -> BTreeMap<String, Vec<f64>> {
    let policy = policy.valid().train();
    let batch = TokenBatch::new(&examples.iter().collect::<Vec<_>>(), &cpu().autodiff());
    let taken = taken_log_probs(log_distribution(policy.forward(batch.inputs), 1.0, None), batch.targets);
    let part = policy_loss(taken, batch.old_log_probs, batch.advantages, batch.loss_mask.clone(), &clip);
    let trained = examples.iter().map(TrainingExample::trained_tokens).sum();
    let loss = masked_mean(part.loss, batch.loss_mask, trained);
    let gradients = GradientsParams::from_grads(loss.backward(), &policy);
    let mut named = Gradients { gradients: &gradients, path: Vec::new(), found: Vec::new() };
    policy.visit(&mut named);
    split(&Weights(named.found))
}

struct Gradients<'a> {
    gradients: &'a GradientsParams,
    path: Vec<String>,
    found: Vec<NamedWeight>,
}

impl ModuleVisitor for Gradients<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = self.gradients.get::<D>(param.id).expect("every parameter has a gradient");
        let shape = gradient.dims().to_vec();
        let values = numbers(gradient).into_iter().map(|value| value as f32).collect();
        self.found.push(NamedWeight { name: self.path.join("."), shape, values });
    }
}

/// What the cases call the parts of our names.
const NAMES: [(&str, &str); 9] = [
    ("tokens.", "tok_emb."),
    ("positions.", "pos_emb."),
    ("attention_norm.", "ln1."),
    ("hidden_norm.", "ln2."),
    ("out.", "o."),
    ("up.", "fc1."),
    ("down.", "fc2."),
    (".gamma", ".weight"),
    (".beta", ".bias"),
];

/// Our name of a tensor as the cases have it. Queries, keys and values are one tensor here and three there.
fn their_name(ours: &str) -> String {
    let name = NAMES.iter().fold(ours.to_string(), |name, (ours, theirs)| name.replace(ours, theirs));
    if name.starts_with("norm.") { name.replace("norm.", "ln_f.") } else { name }
}

/// Whether a tensor is a linear layer's, hence transposed.
fn is_linear(ours: &str) -> bool {
    ours.ends_with("weight") && !ours.starts_with("tokens") && !ours.starts_with("positions")
}

/// Our tensors as the cases have them: `[out][in]`, and queries, keys and values apart.
fn split(ours: &Weights) -> BTreeMap<String, Vec<f64>> {
    let mut theirs = BTreeMap::new();
    for weight in &ours.0 {
        let name = their_name(&weight.name);
        let columns = weight.shape.last().copied().unwrap_or(1);
        let at = |row: usize, column: usize| f64::from(weight.values[row * columns + column]);
        let height = weight.values.len() / columns;
        let linear = is_linear(&weight.name);
        let part = |range: std::ops::Range<usize>| -> Vec<f64> {
            if linear {
                range.flat_map(|column| (0..height).map(move |row| at(row, column))).collect()
            } else {
                (0..height).flat_map(|row| range.clone().map(move |column| at(row, column))).collect()
            }
        };
        if name.contains(".qkv.") {
            let width = columns / 3;
            for (index, letter) in ["q", "k", "v"].iter().enumerate() {
                theirs.insert(name.replace("qkv", letter), part(index * width..(index + 1) * width));
            }
        } else {
            theirs.insert(name, part(0..columns));
        }
    }
    theirs
}

/// The case's weights in our layout.
fn load(case: &Case, shape: &PolicyConfig) -> Result<Weights, Stop> {
    let theirs = |name: &str| -> Result<Rows, Stop> {
        let value = &case.raw("weights")[name];
        let rows = serde_json::from_value::<Rows>(value.clone());
        let rows = rows.or_else(|_| serde_json::from_value::<Vec<f64>>(value.clone()).map(|row| vec![row]));
        rows.map_err(|_| Stop::Failed(format!("the case has no weight `{name}`")))
    };
    let mut ours = weights(&shape.init(&cpu()));
    for weight in &mut ours.0 {
        let name = their_name(&weight.name);
        let rows = if name.contains(".qkv.") {
            let parts = ["q", "k", "v"].map(|letter| theirs(&name.replace("qkv", letter)));
            let mut joined = Rows::new();
            for part in parts {
                joined.extend(part?);
            }
            // Biases are one row each: join them into one.
            if is_linear(&weight.name) { joined } else { vec![joined.concat()] }
        } else {
            theirs(&name)?
        };
        let (height, columns) = (rows.len(), rows[0].len());
        weight.values = if is_linear(&weight.name) {
            (0..columns).flat_map(|column| rows.iter().map(move |row| row[column] as f32)).collect()
        } else {
            rows.concat().into_iter().map(|value| value as f32).collect()
        };
        if weight.values.len() != height * columns || weight.shape.iter().product::<usize>() != weight.values.len() {
            return Err(Stop::Failed(format!("the weight `{name}` has another shape")));
        }
    }
    Ok(ours)
}

#[test]
fn names_and_layout_go_both_ways() {
    let values = (0..12).map(|value| value as f32).collect();
    let qkv = NamedWeight { name: "blocks.0.qkv.weight".to_string(), shape: vec![2, 6], values };
    let theirs = split(&Weights(vec![qkv]));
    assert_eq!(theirs["blocks.0.q.weight"], [0.0, 6.0, 1.0, 7.0]);
    assert_eq!(theirs["blocks.0.v.weight"], [4.0, 10.0, 5.0, 11.0]);
    assert_eq!(their_name("norm.gamma"), "ln_f.weight");
    assert_eq!(their_name("blocks.1.attention_norm.beta"), "blocks.1.ln1.bias");
    assert_eq!(count(&[vec![1.0, 0.0], vec![1.0, 1.0]]), 3);
}
