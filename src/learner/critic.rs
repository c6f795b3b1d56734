//! A critic: a network that learns the value of every turn, for the credit method that needs one.
//!
//! It has the shape of the policy with one number per position in place of the logits, and starts as a copy of the warm start
//! with that number 0. The value of a turn is read at the token before its first one (the end of the prompt or of an
//! observation): the state in which the policy decides. As gamma acts per turn, so do the values.

use burn::module::Module;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use super::batch::training_device;
use super::optimizer::gradient;
use super::{CriticStatistics, LearnerError, Optimizer, OptimizerSettings};
use crate::config::ExperimentConfig;
use crate::objective::{clipped_value_loss, masked_mean};
use crate::parallel;
use crate::policy::{CheckpointError, Moments, Policy, Weights};
use crate::readback::{ReadError, read};
use crate::rollout::Trajectory;
use crate::vocabulary::PAD;

/// How the critic learns.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticSettings {
    pub optimizer: OptimizerSettings,
    pub learning_rate: f64,
    /// Passes over the returns of a step, one optimizer step each.
    pub epochs: usize,
    /// How far a value may move in one step before its loss stops pulling; 0 for no limit.
    pub clip: f64,
    pub micro_batches: usize,
}

impl CriticSettings {
    /// The settings of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        CriticSettings {
            optimizer: super::UpdateSettings::of(config).optimizer,
            learning_rate: config.critic_learning_rate,
            epochs: config.critic_epochs,
            clip: config.value_clip,
            micro_batches: config.micro_batches,
        }
    }
}

/// The critic and its optimizer.
pub struct Critic {
    network: Policy,
    optimizer: Optimizer,
    settings: CriticSettings,
    device: Device,
}

impl Critic {
    /// A critic with the body of a policy.
    pub fn new(policy: &Policy, settings: CriticSettings) -> Self {
        let network = policy.valid().with_outputs(1);
        let device = training_device(&policy.device());
        let optimizer = Optimizer::new(&network, settings.optimizer);
        Critic { network, optimizer, settings, device }
    }

    /// Weights and moments for a checkpoint. At most one read.
    ///
    /// # Errors
    /// When the device gave no data.
    pub async fn state(&self) -> Result<(Weights, Moments), ReadError> {
        self.optimizer.state(&self.network).await
    }

    /// Goes on from the state of a checkpoint.
    ///
    /// # Errors
    /// When something is missing or has another shape, naming it; the critic is not to be used then.
    pub fn restore(&mut self, weights: &Weights, moments: &Moments) -> Result<(), CheckpointError> {
        self.network = self.network.clone().with_weights(weights)?;
        self.optimizer.restore(&self.network, moments)
    }

    /// The value before each turn, `[trajectory][turn]`. One read.
    ///
    /// # Errors
    /// When the device fails or a value is not finite.
    pub async fn values(&self, trajectories: &[Trajectory]) -> Result<Vec<Vec<f64>>, LearnerError> {
        let (parts, workers) = (self.parts(trajectories), parallel::workers(&self.device));
        let network = &self.network;
        let flat = parallel::map(workers, parts.iter().collect(), |part: &Vec<usize>| {
            let values = forward(network, &tokens(trajectories, part, &self.device.clone().without_autodiff()));
            let [rows, length] = values.dims();
            (length, values.reshape([rows * length]))
        });
        let (lengths, flat): (Vec<usize>, Vec<Tensor<1>>) = flat.into_iter().unzip();
        let mut all: Vec<Vec<f64>> = vec![Vec::new(); trajectories.len()];
        if flat.is_empty() {
            return Ok(all);
        }
        let values = read(Tensor::cat(flat, 0)).await?;
        let mut rest = values.as_slice();
        for (part, length) in parts.iter().zip(lengths) {
            for &row in part {
                let (own, tail) = rest.split_at(length.min(rest.len()));
                rest = tail;
                let before = |start: usize| own.get(start.saturating_sub(1)).copied().unwrap_or(0.0);
                all[row] = trajectories[row].turns.iter().map(|turn| f64::from(before(turn.start))).collect();
            }
        }
        if all.iter().flatten().any(|value| !value.is_finite()) {
            return Err(LearnerError::NonFinite("a value of the critic"));
        }
        Ok(all)
    }

