//! Trajectories as padded arrays.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::rollout::Trajectory;
use crate::vocabulary::{PAD, SIZE, Token, TokenSet};

/// One trajectory with what the objective needs. Per-token arrays have the length of `tokens`.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingExample {
    /// The group of the trajectory.
    pub group: usize,
    pub tokens: Vec<Token>,
    /// Which tokens are trained.
    pub loss_mask: Vec<bool>,
    /// Which tokens the policy sampled: those whose old log-probability is known, and over which entropy is taken.
    pub sampled: Vec<bool>,
    /// Log-probability when sampled; 0 where not sampled.
    pub old_log_probs: Vec<f32>,
    pub advantages: Vec<f32>,
    /// Legal tokens per position; empty without a grammar.
    pub legal: Vec<TokenSet>,
}

impl TrainingExample {
    /// A trajectory with one advantage per turn. With `train_tool_tokens` (loss mask off) tool tokens are trained as well, with
    /// the advantage of the turn that caused them; the prompt never is.
    pub fn new(trajectory: &Trajectory, advantages: &[f64], train_tool_tokens: bool) -> Self {
        let length = trajectory.tokens.len();
        let mut example = TrainingExample {
            group: trajectory.group,
            tokens: trajectory.tokens.clone(),
            loss_mask: vec![false; length],
            sampled: trajectory.loss_mask.clone(),
            old_log_probs: trajectory.log_probs.clone(),
            advantages: vec![0.0; length],
            legal: trajectory.legal.clone(),
        };
        for (turn, &advantage) in trajectory.turns.iter().zip(advantages) {
            let end = if train_tool_tokens { turn.end } else { turn.action_end };
            example.loss_mask[turn.start..end].fill(true);
            example.advantages[turn.start..end].fill(advantage as f32);
        }
        example
    }

    /// A demonstration: every token of the actions is trained towards.
    pub fn demonstration(trajectory: &Trajectory) -> Self {
        let ones = vec![1.0; trajectory.turns.len()];
        TrainingExample::new(trajectory, &ones, false)
    }

    /// Trained tokens.
    pub fn trained_tokens(&self) -> usize {
        self.loss_mask.iter().filter(|&&trained| trained).count()
    }
}

/// A device to differentiate on, from a plain one.
pub(super) fn training_device(device: &Device) -> Device {
    device.clone().autodiff()
}

/// Examples padded on the right to the longest of them and shifted: entry `t` of `inputs` predicts entry `t` of `targets`, and
/// every other array belongs to the target. `[B, T]` with `T` one less than the longest trajectory.
pub struct TokenBatch {
    pub inputs: Tensor<2, Int>,
    pub targets: Tensor<2, Int>,
    pub loss_mask: Tensor<2, Bool>,
    pub sampled: Tensor<2, Bool>,
    pub old_log_probs: Tensor<2>,
    pub advantages: Tensor<2>,
    /// 1 for forbidden tokens, `[B, T, V]`.
    pub illegal: Option<Tensor<3>>,
    /// Whether tokens are trained that the policy did not sample.
    pub trains_tool_tokens: bool,
}

impl TokenBatch {
    /// Pads and uploads. Examples must have at least two tokens.
    pub fn new(examples: &[&TrainingExample], device: &Device) -> Self {
        let illegal = illegal(examples, device);
        TokenBatch { illegal, ..TokenBatch::without_grammar(examples, device) }
    }

    /// As [`TokenBatch::new`], but without the table of forbidden tokens.
    pub fn without_grammar(examples: &[&TrainingExample], device: &Device) -> Self {
        let length = examples.iter().map(|example| example.tokens.len()).max().unwrap_or(2) - 1;
        let shape = [examples.len(), length];
        fn padded<T: Copy>(rows: impl Iterator<Item = Vec<T>>, length: usize, padding: T) -> Vec<T> {
            rows.flat_map(|row| row.into_iter().chain(std::iter::repeat(padding)).take(length).collect::<Vec<_>>()).collect()
        }
        let int = |from: usize| {
            let rows = examples.iter().map(|example| example.tokens[from..].iter().map(|&token| i32::from(token)).collect());
            Tensor::<2, Int>::from_data(TensorData::new(padded(rows, length, i32::from(PAD)), shape), device)
        };
        let bool = |of: fn(&TrainingExample) -> &[bool]| {
            let rows = examples.iter().map(|example| of(example)[1..].to_vec());
            Tensor::<2, Bool>::from_data(TensorData::new(padded(rows, length, false), shape), device)
        };
        let float = |of: fn(&TrainingExample) -> &[f32]| {
            let rows = examples.iter().map(|example| of(example)[1..].to_vec());
            Tensor::<2>::from_data(TensorData::new(padded(rows, length, 0.0), shape), device)
        };
        TokenBatch {
            inputs: int(0),
            targets: int(1),
            loss_mask: bool(|example| &example.loss_mask),
            sampled: bool(|example| &example.sampled),
            old_log_probs: float(|example| &example.old_log_probs),
            advantages: float(|example| &example.advantages),
            illegal: None,
            trains_tool_tokens: examples.iter().any(|example| example.loss_mask != example.sampled),
        }
    }
}

/// 1 for the tokens that the grammar forbids, `[B, T, V]`; `None` without a grammar.
fn illegal(examples: &[&TrainingExample], device: &Device) -> Option<Tensor<3>> {
    let length = examples.iter().map(|example| example.tokens.len()).max().unwrap_or(2) - 1;
    examples.iter().any(|example| !example.legal.is_empty()).then(|| {
        let of = |example: &&TrainingExample| {
            let sets = (1..=length).map(|t| example.legal.get(t).copied().unwrap_or(TokenSet::ALL));
            sets.flat_map(|set| (0..SIZE as Token).map(move |token| f32::from(u8::from(!set.contains(token))))).collect()
        };
        let values: Vec<f32> = examples.iter().flat_map(|example| -> Vec<f32> { of(example) }).collect();
        Tensor::from_data(TensorData::new(values, [examples.len(), length, SIZE]), device)
    })
}

/// Splits examples into `parts` of about equal size, similar lengths together, so that padding is trimmed to what each needs.
/// Gives indices into `examples`. Runs of `unit` examples (2 for pairs) stay together.
pub(super) fn micro_batches(examples: &[TrainingExample], parts: usize, unit: usize) -> Vec<Vec<usize>> {
    let length = |run: &Vec<usize>| run.iter().map(|&row| examples[row].tokens.len()).max();
    let rows: Vec<usize> = (0..examples.len()).collect();
    let mut runs: Vec<Vec<usize>> = rows.chunks(unit).map(<[_]>::to_vec).collect();
    runs.sort_by_key(length); // stable: the same batch gives the same split
    let size = runs.len().div_ceil(parts.max(1)).max(1);
    runs.chunks(size).map(<[_]>::concat).collect()
}

/// Splits `count` examples into `parts` of about equal size as they come. Gives indices. Runs of `unit` examples stay together.
pub(super) fn in_order(count: usize, parts: usize, unit: usize) -> Vec<Vec<usize>> {
    let rows: Vec<usize> = (0..count).collect();
    let size = count.div_ceil(unit).div_ceil(parts.max(1)).max(1) * unit;
    rows.chunks(size).map(<[_]>::to_vec).collect()
}
