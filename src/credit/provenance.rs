//! Where the weight of one token came from: fact, reward term, discount, value, baseline and scale, advantage, loss mask, ratio
//! and clip, share of the loss. Every step can be checked: the sums and products give back the loss that is shown.

use super::compare::Whitening;
use super::map::{CreditMap, Part, PartKind};
use crate::environment::Facts;
use crate::reward::{RewardTable, WeightedTerm};
use crate::rollout::Trajectory;

/// Bounds of the probability ratio `rho`: the token's loss is `-min(rho A, clip(rho, 1 - low, 1 + high) A)` (PPO,
/// arXiv:1707.06347, eq. 7; a separate upper bound as in DAPO, arXiv:2503.14476, eq. 10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    pub low: f64,
    pub high: f64,
    /// Where the advantage is negative, the loss is at most `-c A` (dual clip, arXiv:1912.09729, eq. 5).
    pub dual: Option<f64>,
}

/// From one loss per token to one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregation {
    /// The mean over all trained tokens of the batch.
    TokenMean,
    /// The mean over trajectories of the mean over their trained tokens. Trajectories without a trained token count as a loss of
    /// 0 (TRL), or are left out of the count (verl).
    SequenceMean { count_untrained: bool },
    /// The sum over all trained tokens, divided by the number of trajectories times this length (Dr. GRPO, arXiv:2503.20783).
    Constant { length: f64 },
}

/// How the loss of a batch is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossSettings {
    pub clip: Clip,
    pub aggregation: Aggregation,
    /// Loss mask off: tool tokens are trained too, with the advantage of the turn that caused them.
    pub train_tool_tokens: bool,
}

/// The part of one token in the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct TokenLoss {
    /// Whether the token is trained. Of one that is not, all that follows is 0.
    pub trained: bool,
    pub advantage: f64,
    /// Probability now over probability when sampled, `exp(log p - log p_old)`.
    pub ratio: f64,
    /// Whether a bound of the clip took effect: then the gradient is 0.
    pub clipped: bool,
    /// `-min(rho A, clip(rho) A)`.
    pub loss: f64,
    /// The factor by which the aggregation counts it.
    pub weight: f64,
    /// `weight * loss`: these sum to the loss of the batch.
    pub share: f64,
    /// Derivative of the loss of the batch by the token's log-probability: `-weight rho A`, or 0 where clipped.
    pub gradient: f64,
}

/// The part of every token in the loss, `[trajectory][token]`. `ratios` has the same shape; entries of tokens that are not trained
/// may hold anything.
pub fn token_losses(
    trajectories: &[Trajectory],
    advantages: &[Vec<f64>],
    ratios: &[Vec<f64>],
    settings: &LossSettings,
) -> Vec<Vec<TokenLoss>> {
    let rows = trajectories.iter().zip(advantages).zip(ratios);
    let mut losses: Vec<Vec<TokenLoss>> =
        rows.map(|((trajectory, advantages), ratios)| unweighted(trajectory, advantages, ratios, settings)).collect();
    let trained = |row: &[TokenLoss]| row.iter().filter(|token| token.trained).count();
    let lengths: Vec<usize> = losses.iter().map(|row| trained(row)).collect();
    let total = lengths.iter().sum::<usize>().max(1) as f64;
    let counted = lengths.iter().filter(|&&length| length > 0).count().max(1) as f64;
    for (row, &length) in losses.iter_mut().zip(&lengths) {
        let weight = match settings.aggregation {
            Aggregation::TokenMean => 1.0 / total,
            Aggregation::SequenceMean { count_untrained } => {
                let sequences = if count_untrained { lengths.len() as f64 } else { counted };
                1.0 / (sequences * length.max(1) as f64)
            }
            Aggregation::Constant { length } => 1.0 / (lengths.len() as f64 * length),
        };
        for token in row.iter_mut().filter(|token| token.trained) {
            token.weight = weight;
            token.share = weight * token.loss;
            token.gradient = if token.clipped { 0.0 } else { -weight * token.ratio * token.advantage };
        }
    }
    losses
}

fn unweighted(trajectory: &Trajectory, advantages: &[f64], ratios: &[f64], settings: &LossSettings) -> Vec<TokenLoss> {
    let mut row = vec![TokenLoss::default(); trajectory.tokens.len()];
    for (turn, &advantage) in trajectory.turns.iter().zip(advantages) {
        let end = if settings.train_tool_tokens { turn.end } else { turn.action_end };
        for place in turn.start..end {
            let (loss, clipped) = clipped_loss(ratios[place], advantage, settings.clip);
            row[place] = TokenLoss { trained: true, advantage, ratio: ratios[place], clipped, loss, ..TokenLoss::default() };
        }
    }
    row
}

