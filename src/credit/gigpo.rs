//! GiGPO: the trajectory against its group, plus the turn against the group's turns in the same state.
//!
//! `A_{i,k} = A^E_i + omega A^S_{i,k}`: `A^E_i = (R_i - mean(R)) / F` over the trajectories of the group, `A^S_{i,k} = (G_{i,k} - mean of
//! G over the group's turns with the same anchor) / F`, `F` the deviation plus 1e-4, or 1 without scaling, which is the authors'
//! default (Feng et al., arXiv:2505.10978, eq. 6 to 8). The anchor is the exact history before the turn or the observation before
//! it; an observation can repeat within an episode, then all its visits are pooled. Same observation does not mean same state: what
//! the policy knows from earlier turns is ignored, which biases `A^S`. Turns in a state of their own have `A^S = 0`; without any
//! repeated state this is GRPO. The paper's episode part adds rewards up without a discount; here gamma is in both parts. The
//! authors' code can also pool observations that are merely similar as texts.

use super::map::Parts;
use super::{Comparison, Convention, Inputs, Method, Part, PartKind, Whitened, compare, outcome_advantages, per_turn, rows_like};
use crate::config::CreditAnchor;

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: false };

/// The two parts and their sum.
#[derive(Clone, Debug, PartialEq)]
pub struct GigpoAdvantages {
    /// `A^E`, `[trajectory]`.
    pub episode: Vec<f64>,
    /// `A^S`, `[trajectory][turn]`.
    pub step: Vec<Vec<f64>>,
    /// `A^E + omega A^S`, `[trajectory][turn]`.
    pub sum: Vec<Vec<f64>>,
}

/// Advantages from the return of each trajectory, `[trajectory]`, and return-to-go and anchor of each turn, `[trajectory][turn]`.
/// `convention` is that of the episode part; a turn in a state of its own always has `A^S = 0`.
pub fn gigpo_advantages(
    groups: &[usize],
    returns: &[f64],
    returns_to_go: &[Vec<f64>],
    anchors: &[Vec<u64>],
    step_weight: f64,
    convention: Convention,
) -> GigpoAdvantages {
    let episode = outcome_advantages(groups, returns, convention);
    let compared = state_comparisons(groups, returns_to_go, anchors, convention);
    let advantage = |(comparison, &value): (&Comparison, &f64)| comparison.advantage(value);
    let row = |(row, values): (&Vec<Comparison>, &Vec<f64>)| row.iter().zip(values).map(advantage).collect();
    let step: Vec<Vec<f64>> = compared.iter().zip(returns_to_go).map(row).collect();
    let add = |(&episode, step): (&f64, &Vec<f64>)| step.iter().map(|step| episode + step_weight * step).collect();
    GigpoAdvantages { sum: episode.iter().zip(&step).map(add).collect(), episode, step }
}

fn state_comparisons(
    groups: &[usize],
    returns_to_go: &[Vec<f64>],
    anchors: &[Vec<u64>],
    convention: Convention,
) -> Vec<Vec<Comparison>> {
    let (keys, values) = per_turn(returns_to_go, |index, turn| (groups[index], anchors[index][turn]));
    rows_like(returns_to_go, &compare(&keys, &values, Convention { lone: super::Lone::Zero, ..convention }))
}

fn parts(inputs: &Inputs) -> Parts {
    let evidence = inputs.evidence;
    let anchors = match inputs.config.credit_anchor {
        CreditAnchor::History => &evidence.histories,
        CreditAnchor::Observation => &evidence.observations,
    };
    let episode = compare(&evidence.groups, inputs.returns, inputs.convention);
    let states = state_comparisons(&evidence.groups, inputs.returns_to_go, anchors, inputs.convention);
    let of_turn = |index: usize, turn: usize| {
        let step = Part::of(PartKind::State, turn, inputs.returns_to_go[index][turn], states[index][turn]);
        let whole = Part::of(PartKind::Episode, 0, inputs.returns[index], episode[index]);
        vec![whole, Part { weight: inputs.config.step_weight, ..step }]
    };
    (0..states.len()).map(|index| (0..states[index].len()).map(|turn| of_turn(index, turn)).collect()).collect()
}
