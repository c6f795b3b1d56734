//! The policy-gradient update in a few dozen dispatches, for graphics devices.
//!
//! burn differentiates operation by operation: about 404 dispatches for a micro-batch of a policy with two layers, each with a bind
//! group and a fresh buffer. A tiny policy's update costs a GPU dispatches, not arithmetic, so the whole update is kernels of our own:
//!
//! | pass | kernels | dispatches |
//! | --- | --- | --- |
//! | forward | embedding; norm, product (queries, keys, values), attention, product + residual, norm, product + activation, product + residual in every layer; norm, product (head), log-softmax | 7 L + 4 |
//! | objective | one invocation per trajectory | 1 |
//! | backward | transposed weights; logits, product, norm; product + gate, product, norm, product, attention, product, norm in every layer | 7 L + 4 |
//! | parameters | one kind of matrix in all layers each; all norms; both embeddings | 7 |
//! | step | chunks to gradient, squares, norm, Adam | 4 |
//!
//! That is 14 L + 20: 48 for two layers, 34 for one. KL to a reference and preferences add a forward pass of the reference, once per
//! update; so does KL in the reward, when it is charged. Nothing is read back but the figures at the end.
//!
//! Why not burn's custom operations with its graph around them: the graph's own part (losses on `[B, T]`, masks, sums, one Adam step of
//! a dozen operations for each of 28 parameters) is most of the 404 dispatches. Why no workgroup memory: matrices are at most a few
//! hundred columns wide, which a first-level cache holds, so that register tiles reach the same arithmetic per byte as far as it
//! matters here, and kernels without barriers run on any device. Why flat buffers: Adam and the norm are one dispatch each over a
//! vector, the policy's parameters are parts of it (no copies where they are aligned), and a step writes a new state, so that the
//! old one can be taken back for nothing.
//!
//! Rows of all trajectories are packed without padding ([`batch`]). Micro-batches only bound memory, so that here the rows of a pass
//! are bounded by the bytes of their activations instead, whatever the setting says. Every objective of [`crate::objective`] is covered; policies
//! whose shape [`pass::supports`] does not know take the reference path, as do imitation and the critic.

mod activations;
mod attention;
mod batch;
mod distribution;
mod gradient;
mod norm;
mod objective;
mod parameters;
mod pass;
mod product;
mod rule;
mod step;

use burn::tensor::{Device, Tensor, TensorData};

use self::activations::Activations;
use self::batch::{Rows, integers, rows_of};
use self::objective::{FIGURES, judge};
use self::parameters::Gradients;
use self::pass::{ACTIVATION_BYTES, Pass, cubes, most_rows, supports};
use self::rule::rule;
use super::loss::{Counts, SUMS};
use super::{TrainingExample, UpdateSettings};
use crate::kernel::Buffer;
use crate::policy::Layout;
use crate::policy::{CheckpointError, Moments, Policy};

/// Parameters, first and second moments, one after another, after `time` steps. Clones share them; a step makes a new one.
#[derive(Clone)]
pub(super) struct State {
    values: Buffer,
    pub time: usize,
}

/// Updates by kernels.
pub(super) struct Fused {
    layout: Layout,
    device: Device,
    /// The reference's parameters.
    reference: Buffer,
    pub state: State,
    gradients: Gradients,
    nothing: Buffer,
    /// Bytes that the activations of a pass may take.
    pub activation_bytes: usize,
}

/// What an update reports, not read back yet.
pub(super) struct Report {
    values: Tensor<1>,
    epochs: usize,
    trajectories: usize,
}

/// Examples of one pass: rows, the reference's log-probabilities, and the index of the first example.
struct Part {
    rows: Rows,
    reference: Option<Buffer>,
    first: usize,
}

impl Fused {
    /// `None` where there are no kernels for the device or the shape of the policy, which is the reference too.
    pub fn new(policy: &Policy) -> Option<Fused> {
        let device = policy.device().without_autodiff();
        let layout = Layout::of(policy).filter(supports)?;
        let values = Tensor::cat(policy.tensors(), 0);
        let reference = Buffer::floats(values.clone())?;
        let moments = Tensor::zeros([2 * layout.length], &device);
        let state = State { values: Buffer::floats(Tensor::cat(vec![values, moments], 0))?, time: 0 };
        let gradients = Gradients::new(&layout, &device)?;
        let nothing = Buffer::room(4, &device)?;
        Some(Fused { layout, gradients, reference, state, nothing, device, activation_bytes: ACTIVATION_BYTES })
    }

