//! The policy loss in plain numbers, one trajectory at a time: what a view needs to explain a token's share of the loss. A test
//! holds it to the tensor form, [`super::policy_loss`].

use super::{ClipBounds, PolicyLossSettings, RatioLevel, Surrogate};

/// A trained token: what its loss is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainedToken {
    /// Log-probability now, nats.
    pub log_prob: f64,
    /// Log-probability when it was sampled, nats.
    pub old_log_prob: f64,
    pub advantage: f64,
}

/// The loss of one token, before aggregation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScalarLoss {
    /// Probability ratio of the chosen level.
    pub ratio: f64,
    /// Whether a bound of the clip took effect.
    pub clipped: bool,
    /// `l_t`.
    pub loss: f64,
    /// Derivative of the sum of the trajectory's losses by this token's log-probability.
    pub gradient: f64,
}

/// The losses of the trained tokens of one trajectory.
pub fn scalar_losses(tokens: &[TrainedToken], settings: &PolicyLossSettings) -> Vec<ScalarLoss> {
    let limit = settings.log_ratio_limit.unwrap_or(f64::INFINITY);
    let raw: Vec<f64> = tokens.iter().map(|token| token.log_prob - token.old_log_prob).collect();
    let log_ratios: Vec<f64> = raw.iter().map(|ratio| ratio.clamp(-limit, limit)).collect();
    // 0 where the clamp cut the gradient.
    let passes: Vec<f64> = raw.iter().map(|ratio| f64::from(u8::from(ratio.abs() <= limit))).collect();
    let count = tokens.len().max(1) as f64;
    if let Surrogate::GeometricMean { bounds } = settings.surrogate {
        return geometric_mean(tokens, &log_ratios, &passes, bounds);
    }
    let mean = log_ratios.iter().sum::<f64>() / count;
    let level = |log_ratio: f64| if settings.ratio_level == RatioLevel::Token { log_ratio } else { mean };
    let of = |(token, log_ratio): (&TrainedToken, &f64)| one(*token, level(*log_ratio).exp(), settings.surrogate);
    let mut losses: Vec<(ScalarLoss, f64, f64)> = tokens.iter().zip(&log_ratios).map(of).collect();
    // `by_ratio` is the derivative by the ratio, `own` by the log-probability beside it.
    let through_mean: f64 = losses.iter().map(|(loss, by_ratio, _)| by_ratio * loss.ratio).sum::<f64>() / count;
    for ((loss, by_ratio, own), passes) in losses.iter_mut().zip(&passes) {
        let through = match settings.ratio_level {
            RatioLevel::Token => *by_ratio * loss.ratio * passes,
            // The value of the trajectory's ratio with the gradient of the token.
            RatioLevel::SequenceToken => *by_ratio * loss.ratio,
            RatioLevel::Sequence => through_mean * passes,
        };
        loss.gradient = through + *own;
    }
    losses.into_iter().map(|(loss, ..)| loss).collect()
}

/// Loss of a token at a ratio, its derivative by the ratio, and its derivative by the log-probability beside that.
fn one(token: TrainedToken, ratio: f64, surrogate: Surrogate) -> (ScalarLoss, f64, f64) {
    let advantage = token.advantage;
    let with = |loss: f64, clipped: bool| ScalarLoss { ratio, clipped, loss, gradient: 0.0 };
    match surrogate {
        Surrogate::Cispo { low, high } => {
            let weight = ratio.clamp(low, high);
            (with(-weight * advantage * token.log_prob, weight != ratio), 0.0, -weight * advantage)
        }
        Surrogate::Sapo { positive, negative } => {
            let tau = if advantage > 0.0 { positive } else { negative };
            let gate = 1.0 / (1.0 + (-tau * (ratio - 1.0)).exp());
            (with(-4.0 / tau * gate * advantage, false), -4.0 * gate * (1.0 - gate) * advantage, 0.0)
        }
        Surrogate::Clip { bounds, dual, ceiling } => {
            let capped = ceiling.map_or(ratio, |ceiling| ratio.min(ceiling));
            let inside = ratio.clamp(1.0 - bounds.low, 1.0 + bounds.high);
            let (free, cut) = (capped * advantage, inside * advantage);
            let (gain, clipped, bounded) = if cut < free { (cut, true, inside) } else { (free, false, capped) };
            let slope = if bounded != ratio { 0.0 } else { -advantage };
            match dual.map(|bound| -bound * advantage) {
                Some(most) if advantage < 0.0 && -gain > most => (with(most, true), 0.0, 0.0),
                _ => (with(-gain, clipped), slope, 0.0),
            }
        }
        Surrogate::GeometricMean { .. } => (with(0.0, false), 0.0, 0.0), // handled by `geometric_mean`
    }
}

fn geometric_mean(tokens: &[TrainedToken], log_ratios: &[f64], passes: &[f64], bounds: ClipBounds) -> Vec<ScalarLoss> {
    let cut = |(token, &log_ratio): (&TrainedToken, &f64)| {
        if token.advantage > 0.0 { log_ratio.min(bounds.high) } else { log_ratio.max(-bounds.low) }
    };
    let count = tokens.len().max(1) as f64;
    let bounded: Vec<f64> = tokens.iter().zip(log_ratios).map(cut).collect();
    let ratio = (bounded.iter().sum::<f64>() / count).exp();
    let slope = -tokens.iter().map(|token| token.advantage).sum::<f64>() * ratio / count;
    let of = |index: usize| {
        let clipped = bounded[index] != log_ratios[index];
        let gradient = if clipped { 0.0 } else { slope * passes[index] };
        ScalarLoss { ratio, clipped, loss: -ratio * tokens[index].advantage, gradient }
    };
    (0..tokens.len()).map(of).collect()
}
