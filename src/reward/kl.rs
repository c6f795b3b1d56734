//! KL as a cost: every turn pays for its distance from the reference policy.

use super::{RewardTable, RewardTerm, WeightedTerm};
use crate::rollout::Trajectory;

impl RewardTable {
    /// Takes `beta * sum_t (log p_old - log p_ref)` over the sampled tokens of each turn from its reward (the k1 estimate, as in
    /// the PPO of RLHF, arXiv:2203.02155, eq. 2; there per token, here the tokens of a turn are one action).
    ///
    /// `log_ratios[i][t]` belongs to token `t` of trajectory `i`, 0 where nothing was sampled.
    pub fn charge_kl(&mut self, trajectories: &[Trajectory], log_ratios: &[Vec<f64>], beta: f64) {
        for ((terms, trajectory), ratios) in self.turns.iter_mut().zip(trajectories).zip(log_ratios) {
            for (terms, turn) in terms.iter_mut().zip(&trajectory.turns) {
                let distance: f64 = ratios[turn.start..turn.action_end].iter().sum();
                if distance != 0.0 {
                    terms.push(WeightedTerm { term: RewardTerm::Kl, weight: -beta * distance });
                }
            }
        }
    }

    /// Takes the KL costs over from an earlier scoring of the same trajectories: they depend on the policies, not on the weights.
    pub fn keep_kl(&mut self, earlier: &RewardTable) {
        for (terms, earlier) in self.turns.iter_mut().flatten().zip(earlier.turns.iter().flatten()) {
            terms.extend(earlier.iter().filter(|term| term.term == RewardTerm::Kl));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::tests::{answer, call, trajectory};

    #[test]
    fn each_turn_pays_for_its_own_tokens() {
        let trajectory = trajectory(0, &[call(), answer(true)]);
        let mut table = RewardTable { turns: vec![vec![Vec::new(); 2]] };
        let mut ratios = vec![0.0; trajectory.tokens.len()];
        ratios[trajectory.turns[0].start] = 0.5;
        table.charge_kl(std::slice::from_ref(&trajectory), &[ratios], 0.1);
        assert_eq!(table.totals(), [[-0.05, 0.0]]);
        let mut again = RewardTable { turns: vec![vec![Vec::new(); 2]] };
        again.keep_kl(&table);
        assert_eq!(again, table);
    }
}
