//! The optimizer steps of an update in micro-batches, jobs for all cores. Their gradients come from burn's automatic differentiation,
//! which works on every device and is what everything faster is compared with; on the CPU, where they cover the policy, from passes on
//! slices.

use burn::tensor::Tensor;

use super::batch::{in_order, micro_batches};
use super::gradient::{GradientJob, LogProbsJob, Part, PartGradient};
use super::loss::{Counts, SUMS};
use super::update::Steps;
use super::{Learner, LearnerError, TokenBatch, TrainingExample, slices};
use crate::cpu::Packed;
use crate::parallel;
use crate::policy::Policy;
use crate::readback::read;

/// Examples of a micro-batch on slices, at most, whatever the setting says: large batches become enough jobs for a few cores to end
/// together, and each keeps to the caches. The same on every machine, so that results are too.
const MOST_EXAMPLES: usize = 64;

impl Learner {
    /// The optimizer steps of an update in micro-batches.
    pub(super) async fn reference_steps(
        &mut self,
        examples: &[TrainingExample],
        weights: &[f64],
        counts: Counts,
        learning_rate: f64,
    ) -> Steps {
        let parts = self.parts(examples, weights).await;
        let mut tensors = Vec::new();
        for _ in 0..self.settings.inner_epochs {
            let known = self.sent.take().filter(|&held| parallel::pool().is_some_and(|pool| pool.holds(held)));
            let (held, policy) = (known.or_else(|| self.policy.hold()), &Packed::new(&self.policy));
            let job = |part| GradientJob { policy, held, part, counts, settings: &self.settings };
            let results = parallel::all(&self.device, parts.iter().map(job).collect()).await.into_iter();
            let Some(PartGradient { gradient, sums, deviation }) = results.reduce(PartGradient::and) else { break };
            let (policy, norm) = self.optimizer.step(self.policy.clone(), gradient, learning_rate);
            self.policy = policy;
            tensors.push(Tensor::cat(vec![sums, deviation, norm], 0));
        }
        // The next episodes are played by it.
        self.sent = self.policy.send_ahead();
        let length = (SUMS + 2) * tensors.len();
        let decode = |values: &[f32]| {
            let steps = values.chunks_exact(SUMS + 2);
            steps.map(|step| std::array::from_fn(|index| f64::from(step[index]))).collect()
        };
        Steps { tensors, length, decode: Box::new(decode) }
    }

    /// Cuts the batch into micro-batches, with what the loss compares with. With padding the longest come first, so that cores finish
    /// together; on slices the members of a group stay together, since they share their beginning.
    async fn parts<'a>(&self, examples: &'a [TrainingExample], weights: &[f64]) -> Vec<Part<'a>> {
        let unit = if self.settings.objective.preference.is_some() { 2 } else { 1 };
        let cut = if self.settings.kernels && slices::covers(&self.reference) {
            in_order(examples.len(), self.settings.micro_batches.max(examples.len().div_ceil(MOST_EXAMPLES)), unit)
        } else {
            micro_batches(examples, self.settings.micro_batches, unit).into_iter().rev().collect()
        };
        let part = |rows: &Vec<usize>| {
            let weights = rows.iter().map(|&row| weights[row] as f32).collect();
            Part::new(rows.iter().map(|&row| &examples[row]).collect(), weights)
        };
        let mut parts: Vec<Part> = cut.iter().map(part).collect();
        let tool_tokens: Vec<bool> = parts.iter().map(Part::trains_tool_tokens).collect();
        let wanted = |part: usize| tool_tokens[part];
        let old = self.log_probs(&self.policy, &parts, wanted).await;
        let wanted = |_| self.needs_reference();
        let reference = self.log_probs(&self.reference, &parts, wanted).await;
        for ((part, old), reference) in parts.iter_mut().zip(old).zip(reference) {
            (part.old, part.reference) = (old, reference);
        }
        parts
    }

    /// Log-probabilities `[B, T]` of those micro-batches for which they are wanted.
    pub(super) async fn log_probs(
        &self,
        policy: &Policy,
        parts: &[Part<'_>],
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<Option<Tensor<2>>> {
        let mut found: Vec<Option<Tensor<2>>> = parts.iter().map(|_| None).collect();
        let places: Vec<usize> = (0..parts.len()).filter(|&part| wanted(part)).collect();
        if places.is_empty() {
            return found;
        }
        let (held, temperature, slices) = (policy.hold(), self.settings.temperature, self.settings.kernels);
        let policy = &Packed::new(policy);
        let job = |&part: &usize| LogProbsJob { policy, held, examples: &parts[part].examples, temperature, slices };
        let results = parallel::all(&self.device, places.iter().map(job).collect()).await;
        places.into_iter().zip(results).for_each(|(part, log_probs)| found[part] = Some(log_probs));
        found
    }

    /// [`Learner::reference_log_ratios`] in micro-batches.
    pub(super) async fn reference_log_ratios_in_parts(
        &self,
        examples: &[TrainingExample],
    ) -> Result<Vec<Vec<f64>>, LearnerError> {
        let cut = micro_batches(examples, self.settings.micro_batches, 1);
        let part = |rows: &Vec<usize>| Part::new(rows.iter().map(|&row| &examples[row]).collect(), Vec::new());
        let parts: Vec<Part> = cut.iter().map(part).collect();
        let reference = self.log_probs(&self.reference, &parts, |_| true).await;
        let flat = parts.iter().zip(reference).filter_map(|(part, reference)| {
            let tokens = TokenBatch::new(&part.examples, &self.device);
            let ratio = tokens.old_log_probs.without_autodiff() - reference?;
            let ratio = ratio.mask_fill(tokens.sampled.without_autodiff().bool_not(), 0.0);
            let [rows, length] = ratio.dims();
            Some((length, ratio.reshape([rows * length])))
        });
        let (lengths, flat): (Vec<usize>, Vec<Tensor<1>>) = flat.unzip();
        let mut all: Vec<Vec<f64>> = examples.iter().map(|example| vec![0.0; example.tokens.len()]).collect();
        if flat.is_empty() {
            return Ok(all);
        }
        let values = read(Tensor::cat(flat, 0)).await?;
        let mut rest = values.as_slice();
        for (rows, length) in cut.iter().zip(lengths) {
            for &row in rows {
                let (own, tail) = rest.split_at(length.min(rest.len()));
                rest = tail;
                // Entry t of the padded row belongs to token t + 1.
                all[row].iter_mut().skip(1).zip(own).for_each(|(entry, &value)| *entry = f64::from(value));
            }
        }
        Ok(all)
    }
}
