//! The part of every token in the policy loss of an update, in plain numbers: ratio, clip, weight, share and gradient.

use crate::config::ExperimentConfig;
use crate::credit::CreditMap;
use crate::objective::{
    LeftOut, ObjectiveSettings, ScalarLoss, Surrogate, TrainedToken, left_out, row_weights, scalar_losses, trained_trajectories,
};
use crate::rollout::Trajectory;

/// Log-probabilities of all tokens, `[trajectory][token]`, in nats. Entries of tokens that are not trained may hold anything.
#[derive(Clone, Copy, Debug)]
pub struct LogProbs<'a> {
    /// Before the update: of the policy that sampled.
    pub old: &'a [Vec<f64>],
    /// Now.
    pub now: &'a [Vec<f64>],
}

/// The part of one token in the policy loss.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct TokenLoss {
    /// Why the token is not trained; `null` where it is. Of one that is not, all other numbers are 0.
    pub left_out: Option<LeftOut>,
    pub advantage: f64,
    /// Log-probability now, nats; `null` where it is not known.
    pub log_prob: Option<f64>,
    /// Probability now over probability when sampled, of the token or of its trajectory as the settings have it.
    pub ratio: f64,
    /// Whether a bound of the clip took effect.
    pub clipped: bool,
    /// The token's loss; `null` where it depends on a log-probability that is not known (CISPO, at tool tokens).
    pub loss: Option<f64>,
    /// The factor by which the aggregation counts it.
    pub weight: f64,
    /// `weight * loss`: these sum to the policy loss of the update.
    pub share: Option<f64>,
    /// Derivative of that policy loss by the token's log-probability, per nat.
    pub gradient: f64,
    /// The magnitude of `gradient` over the sum of the magnitudes of all tokens; 0 where all are 0.
    pub gradient_share: f64,
}

impl TokenLoss {
    fn not_trained(reason: LeftOut) -> Self {
        TokenLoss {
            left_out: Some(reason),
            advantage: 0.0,
            log_prob: None,
            ratio: 0.0,
            clipped: false,
            loss: Some(0.0),
            weight: 0.0,
            share: Some(0.0),
            gradient: 0.0,
            gradient_share: 0.0,
        }
    }
}

/// The part of every token in the policy loss of the update that the settings make of credited trajectories,
/// `[trajectory][token]`; `None` where the loss is of pairs (DPO). Terms of entropy and KL are left out.
///
/// Without log-probabilities the update is the first of its training step: those now are those when sampled, and no ratio differs
/// from 1. Tool tokens, trained when the loss mask is off, were not sampled: their ratio is 1 then, and their log-probability is
/// not known.
pub fn token_losses(
    config: &ExperimentConfig,
    trajectories: &[Trajectory],
    credit: &CreditMap,
    log_probs: Option<LogProbs>,
) -> Option<Vec<Vec<TokenLoss>>> {
    let objective = ObjectiveSettings::of(config);
    if objective.preference.is_some() {
        return None;
    }
    let chosen = trained_trajectories(config, trajectories, credit);
    let tokens: Vec<Vec<Token>> = chosen
        .iter()
        .map(|&index| {
            let given = log_probs.map(|given| (given.old[index].as_slice(), given.now[index].as_slice()));
            trained_tokens(&trajectories[index], &credit.advantages[index], config.loss_mask, given)
        })
        .collect();
    let counts: Vec<usize> = tokens.iter().map(Vec::len).collect();
    let groups: Vec<usize> = chosen.iter().map(|&index| trajectories[index].group).collect();
    let weights = row_weights(objective.aggregation, &counts, &groups);
    let reads_log_prob = matches!(objective.policy_loss.surrogate, Surrogate::Cispo { .. });
    let nothing = |trajectory: &Trajectory| untrained(trajectory, left_out(config, trajectory, credit), config.loss_mask);
    let mut rows: Vec<Vec<TokenLoss>> = trajectories.iter().map(nothing).collect();
    for ((&index, tokens), &weight) in chosen.iter().zip(&tokens).zip(&weights) {
        let plain: Vec<TrainedToken> = tokens.iter().map(|token| token.plain).collect();
        for (token, one) in tokens.iter().zip(scalar_losses(&plain, &objective.policy_loss)) {
            let ScalarLoss { ratio, clipped, loss, gradient } = one;
            let loss = (token.known || !reads_log_prob).then_some(loss);
            rows[index][token.place] = TokenLoss {
                left_out: None,
                advantage: token.plain.advantage,
                log_prob: token.known.then_some(token.plain.log_prob),
                ratio,
                clipped,
                loss,
                weight,
                share: loss.map(|loss| weight * loss),
                gradient: weight * gradient,
                gradient_share: 0.0,
            };
        }
    }
    let total: f64 = rows.iter().flatten().map(|token| token.gradient.abs()).sum();
    if total > 0.0 {
        rows.iter_mut().flatten().for_each(|token| token.gradient_share = token.gradient.abs() / total);
    }
    Some(rows)
}

/// The sum of all shares: the policy loss. `None` where one of them is not known.
pub fn policy_loss_of(tokens: &[Vec<TokenLoss>]) -> Option<f64> {
    tokens.iter().flatten().try_fold(0.0, |sum, token| Some(sum + token.share?))
}

/// A token to train, and where it stands.
struct Token {
    place: usize,
    plain: TrainedToken,
    /// Whether its log-probabilities are known.
    known: bool,
}

/// The tokens of a trajectory that the loss mask lets through; `given` are their log-probabilities, old and now.
fn trained_tokens(trajectory: &Trajectory, advantages: &[f64], loss_mask: bool, given: Option<(&[f64], &[f64])>) -> Vec<Token> {
    let turns = trajectory.turns.iter().zip(advantages);
    let of_turn = turns.flat_map(|(turn, &advantage)| {
        let end = if loss_mask { turn.action_end } else { turn.end };
        (turn.start..end).map(move |place| {
            let (old_log_prob, log_prob) = match given {
                Some((old, now)) => (old[place], now[place]),
                None => (f64::from(trajectory.log_probs[place]), f64::from(trajectory.log_probs[place])),
            };
            let known = given.is_some() || place < turn.action_end;
            Token { place, plain: TrainedToken { log_prob, old_log_prob, advantage }, known }
        })
    });
    of_turn.collect()
}

/// A row in which nothing is trained yet. `whole` says why the whole trajectory is left out; where it is not, tokens of its turns
/// that are not filled in later are tool tokens.
fn untrained(trajectory: &Trajectory, whole: Option<LeftOut>, loss_mask: bool) -> Vec<TokenLoss> {
    let mut row = vec![TokenLoss::not_trained(LeftOut::Prompt); trajectory.tokens.len()];
    let whole = whole.unwrap_or(LeftOut::ToolToken);
    for turn in &trajectory.turns {
        row[turn.start..turn.action_end].fill(TokenLoss::not_trained(whole));
        row[turn.action_end..turn.end].fill(TokenLoss::not_trained(if loss_mask { LeftOut::ToolToken } else { whole }));
    }
    row
}
