//! The update by kernels on the graphics device, and on slices on the CPU: gradients, statistics and steps as burn's autodiff gives
//! them, within its budget of dispatches and reads.

use burn::tensor::Device;
use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::cpu::Network;
use turnwise::environment::REGISTRY;
use turnwise::kernel::runs_on;
use turnwise::learner::{Learner, LearnerError, OptimizerSettings, TrainingExample, UpdateSettings};
use turnwise::metrics::UpdateStatistics;
use turnwise::objective::{
    Aggregation, ClipBounds, KlEstimator, KlTerm, ObjectiveSettings, PolicyLossSettings, RatioLevel, Surrogate,
};
use turnwise::policy::{Activation, Moments, Policy, PolicyConfig, Weights};
use turnwise::readback::reads;
use turnwise::seed::{Draws, Purpose, RootSeed};
use turnwise::trainer::initial_policy;
use turnwise::vocabulary::{SIZE, Token, TokenSet};

use crate::support::{cost, cpu, devices, distance, gpu, weights};

/// A shape, what is trained towards, and the batch.
#[derive(Clone)]
struct Case {
    shape: PolicyConfig,
    objective: ObjectiveSettings,
    temperature: f64,
    max_grad_norm: f64,
    inner_epochs: usize,
    /// Legal tokens are given.
    grammar: bool,
    /// Tokens that were not sampled are trained too.
    tool_tokens: bool,
    /// Bytes of activations, where the batch is to be cut.
    bytes: Option<usize>,
}

const BOUNDS: ClipBounds = ClipBounds { low: 0.05, high: 0.08 };
const CLIP: Surrogate = Surrogate::Clip { bounds: BOUNDS, dual: Some(1.2), ceiling: None };

fn shape() -> PolicyConfig {
    PolicyConfig {
        vocabulary: SIZE,
        context_length: 24,
        d_model: 32,
        layers: 1,
        heads: 2,
        hidden: 128,
        activation: Activation::Relu,
        bias: false,
    }
}

fn objective(surrogate: Surrogate) -> ObjectiveSettings {
    ObjectiveSettings {
        policy_loss: PolicyLossSettings { surrogate, ratio_level: RatioLevel::Token, log_ratio_limit: Some(20.0) },
        aggregation: Aggregation::TokenMean,
        kl: None,
        entropy_coefficient: 0.0,
        preference: None,
    }
}

fn plain() -> Case {
    Case {
        shape: shape(),
        objective: objective(CLIP),
        temperature: 1.0,
        max_grad_norm: 0.0,
        inner_epochs: 1,
        grammar: false,
        tool_tokens: false,
        bytes: None,
    }
}

fn with_kl(estimator: KlEstimator, times_ratio: bool) -> ObjectiveSettings {
    ObjectiveSettings { kl: Some(KlTerm { estimator, beta: 0.3, times_ratio }), ..objective(CLIP) }
}

fn with_level(ratio_level: RatioLevel, surrogate: Surrogate) -> ObjectiveSettings {
    let mut objective = objective(surrogate);
    objective.policy_loss.ratio_level = ratio_level;
    objective.aggregation = Aggregation::SequenceMean { count_empty: false };
    objective
}

fn settings(case: &Case) -> UpdateSettings {
    UpdateSettings {
        optimizer: OptimizerSettings { beta1: 0.9, beta2: 0.99, epsilon: 1.0, max_grad_norm: case.max_grad_norm },
        learning_rate: 0.05,
        objective: case.objective,
        temperature: case.temperature,
        inner_epochs: case.inner_epochs,
        ..UpdateSettings::of(&ExperimentConfig::defaults("search", REGISTRY))
    }
}

/// Weights drawn at a seed; norms and biases moved off 1 and 0.
fn drawn(shape: &PolicyConfig, seed: u32) -> Weights {
    let mut all = Weights::initial(shape, RootSeed(seed));
    let mut draws = RootSeed(seed).draws(Purpose::Weights, 1000, 0, 0);
    for weight in &mut all.0 {
        weight.values.iter_mut().for_each(|value| *value += 0.05 * draws.normal());
    }
    all
}

