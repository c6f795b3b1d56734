//! What the learner's jobs are made of as plain data: training examples, and gradients in the order of the parameters.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

use super::TrainingExample;
use crate::parallel::{Kind, Packet};
use crate::policy::Policy;
use crate::readback::read;
use crate::vocabulary::{Token, TokenSet};

/// A training example in words; its numbers are the old log-probabilities, then the advantages.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Row {
    group: usize,
    tokens: Vec<Token>,
    /// Of each token a bit for the loss mask and a bit for sampled.
    marks: Vec<u8>,
    legal: Vec<TokenSet>,
}

impl Row {
    pub fn of(example: &TrainingExample) -> Self {
        let masks = example.loss_mask.iter().zip(&example.sampled);
        Row {
            group: example.group,
            tokens: example.tokens.clone(),
            marks: masks.map(|(&trained, &sampled)| u8::from(trained) | u8::from(sampled) << 1).collect(),
            legal: example.legal.clone(),
        }
    }

    /// The examples of rows; takes their numbers off the front of `numbers`.
    pub fn examples(rows: Vec<Row>, numbers: &mut &[f32]) -> Option<Vec<TrainingExample>> {
        let example = |Row { group, tokens, marks, legal }: Row| {
            let (old_log_probs, rest) = numbers.split_at_checked(tokens.len())?;
            let (advantages, rest) = rest.split_at_checked(tokens.len())?;
            *numbers = rest;
            Some(TrainingExample {
                group,
                tokens,
                loss_mask: marks.iter().map(|mark| mark & 1 != 0).collect(),
                sampled: marks.iter().map(|mark| mark & 2 != 0).collect(),
                old_log_probs: old_log_probs.to_vec(),
                advantages: advantages.to_vec(),
                legal,
            })
        };
        rows.into_iter().map(example).collect()
    }
}

/// The numbers of rows: for each the old log-probabilities, then the advantages.
pub(super) fn row_numbers(examples: &[&TrainingExample]) -> Vec<f32> {
    examples.iter().flat_map(|example| example.old_log_probs.iter().chain(&example.advantages)).copied().collect()
}

/// An answer: a gradient, then `figures`, each a vector, as numbers.
pub(super) async fn pack(kind: Kind, gradient: Tensor<1>, figures: Vec<Tensor<1>>) -> Option<Packet> {
    let numbers = read(Tensor::cat(std::iter::once(gradient).chain(figures).collect(), 0)).await.ok()?;
    Some(Packet { kind, text: String::new(), numbers, needs: Vec::new() })
}

/// The gradient of an answer, and the numbers behind it, of which there must be `figures`.
pub(super) fn unpack(answer: Packet, policy: &Policy, figures: usize) -> Option<(Tensor<1>, Vec<f32>)> {
    let (mut numbers, length) = (answer.numbers, policy.num_params());
    if numbers.len() != length + figures {
        return None;
    }
    let found = numbers.split_off(length);
    Some((vector(numbers, policy), found))
}

/// Numbers as a vector on a policy's device.
pub(super) fn vector(numbers: Vec<f32>, policy: &Policy) -> Tensor<1> {
    let length = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [length]), &policy.device().without_autodiff())
}
