//! True credit, measured: what each turn of frozen episodes did to the expected return of the policy that played them.
//!
//! `V(state)` is the mean return of continuations by that policy from the state, environment and tools restored to the moment;
//! the true credit of a turn is `r + gamma V(after) - V(before)`, with the last turn's V(after) = 0. Continuations can be added
//! at any time; every distinct state is rolled once for all the turns that begin or end in it.

use super::{Boundaries, Rollout, TrainError};
use crate::config::{CreditMethod, ExperimentConfig};
use crate::credit::{self, Evidence, METHODS, Prefixes, ReRolls, TrueCredit, TurnSelection};
use crate::metrics::{CreditAccuracy, MethodAccuracy};
use crate::policy::Policy;
use crate::reward::RewardTable;
use crate::rollout::Trajectory;
use crate::seed::{Purpose, RootSeed};

/// A measurement in progress.
pub struct TrueCreditRun {
    config: ExperimentConfig,
    policy: Policy,
    boundaries: Boundaries,
    trajectories: Vec<Trajectory>,
    rewards: RewardTable,
    /// What a critic said, where there is one.
    critic: Option<Vec<Vec<f64>>>,
    /// Returns of the continuations of each state.
    re_rolls: Vec<ReRolls>,
    /// Means of other continuations, for the method that assigns credit from Monte-Carlo values: it must not be judged by the
    /// very numbers it used.
    monte_carlo: Option<Vec<f64>>,
    rolls: usize,
}

impl TrueCreditRun {
    /// Nothing measured yet. `critic` holds the values of a critic, `[trajectory][turn]`, if the run's method has one.
    pub fn new(
        config: &ExperimentConfig,
        policy: &Policy,
        rollout: &Rollout,
        rewards: &RewardTable,
        values: Option<Vec<Vec<f64>>>,
    ) -> Self {
        let boundaries = Boundaries::of(rollout, config);
        TrueCreditRun {
            re_rolls: vec![ReRolls::default(); boundaries.states()],
            boundaries,
            config: config.clone(),
            policy: policy.clone(),
            trajectories: rollout.training.clone(),
            rewards: rewards.clone(),
            critic: values.filter(|_| config.credit_method == CreditMethod::Gae),
            monte_carlo: None,
            rolls: 0,
        }
    }

    /// Whether a critic's values are at hand.
    pub fn has_critic(&self) -> bool {
        self.critic.is_some()
    }

    /// Continuations of each state so far.
    pub fn rolls(&self) -> usize {
        self.rolls
    }

    /// Plays `rolls` more continuations of every state.
    ///
    /// # Errors
    /// When the device fails or a log-probability is not finite; what was measured before stays.
    pub async fn advance(&mut self, rolls: usize) -> Result<(), TrainError> {
        if self.monte_carlo.is_none() {
            let samples = self.config.monte_carlo_samples;
            let returns = self.boundaries.roll(&self.policy, &self.config, Purpose::MonteCarlo, 0, samples).await?;
            let mean = |returns: &Vec<f64>| returns.iter().sum::<f64>() / returns.len().max(1) as f64;
            self.monte_carlo = Some(returns.iter().map(mean).collect());
        }
        let returns = self.boundaries.roll(&self.policy, &self.config, Purpose::TrueCredit, self.rolls, rolls).await?;
        for (re_rolls, returns) in self.re_rolls.iter_mut().zip(returns) {
            returns.into_iter().for_each(|value| re_rolls.push(value));
        }
        self.rolls += rolls;
        Ok(())
    }

    /// What the continuations so far say.
    pub fn measured(&self) -> TrueCredit {
        let prefixes = Prefixes { of_turn: self.boundaries.index().to_vec(), holders: Vec::new() };
        TrueCredit::of(&self.rewards.totals(), &prefixes, &self.re_rolls, self.config.gamma)
    }

    /// The advantages that every method gives, on the same episodes and rewards. Methods that lack what they need are left out.
    pub fn assigned(&self) -> Vec<(CreditMethod, Vec<Vec<f64>>)> {
        let by_state = |means: &Vec<f64>| -> Vec<Vec<f64>> {
            self.boundaries.index().iter().map(|turns| turns.iter().map(|&state| means[state]).collect()).collect()
        };
        let advantages = |&method: &CreditMethod| {
            let values = match method {
                CreditMethod::MonteCarlo => self.monte_carlo.as_ref().map(by_state),
                CreditMethod::Gae => self.critic.clone(),
                _ => None,
            };
            let evidence = Evidence::of(&self.trajectories, &self.rewards, values);
            let map = credit::assign(&evidence, &ExperimentConfig { credit_method: method, ..self.config.clone() });
            (!map.needs_values).then_some((method, map.advantages))
        };
        METHODS.iter().filter_map(advantages).collect()
    }

    /// How close the credit of every method is to the measured one.
    pub fn accuracy(&self, measured: &TrueCredit) -> CreditAccuracy {
        let seed = RootSeed(self.config.seed);
        CreditAccuracy {
            methods: MethodAccuracy::of_all(self.assigned(), &self.trajectories, measured, seed),
            reliability: measured.reliability(&TurnSelection::All.of(&self.trajectories)),
            rolls: self.rolls,
            states: self.boundaries.states(),
            turns: self.trajectories.iter().map(|trajectory| trajectory.turns.len()).sum(),
        }
    }
}
