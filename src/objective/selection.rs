//! What an update trains on: whole trajectories that the settings leave out, and pairs under DPO.

use crate::config::{ExperimentConfig, NoSignalGroups, PolicyLoss, Truncated};
use crate::credit::{CreditMap, best_and_worst};
use crate::rollout::{End, Trajectory};

/// Why a token is no part of the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// It belongs to the prompt.
    Prompt,
    /// The tool wrote it, and the loss mask is on.
    ToolToken,
    /// A limit cut its episode, and such episodes are left out.
    Truncated,
    /// All episodes of its group earned the same return, and such groups are left out.
    NoSignal,
}

/// Why the settings leave a whole trajectory out of the loss, if they do. `credit` is that of its batch.
pub fn left_out(config: &ExperimentConfig, trajectory: &Trajectory, credit: &CreditMap) -> Option<LeftOut> {
    let flat = credit.equal_returns.get(trajectory.group).copied().unwrap_or(false);
    if config.truncated == Truncated::Mask && trajectory.end != End::Terminated {
        Some(LeftOut::Truncated)
    } else if config.no_signal_groups != NoSignalGroups::Keep && flat {
        Some(LeftOut::NoSignal)
    } else {
        None
    }
}

/// The indices of the trajectories that an update trains on, in order. Under DPO they come in pairs, the best of a group before
/// its worst.
pub fn trained_trajectories(config: &ExperimentConfig, trajectories: &[Trajectory], credit: &CreditMap) -> Vec<usize> {
    let indices = 0..trajectories.len();
    let kept: Vec<usize> = indices.filter(|&index| left_out(config, &trajectories[index], credit).is_none()).collect();
    if config.policy_loss != PolicyLoss::Dpo {
        return kept;
    }
    let groups: Vec<usize> = kept.iter().map(|&index| trajectories[index].group).collect();
    let returns: Vec<f64> = kept.iter().map(|&index| credit.returns_to_go[index].first().copied().unwrap_or(0.0)).collect();
    best_and_worst(&groups, &returns).into_iter().flat_map(|(best, worst)| [kept[best], kept[worst]]).collect()
}
