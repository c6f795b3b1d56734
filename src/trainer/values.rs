//! The value of states, for credit methods that compare with it.

use super::{Boundaries, Rollout, TrainError, Trainer};
use crate::config::CreditMethod;
use crate::seed::Purpose;

impl Trainer {
    /// The value before each turn, `[trajectory][turn]`, where the credit method needs it: the critic's opinion, or the mean
    /// return of `monte_carlo_samples` continuations by the current policy.
    ///
    /// # Errors
    /// When the device fails or something is not a finite number.
    pub(super) async fn values(&self, rollout: &Rollout) -> Result<Option<Vec<Vec<f64>>>, TrainError> {
        if let Some(critic) = &self.critic {
            return Ok(Some(critic.values(&rollout.training).await?));
        }
        if self.config.credit_method != CreditMethod::MonteCarlo {
            return Ok(None);
        }
        let boundaries = Boundaries::of(rollout, &self.config);
        let samples = self.config.monte_carlo_samples;
        let returns = boundaries.roll(&self.policy(), &self.config, Purpose::MonteCarlo, 0, samples).await?;
        let means: Vec<f64> = returns.iter().map(|rolls| rolls.iter().sum::<f64>() / rolls.len().max(1) as f64).collect();
        let value = |turns: &Vec<usize>| turns.iter().map(|&state| means[state]).collect();
        Ok(Some(boundaries.index().iter().map(value).collect()))
    }
}
