//! How close assigned credit comes to true credit.

use crate::config::CreditMethod;
use crate::credit::{Accuracy, Agreement, Sampled, TrueCredit, TurnSelection, sampled};
use crate::rollout::Trajectory;
use crate::seed::RootSeed;

/// How close one method came, over the turns of some frozen episodes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct MethodAccuracy {
    pub method: CreditMethod,
    /// Over all turns.
    pub all_turns: Accuracy,
    /// Over the turns that called a tool.
    pub tool_turns: Accuracy,
    /// How far its correlation over all turns lies below that of the method that comes closest, with the interval of the difference
    /// over the same bootstrap samples; nothing for that method itself.
    #[serde(default)]
    pub behind: Option<Agreement>,
}

/// Every method's accuracy on the same episodes, and what it rests on.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct CreditAccuracy {
    pub methods: Vec<MethodAccuracy>,
    /// Share of the variance of measured credit that is not noise of the measurement; `null` where it is not defined.
    pub reliability: Option<f64>,
    /// Continuations of each state.
    pub rolls: usize,
    /// Distinct states rolled.
    pub states: usize,
    /// Turns judged.
    pub turns: usize,
}

impl MethodAccuracy {
    /// Compares the advantages `[trajectory][turn]` of every method with measured credit, and the methods with each other.
    pub fn of_all(
        assigned: Vec<(CreditMethod, Vec<Vec<f64>>)>,
        trajectories: &[Trajectory],
        measured: &TrueCredit,
        seed: RootSeed,
    ) -> Vec<Self> {
        let groups: Vec<usize> = trajectories.iter().map(|trajectory| trajectory.group).collect();
        let over = |advantages: &[Vec<f64>], turns: TurnSelection| {
            sampled(&groups, advantages, &measured.credits, &turns.of(trajectories), seed)
        };
        let all: Vec<Sampled> = assigned.iter().map(|(_, advantages)| over(advantages, TurnSelection::All)).collect();
        let correlation = |index: &usize| all[*index].accuracy.pearson.map(|pearson| pearson.value);
        let known = (0..all.len()).filter(|index| correlation(index).is_some());
        // Of equals the first.
        let closest = known.rev().max_by(|a, b| correlation(a).partial_cmp(&correlation(b)).unwrap_or(std::cmp::Ordering::Equal));
        let judged = |(index, (method, advantages)): (usize, &(CreditMethod, Vec<Vec<f64>>))| MethodAccuracy {
            method: *method,
            all_turns: all[index].accuracy,
            tool_turns: over(advantages, TurnSelection::Tool).accuracy,
            behind: closest.filter(|&closest| closest != index).and_then(|closest| all[closest].ahead_of(&all[index])),
        };
        assigned.iter().enumerate().map(judged).collect()
    }
}
