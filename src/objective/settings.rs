//! What an objective consists of: plain data, made from an experiment's settings.

use super::{Aggregation, KlEstimator};
use crate::config::{self, ExperimentConfig};

/// How far the ratio may move before its gradient is cut: `[1 - low, 1 + high]`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ClipBounds {
    pub low: f64,
    pub high: f64,
}

/// What is made of ratio and advantage.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Surrogate {
    /// `-min(rho A, clip(rho, 1 - low, 1 + high) A)` (PPO, arXiv:1707.06347, eq. 7; a separate upper bound as in DAPO,
    /// arXiv:2503.14476, eq. 10).
    Clip {
        bounds: ClipBounds,
        /// For negative advantages the loss is at most `-A c` (dual clip, arXiv:1912.09729, eq. 5; verl's default 3).
        dual: Option<f64>,
        /// The unclipped branch uses `min(rho, ceiling)` (TRL's `delta`).
        ceiling: Option<f64>,
    },
    /// `-sg(clip(rho, low, high)) A log p` (CISPO, arXiv:2506.13585, eq. 4): the clipped ratio is a constant weight, so that no
    /// token loses its gradient. The bounds are those of the ratio itself. (verl clips on both sides, open-instruct and TRL
    /// only above: a lower bound of 0.)
    Cispo { low: f64, high: f64 },
    /// `-(4 / tau) sigmoid(tau (rho - 1)) A`, tau by the sign of A (SAPO, arXiv:2511.20347): a soft gate in place of the clip.
    Sapo { positive: f64, negative: f64 },
    /// The log-ratio is clipped to `[-low, high]` on the side that the sign of A gives, then averaged over the trajectory (GMPO,
    /// arXiv:2507.20673).
    GeometricMean { bounds: ClipBounds },
}

/// What one probability ratio is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RatioLevel {
    /// One token.
    Token,
    /// The whole trajectory: `exp(mean_t (log p_t - log p_old_t))` over its trained tokens (GSPO, arXiv:2507.18071, eq. 7).
    Sequence,
    /// The same value, with the gradient of each token's own log-probability (GSPO-token, eq. 14; verl's form of GSPO). With
    /// one advantage per trajectory its gradient is that of `Sequence`; with one per turn it is not.
    SequenceToken,
}

/// The policy part of the loss.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PolicyLossSettings {
    pub surrogate: Surrogate,
    pub ratio_level: RatioLevel,
    /// Log-ratios are clamped to this magnitude before the exponential, without gradient outside (verl, OpenRLHF and SkyRL: 20).
    pub log_ratio_limit: Option<f64>,
}

/// The pull towards the reference, inside the loss.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct KlTerm {
    pub estimator: KlEstimator,
    pub beta: f64,
    /// Whether the estimate is multiplied by the probability ratio, which makes it unbiased off-policy (TRL's default since
    /// 1.16; DeepSeek-V3.2).
    pub times_ratio: bool,
}

/// Everything that turns advantages into a loss.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ObjectiveSettings {
    pub policy_loss: PolicyLossSettings,
    pub aggregation: Aggregation,
    /// `None`: no KL term in the loss.
    pub kl: Option<KlTerm>,
    pub entropy_coefficient: f64,
    /// DPO on the best and the worst of each group instead of the policy loss: the beta of DPO.
    pub preference: Option<f64>,
}

/// Log-ratios beyond this are rounding or a broken run.
const LOG_RATIO_LIMIT: f64 = 20.0;

/// Temperatures of SAPO's gate for positive and negative advantages, as in the paper.
const SAPO_TEMPERATURES: (f64, f64) = (1.0, 1.05);

impl ObjectiveSettings {
    /// The objective of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        let bounds = ClipBounds { low: config.epsilon, high: config.epsilon_high };
        let surrogate = match config.policy_loss {
            config::PolicyLoss::Clip | config::PolicyLoss::Dpo => {
                Surrogate::Clip { bounds, dual: (config.dual_clip > 0.0).then_some(config.dual_clip), ceiling: None }
            }
            config::PolicyLoss::Cispo => Surrogate::Cispo { low: 0.0, high: 1.0 + bounds.high },
            config::PolicyLoss::Sapo => Surrogate::Sapo { positive: SAPO_TEMPERATURES.0, negative: SAPO_TEMPERATURES.1 },
            config::PolicyLoss::Gmpo => Surrogate::GeometricMean { bounds },
        };
        let ratio_level = match config.ratio_level {
            config::RatioLevel::Token => RatioLevel::Token,
            config::RatioLevel::Sequence => RatioLevel::Sequence,
            config::RatioLevel::SequenceToken => RatioLevel::SequenceToken,
        };
        let aggregation = match config.aggregation {
            config::Aggregation::TokenMean => Aggregation::TokenMean,
            config::Aggregation::SequenceMean => Aggregation::SequenceMean { count_empty: false },
            config::Aggregation::Constant => {
                Aggregation::SequenceSum { count_empty: true, length: (config.turn_limit * config.turn_tokens) as f64 }
            }
            config::Aggregation::GroupMean => Aggregation::GroupMean,
        };
        let estimator = match config.kl_estimator {
            config::KlEstimator::K1 => KlEstimator::K1,
            config::KlEstimator::K2 => KlEstimator::K2,
            config::KlEstimator::K3 => KlEstimator::K3,
            config::KlEstimator::K3Plus => KlEstimator::K3Plus,
        };
        let in_loss = config.beta != 0.0 && config.kl_placement == config::KlPlacement::Loss;
        ObjectiveSettings {
            policy_loss: PolicyLossSettings { surrogate, ratio_level, log_ratio_limit: Some(LOG_RATIO_LIMIT) },
            aggregation,
            kl: in_loss.then_some(KlTerm { estimator, beta: config.beta, times_ratio: config.kl_times_ratio }),
            entropy_coefficient: config.entropy_coefficient,
            preference: (config.policy_loss == config::PolicyLoss::Dpo).then_some(config.dpo_beta),
        }
    }
}