/// Conversations of unequal lengths with made-up masks and advantages, some of them without any trained token. Old log-probabilities
/// are near those of the policy, so that ratios fall on both sides of every bound.
fn batch(case: &Case, count: usize, policy: &Policy) -> Vec<TrainingExample> {
    let mut draws = RootSeed(5).draws(Purpose::Weights, 2000, 0, 0);
    let below = |draws: &mut Draws, bound: usize| draws.below(bound as u32) as usize;
    let mut all: Vec<TrainingExample> = Vec::new();
    for index in 0..count {
        let length = 2 + below(&mut draws, case.shape.context_length - 1);
        let mut tokens: Vec<Token> = (0..length).map(|_| below(&mut draws, case.shape.vocabulary) as Token).collect();
        // Members of a group begin alike.
        let before = all.last().filter(|_| index % 4 != 0);
        let shared = before.map_or(0, |before: &TrainingExample| below(&mut draws, length.min(before.tokens.len()) + 1));
        tokens[..shared].copy_from_slice(&before.map_or(&[][..], |before| &before.tokens)[..shared]);
        let sampled: Vec<bool> = (0..length).map(|t| t > 0 && index % 5 != 4 && below(&mut draws, 3) > 0).collect();
        let tool = |t: usize, draws: &mut Draws| case.tool_tokens && t > 0 && below(draws, 2) == 0;
        let loss_mask: Vec<bool> = (0..length).map(|t| sampled[t] || tool(t, &mut draws)).collect();
        let legal = |t: usize, draws: &mut Draws| {
            let more: Vec<Token> = (0..20).map(|_| below(draws, case.shape.vocabulary) as Token).collect();
            TokenSet::of(&more).or(TokenSet::of(&[tokens[t]]))
        };
        let mut legal: Vec<TokenSet> =
            if case.grammar { (0..length).map(|t| legal(t, &mut draws)).collect() } else { Vec::new() };
        if let (true, Some(before)) = (case.grammar, before) {
            legal[..shared].copy_from_slice(&before.legal[..shared]);
        }
        let advantages = (0..length).map(|_| draws.normal()).collect();
        let old_log_probs = vec![0.0; length];
        all.push(TrainingExample { group: index / 4, tokens, loss_mask, sampled, old_log_probs, advantages, legal });
    }
    for (example, own) in all.clone().iter().zip(&mut all) {
        let current = log_probs(policy, example, case.temperature);
        for (t, value) in current.into_iter().enumerate() {
            own.old_log_probs[t + 1] = if example.sampled[t + 1] { value + 0.15 * draws.normal() } else { 0.0 };
        }
    }
    all
}

/// Log-probabilities of the tokens of an example from the second on.
fn log_probs(policy: &Policy, example: &TrainingExample, temperature: f64) -> Vec<f32> {
    let learner = Learner::new(policy, UpdateSettings { temperature, ..settings(&plain()) });
    let sampled = TrainingExample { sampled: vec![true; example.tokens.len()], ..example.clone() };
    let zero = TrainingExample { old_log_probs: vec![0.0; example.tokens.len()], ..sampled };
    let ratios = block_on(learner.reference_log_ratios(&[zero])).unwrap();
    ratios[0].iter().skip(1).map(|&ratio| -ratio as f32).collect()
}

/// A learner whose reference is not its policy.
fn started(case: &Case, device: &Device, kernels: bool) -> Learner {
    let start = drawn(&case.shape, 1);
    let policy = case.shape.init(device).with_weights(&start).unwrap();
    let mut learner = Learner::new(&policy, UpdateSettings { kernels, ..settings(case) });
    let none = Moments { time: 0, first: start.clone(), second: start.clone() };
    learner.restore(&start, &none, Some(&drawn(&case.shape, 2))).unwrap();
    if let Some(bytes) = case.bytes {
        learner.limit_activations(bytes);
    }
    learner
}

