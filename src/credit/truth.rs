//! True credit: how much a turn changed the value of the state under the current policy, measured by re-rolls.
//!
//! `c_k = r_k + gamma V(after turn k) - V(before turn k)`, where `V` is the mean discounted return of fresh episodes that the current
//! policy continues from there, and 0 after the last turn. What is here is arithmetic on the returns of those episodes; playing
//! them needs the engine. Members of a group whose histories are the same share one estimate.

use std::collections::HashMap;

use super::evidence::Evidence;

/// Returns of the re-rolls from one state, as count, mean and sum of squared deviations (Welford 1962), so that more can be added
/// while they come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct ReRolls {
    pub count: usize,
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub squares: f64,
}

impl ReRolls {
    /// Adds the return of one more episode.
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// The value of the state; nothing without re-rolls.
    pub fn value(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Squared standard error of the mean: the sample variance over the count. Nothing with fewer than two re-rolls.
    pub fn error_variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64 / self.count as f64)
    }
}

/// The different states from which the turns of a batch started.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefixes {
    /// Which state each turn started from, `[trajectory][turn]`: an index into `holders`.
    pub of_turn: Vec<Vec<usize>>,
    /// For each state, the (trajectory, turn) pairs that started from it, in order. What the policy has seen is the same in all
    /// of them; what is hidden from it need not be, so re-rolls that take turns over the holders estimate the value of the
    /// history, and those from one holder alone the value of that holder's hidden state.
    pub holders: Vec<Vec<(usize, usize)>>,
}

impl Prefixes {
    /// The states of a batch: the same group, turn and history are the same state.
    pub fn of(evidence: &Evidence) -> Self {
        let mut known: HashMap<(usize, usize, u64), usize> = HashMap::new();
        let mut prefixes = Prefixes { of_turn: Vec::new(), holders: Vec::new() };
        for (index, rewards) in evidence.rewards.iter().enumerate() {
            let state = |turn: usize| {
                let next = known.len();
                let key = (evidence.groups[index], turn, evidence.histories[index][turn]);
                let state = *known.entry(key).or_insert(next);
                prefixes.holders.resize(known.len(), Vec::new());
                prefixes.holders[state].push((index, turn));
                state
            };
            let states = (0..rewards.len()).map(state).collect();
            prefixes.of_turn.push(states);
        }
        prefixes
    }
}

/// True credit of every turn. `[trajectory][turn]`; nothing where a state has not been re-rolled (often enough).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct TrueCredit {
    /// `r + gamma V(after) - V(before)`.
    pub credits: Vec<Vec<Option<f64>>>,
    /// Standard error of `credits`, from the spread of the re-rolls alone: the reward of the turn is what it was.
    pub standard_errors: Vec<Vec<Option<f64>>>,
    /// `V(before)`.
    pub values: Vec<Vec<Option<f64>>>,
}

impl TrueCredit {
    /// From the rewards of the frozen episodes, `[trajectory][turn]`, and the re-rolls of each state, `[state]`. States are
    /// re-rolled independently, so that the error variance of a credit is `gamma^2 var V(after) + var V(before)`.
    pub fn of(rewards: &[Vec<f64>], prefixes: &Prefixes, re_rolls: &[ReRolls], gamma: f64) -> Self {
        let at = |index: usize, turn: usize| re_rolls.get(prefixes.of_turn[index][turn]).copied().unwrap_or_default();
        let over = |of: &dyn Fn(usize, usize) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
            let row = |(index, turns): (usize, &Vec<f64>)| (0..turns.len()).map(|turn| of(index, turn)).collect();
            rewards.iter().enumerate().map(row).collect()
        };
        // After the last turn the value is 0, without error.
        let after = |index: usize, turn: usize, of: fn(&ReRolls) -> Option<f64>| {
            if turn + 1 < rewards[index].len() { of(&at(index, turn + 1)) } else { Some(0.0) }
        };
        let credit = |index: usize, turn: usize| {
            Some(rewards[index][turn] + gamma * after(index, turn, ReRolls::value)? - at(index, turn).value()?)
        };
        let error = |index: usize, turn: usize| {
            let variance = gamma.powi(2) * after(index, turn, ReRolls::error_variance)? + at(index, turn).error_variance()?;
            Some(variance.sqrt())
        };
        TrueCredit { credits: over(&credit), standard_errors: over(&error), values: over(&|index, turn| at(index, turn).value()) }
    }

    /// What share of the spread of the estimated credits is real: `1 - mean(error variance) / variance(credits)`, not below 0,
    /// over the turns where `selected` is true and both are known. The square of the correlation with the error-free credits,
    /// and the ceiling of what an estimator's correlation squared can reach. Nothing with fewer than three turns or without
    /// any spread.
    pub fn reliability(&self, selected: &[Vec<bool>]) -> Option<f64> {
        let credits = self.credits.iter().flatten();
        let known: Vec<(f64, f64)> = credits
            .zip(self.standard_errors.iter().flatten())
            .zip(selected.iter().flatten())
            .filter(|&(_, &selected)| selected)
            .filter_map(|((&credit, &error), _)| Some((credit?, error?)))
            .collect();
        let count = known.len() as f64;
        let mean = known.iter().map(|known| known.0).sum::<f64>() / count;
        let variance = known.iter().map(|known| (known.0 - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let error = known.iter().map(|known| known.1.powi(2)).sum::<f64>() / count;
        (known.len() >= 3 && variance > 0.0).then(|| (1.0 - error / variance).max(0.0))
    }

    /// The values as [`Evidence::values`], if every state has one.
    pub fn complete_values(&self) -> Option<Vec<Vec<f64>>> {
        self.values.iter().map(|turns| turns.iter().copied().collect()).collect()
    }
}
