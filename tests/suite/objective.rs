//! The objective on hand-made traces: cases of public bug reports (T-..), and properties that always hold.

use burn::tensor::{Device, Int, Tensor, TensorData};
use turnwise::learner::{TokenBatch, TrainingExample};
use turnwise::objective::{
    ClipBounds, KlEstimator, PolicyLossSettings, RatioLevel, Surrogate, TrainedToken, entropy, kl_estimate, masked_mean,
    masked_sum, policy_loss, preference_loss, scalar_losses,
};
use turnwise::policy::{Policy, PolicyConfig, log_distribution, taken_log_probs};
use turnwise::vocabulary::{ANSWER, CALC, EOT, OBS, OBS_END, PAD, PLUS, SIZE, Token, TokenSet, digit};

use crate::support::{conversation, cpu, fresh, mask, matrix, number, numbers, rows, tiny, weights};

const CLIP: PolicyLossSettings = clip(0.2, 0.2);

const fn clip(low: f64, high: f64) -> PolicyLossSettings {
    let surrogate = Surrogate::Clip { bounds: ClipBounds { low, high }, dual: None, ceiling: None };
    PolicyLossSettings { surrogate, ratio_level: RatioLevel::Token, log_ratio_limit: None }
}

/// `CALC 2 + 3 EOT OBS 5 OBS_END ANSWER 5 EOT` after a prompt of one token, and which of it the policy sampled.
fn trace() -> (Vec<Token>, Vec<bool>) {
    let tokens = vec![PAD, CALC, digit(2), PLUS, digit(3), EOT, OBS, digit(5), OBS_END, ANSWER, digit(5), EOT];
    let sampled = [0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1].map(|sampled| sampled == 1);
    (tokens, sampled.to_vec())
}

/// The trace as a training example, with advantage 1 for the first turn and -2 for the second.
fn example(train_tool_tokens: bool) -> TrainingExample {
    let (tokens, sampled) = trace();
    TrainingExample::new(&conversation(tokens, &sampled), &[1.0, -2.0], train_tool_tokens)
}

/// Logits that are all different, `[B, T, V]`, to differentiate through.
fn logits(shape: [usize; 3], device: &Device) -> Tensor<3> {
    let count = shape.iter().product::<usize>();
    let values: Vec<f32> = (0..count).map(|index| ((index * 37 % 101) as f32 - 50.0) / 40.0).collect();
    Tensor::from_data(TensorData::new(values, shape), device).require_grad()
}

/// Sum of magnitudes of the gradient at each row of logits, divided by a fixed count, for the clipped loss.
fn gradient_by_row(example: &TrainingExample, count: usize) -> Vec<f64> {
    let device = cpu().autodiff();
    let batch = TokenBatch::new(&[example], &device);
    let [rows, length] = batch.targets.dims();
    let logits = logits([rows, length, SIZE], &device);
    let taken = taken_log_probs(log_distribution(logits.clone(), 1.0, None), batch.targets);
    let old = taken.clone().detach();
    let part = policy_loss(taken, old, batch.advantages, batch.loss_mask.clone(), &CLIP);
    let gradients = masked_mean(part.loss, batch.loss_mask, count).backward();
    numbers(logits.grad(&gradients).unwrap()).chunks(SIZE).map(|row| row.iter().map(|x| x.abs()).sum()).collect()
}

/// T-10: what the policy sampled is trained, its end of turn included; what the environment wrote is not, delimiters included.
#[test]
fn actions_are_trained_and_tool_results_are_not() {
    let (_, sampled) = trace();
    let example = example(false);
    assert_eq!(example.loss_mask, sampled);
    assert_eq!(example.trained_tokens(), 8); // T-11
    assert_eq!(example.advantages[1..6], [1.0; 5]);
    assert_eq!(example.advantages[6..9], [0.0; 3]);
    assert_eq!(example.advantages[9..], [-2.0; 3]);
}

/// T-09: the gradient is exactly 0 at rows of logits that predict tool tokens, and not 0 at those that predict sampled tokens.
#[test]
fn only_rows_that_predict_sampled_tokens_have_a_gradient() {
    let (_, sampled) = trace();
    for (row, gradient) in gradient_by_row(&example(false), 8).into_iter().enumerate() {
        assert_eq!(gradient > 1e-6, sampled[row + 1], "row {row} predicts token {}: {gradient}", row + 1);
        assert!(sampled[row + 1] || gradient == 0.0, "row {row}: {gradient}");
    }
}

