//! Where the weight of one token in an update came from, whole: from facts to its advantage, and from there to its shares of
//! loss and gradient.

use super::token_loss::{LogProbs, TokenLoss, policy_loss_of, token_losses};
use crate::config::{ExperimentConfig, KlPlacement, PolicyLoss};
use crate::credit::{CreditChain, CreditMap, credit_chain};
use crate::reward::RewardTable;
use crate::rollout::Trajectory;

/// A term of the loss that is not taken apart by tokens here.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OtherTerm {
    /// Less `coefficient` times the mean entropy over sampled tokens.
    Entropy { coefficient: f64 },
    /// Plus `beta` times the KL divergence to the reference.
    Kl { beta: f64 },
    /// The preference of the best over the worst of each group, in place of the policy loss (DPO).
    Preference { beta: f64 },
}

impl OtherTerm {
    /// Those of an experiment.
    pub fn of(config: &ExperimentConfig) -> Vec<Self> {
        let kl = config.beta != 0.0 && config.kl_placement == KlPlacement::Loss;
        let terms = [
            (config.entropy_coefficient != 0.0).then_some(OtherTerm::Entropy { coefficient: config.entropy_coefficient }),
            kl.then_some(OtherTerm::Kl { beta: config.beta }),
            (config.policy_loss == PolicyLoss::Dpo).then_some(OtherTerm::Preference { beta: config.dpo_beta }),
        ];
        terms.into_iter().flatten().collect()
    }
}

/// The chain from facts to the share of one token in the policy loss and in its gradient.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Provenance {
    /// From facts to the advantage of the token's turn.
    pub chain: CreditChain,
    /// Index of the token in its trajectory.
    pub position: usize,
    /// From the advantage to the shares; `null` where the loss is of pairs (DPO).
    pub token: Option<TokenLoss>,
    /// The policy loss that `token.share` is a part of; `null` where it is not known.
    pub policy_loss: Option<f64>,
    /// The sum over all tokens of the magnitudes of their gradients, which `token.gradient_share` is a share of.
    pub gradient_sum: Option<f64>,
    /// How many tokens of the batch are trained.
    pub trained_tokens: Option<usize>,
    /// What the loss has beside that.
    pub other_terms: Vec<OtherTerm>,
}

/// The provenance of the token at `position` of a trajectory; nothing for the prompt and beyond the end. `rewards` and `credit` are
/// those of the trajectories under the same settings; for `log_probs` see [`token_losses`].
pub fn provenance(
    (index, position): (usize, usize),
    config: &ExperimentConfig,
    trajectories: &[Trajectory],
    rewards: &RewardTable,
    credit: &CreditMap,
    log_probs: Option<LogProbs>,
) -> Option<Provenance> {
    let turns = &trajectories.get(index)?.turns;
    let turn = turns.iter().position(|turn| (turn.start..turn.end).contains(&position))?;
    let chain = credit_chain((index, turn), trajectories, rewards, credit, config.gamma)?;
    let losses = token_losses(config, trajectories, credit, log_probs);
    Some(Provenance {
        chain,
        position,
        token: losses.as_ref().map(|losses| losses[index][position]),
        policy_loss: losses.as_deref().and_then(policy_loss_of),
        gradient_sum: losses.as_ref().map(|losses| losses.iter().flatten().map(|token| token.gradient.abs()).sum()),
        trained_tokens: losses.as_ref().map(|losses| losses.iter().flatten().filter(|token| token.left_out.is_none()).count()),
        other_terms: OtherTerm::of(config),
    })
}
