//! GRPO with outcome supervision: one advantage for the whole trajectory.
//!
//! `A_i = (R_i - mean(R)) / (std(R) + 1e-4)` over the trajectories of the group, where `R_i` is the discounted return of
//! trajectory `i` (DeepSeekMath, arXiv:2402.03300, section 4.1.2; there the reward comes once, at the end). Frameworks differ in
//! the standard deviation: TRL divides by the sample deviation plus 1e-4 (ours), verl adds 1e-6, rLLM uses the population
//! deviation; TRL's "batch" divides by the deviation over the whole batch. With scaling off this is the advantage of Dr. GRPO
//! (arXiv:2503.20783). A group of equal returns gives exactly 0; a group of one gives 0 (verl gives the raw reward).

use super::map::Parts;
use super::{Convention, Inputs, Method, Part, PartKind, Whitened, compare, parts_of};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: false };

/// Advantages of one value per trajectory, compared within each group, `[trajectory]`.
pub fn outcome_advantages(groups: &[usize], returns: &[f64], convention: Convention) -> Vec<f64> {
    compare(groups, returns, convention).iter().zip(returns).map(|(comparison, &value)| comparison.advantage(value)).collect()
}

/// Every turn of a trajectory carries the advantage of the whole.
fn parts(inputs: &Inputs) -> Parts {
    let comparisons = compare(&inputs.evidence.groups, inputs.returns, inputs.convention);
    parts_of(inputs.returns_to_go, |index, _| Part::of(PartKind::Episode, 0, inputs.returns[index], comparisons[index]))
}
