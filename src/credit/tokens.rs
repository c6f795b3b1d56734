//! Returns and advantages per token, as frameworks have them that step per token instead of per turn.
//!
//! They are here so that those conventions can be computed and compared with the ones per turn; training uses the latter. What
//! differs is what tool tokens do: verl skips them, SkyRL and Search-R1 walk through them like through any other, OpenRLHF
//! walks through them with reward and value 0.

use super::{discounted_returns, generalised_advantages};

/// What tokens that are not trained do to a recursion over tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrained {
    /// They are left out: one discount per trained token, and what came is carried over them.
    Skipped,
    /// They are steps like any other, with the rewards and values given for them.
    Walked,
    /// They are steps with reward and value 0.
    Zeroed,
}

impl Untrained {
    /// The positions that are steps.
    fn steps(self, trained: &[bool]) -> Vec<usize> {
        (0..trained.len()).filter(|&place| trained[place] || self != Untrained::Skipped).collect()
    }

    /// The number of a step.
    fn read(self, row: &[f64], trained: &[bool], place: usize) -> f64 {
        if self == Untrained::Zeroed && !trained[place] { 0.0 } else { row[place] }
    }
}

/// Runs a recursion over the steps of one trajectory; gives 0 at untrained tokens.
fn over_steps<const N: usize>(
    rows: [&[f64]; N],
    trained: &[bool],
    untrained: Untrained,
    recursion: impl Fn([Vec<f64>; N]) -> Vec<f64>,
) -> Vec<f64> {
    let steps = untrained.steps(trained);
    let chosen = rows.map(|row| steps.iter().map(|&place| untrained.read(row, trained, place)).collect());
    let mut result = vec![0.0; trained.len()];
    for (&place, value) in steps.iter().zip(recursion(chosen)) {
        if trained[place] {
            result[place] = value;
        }
    }
    result
}

/// `G_t = r_t + gamma G_{t+1}` over the tokens of one trajectory, `[token]`; 0 at untrained tokens.
pub fn token_returns(rewards: &[f64], trained: &[bool], gamma: f64, untrained: Untrained) -> Vec<f64> {
    over_steps([rewards], trained, untrained, |[rewards]| discounted_returns(&rewards, gamma))
}

/// Generalised advantage estimation over the tokens of one trajectory, `[token]`; 0 at untrained tokens. The value after the last
/// token is 0. Not whitened.
pub fn token_advantages(
    rewards: &[f64],
    values: &[f64],
    trained: &[bool],
    (gamma, lambda): (f64, f64),
    untrained: Untrained,
) -> Vec<f64> {
    over_steps([rewards, values], trained, untrained, |[rewards, values]| {
        generalised_advantages(&rewards, &values, gamma, lambda)
    })
}

/// Bi-level GAE over one trajectory (RAGEN, arXiv:2504.20073): first over the last tokens of turns with `turn_gamma`, then within
/// each turn over its trained tokens with `gamma`, the turn's return (advantage plus value) standing at its last token as the
/// reward. `turn_ends` marks those last tokens. RAGEN finds them as the positions of non-zero reward, so that a turn that
/// earned exactly 0 disappears there. `[token]`; 0 at untrained tokens. Not whitened.
pub fn bi_level_advantages(
    rewards: &[f64],
    values: &[f64],
    trained: &[bool],
    turn_ends: &[bool],
    turn_gamma: f64,
    (gamma, lambda): (f64, f64),
) -> Vec<f64> {
    let of_turns = token_advantages(rewards, values, turn_ends, (turn_gamma, lambda), Untrained::Skipped);
    let mut advantages = vec![0.0; trained.len()];
    let mut start = 0;
    for end in (0..trained.len()).filter(|&place| turn_ends[place]) {
        let turn = start..end + 1;
        let mut rewards = rewards[turn.clone()].to_vec();
        rewards[end - start] = of_turns[end] + values[end];
        let within =
            token_advantages(&rewards, &values[turn.clone()], &trained[turn.clone()], (gamma, lambda), Untrained::Skipped);
        advantages[turn].copy_from_slice(&within);
        start = end + 1;
    }
    advantages
}