/// Largest difference of two sets of weights, tensor by tensor, relative to the tensor's norm and a thousandth of the largest.
fn difference(got: &Weights, wanted: &Weights) -> (f64, String) {
    let norm = |values: &[f32]| values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    let floor = 1e-3 * wanted.0.iter().map(|weight| norm(&weight.values)).fold(0.0, f64::max);
    let mut worst = (0.0, String::new());
    for (got, wanted) in got.0.iter().zip(&wanted.0) {
        assert_eq!((&got.name, &got.shape), (&wanted.name, &wanted.shape));
        let off: Vec<f32> = got.values.iter().zip(&wanted.values).map(|(a, b)| a - b).collect();
        let relative = norm(&off) / norm(&wanted.values).max(floor);
        if relative.is_nan() || relative >= worst.0 {
            worst = (relative, got.name.clone());
        }
    }
    worst
}

fn same_statistics(name: &str, got: &UpdateStatistics, wanted: &UpdateStatistics) {
    let pairs = [
        ("loss", got.loss, wanted.loss),
        ("policy loss", got.policy_loss, wanted.policy_loss),
        ("entropy", got.entropy, wanted.entropy),
        ("approximate KL", got.approximate_kl, wanted.approximate_kl),
        ("reference KL", got.reference_kl, wanted.reference_kl),
        ("ratio", got.ratio_mean, wanted.ratio_mean),
        ("deviation", got.ratio_deviation, wanted.ratio_deviation),
        ("clipped", got.clip_fraction, wanted.clip_fraction),
        ("dual clipped", got.dual_clip_fraction, wanted.dual_clip_fraction),
        ("gradient norm", got.gradient_norm, wanted.gradient_norm),
    ];
    for (figure, got, wanted) in pairs {
        assert!((got - wanted).abs() <= 1e-4 * wanted.abs().max(0.1), "{name}, {figure}: {got}, by burn {wanted}");
    }
    assert_eq!((got.trained_tokens, got.updates), (wanted.trained_tokens, wanted.updates));
}

/// One update of a case by ways of our own and by burn on the CPU. The first moments are the gradient times `1 - beta1`.
fn compare(name: &str, case: &Case, device: &Device) {
    let (mut kernels, mut burn) = (started(case, device, true), started(case, &cpu(), false));
    assert!(kernels.uses_kernels() == runs_on(device) && !burn.uses_kernels(), "{name}");
    let covered = case.shape.activation == Activation::Relu;
    assert!(Network::of(&burn.policy()).is_some() == covered, "{name}: whether the CPU has a way of its own");
    let examples = batch(case, 10, &burn.policy());
    let ratios = |learner: &Learner| block_on(learner.reference_log_ratios(&examples)).unwrap().concat();
    let (got, wanted) = (ratios(&kernels), ratios(&burn));
    assert!(got.len() == wanted.len() && wanted.iter().any(|ratio| ratio.abs() > 0.1), "{name}: the reference is another policy");
    assert!(got.iter().zip(&wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-4), "{name}: {got:?}, by burn {wanted:?}");
    let got = block_on(kernels.update(&examples, 0)).unwrap();
    let wanted = block_on(burn.update(&examples, 0)).unwrap();
    assert!(wanted.gradient_norm > 1e-3, "{name}: there is something to compare");
    same_statistics(name, &got, &wanted);
    let ((after, moments), (wanted_after, wanted_moments)) =
        (block_on(kernels.state()).unwrap(), block_on(burn.state()).unwrap());
    let (off, place) = difference(&moments.first, &wanted_moments.first);
    println!(
        "{name}: gradients differ by {off:.1e} ({place}), norm {:.4}, clipped {:.2}",
        wanted.gradient_norm, wanted.clip_fraction
    );
    assert!(off <= 1e-4, "{name}: the gradient of {place} differs by {off}");
    assert_eq!(moments.time, wanted_moments.time);
    for (what, got, wanted) in [("second moments", &moments.second, &wanted_moments.second), ("weights", &after, &wanted_after)] {
        let (off, place) = difference(got, wanted);
        assert!(off <= 2e-4, "{name}, {what}: {place} differs by {off}");
    }
    assert!(distance(&kernels.policy(), &case.shape.init(device).with_weights(&after).unwrap()) == 0.0, "{name}: the policy");
}