/// Property 9: with the loss mask off, rows that predict tool tokens gain a gradient, and only those change.
#[test]
fn without_the_loss_mask_only_tool_rows_gain_a_gradient() {
    let (_, sampled) = trace();
    let (on, off) = (gradient_by_row(&example(false), 8), gradient_by_row(&example(true), 8));
    for row in 0..on.len() {
        if sampled[row + 1] {
            assert_eq!(on[row], off[row], "row {row}");
        } else {
            assert!(on[row] == 0.0 && off[row] > 1e-6, "row {row}: {} {}", on[row], off[row]);
        }
    }
}

/// T-14: the mask goes by place, never by token: a padding token that the policy sampled is trained.
#[test]
fn a_sampled_padding_token_is_trained() {
    let tokens = vec![1, PAD, PAD, EOT];
    let example = TrainingExample::new(&conversation(tokens, &[false, true, true, true]), &[1.0], false);
    let longer = TrainingExample::new(&conversation(vec![1; 7], &[false; 7]), &[], false);
    let batch = TokenBatch::new(&[&example, &longer], &cpu());
    assert_eq!(numbers(batch.loss_mask.float()), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert!(gradient_by_row(&example, 3).iter().all(|&gradient| gradient > 1e-6));
}

/// T-07: what is trained and what may be looked at are two things: the loss mask changes no log-probability, and a tool token that
/// is not trained is still read.
#[test]
fn tool_tokens_are_read_though_not_trained() {
    let policy = fresh(&tiny());
    let look = |example: &TrainingExample| {
        let batch = TokenBatch::new(&[example], &cpu());
        numbers(taken_log_probs(log_distribution(policy.forward(batch.inputs), 1.0, None), batch.targets))
    };
    assert_eq!(look(&example(false)), look(&example(true)));
    let mut other = example(false);
    other.tokens[7] = digit(9); // the tool's answer
    let (with, without) = (look(&example(false)), look(&other));
    assert_eq!(with[..6], without[..6]);
    assert!(with[8..].iter().zip(&without[8..]).all(|(a, b)| (a - b).abs() > 1e-6), "{with:?} {without:?}");
}

/// A policy that gives every token the same probability, except one whose logit is higher.
fn biased(token: Token, bias: f32) -> Policy {
    let shape = PolicyConfig { bias: true, ..PolicyConfig::of(&tiny()) };
    let policy = shape.init(&cpu());
    let mut values = weights(&policy);
    values.0.iter_mut().find(|weight| weight.name == "head.bias").unwrap().values[token as usize] = bias;
    policy.with_weights(&values).unwrap()
}

/// T-33: row `t - 1` of the logits belongs to token `t` in every array.
#[test]
fn log_probabilities_sit_at_their_token() {
    let (tokens, sampled) = trace();
    let policy = biased(PLUS, 2.0);
    let example = example(false);
    let batch = TokenBatch::new(&[&example], &cpu());
    let taken = numbers(taken_log_probs(log_distribution(policy.forward(batch.inputs), 1.0, None), batch.targets));
    let total = 2f64.exp() + (SIZE - 1) as f64;
    for (index, log_prob) in taken.iter().enumerate() {
        let wanted = if tokens[index + 1] == PLUS { 2.0 - total.ln() } else { -total.ln() };
        assert!((log_prob - wanted).abs() < 1e-5, "token {}: {log_prob}, not {wanted}", index + 1);
    }
    // The loss of the token PLUS alone, with the old policy uniform, is -A V e^2 / total; one place further it is -A V / total.
    let loss_at = |place: usize| {
        let only: Vec<f64> = (1..tokens.len()).map(|t| if t == place { 1.0 } else { 0.0 }).collect();
        let (taken, old) = (matrix(std::slice::from_ref(&taken), &cpu()), matrix(&[vec![-(SIZE as f64).ln(); 11]], &cpu()));
        let bounds = clip(1.0, 100.0);
        let part = policy_loss(taken, old, matrix(&[vec![1.0; 11]], &cpu()), mask(&[only], &cpu()), &bounds);
        number(part.loss.sum())
    };
    let plus = tokens.iter().position(|&token| token == PLUS).unwrap();
    assert!(sampled[plus] && sampled[plus + 1]);
    assert!((loss_at(plus) + SIZE as f64 * 2f64.exp() / total).abs() < 1e-4);
    assert!((loss_at(plus + 1) + SIZE as f64 / total).abs() < 1e-4);
}

/// T-34: the temperature divides logits, once.
#[test]
fn the_temperature_divides_logits() {
    let logits = Tensor::<2>::from_data(TensorData::new(vec![0.0, 3f32.ln()], [1, 2]), &cpu());
    let p: Vec<f64> = numbers(log_distribution(logits, 2.0, None)).into_iter().map(f64::exp).collect();
    assert!((p[0] - 0.366_025).abs() < 1e-5 && (p[1] - 0.633_975).abs() < 1e-5, "{p:?}");
}

/// The expectation over the current policy of the gradient of an estimate, by enumeration; and the gradient of the divergence to
/// the reference, in either direction.
fn expected_gradient(of: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<1>) -> Vec<f64> {
    let device = cpu().autodiff();
    let logits = matrix(&[vec![0.3, -1.2, 0.8, 0.1, -0.4]], &device).require_grad();
    let reference = log_distribution(matrix(&[vec![-0.5, 0.6, 0.2, -0.9, 0.4]], &device), 1.0, None);
    let loss = of(log_distribution(logits.clone(), 1.0, None), reference);
    numbers(logits.grad(&loss.backward()).unwrap())
}

/// T-37: as a loss, k1 has no pull, k2 pulls like the divergence to the reference, k3 like the divergence from it.
#[test]
fn what_kl_estimates_pull_towards() {
    let sampled = |estimator: KlEstimator| {
        expected_gradient(|new, reference| (new.clone().detach().exp() * kl_estimate(new - reference, estimator)).sum())
    };
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    let to_reference = expected_gradient(|new, reference| (new.clone().exp() * (new - reference)).sum());
    let from_reference = expected_gradient(|new, reference| (reference.clone().exp() * (reference - new)).sum());
    assert!(close(&sampled(KlEstimator::K1), &[0.0; 5]));
    assert!(close(&sampled(KlEstimator::K2), &to_reference) && to_reference.iter().any(|x| x.abs() > 0.01));
    assert!(close(&sampled(KlEstimator::K3), &from_reference) && !close(&to_reference, &from_reference));
}

/// T-42: sums over micro-batches with one global denominator, not a mean of means.
#[test]
fn the_denominator_is_global() {
    let (losses, trained) = ([vec![1.0; 6], vec![2.0; 6]], [vec![1.0, 1.0, 0.0, 0.0, 0.0, 0.0], vec![1.0; 6]]);
    let part = |row: usize| number(masked_mean(matrix(&losses[row..=row], &cpu()), mask(&trained[row..=row], &cpu()), 8));
    let whole = number(masked_mean(matrix(&losses, &cpu()), mask(&trained, &cpu()), 8));
    assert!((whole - 1.75).abs() < 1e-6 && (part(0) + part(1) - 1.75).abs() < 1e-6);
    assert_eq!(number(masked_mean(matrix(&losses, &cpu()), mask(&[vec![0.0; 6], vec![0.0; 6]], &cpu()), 0)), 0.0);
}

/// Masked positions may hold anything: they are selected away before the exponential.
#[test]
fn masked_extremes_do_no_harm() {
    let device = cpu().autodiff();
    let log_probs = matrix(&[vec![-1.0, -10_000.0, f64::NEG_INFINITY, f64::NAN]], &device).require_grad();
    let old = matrix(&[vec![-1.1, 0.0, 0.0, 0.0]], &device);
    let (ones, only) = (matrix(&[vec![1.0; 4]], &device), mask(&[vec![1.0, 0.0, 0.0, 0.0]], &device));
    let part = policy_loss(log_probs.clone(), old, ones, only.clone(), &CLIP);
    let loss = masked_sum(part.loss, only);
    assert!((number(loss.clone()) + 0.1f64.exp()).abs() < 1e-6);
    let gradient = numbers(log_probs.grad(&loss.backward()).unwrap());
    assert!((gradient[0] + 0.1f64.exp()).abs() < 1e-6 && gradient[1..] == [0.0; 3], "{gradient:?}");
}

/// T-53: the entropy of a uniform policy over n legal tokens is ln n.
#[test]
fn entropy_of_a_uniform_policy() {
    let legal = [TokenSet::digits(), TokenSet::ALL, TokenSet::of(&[EOT])];
    let illegal: Vec<f64> =
        legal.iter().flat_map(|set| (0..SIZE as Token).map(|token| f64::from(u8::from(!set.contains(token))))).collect();
    let illegal = matrix(&[illegal], &cpu()).reshape([1, 3, SIZE]);
    let uniform = Tensor::<3>::zeros([1, 3, SIZE], &cpu());
    let found = rows(entropy(log_distribution(uniform, 0.7, Some(illegal))));
    for (found, count) in found[0].iter().zip([10.0, SIZE as f64, 1.0f64]) {
        assert!((found - count.ln()).abs() < 1e-5, "{found}, not ln {count}");
    }
}

/// A token outside the grammar has probability 0 and the rest is renormalised.
#[test]
fn forbidden_tokens_have_no_probability() {
    let illegal = matrix(&[vec![0.0, 1.0, 0.0]], &cpu());
    let p: Vec<f64> =
        numbers(log_distribution(matrix(&[vec![0.0, 5.0, 0.0]], &cpu()), 1.0, Some(illegal))).into_iter().map(f64::exp).collect();
    assert!((p[0] - 0.5).abs() < 1e-6 && p[1] == 0.0 && (p[2] - 0.5).abs() < 1e-6, "{p:?}");
    let index: Tensor<2, Int> = Tensor::from_data(TensorData::new(vec![2i32], [1, 1]), &cpu());
    let taken = taken_log_probs(Tensor::<3>::zeros([1, 1, 4], &cpu()), index);
    assert_eq!(number(taken), 0.0);
}

/// The values of formulas at single tokens: ratio, advantage, loss.
#[test]
fn losses_of_single_tokens() {
    let loss = |settings: PolicyLossSettings, ratio: f64, advantage: f64| {
        let one = |x: f64| matrix(&[vec![x]], &cpu());
        number(policy_loss(one(ratio.ln()), one(0.0), one(advantage), mask(&[vec![1.0]], &cpu()), &settings).loss)
    };
    let close = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-5, "{got} is not {wanted}");
    for (ratio, advantage, wanted) in
        [(1.5, 1.0, -1.2), (1.5, -1.0, 1.5), (0.5, 1.0, -0.5), (0.5, -1.0, 0.8), (5.0, -1.0, 5.0), (1.25, 1.0, -1.2)]
    {
        close(loss(CLIP, ratio, advantage), wanted);
    }
    close(loss(clip(0.2, 0.28), 1.25, 1.0), -1.25);
    let bounds = ClipBounds { low: 0.2, high: 0.2 };
    let dual = Surrogate::Clip { bounds, dual: Some(3.0), ceiling: None };
    close(loss(PolicyLossSettings { surrogate: dual, ..CLIP }, 5.0, -1.0), 3.0);
    close(loss(PolicyLossSettings { surrogate: dual, ..CLIP }, 0.5, 1.0), -0.5);
}

