//! An objective as the constants of a kernel: what decides which code runs, and the numbers that the code takes.

use cubecl::prelude::*;

use crate::objective::{KlEstimator, ObjectiveSettings, RatioLevel, Surrogate};

/// What is made of ratio and advantage; [`Surrogate`] without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Clip,
    Cispo,
    Sapo,
    GeometricMean,
}

/// The parts of an objective that decide which code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rule {
    pub kind: Kind,
    pub level: Level,
    pub dual: bool,
    pub ceiling: bool,
    pub limit: bool,
    pub kl: Pull,
    pub kl_times_ratio: bool,
    pub preference: bool,
}

/// [`RatioLevel`], as a constant of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Level {
    Token,
    Sequence,
    SequenceToken,
}

/// [`KlEstimator`], or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pull {
    None,
    K1,
    K2,
    K3,
    Absolute,
    K1Plus,
    K3Plus,
}

/// The numbers of an objective.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Constants {
    /// Bounds of the ratio; of the log-ratio for the geometric mean; temperatures of the gate for negative and positive advantages.
    pub low: f32,
    pub high: f32,
    pub dual: f32,
    pub ceiling: f32,
    /// Of log-ratios.
    pub limit: f32,
    pub kl_beta: f32,
    pub preference_beta: f32,
    /// One over the number of pairs.
    pub pair_share: f32,
}

/// What code runs and with which numbers. `pairs` is the number of pairs where preferences are trained.
pub(super) fn rule(settings: &ObjectiveSettings, pairs: usize) -> (Rule, ConstantsLaunch) {
    let policy = &settings.policy_loss;
    let (kind, low, high, dual, ceiling) = match policy.surrogate {
        Surrogate::Clip { bounds, dual, ceiling } => (Kind::Clip, 1.0 - bounds.low, 1.0 + bounds.high, dual, ceiling),
        Surrogate::Cispo { low, high } => (Kind::Cispo, low, high, None, None),
        Surrogate::Sapo { positive, negative } => (Kind::Sapo, negative, positive, None, None),
        Surrogate::GeometricMean { bounds } => (Kind::GeometricMean, -bounds.low, bounds.high, None, None),
    };
    let rule = Rule {
        kind,
        level: match policy.ratio_level {
            RatioLevel::Token => Level::Token,
            RatioLevel::Sequence => Level::Sequence,
            RatioLevel::SequenceToken => Level::SequenceToken,
        },
        dual: dual.is_some(),
        ceiling: ceiling.is_some(),
        limit: policy.log_ratio_limit.is_some(),
        kl: match settings.kl.map(|kl| kl.estimator) {
            None => Pull::None,
            Some(KlEstimator::K1) => Pull::K1,
            Some(KlEstimator::K2) => Pull::K2,
            Some(KlEstimator::K3) => Pull::K3,
            Some(KlEstimator::Absolute) => Pull::Absolute,
            Some(KlEstimator::K1Plus) => Pull::K1Plus,
            Some(KlEstimator::K3Plus) => Pull::K3Plus,
        },
        kl_times_ratio: settings.kl.is_some_and(|kl| kl.times_ratio),
        preference: settings.preference.is_some(),
    };
    let constants = ConstantsLaunch::new(
        low as f32,
        high as f32,
        dual.unwrap_or(0.0) as f32,
        ceiling.unwrap_or(0.0) as f32,
        policy.log_ratio_limit.unwrap_or(0.0) as f32,
        settings.kl.map_or(0.0, |kl| kl.beta) as f32,
        settings.preference.unwrap_or(0.0) as f32,
        1.0 / pairs.max(1) as f32,
    );
    (rule, constants)
}