    /// Goes on from a policy and the moments of a checkpoint, with a reference. `None` where the device takes no buffers.
    ///
    /// # Errors
    /// When a parameter has no moments, naming it.
    pub fn restore(&mut self, policy: &Policy, moments: &Moments, reference: &Policy) -> Result<Option<()>, CheckpointError> {
        let mut values = vec![0.0; 2 * self.layout.length];
        if moments.time > 0 {
            values.clear();
            for half in [&moments.first, &moments.second] {
                for (name, _) in policy.shapes() {
                    values.extend_from_slice(&half.find(&name)?.values);
                }
            }
        }
        let mut tensors = policy.tensors();
        let length = values.len();
        tensors.push(Tensor::from_data(TensorData::new(values, [length]), &self.device));
        let restored = Buffer::floats(Tensor::cat(tensors, 0)).zip(Buffer::floats(Tensor::cat(reference.tensors(), 0)));
        Ok(restored.map(|(values, reference)| {
            self.state = State { values, time: moments.time };
            self.reference = reference;
        }))
    }

    /// Parameters, first and second moments, in the order of a checkpoint.
    pub fn tensor(&self) -> Tensor<1> {
        self.state.values.clone().into_tensor()
    }

    /// The policy with the current parameters.
    pub fn policy(&self, policy: Policy) -> Policy {
        policy.with_tensor(self.tensor().narrow(0, 0, self.layout.length))
    }

    /// Makes `inner_epochs` steps on the examples, whose rows weigh `weights` in the loss. The state is the one after them, whether or not
    /// its numbers are finite. `None` where the device takes no buffers.
    pub fn update(
        &mut self,
        examples: &[TrainingExample],
        weights: &[f64],
        counts: Counts,
        settings: &UpdateSettings,
        learning_rate: f64,
    ) -> Option<Report> {
        let (parts, kept) = self.parts(examples, weights, settings)?;
        let epochs = settings.inner_epochs;
        let figures = epochs * examples.len() * FIGURES;
        let report = Buffer::room(figures + epochs, &self.device)?;
        let by_entropy = -settings.objective.entropy_coefficient / counts.sampled.max(1) as f64;
        for epoch in 0..epochs {
            let parameters = self.state.values.clone();
            self.gradients.transpose(&parameters);
            for (index, part) in parts.iter().enumerate() {
                let pass = self.pass(&part.rows, &kept, settings);
                pass.forward(&parameters, &kept.outcome, epoch == 0 && part.rows.trains_tool_tokens);
                self.judge(part, &kept, &report, (epoch * examples.len() + part.first) * FIGURES, counts, settings);
                pass.backward(&parameters, self.gradients.transposed(), by_entropy as f32);
                self.gradients.add(&self.layout, &part.rows, &kept, index > 0);
            }
            let time = self.state.time + 1;
            let rate = (learning_rate as f32, time, figures + epoch);
            self.state = State { values: self.gradients.step(&parameters, &report, &settings.optimizer, rate)?, time };
        }
        Some(Report { values: report.into_tensor(), epochs, trajectories: examples.len() })
    }

    /// The reference's log-probabilities of tokens that were sampled or are trained, not read back yet, and for every example where those
    /// of its tokens from the second on lie in it; `usize::MAX` for others. `None` where the device takes no buffers.
    pub fn reference_log_probs(
        &self,
        examples: &[TrainingExample],
        settings: &UpdateSettings,
    ) -> Option<(Tensor<1>, Vec<Vec<usize>>)> {
        let (parts, kept) = self.cut(examples, &vec![0.0; examples.len()], 1)?;
        let mut columns = Vec::with_capacity(parts.len());
        let mut places = Vec::with_capacity(examples.len());
        let mut begin = 0;
        for (first, rows) in &parts {
            let outcome = self.reference_outcome(rows, &kept, settings)?;
            columns.push(outcome.into_tensor().narrow(0, 0, rows.wanted));
            let mut rest = rows.places.as_slice();
            for example in &examples[*first..first + rows.trajectories] {
                let (own, tail) = rest.split_at(rows_of(example).min(rest.len()));
                let place = |&place: &u32| (place as usize).checked_sub(1).map_or(usize::MAX, |place| begin + place);
                places.push(own.iter().map(place).collect());
                rest = tail;
            }
            begin += rows.wanted;
        }
        Some((Tensor::cat(columns, 0), places))
    }

    /// Cuts the examples into passes, with what does not change between epochs.
    fn parts(
        &self,
        examples: &[TrainingExample],
        weights: &[f64],
        settings: &UpdateSettings,
    ) -> Option<(Vec<Part>, Activations)> {
        let weights: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
        let unit = if settings.objective.preference.is_some() { 2 } else { 1 };
        let (rows, kept) = self.cut(examples, &weights, unit)?;
        let needs_reference = settings.objective.kl.is_some() || settings.objective.preference.is_some();
        let part = |(first, rows): (usize, Rows)| {
            let reference = if needs_reference { Some(self.reference_outcome(&rows, &kept, settings)?) } else { None };
            Some(Part { rows, reference, first })
        };
        let parts: Option<Vec<Part>> = rows.into_iter().map(part).collect();
        Some((parts?, kept))
    }

