//! How close assigned credit comes to true credit.

use crate::config::CreditMethod;
use crate::credit::{Accuracy, TrueCredit, TurnSelection, accuracy};
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
    /// Compares `advantages` `[trajectory][turn]` with measured credit.
    pub fn of(
        method: CreditMethod,
        trajectories: &[Trajectory],
        advantages: &[Vec<f64>],
        measured: &TrueCredit,
        seed: RootSeed,
    ) -> Self {
        let groups: Vec<usize> = trajectories.iter().map(|trajectory| trajectory.group).collect();
        let over = |turns: TurnSelection| accuracy(&groups, advantages, &measured.credits, &turns.of(trajectories), seed);
        MethodAccuracy { method, all_turns: over(TurnSelection::All), tool_turns: over(TurnSelection::Tool) }
    }
}