/// One ratio per trajectory: the geometric mean over its trained tokens.
#[test]
fn the_ratio_of_a_trajectory() {
    let log_ratios: Vec<f64> = [1.2, 0.9, 1.0, 1.5].iter().map(|ratio: &f64| ratio.ln()).collect();
    let settings = PolicyLossSettings { ratio_level: RatioLevel::Sequence, ..CLIP };
    let ratio = |only: [f64; 4]| {
        let (new, zero) = (matrix(std::slice::from_ref(&log_ratios), &cpu()), matrix(&[vec![0.0; 4]], &cpu()));
        numbers(policy_loss(new, zero.clone(), zero, mask(&[only.to_vec()], &cpu()), &settings).ratio)
    };
    assert!((ratio([1.0; 4])[0] - 1.128_181).abs() < 1e-5);
    assert!((ratio([1.0, 1.0, 1.0, 0.0])[0] - 1.025_986).abs() < 1e-5);
}

/// GSPO and its token form have the same value and, with one advantage per trajectory, the same gradient; CISPO keeps the gradient
/// of tokens that the clip would silence.
#[test]
fn gradients_of_the_ratio_s_level_and_of_a_constant_weight() {
    let device = cpu().autodiff();
    let gradient = |settings: PolicyLossSettings, advantages: [f64; 3]| {
        let new = matrix(&[vec![-0.2, -1.0, -0.5]], &device).require_grad();
        let old = matrix(&[vec![-0.9, -0.9, -0.6]], &device);
        let part =
            policy_loss(new.clone(), old, matrix(&[advantages.to_vec()], &device), mask(&[vec![1.0; 3]], &device), &settings);
        (number(part.loss.clone().sum()), numbers(new.grad(&part.loss.sum().backward()).unwrap()))
    };
    let wide = clip(1.0, 10.0);
    let sequence = gradient(PolicyLossSettings { ratio_level: RatioLevel::Sequence, ..wide }, [1.0; 3]);
    let token = gradient(PolicyLossSettings { ratio_level: RatioLevel::SequenceToken, ..wide }, [1.0; 3]);
    assert!((sequence.0 - token.0).abs() < 1e-6);
    assert!(sequence.1.iter().zip(&token.1).all(|(a, b)| (a - b).abs() < 1e-6), "{sequence:?} {token:?}");
    let uneven = [1.0, -2.0, 0.0];
    let apart = gradient(PolicyLossSettings { ratio_level: RatioLevel::Sequence, ..wide }, uneven);
    let own = gradient(PolicyLossSettings { ratio_level: RatioLevel::SequenceToken, ..wide }, uneven);
    assert!((apart.0 - own.0).abs() < 1e-6 && (apart.1[2] - own.1[2]).abs() > 1e-3);
    let silenced = gradient(CLIP, [1.0; 3]).1;
    let cispo = Surrogate::Cispo { low: 0.0, high: 1.2 };
    let kept = gradient(PolicyLossSettings { surrogate: cispo, ..CLIP }, [1.0; 3]).1;
    assert!(silenced[0] == 0.0 && (kept[0] + 1.2).abs() < 1e-5, "{silenced:?} {kept:?}");
}

