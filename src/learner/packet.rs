//! What the learner's jobs are made of as plain data: training examples, and gradients in the order of the parameters.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

use super::TrainingExample;
use crate::parallel::{Kind, Packet, spelled, spelling};
use crate::policy::Policy;
use crate::readback::read;
use crate::vocabulary::{Token, TokenSet};

/// A training example as other workers are told of it; its numbers are the old log-probabilities, then the advantages.
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

/// An answer: a gradient, and `figures`, each a vector.
pub(super) async fn pack(kind: Kind, gradient: Tensor<1>, figures: Vec<Tensor<1>>) -> Option<Packet> {
    let figures = read(Tensor::cat(figures, 0)).await.ok()?;
    Some(Packet { kind, task: spelled(&figures)?, numbers: read(gradient).await.ok()?, needs: Vec::new() })
}

/// The gradient of an answer, and the figures, of which there must be `count`.
pub(super) fn unpack(answer: Packet, policy: &Policy, count: usize) -> Option<(Tensor<1>, Vec<f32>)> {
    let figures: Vec<f32> = spelling(&answer.task)?;
    let fits = figures.len() == count && answer.numbers.len() == policy.num_params();
    fits.then(|| (vector(answer.numbers, policy), figures))
}

/// Numbers as a vector on a policy's device.
pub(super) fn vector(numbers: Vec<f32>, policy: &Policy) -> Tensor<1> {
    let length = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [length]), &policy.device().without_autodiff())
}
