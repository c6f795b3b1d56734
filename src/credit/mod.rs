//! Credit assignment: from rewards per turn to one advantage per turn, with the numbers it was made of.
//!
//! Pure functions of plain data: no tensors, no policy, no randomness. One file per method; a new method is that file and
//! one line in [`assign`].

mod grpo;
mod return_to_go;
#[cfg(test)]
mod tests;

use crate::config::{CreditMethod, ExperimentConfig, ScaleRewards};

pub use grpo::outcome_advantages;
pub use return_to_go::{discounted_returns, turn_advantages};

/// What differences from the baseline are divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// Nothing.
    None,
    /// The standard deviation over the peers, plus `epsilon`. The sum of squares is divided by the number of peers less `ddof`.
    Deviation { ddof: usize, epsilon: f64 },
}

impl Scaling {
    /// What the setting `group` means: the sample deviation plus 1e-4 (TRL's values, so that figures can be compared).
    pub const GROUP: Scaling = Scaling::Deviation { ddof: 1, epsilon: 1e-4 };

    /// The setting of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        match config.scale_rewards {
            ScaleRewards::Group => Scaling::GROUP,
            ScaleRewards::None => Scaling::None,
        }
    }
}

/// The advantage of every turn and how it came about. All arrays are `[trajectory][turn]`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct CreditMap {
    /// Reward of the turn itself.
    pub rewards: Vec<Vec<f64>>,
    /// Discounted return from the turn on; the first entry is the return of the trajectory.
    pub returns_to_go: Vec<Vec<f64>>,
    /// What was compared with the baseline: the return of the trajectory, or the return-to-go of the turn.
    pub values: Vec<Vec<f64>>,
    /// Mean over the peers.
    pub baselines: Vec<Vec<f64>>,
    /// What the difference was divided by, epsilon included; 1 where scaling is off.
    pub scales: Vec<Vec<f64>>,
    /// How many values the baseline is the mean of, this one included. 1 means "no peer": the advantage is 0.
    pub peers: Vec<Vec<usize>>,
    /// The weight of the turn's tokens in the update.
    pub advantages: Vec<Vec<f64>>,
    /// Per group: whether all values were equal, so that nothing can be learned from it.
    pub no_signal: Vec<bool>,
}

/// Assigns credit to the turns of a batch.
///
/// `groups[i]` is the group of trajectory `i`, `rewards[i][k]` the reward of its turn `k`.
pub fn assign(groups: &[usize], rewards: &[Vec<f64>], config: &ExperimentConfig) -> CreditMap {
    let scaling = Scaling::of(config);
    match config.credit_method {
        CreditMethod::Grpo => grpo::assign(groups, rewards, config.gamma, scaling),
        CreditMethod::ReturnToGo => return_to_go::assign(groups, rewards, config.gamma, scaling),
    }
}

/// How likely a group of `group` trajectories teaches nothing, when each succeeds with probability `p` on its own and success is
/// all that is rewarded: `p^G + (1 - p)^G`, the chance that all succeed or all fail. `p` is clamped to `0..=1`; a group of
/// one (or none) never teaches anything and gives 1.
pub fn uninformative_probability(p: f64, group: usize) -> f64 {
    let (p, group) = (p.clamp(0.0, 1.0), i32::try_from(group.max(1)).unwrap_or(i32::MAX));
    p.powi(group) + (1.0 - p).powi(group)
}

/// Mean, scale and count of the values of peers.
///
/// Equal values count as flat by comparing the maximum with the minimum: the rounding of the mean must not turn identical
/// rewards into a signal.
pub(crate) struct GroupStatistics {
    pub mean: f64,
    /// What differences are divided by; 1 without scaling.
    pub scale: f64,
    pub count: usize,
    /// All values are the same, or there is only one: the advantage is exactly 0.
    pub flat: bool,
}

impl GroupStatistics {
    /// Statistics of `values`, scaled as asked.
    pub fn of(values: &[f64], scaling: Scaling) -> Self {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count.max(1) as f64;
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
        let flat = count < 2 || low == high;
        let scale = match scaling {
            Scaling::None => 1.0,
            Scaling::Deviation { epsilon, .. } if flat => epsilon,
            Scaling::Deviation { ddof, epsilon } => {
                let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
                (squares / count.saturating_sub(ddof).max(1) as f64).sqrt() + epsilon
            }
        };
        GroupStatistics { mean: if flat && count > 0 { values[0] } else { mean }, scale, count, flat }
    }

    /// `(value - mean) / scale`. Exactly 0 in a flat group.
    pub fn advantage(&self, value: f64) -> f64 {
        if self.flat { 0.0 } else { (value - self.mean) / self.scale }
    }
}

/// The members of each group: `members[g]` lists the trajectories with `groups[i] == g`.
pub(crate) fn members(groups: &[usize]) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); groups.iter().max().map_or(0, |&last| last + 1)];
    groups.iter().enumerate().for_each(|(index, &group)| members[group].push(index));
    members
}
