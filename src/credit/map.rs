//! The credit map: one advantage per turn, with the numbers it was made of.

use super::Whitened;
use super::compare::{Comparison, Whitening, equal};
use super::evidence::Evidence;

/// What a [`Part`] of an advantage compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// The discounted return of the trajectory with that of the group.
    Episode,
    /// The discounted outcome rewards of the trajectory with those of the group.
    Outcome,
    /// The reward of one turn with those of the group.
    TurnReward,
    /// What the process terms paid in one turn with the same of the group.
    ProcessReward,
    /// The return-to-go of the turn with those of peers, or with nothing.
    ReturnToGo,
    /// The return-to-go of the turn with those of the group's turns in the same state.
    State,
    /// Reward plus discounted value after the turn, with the value before it: `r + gamma V(after) - V(before)`.
    TemporalDifference,
}

/// One summand of an advantage: `weight * (value - baseline) / scale`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Part {
    pub kind: PartKind,
    /// The turn that `value` belongs to: the turn itself, or a later one whose reward or value counts for it. Trajectory-wide
    /// values belong to turn 0.
    pub turn: usize,
    pub weight: f64,
    pub value: f64,
    /// What it is compared with; equal to `value` where there is no peer or all peers are equal.
    pub baseline: f64,
    /// What the difference is divided by, epsilon included; 1 where nothing is divided.
    pub scale: f64,
    /// How many values of the batch the comparison rests on, this one included. 1 means "no peer", 0 means that the baseline
    /// is no mean over peers (a critic's or re-rolled value, or none).
    pub peers: usize,
}

impl Part {
    /// A comparison of weight 1.
    pub(super) fn of(kind: PartKind, turn: usize, value: f64, comparison: Comparison) -> Self {
        let Comparison { baseline, scale, peers } = comparison;
        Part { kind, turn, weight: 1.0, value, baseline, scale, peers }
    }

    /// What this part adds to the advantage, before whitening.
    pub fn contribution(&self) -> f64 {
        self.weight * (self.value - self.baseline) / self.scale
    }
}

/// Parts of every turn, `[trajectory][turn][part]`.
pub(super) type Parts = Vec<Vec<Vec<Part>>>;

/// The advantage of every turn and how it came about. Arrays are `[trajectory][turn]`.
///
/// `advantage = (sum of weight * (value - baseline) / scale over the parts - whitening.mean) / whitening.scale`, the whitening
/// only where the group has one. `values`, `baselines` and `scales` say the same as one comparison, whitening folded in:
/// `advantage = (value - baseline) / scale`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct CreditMap {
    /// Reward of the turn itself.
    pub rewards: Vec<Vec<f64>>,
    /// Discounted return from the turn on; the first entry is the return of the trajectory.
    pub returns_to_go: Vec<Vec<f64>>,
    /// What is compared. Sums of parts with different scales are in units of those scales.
    pub values: Vec<Vec<f64>>,
    /// What it is compared with.
    pub baselines: Vec<Vec<f64>>,
    /// What the difference is divided by, epsilon included; 1 where nothing is divided.
    pub scales: Vec<Vec<f64>>,
    /// The largest number of peers among the parts, see [`Part::peers`]. 1 means "no peer": the advantage is 0.
    pub peers: Vec<Vec<usize>>,
    /// The weight of the turn's tokens in the update.
    pub advantages: Vec<Vec<f64>>,
    /// The summands of every advantage, `[trajectory][turn][part]`.
    pub parts: Vec<Vec<Vec<Part>>>,
    /// Per group: the centring and division over the whole batch that came last, where there was one.
    pub whitening: Vec<Option<Whitening>>,
    /// Per group: whether all advantages are 0, so that nothing can be learned from it.
    pub no_signal: Vec<bool>,
    /// Per group: whether all its trajectories earned the same return, up to rounding: what groups are filtered by (DAPO,
    /// arXiv:2503.14476, eq. 11), whatever the method makes of their turns.
    #[serde(default)]
    pub equal_returns: Vec<bool>,
    /// The method needs state values (a critic's or re-rolled ones) and there are none: all advantages are 0.
    pub needs_values: bool,
}