    /// Fits the values of turns to `targets`, `[trajectory][turn]`, from `old`, the values before the step. One read.
    ///
    /// # Errors
    /// When the device fails or the loss is not finite; the critic is then as before.
    pub async fn fit(
        &mut self,
        trajectories: &[Trajectory],
        old: &[Vec<f64>],
        targets: &[Vec<f64>],
    ) -> Result<CriticStatistics, LearnerError> {
        let count: usize = targets.iter().map(Vec::len).sum();
        let explained_variance = explained_variance(&old.concat(), &targets.concat());
        if count == 0 {
            return Ok(CriticStatistics { loss: 0.0, explained_variance });
        }
        let before = (self.network.clone(), self.optimizer.clone());
        let (parts, workers) = (self.parts(trajectories), parallel::workers(&self.device));
        let mut report = Vec::new(); // loss and gradient norm of each pass
        for _ in 0..self.settings.epochs {
            let network = &self.network;
            let results = parallel::map(workers, parts.iter().collect(), |part: &Vec<usize>| {
                let network = network.clone().train();
                let values = forward(&network, &tokens(trajectories, part, &self.device)); // [B, T]
                let [rows, length] = values.dims();
                let (mut mask, mut from, mut to) =
                    (vec![false; rows * length], vec![0.0; rows * length], vec![0.0; rows * length]);
                for (place, &row) in part.iter().enumerate() {
                    for (turn, info) in trajectories[row].turns.iter().enumerate() {
                        let index = place * length + info.start.saturating_sub(1);
                        (mask[index], from[index], to[index]) = (true, old[row][turn] as f32, targets[row][turn] as f32);
                    }
                }
                let shape = [rows, length];
                let mask = Tensor::<2, Bool>::from_data(TensorData::new(mask, shape), &self.device);
                let tensor = |values: Vec<f32>| Tensor::<2>::from_data(TensorData::new(values, shape), &self.device);
                let part = clipped_value_loss(values, tensor(from), tensor(to), self.settings.clip);
                let loss = masked_mean(part.loss, mask, count);
                (gradient(&network, &loss.backward()), loss.inner())
            });
            let parts = results.into_iter();
            let Some((gradient, loss)) = parts.reduce(|(gradient, loss), part| (gradient + part.0, loss + part.1)) else { break };
            let (network, norm) = self.optimizer.step(self.network.clone(), gradient, self.settings.learning_rate);
            self.network = network;
            report.extend([loss, norm]);
        }
        let result = match read(Tensor::cat(report, 0)).await {
            Err(error) => Err(error.into()),
            Ok(values) if values.iter().any(|value| !value.is_finite()) => {
                Err(LearnerError::NonFinite("the critic's loss or gradient"))
            }
            Ok(values) => Ok(values.iter().step_by(2).map(|&loss| f64::from(loss)).sum::<f64>() / self.settings.epochs as f64),
        };
        if result.is_err() {
            (self.network, self.optimizer) = before;
        }
        result.map(|loss| CriticStatistics { loss, explained_variance })
    }

    /// Trajectories of similar length together.
    fn parts(&self, trajectories: &[Trajectory]) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..trajectories.len()).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(trajectories[row].tokens.len()));
        let size = order.len().div_ceil(self.settings.micro_batches.max(1)).max(1);
        order.chunks(size).map(<[usize]>::to_vec).collect()
    }
}

/// Values at every position, `[B, T]`.
fn forward(network: &Policy, tokens: &Tensor<2, Int>) -> Tensor<2> {
    let [rows, length] = tokens.dims();
    network.forward(tokens.clone()).reshape([rows, length])
}

/// Tokens padded on the right, `[B, T]`.
fn tokens(trajectories: &[Trajectory], rows: &[usize], device: &Device) -> Tensor<2, Int> {
    let length = rows.iter().map(|&row| trajectories[row].tokens.len()).max().unwrap_or(1);
    let padded = |&row: &usize| {
        let tokens = trajectories[row].tokens.iter().map(|&token| i32::from(token));
        tokens.chain(std::iter::repeat(i32::from(PAD))).take(length).collect::<Vec<_>>()
    };
    let values: Vec<i32> = rows.iter().flat_map(padded).collect();
    Tensor::from_data(TensorData::new(values, [rows.len(), length]), device)
}

/// `1 - Var(target - value) / Var(target)`; 0 where all targets are the same.
fn explained_variance(values: &[f64], targets: &[f64]) -> f64 {
    let variance = |numbers: &[f64]| {
        let mean = numbers.iter().sum::<f64>() / numbers.len().max(1) as f64;
        numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    let errors: Vec<f64> = values.iter().zip(targets).map(|(value, target)| target - value).collect();
    let all = variance(targets);
    if all > 0.0 { 1.0 - variance(&errors) / all } else { 0.0 }
}
