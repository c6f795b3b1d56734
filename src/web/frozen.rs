//! Frozen episodes, kept ready to be credited again and again: what the page asks at slider speed.

use super::protocol::{Batch, MethodCredit, Recredit};
use crate::config::ExperimentConfig;
use crate::credit::{self, CreditMap, Evidence, METHODS};
use crate::metrics::{Provenance, provenance};
use crate::reward::{self, RewardTable};

/// A batch whose arrays fit together. Costs of KL and values of states, which depend on policies and not on settings, stay those
/// of the batch whatever the settings.
pub struct FrozenBatch {
    batch: Batch,
}

/// What does not fit in a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("trajectories[{0}].group: there are {1} groups")]
    Group(usize, usize),
    #[error("trajectories[{0}].{1}: its length is not that of `tokens`")]
    TokenArray(usize, &'static str),
    #[error("trajectories[{0}].turns[{1}]: turns must follow one another within the tokens, the first after the prompt")]
    Turn(usize, usize),
    #[error("{0}: it must have one entry for every turn of every trajectory")]
    PerTurn(&'static str),
}

impl FrozenBatch {
    /// Checks a batch.
    ///
    /// # Errors
    /// When its arrays do not fit together: a file may hold anything.
    pub fn new(batch: Batch) -> Result<Self, BatchError> {
        for (index, trajectory) in batch.trajectories.iter().enumerate() {
            if trajectory.group >= batch.groups.len() {
                return Err(BatchError::Group(index, batch.groups.len()));
            }
            let length = trajectory.tokens.len();
            for (name, own) in [("loss_mask", trajectory.loss_mask.len()), ("log_probs", trajectory.log_probs.len())] {
                if own != length {
                    return Err(BatchError::TokenArray(index, name));
                }
            }
            let mut end = trajectory.prompt_length;
            for (place, turn) in trajectory.turns.iter().enumerate() {
                if turn.start < end || turn.action_end < turn.start || turn.end < turn.action_end || turn.end > length {
                    return Err(BatchError::Turn(index, place));
                }
                end = turn.end;
            }
            if end > length {
                return Err(BatchError::Turn(index, 0));
            }
        }
        let turns = || batch.trajectories.iter().map(|trajectory| trajectory.turns.len());
        if batch.rewards.as_ref().is_some_and(|rewards| !rewards.turns.iter().map(Vec::len).eq(turns())) {
            return Err(BatchError::PerTurn("rewards"));
        }
        if batch.values.as_ref().is_some_and(|values| !values.iter().map(Vec::len).eq(turns())) {
            return Err(BatchError::PerTurn("values"));
        }
        Ok(FrozenBatch { batch })
    }

    fn rewards(&self, config: &ExperimentConfig) -> RewardTable {
        let mut rewards = reward::score(&self.batch.trajectories, &reward::weighted_terms(config));
        if let Some(earlier) = &self.batch.rewards {
            rewards.keep_kl(earlier);
        }
        rewards
    }

    fn evidence(&self, rewards: &RewardTable) -> Evidence {
        Evidence::of(&self.batch.trajectories, rewards, None)
    }

    /// Credit by one method, which gets the batch's values where they are its own.
    fn assign(&self, evidence: &Evidence, config: &ExperimentConfig) -> CreditMap {
        if self.batch.valued_by != Some(config.credit_method) {
            return credit::assign(evidence, config);
        }
        credit::assign(&Evidence { values: self.batch.values.clone(), ..evidence.clone() }, config)
    }

    /// Rewards and credit under other settings.
    pub fn recredit(&self, config: &ExperimentConfig) -> Recredit {
        let rewards = self.rewards(config);
        let credit = self.assign(&self.evidence(&rewards), config);
        Recredit { rewards, credit }
    }

    /// The advantages of every method under the other choices of some settings.
    pub fn recredit_all(&self, config: &ExperimentConfig) -> Vec<MethodCredit> {
        let evidence = self.evidence(&self.rewards(config));
        let of = |&method| {
            let map = self.assign(&evidence, &ExperimentConfig { credit_method: method, ..config.clone() });
            MethodCredit { method, advantages: map.advantages, needs_values: map.needs_values }
        };
        METHODS.iter().map(of).collect()
    }

    /// Where the weight of a token comes from under some settings, in the first update of its training step; nothing for the prompt
    /// and beyond the end.
    pub fn provenance(&self, config: &ExperimentConfig, trajectory: usize, position: usize) -> Option<Provenance> {
        let Recredit { rewards, credit } = self.recredit(config);
        provenance((trajectory, position), config, &self.batch.trajectories, &rewards, &credit, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CreditMethod, RewardMode};
    use crate::credit::tests::with_tools;
    use crate::reward::tests::{answer, call, trajectory};
    use crate::reward::{RewardTerm, WeightedTerm};
    use crate::rollout::GroupInfo;

    fn batch() -> Batch {
        let trajectories: Vec<_> = [true, false].map(|right| with_tools(trajectory(0, &[call(), answer(right)]))).into();
        let kl = vec![WeightedTerm { term: RewardTerm::Kl, weight: -0.25 }];
        Batch {
            iteration: 3,
            groups: vec![GroupInfo { prompt: vec![1, 1], question_type: 0, hidden_state: String::new() }],
            rewards: Some(RewardTable { turns: vec![vec![kl, Vec::new()], vec![Vec::new(); 2]] }),
            credit: None,
            values: None,
            valued_by: None,
            trajectories,
        }
    }

    fn settings() -> ExperimentConfig {
        ExperimentConfig { reward_mode: RewardMode::Mixed, gamma: 0.5, ..ExperimentConfig::default() }
    }

    #[test]
    fn all_methods_at_once_give_what_each_gives_alone() {
        let frozen = FrozenBatch::new(batch()).unwrap();
        let all = frozen.recredit_all(&settings());
        assert_eq!(all.len(), METHODS.len());
        for MethodCredit { method, advantages, needs_values } in all {
            let alone = frozen.recredit(&ExperimentConfig { credit_method: method, ..settings() });
            assert_eq!((&alone.credit.advantages, alone.credit.needs_values), (&advantages, needs_values), "{method:?}");
            assert_eq!(needs_values, credit::needs_values(method), "the batch has no values");
            assert_eq!(alone.rewards.totals()[0], [0.1 - 0.25, 1.05], "the cost of KL stays");
        }
    }

    #[test]
    fn values_serve_the_method_that_they_were_made_for_alone() {
        let values = Some(vec![vec![0.5, 0.25], vec![0.5, 0.75]]);
        let frozen = FrozenBatch::new(Batch { values, valued_by: Some(CreditMethod::Gae), ..batch() }).unwrap();
        let needing: Vec<_> = frozen.recredit_all(&settings()).into_iter().filter(|credit| credit.needs_values).collect();
        assert_eq!(needing.iter().map(|credit| credit.method).collect::<Vec<_>>(), [CreditMethod::MonteCarlo]);
        assert!(needing[0].advantages.iter().flatten().all(|&advantage| advantage == 0.0));
    }

    #[test]
    fn provenance_is_that_of_the_settings_asked_for() {
        let frozen = FrozenBatch::new(batch()).unwrap();
        for credit_method in [CreditMethod::Grpo, CreditMethod::ReturnToGo] {
            let config = ExperimentConfig { credit_method, ..settings() };
            let credit = frozen.recredit(&config).credit;
            let found = frozen.provenance(&config, 1, 2).unwrap();
            assert_eq!(found.chain.advantage, credit.advantages[1][0]);
            assert_eq!(found.token.unwrap().advantage, credit.advantages[1][0]);
        }
        let beyond = [(0, 1), (0, 10), (2, 2)].map(|(index, position)| frozen.provenance(&settings(), index, position));
        assert_eq!(beyond, [None, None, None]);
    }

    #[test]
    fn a_batch_whose_arrays_do_not_fit_is_refused() {
        let error = |change: fn(&mut Batch)| {
            let mut batch = batch();
            change(&mut batch);
            FrozenBatch::new(batch).err()
        };
        assert_eq!(error(|_| ()), None);
        assert_eq!(error(|batch| batch.trajectories[1].group = 1), Some(BatchError::Group(1, 1)));
        assert_eq!(error(|batch| batch.trajectories[1].log_probs.clear()), Some(BatchError::TokenArray(1, "log_probs")));
        assert_eq!(error(|batch| batch.trajectories[0].turns[1].start = 4), Some(BatchError::Turn(0, 1)));
        assert_eq!(error(|batch| batch.trajectories[0].turns[1].end = 99), Some(BatchError::Turn(0, 1)));
        assert_eq!(error(|batch| batch.values = Some(vec![vec![0.0; 2]])), Some(BatchError::PerTurn("values")));
        assert_eq!(error(|batch| batch.rewards = Some(RewardTable { turns: Vec::new() })), Some(BatchError::PerTurn("rewards")));
    }
}