    /// The reference's log-probabilities (and entropies) of rows.
    fn reference_outcome(&self, rows: &Rows, kept: &Activations, settings: &UpdateSettings) -> Option<Buffer> {
        let outcome = Buffer::room(3 * rows.wanted, &self.device)?;
        self.pass(rows, kept, settings).forward(&self.reference, &outcome, false);
        Some(outcome)
    }

    /// Uploads the examples in passes that keep to the bytes of their activations, each with the index of its first example, and makes
    /// room for the largest. Runs of `unit` examples stay together.
    fn cut(&self, examples: &[TrainingExample], weights: &[f32], unit: usize) -> Option<(Vec<(usize, Rows)>, Activations)> {
        let most = most_rows(&self.layout, self.activation_bytes);
        let mut starts = vec![0];
        let mut sum = 0;
        for (index, run) in examples.chunks(unit).enumerate() {
            let rows: usize = run.iter().map(rows_of).sum();
            if sum > 0 && sum + rows > most {
                starts.push(index * unit);
                sum = 0;
            }
            sum += rows;
        }
        let ends = starts.iter().skip(1).copied().chain([examples.len()]);
        let rows: Option<Vec<(usize, Rows)>> = starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| Some((start, self.rows(&examples[start..end], &weights[start..end])?)))
            .collect();
        let rows = rows?;
        let kept = Activations::new(&self.layout, rows.iter().map(|(_, rows)| rows.count).max()?, &self.device)?;
        Some((rows, kept))
    }

    fn rows(&self, examples: &[TrainingExample], weights: &[f32]) -> Option<Rows> {
        Rows::new(examples, weights, &self.layout, self.gradients.most_chunks(), &self.device)
    }

    fn pass<'a>(&'a self, rows: &'a Rows, kept: &'a Activations, settings: &UpdateSettings) -> Pass<'a> {
        Pass { layout: &self.layout, rows, kept, nothing: &self.nothing, temperature: settings.temperature as f32 }
    }

    /// The objective; its figures go to the report from `place` on.
    fn judge(&self, part: &Part, kept: &Activations, report: &Buffer, place: usize, counts: Counts, settings: &UpdateSettings) {
        let (rule, constants) = rule(&settings.objective, counts.pairs);
        let Rows { wanted: count, trajectories, .. } = part.rows;
        let (cubes, group) = cubes(report, trajectories);
        let (table, old, fixed) = (part.rows.wanted_table.arg(), part.rows.old.arg(), part.rows.constants.arg());
        let reference = part.reference.as_ref().unwrap_or(&self.nothing).arg();
        let (outcome, figures) = (kept.outcome.arg(), report.arg());
        let client = report.client();
        judge::launch(
            client,
            cubes,
            group,
            table,
            old,
            fixed,
            reference,
            outcome,
            figures,
            count,
            trajectories,
            place,
            constants,
            rule,
        );
    }
}

impl Report {
    /// What is to be read back.
    pub fn tensor(&self) -> Tensor<1> {
        self.values.clone()
    }

    /// Numbers in it.
    pub fn length(&self) -> usize {
        self.epochs * (self.trajectories * FIGURES + 1)
    }

    /// From the numbers read back to what each step reports: [`SUMS`] sums, the largest deviation of a ratio, the gradient's norm.
    pub fn steps(&self, values: &[f32]) -> Vec<[f64; SUMS + 2]> {
        let (figures, norms) = values.split_at((self.epochs * self.trajectories * FIGURES).min(values.len()));
        let step = |(figures, &norm): (&[f32], &f32)| {
            let mut step = [0.0; SUMS + 2];
            for figures in figures.chunks_exact(FIGURES) {
                (0..SUMS).for_each(|index| step[index] += f64::from(figures[index]));
                step[SUMS] = step[SUMS].max(f64::from(figures[SUMS]));
            }
            step[SUMS + 1] = f64::from(norm);
            step
        };
        figures.chunks(self.trajectories * FIGURES).zip(norms).map(step).collect()
    }
}

/// The table of matrices that are transposed: offset, rows and columns of each.
fn matrices(layout: &Layout, device: &Device) -> Option<(Buffer, usize)> {
    let Layout { d_model, hidden, vocabulary, .. } = *layout;
    let mut table = vec![layout.head, d_model, vocabulary];
    for layer in 0..layout.layers {
        let base = layout.first_block + layer * layout.block_length;
        let block = &layout.block;
        table.extend([base + block.qkv, d_model, 3 * d_model, base + block.out, d_model, d_model]);
        table.extend([base + block.up, d_model, hidden, base + block.down, hidden, d_model]);
    }
    let count = table.len() / 3;
    Some((integers(table.into_iter().map(|value| value as u32).collect(), device)?, count))
}