/// DPO: equal log-ratios give ln 2; the gradient pushes the preferred up and the rejected down by the same amount.
#[test]
fn preferences_push_the_pair_apart() {
    let device = cpu().autodiff();
    let vector = |x: f32| Tensor::<1>::from_data(TensorData::new(vec![x], [1]), &device).require_grad();
    let (preferred, rejected) = (vector(0.3), vector(0.3));
    let loss = preference_loss(preferred.clone(), rejected.clone(), 0.1).sum();
    assert!((number(loss.clone()) - 2f64.ln()).abs() < 1e-6);
    let gradients = loss.backward();
    let (up, down) = (number(preferred.grad(&gradients).unwrap()), number(rejected.grad(&gradients).unwrap()));
    assert!((up + 0.05).abs() < 1e-6 && (up + down).abs() < 1e-7, "{up} {down}");
}

/// The plain form of the policy loss, from which a view explains a token's share, has the values and gradients of the tensor form,
/// for every surrogate and every level of the ratio.
#[test]
fn the_plain_form_is_the_tensor_form() {
    let bounds = ClipBounds { low: 0.2, high: 0.28 };
    let surrogates = [
        Surrogate::Clip { bounds, dual: None, ceiling: None },
        Surrogate::Clip { bounds, dual: Some(1.5), ceiling: Some(1.4) },
        Surrogate::Cispo { low: 0.0, high: 1.3 },
        Surrogate::Sapo { positive: 1.0, negative: 1.05 },
        Surrogate::GeometricMean { bounds },
    ];
    let device = cpu().autodiff();
    let only = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0];
    let new = [-0.3, -2.0, -9.0, -0.1, -1.7, 3.0, -0.9];
    let old = [-1.1, -0.6, -0.2, -0.2, -1.6, 0.0, -0.4];
    let advantages = [1.0, -0.7, 5.0, 1.0, -0.7, 2.0, 1.3];
    for surrogate in surrogates {
        for ratio_level in [RatioLevel::Token, RatioLevel::Sequence, RatioLevel::SequenceToken] {
            for log_ratio_limit in [None, Some(0.75)] {
                let settings = PolicyLossSettings { surrogate, ratio_level, log_ratio_limit };
                let row = |values: [f64; 7]| matrix(&[values.to_vec()], &device);
                let tracked = row(new).require_grad();
                let part = policy_loss(tracked.clone(), row(old), row(advantages), mask(&[only.to_vec()], &device), &settings);
                let losses = numbers(part.loss.clone());
                let gradients = numbers(tracked.grad(&part.loss.sum().backward()).unwrap());
                let (ratios, clipped) = (numbers(part.ratio), numbers(part.clipped + part.dual_clipped));
                let trained: Vec<usize> = (0..7).filter(|&place| only[place] == 1.0).collect();
                let token = |&place: &usize| TrainedToken {
                    log_prob: new[place],
                    old_log_prob: old[place],
                    advantage: advantages[place],
                };
                let plain = scalar_losses(&trained.iter().map(token).collect::<Vec<_>>(), &settings);
                for (plain, place) in plain.iter().zip(trained) {
                    let close = |a: f64, b: f64, what: &str| {
                        assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{settings:?} token {place} {what}: {a}, {b}")
                    };
                    close(plain.loss, losses[place], "loss");
                    close(plain.gradient, gradients[place], "gradient");
                    close(plain.ratio, ratios[place], "ratio");
                    assert_eq!(plain.clipped, clipped[place] > 0.0, "{settings:?} token {place}");
                }
            }
        }
    }
}