#[test]
fn every_gradient_is_that_of_autodiff_for_every_shape() {
    let devices = devices("every_gradient_is_that_of_autodiff_for_every_shape");
    let full = || ObjectiveSettings { entropy_coefficient: 0.03, ..with_kl(KlEstimator::K3, false) };
    let cases = [
        ("plain", plain()),
        ("two layers", Case { shape: PolicyConfig { layers: 2, d_model: 64, heads: 4, hidden: 256, ..shape() }, ..plain() }),
        ("GELU", Case { shape: PolicyConfig { activation: Activation::Gelu, ..shape() }, ..plain() }),
        ("biases", Case { shape: PolicyConfig { bias: true, layers: 3, ..shape() }, ..plain() }),
        ("narrow heads", Case { shape: PolicyConfig { heads: 8, ..shape() }, ..plain() }),
        ("one head", Case { shape: PolicyConfig { heads: 1, d_model: 128, hidden: 512, ..shape() }, ..plain() }),
        ("entropy, KL", Case { objective: full(), ..plain() }),
        ("temperature, grammar", Case { temperature: 0.7, grammar: true, objective: full(), ..plain() }),
        ("tool tokens", Case { tool_tokens: true, inner_epochs: 2, objective: full(), ..plain() }),
        ("limited norm", Case { max_grad_norm: 1e-3, inner_epochs: 3, ..plain() }),
        ("several passes", Case { bytes: Some(200_000), inner_epochs: 2, objective: full(), ..plain() }),
    ];
    for device in &devices {
        cases.iter().for_each(|(name, case)| compare(name, case, device));
    }
}

#[test]
fn every_gradient_is_that_of_autodiff_for_every_objective() {
    let devices = devices("every_gradient_is_that_of_autodiff_for_every_objective");
    let ceiling = Surrogate::Clip { bounds: ClipBounds { low: 0.4, high: 0.5 }, dual: None, ceiling: Some(1.05) };
    let sum = ObjectiveSettings { aggregation: Aggregation::SequenceSum { count_empty: true, length: 9.0 }, ..objective(CLIP) };
    let preference = ObjectiveSettings { preference: Some(0.5), ..objective(CLIP) };
    let mut tight = objective(CLIP);
    tight.policy_loss.log_ratio_limit = Some(0.1);
    let objectives = [
        ("ceiling", objective(ceiling)),
        ("CISPO", objective(Surrogate::Cispo { low: 0.0, high: 1.08 })),
        ("SAPO", objective(Surrogate::Sapo { positive: 1.0, negative: 1.05 })),
        ("geometric mean", objective(Surrogate::GeometricMean { bounds: BOUNDS })),
        ("sequence", with_level(RatioLevel::Sequence, CLIP)),
        ("sequence token", with_level(RatioLevel::SequenceToken, CLIP)),
        ("sequence, SAPO", with_level(RatioLevel::Sequence, Surrogate::Sapo { positive: 1.0, negative: 1.05 })),
        ("limited log-ratio", tight),
        ("sum", sum),
        ("group mean", ObjectiveSettings { aggregation: Aggregation::GroupMean, ..objective(CLIP) }),
        ("k1", with_kl(KlEstimator::K1, false)),
        ("k2", with_kl(KlEstimator::K2, false)),
        ("k1+", with_kl(KlEstimator::K1Plus, false)),
        ("k3+", with_kl(KlEstimator::K3Plus, false)),
        ("absolute", with_kl(KlEstimator::Absolute, false)),
        ("k3 times ratio", with_kl(KlEstimator::K3, true)),
        (
            "k3 times sequence ratio",
            ObjectiveSettings { kl: with_kl(KlEstimator::K3, true).kl, ..with_level(RatioLevel::Sequence, CLIP) },
        ),
        ("preference", preference),
        ("preference, KL", ObjectiveSettings { kl: with_kl(KlEstimator::K3, true).kl, ..preference }),
    ];
    for device in &devices {
        objectives.iter().for_each(|&(name, objective)| compare(name, &Case { objective, ..plain() }, device));
    }
}

