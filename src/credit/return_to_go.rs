//! Per-turn discounted return-to-go, compared with the peers that reached the same turn.
//!
//! `G_{i,k} = r_{i,k} + gamma G_{i,k+1}`, `b_k = mean of G_{i,k} over the members of the group that have a turn k`,
//! `A_{i,k} = (G_{i,k} - b_k) / (std_k + 1e-4)`. Gamma acts once per turn: tool tokens never consume it. (The same form as the
//! step returns of rLLM and GiGPO, arXiv:2505.10978, with the turn index as the state; some frameworks discount per token
//! instead, which makes credit depend on how long a tool's answer is.) A lone survivor at a late turn has no peer and gets 0.

use super::{CreditMap, GroupStatistics, Scaling, members};

/// `G_k = r_k + gamma G_{k+1}` for one trajectory.
pub fn discounted_returns(rewards: &[f64], gamma: f64) -> Vec<f64> {
    let mut returns = rewards.to_vec();
    for turn in (0..returns.len().saturating_sub(1)).rev() {
        returns[turn] += gamma * returns[turn + 1];
    }
    returns
}

/// The credit map of returns-to-go against the mean at the same turn.
pub fn turn_advantages(groups: &[usize], returns_to_go: &[Vec<f64>], scaling: Scaling) -> Vec<Vec<f64>> {
    compare(groups, returns_to_go, scaling).advantages
}

pub(super) fn assign(groups: &[usize], rewards: &[Vec<f64>], gamma: f64, scaling: Scaling) -> CreditMap {
    let returns_to_go: Vec<Vec<f64>> = rewards.iter().map(|rewards| discounted_returns(rewards, gamma)).collect();
    CreditMap { rewards: rewards.to_vec(), ..compare(groups, &returns_to_go, scaling) }
}

fn compare(groups: &[usize], returns_to_go: &[Vec<f64>], scaling: Scaling) -> CreditMap {
    let blank = || returns_to_go.iter().map(|turns| vec![0.0; turns.len()]).collect::<Vec<_>>();
    let mut map = CreditMap {
        rewards: Vec::new(),
        returns_to_go: returns_to_go.to_vec(),
        values: returns_to_go.to_vec(),
        baselines: blank(),
        scales: blank(),
        peers: returns_to_go.iter().map(|turns| vec![0; turns.len()]).collect(),
        advantages: blank(),
        no_signal: Vec::new(),
    };
    for group in members(groups) {
        let turns = group.iter().map(|&i| returns_to_go[i].len()).max().unwrap_or(0);
        let mut flat = true;
        for turn in 0..turns {
            let peers: Vec<usize> = group.iter().copied().filter(|&i| returns_to_go[i].len() > turn).collect();
            let values: Vec<f64> = peers.iter().map(|&i| returns_to_go[i][turn]).collect();
            let statistics = GroupStatistics::of(&values, scaling);
            flat &= statistics.flat;
            for &i in &peers {
                map.baselines[i][turn] = statistics.mean;
                map.scales[i][turn] = statistics.scale;
                map.peers[i][turn] = statistics.count;
                map.advantages[i][turn] = statistics.advantage(returns_to_go[i][turn]);
            }
        }
        map.no_signal.push(flat);
    }
    map
}
