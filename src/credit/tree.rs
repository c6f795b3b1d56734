//! Tree credit: how much a turn changed the value of the state, with values read off the group itself.
//!
//! `A_k = (r_k + gamma V(h_{k+1}) - V(h_k)) / s`, where `V(h)` is the mean return-to-go of the group's members that share the whole
//! history `h`, and 0 after the last turn. The members of a group start alike, so their histories form a tree, and the value of a
//! node is the mean over its branches of `r + gamma V`: the temporal difference of VinePPO (arXiv:2410.01679, section 4), with
//! siblings in the place of re-rolls. A turn that starts from a history of its own gets 0: it has no peer. With `gamma = 1` and
//! without scaling the advantages of a trajectory sum to its return less the mean of the group. `s` is the root mean square of the
//! differences over the turns of the group (or batch) plus 1e-4, or 1 without scaling.

use std::collections::HashMap;

use super::map::Parts;
use super::{Comparison, Inputs, Method, Part, PartKind, Whitened, parts_of, per_turn, rows_like};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: false };

/// The members that share a history, with the sum of `r + gamma V(after)` of their next turns.
struct Node {
    sum: f64,
    count: usize,
    low: f64,
    high: f64,
}

impl Node {
    /// The mean; exactly the common value where all are equal.
    fn value(&self) -> f64 {
        if self.low == self.high { self.low } else { self.sum / self.count as f64 }
    }
}

fn parts(inputs: &Inputs) -> Parts {
    let (evidence, gamma) = (inputs.evidence, inputs.config.gamma);
    // The value of the history after each turn, filled from the last turns to the first.
    let mut after: Vec<Vec<f64>> = evidence.rewards.iter().map(|turns| vec![0.0; turns.len()]).collect();
    let mut before: Vec<Vec<(f64, usize)>> = evidence.rewards.iter().map(|turns| vec![(0.0, 0); turns.len()]).collect();
    let longest = evidence.rewards.iter().map(Vec::len).max().unwrap_or(0);
    for turn in (0..longest).rev() {
        let reached: Vec<usize> = (0..evidence.rewards.len()).filter(|&index| evidence.rewards[index].len() > turn).collect();
        let mut nodes: HashMap<(usize, u64), Node> = HashMap::new();
        let key = |index: usize| (evidence.groups[index], evidence.histories[index][turn]);
        for &index in &reached {
            let value = evidence.rewards[index][turn] + gamma * after[index][turn];
            let none = Node { sum: 0.0, count: 0, low: f64::INFINITY, high: f64::NEG_INFINITY };
            let node = nodes.entry(key(index)).or_insert(none);
            node.sum += value;
            node.count += 1;
            (node.low, node.high) = (node.low.min(value), node.high.max(value));
        }
        for &index in &reached {
            let Some(node) = nodes.get(&key(index)) else { continue };
            before[index][turn] = (node.value(), node.count);
            if turn > 0 {
                after[index][turn - 1] = node.value();
            }
        }
    }
    temporal_parts(inputs, |index, turn| (after[index][turn], before[index][turn].0, before[index][turn].1))
}

/// Parts `(r + gamma V(after) - V(before)) / s`; `states` gives `V(after)`, `V(before)` and the peers that the latter rests on.
pub(super) fn temporal_parts(inputs: &Inputs, states: impl Fn(usize, usize) -> (f64, f64, usize)) -> Parts {
    let (rewards, groups) = (&inputs.evidence.rewards, &inputs.evidence.groups);
    let compared = |index: usize, turn: usize| {
        let (after, before, peers) = states(index, turn);
        (rewards[index][turn] + inputs.config.gamma * after, before, peers)
    };
    let (keys, _) = per_turn(rewards, |index, _| groups[index]);
    let (differences, _) = per_turn(rewards, |index, turn| {
        let (value, before, _) = compared(index, turn);
        value - before
    });
    let scales = rows_like(rewards, &inputs.convention.scaling.about_zero(&keys, &differences));
    parts_of(rewards, |index, turn| {
        let (value, baseline, peers) = compared(index, turn);
        let comparison = Comparison { baseline, scale: scales[index][turn], peers };
        Part::of(PartKind::TemporalDifference, turn, value, comparison)
    })
}
