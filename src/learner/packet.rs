//! What the learner's jobs are made of as plain data: training examples, and gradients in the order of the parameters.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

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

/// An answer: which parameters have a gradient as text; then the gradients and `figures`, each a vector, as numbers.
pub(super) async fn pack(kind: Kind, policy: &Policy, gradients: &GradientsParams, figures: Vec<Tensor<1>>) -> Option<Packet> {
    let mut flat = Flat { gradients, present: Vec::new(), flat: Vec::new() };
    policy.visit(&mut flat);
    let text = serde_json::to_string(&flat.present).ok()?;
    flat.flat.extend(figures);
    let numbers = read(Tensor::cat(flat.flat, 0)).await.ok()?;
    Some(Packet { kind, text, numbers, needs: Vec::new() })
}

/// The gradients of an answer, and the numbers behind them, of which there must be `figures`.
pub(super) fn unpack<'a>(answer: &'a Packet, policy: &Policy, figures: usize) -> Option<(GradientsParams, &'a [f32])> {
    let present: Vec<bool> = serde_json::from_str(&answer.text).ok()?;
    let (gradients, figures) = answer.numbers.split_at_checked(answer.numbers.len().checked_sub(figures)?)?;
    Some((spread(present.iter(), gradients, policy)?, figures))
}

/// The gradient of every parameter from one vector in the order of the parameters; nothing where it has another length.
#[cfg_attr(not(feature = "cpu"), expect(dead_code, reason = "only passes on slices ask for it"))]
pub(super) fn gradients(flat: &[f32], policy: &Policy) -> Option<GradientsParams> {
    spread(std::iter::repeat(&true), flat, policy)
}

fn spread<'a>(present: impl Iterator<Item = &'a bool>, flat: &[f32], policy: &Policy) -> Option<GradientsParams> {
    let device = policy.device().without_autodiff();
    let mut spread = Spread { present, rest: flat, device: &device, gradients: GradientsParams::new(), fits: true };
    policy.visit(&mut spread);
    (spread.fits && spread.rest.is_empty()).then_some(spread.gradients)
}

/// Numbers as a vector on a policy's device.
pub(super) fn vector(numbers: &[f32], policy: &Policy) -> Tensor<1> {
    Tensor::from_data(TensorData::new(numbers.to_vec(), [numbers.len()]), &policy.device().without_autodiff())
}

/// Gradients in the order of the parameters.
struct Flat<'a> {
    gradients: &'a GradientsParams,
    /// Which parameters have one.
    present: Vec<bool>,
    flat: Vec<Tensor<1>>,
}

impl ModuleVisitor for Flat<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = self.gradients.get::<D>(param.id);
        self.present.push(gradient.is_some());
        self.flat.extend(gradient.map(|gradient| gradient.flatten::<1>(0, D - 1)));
    }
}

/// Numbers in the order of the parameters as gradients.
struct Spread<'a, I> {
    present: I,
    rest: &'a [f32],
    device: &'a Device,
    gradients: GradientsParams,
    fits: bool,
}

impl<'a, I: Iterator<Item = &'a bool>> ModuleVisitor for Spread<'_, I> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        match self.present.next() {
            Some(false) => {}
            Some(true) => {
                let shape = param.lazy_shape().to_vec();
                match self.rest.split_at_checked(shape.iter().product()) {
                    Some((own, rest)) => {
                        self.rest = rest;
                        let gradient = Tensor::<D>::from_data(TensorData::new(own.to_vec(), shape), self.device);
                        self.gradients.register::<D>(param.id, gradient);
                    }
                    None => self.fits = false,
                }
            }
            None => self.fits = false,
        }
    }
}