impl CreditMap {
    /// Adds up parts and whitens, weighting turns by their trained tokens, if asked.
    pub(super) fn of(evidence: &Evidence, returns_to_go: Vec<Vec<f64>>, parts: Parts, whitened: Whitened) -> Self {
        let groups = evidence.groups.iter().max().map_or(0, |&last| last + 1);
        // Folding from 0.0: the sum of nothing is -0.0.
        let sum = |parts: &Vec<Part>| parts.iter().fold(0.0, |sum, part| sum + part.contribution());
        let mut advantages: Vec<Vec<f64>> = parts.iter().map(|turns| turns.iter().map(sum).collect()).collect();
        let tokens: Vec<f64> = evidence.trained_tokens.concat().iter().map(|&tokens| tokens as f64).collect();
        let mut whitening = vec![None; groups];
        if whitened != Whitened::Never {
            let over_batch = Whitening::of(&advantages.concat(), &tokens, Whitening::VERL);
            let silent = all_zero(groups, evidence, &advantages);
            let skipped = |group: usize| whitened == Whitened::GroupsWithSignal && silent[group];
            (0..groups).filter(|&group| !skipped(group)).for_each(|group| whitening[group] = Some(over_batch));
        }
        let mut compared: Vec<Vec<[f64; 3]>> = Vec::with_capacity(parts.len());
        for ((&group, turns), parts) in evidence.groups.iter().zip(&mut advantages).zip(&parts) {
            if let Some(whitening) = whitening[group] {
                turns.iter_mut().for_each(|advantage| *advantage = whitening.apply(*advantage));
            }
            compared.push(parts.iter().map(|parts| one_comparison(parts, whitening[group])).collect());
        }
        let column = |index: usize| compared.iter().map(|turns| turns.iter().map(|entry| entry[index]).collect()).collect();
        let peers = |parts: &Vec<Part>| parts.iter().map(|part| part.peers).max().unwrap_or(0);
        let returns: Vec<f64> = returns_to_go.iter().map(|turns| turns.first().copied().unwrap_or(0.0)).collect();
        CreditMap {
            rewards: evidence.rewards.clone(),
            returns_to_go,
            values: column(0),
            baselines: column(1),
            scales: column(2),
            peers: parts.iter().map(|turns| turns.iter().map(peers).collect()).collect(),
            no_signal: all_zero(groups, evidence, &advantages),
            equal_returns: equal_returns(groups, evidence, &returns),
            advantages,
            parts,
            whitening,
            needs_values: false,
        }
    }

    /// What a method gives that lacks the values it needs: zeros, and the flag.
    pub(super) fn without_values(evidence: &Evidence, returns_to_go: Vec<Vec<f64>>) -> Self {
        let parts = evidence.rewards.iter().map(|turns| vec![Vec::new(); turns.len()]).collect();
        CreditMap { needs_values: true, ..CreditMap::of(evidence, returns_to_go, parts, Whitened::Never) }
    }
}

/// Per group, whether all numbers of its turns are 0.
fn all_zero(groups: usize, evidence: &Evidence, rows: &[Vec<f64>]) -> Vec<bool> {
    let mut zero = vec![true; groups];
    evidence.groups.iter().zip(rows).for_each(|(&group, turns)| zero[group] &= turns.iter().all(|&x| x == 0.0));
    zero
}

/// For each group whether all its trajectories earned the same return.
fn equal_returns(groups: usize, evidence: &Evidence, returns: &[f64]) -> Vec<bool> {
    let mut bounds = vec![(f64::INFINITY, f64::NEG_INFINITY); groups];
    for (&group, &value) in evidence.groups.iter().zip(returns) {
        bounds[group] = (bounds[group].0.min(value), bounds[group].1.max(value));
    }
    bounds.into_iter().map(|(low, high)| low > high || equal(low, high)).collect()
}

/// Parts as one comparison: value, baseline, scale.
fn one_comparison(parts: &[Part], whitening: Option<Whitening>) -> [f64; 3] {
    let Some(first) = parts.first() else { return [0.0, 0.0, 1.0] };
    let same = parts.iter().all(|part| part.scale == first.scale);
    let unit = |part: &Part| if same { part.weight } else { part.weight / part.scale };
    let scale = if same { first.scale } else { 1.0 };
    let value = parts.iter().fold(0.0, |sum, part| sum + unit(part) * part.value);
    let baseline = parts.iter().fold(0.0, |sum, part| sum + unit(part) * part.baseline);
    match whitening {
        Some(whitening) => [value, baseline + scale * whitening.mean, scale * whitening.scale],
        None => [value, baseline, scale],
    }
}