/// The same batch gives the same bits; a state read back with the figures is the state; a learner goes on from it as if nothing had been.
#[test]
fn updates_are_exact() {
    for device in devices("updates_are_exact") {
        let case = Case { inner_epochs: 2, objective: with_kl(KlEstimator::K3, false), ..plain() };
        let (mut one, mut two) = (started(&case, &device, true), started(&case, &device, true));
        let examples = batch(&case, 12, &one.policy());
        one.keep_state(true);
        let (first, second) = (block_on(one.update(&examples, 0)).unwrap(), block_on(two.update(&examples, 0)).unwrap());
        assert_eq!(first, second);
        let before = reads();
        let kept = block_on(one.state()).unwrap();
        assert_eq!(reads(), before, "the state came with the figures");
        assert_eq!(kept, block_on(two.state()).unwrap());
        let reference = block_on(one.reference_weights()).unwrap();
        let mut resumed = started(&case, &device, true);
        resumed.restore(&kept.0, &kept.1, reference.as_ref()).unwrap();
        assert_eq!(block_on(resumed.update(&examples, 1)).unwrap(), block_on(one.update(&examples, 1)).unwrap());
        assert_eq!(distance(&resumed.policy(), &one.policy()), 0.0);
    }
}

/// An update that fails leaves weights and moments as they were, and the last one can be taken back.
#[test]
fn failed_updates_change_nothing() {
    for device in devices("failed_updates_change_nothing") {
        let case = plain();
        let mut learner = started(&case, &device, true);
        let start = weights(&learner.policy());
        let mut examples = batch(&case, 8, &learner.policy());
        let (row, place) = (0..8)
            .find_map(|row| examples[row].loss_mask.iter().position(|&trained| trained).map(|place| (row, place)))
            .expect("something is trained");
        let advantage = std::mem::replace(&mut examples[row].advantages[place], f32::NAN);
        let error = block_on(learner.update(&examples, 0)).expect_err("the update fails");
        assert!(matches!(error, LearnerError::NonFinite(_)), "{error}");
        assert_eq!(weights(&learner.policy()), start);
        assert_eq!(block_on(learner.state()).unwrap().1.time, 0);
        examples[row].advantages[place] = advantage;
        let statistics = block_on(learner.update(&examples, 0)).unwrap();
        assert!(statistics.gradient_norm > 0.0 && weights(&learner.policy()) != start, "the learner goes on");
        learner.undo();
        assert_eq!(weights(&learner.policy()), start);
        assert_eq!(block_on(learner.update(&examples, 0)).unwrap(), statistics, "the moments are those from before, too");
        assert!(block_on(learner.update(&[], 0)).is_ok(), "an empty batch is no failure");
    }
}

/// An update of the default search task, at most 60 dispatches and one read.
#[test]
fn an_update_keeps_to_its_budget() {
    let Some(device) = gpu("an_update_keeps_to_its_budget") else { return };
    let config = ExperimentConfig::defaults("search", REGISTRY);
    let policy = initial_policy(&config, &device).unwrap();
    let case = Case { shape: PolicyConfig::of(&config), ..plain() };
    let examples = batch(&case, 6, &initial_policy(&config, &cpu()).unwrap());
    let mut learner = Learner::new(&policy, UpdateSettings::of(&config));
    let update = |learner: &mut Learner| cost(|| _ = block_on(learner.update(&examples, 0)).unwrap());
    let (dispatches, reads) = update(&mut learner);
    println!("{dispatches} dispatches, {reads} reads an update");
    assert!(dispatches <= 60 && reads == 1, "{dispatches} dispatches, {reads} reads");
    let (policy_dispatches, _) = cost(|| _ = learner.policy().tensors());
    assert_eq!(policy_dispatches, 0, "the policy is made of parts of the state");
    let mut reference = Learner::new(&policy, UpdateSettings { micro_batches: 1, kernels: false, ..UpdateSettings::of(&config) });
    let (all, one) = update(&mut reference);
    println!("{all} dispatches, {one} reads by burn's operations");
    assert!(all > 4 * dispatches && one == 1, "the counter counts: {all}");
}