/// The loss of one token, and whether a bound took effect.
fn clipped_loss(ratio: f64, advantage: f64, clip: Clip) -> (f64, bool) {
    let free = ratio * advantage;
    let bounded = ratio.clamp(1.0 - clip.low, 1.0 + clip.high) * advantage;
    let (gain, clipped) = if bounded < free { (bounded, true) } else { (free, false) };
    match clip.dual.map(|bound| bound * advantage) {
        Some(least) if advantage < 0.0 && gain < least => (-least, true),
        _ => (-gain, clipped),
    }
}

/// A reward that a value is made of.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct DiscountedReward {
    /// The turn that earned it.
    pub turn: usize,
    /// What happened there.
    pub facts: Facts,
    /// The terms that paid, with their amounts.
    pub terms: Vec<WeightedTerm>,
    /// Gamma to the power of the turns in between.
    pub discount: f64,
    /// `discount` times the sum of the amounts.
    pub amount: f64,
}

/// A part of the advantage and what its value is made of.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct PartProvenance {
    pub part: Part,
    /// The rewards in `part.value`.
    pub rewards: Vec<DiscountedReward>,
    /// The rest of `part.value`: the discounted value of the state after the turn, where the part has one.
    pub value_after: Option<f64>,
}

/// The chain from facts to the share of one token in the loss.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Provenance {
    pub trajectory: usize,
    /// Index of the token in its trajectory.
    pub position: usize,
    /// The turn to which it belongs.
    pub turn: usize,
    /// Each contributes `weight (value - baseline) / scale`.
    pub parts: Vec<PartProvenance>,
    /// The centring and division over the batch that followed, if any.
    pub whitening: Option<Whitening>,
    /// The sum of the contributions, whitened: what the turn's tokens get.
    pub advantage: f64,
    /// Loss mask, ratio, clip and share.
    pub token: TokenLoss,
}

/// The provenance of the token at `position` of a trajectory; nothing for the prompt and beyond the end. `gamma` is the one the map
/// was made with; `losses` comes from [`token_losses`].
pub fn provenance(
    (index, position): (usize, usize),
    trajectories: &[Trajectory],
    rewards: &RewardTable,
    map: &CreditMap,
    gamma: f64,
    losses: &[Vec<TokenLoss>],
) -> Option<Provenance> {
    let trajectory = trajectories.get(index)?;
    let turn = trajectory.turns.iter().position(|turn| (turn.start..turn.end).contains(&position))?;
    let part = |part: &Part| {
        let last = trajectory.turns.len();
        let (turns, kept): (_, fn(&WeightedTerm) -> bool) = match part.kind {
            PartKind::Episode | PartKind::ReturnToGo | PartKind::State => (part.turn..last, |_| true),
            PartKind::Outcome => (part.turn..last, |term| term.term.is_outcome()),
            PartKind::ProcessReward => (part.turn..part.turn + 1, |term| !term.term.is_outcome()),
            PartKind::TurnReward | PartKind::TemporalDifference => (part.turn..part.turn + 1, |_| true),
        };
        let reward = |turn: usize| {
            let terms: Vec<WeightedTerm> = rewards.turns[index][turn].iter().filter(|term| kept(term)).copied().collect();
            let discount = gamma.powi((turn - part.turn) as i32);
            let amount = discount * terms.iter().fold(0.0, |sum, term| sum + term.weight);
            DiscountedReward { turn, facts: trajectory.turns[turn].facts, terms, discount, amount }
        };
        let rewards: Vec<DiscountedReward> = turns.map(reward).filter(|reward| !reward.terms.is_empty()).collect();
        let sum = rewards.iter().fold(0.0, |sum, reward| sum + reward.amount);
        let value_after = (part.kind == PartKind::TemporalDifference).then_some(part.value - sum);
        PartProvenance { part: *part, rewards, value_after }
    };
    Some(Provenance {
        trajectory: index,
        position,
        turn,
        parts: map.parts[index][turn].iter().map(part).collect(),
        whitening: map.whitening[trajectory.group],
        advantage: map.advantages[index][turn],
        token: losses[index][position],
    })
}
