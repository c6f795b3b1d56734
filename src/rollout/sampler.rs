//! Batched sampling, one turn at a time.
//!
//! All rows decode a turn on the device, then one read brings the turn's tokens and log-probabilities to the host, the
//! environments answer, and the answers are fed in one block. Finished rows leave the batch. Rows that start from the same tokens
//! share the work on them. How a turn is decoded is up to a [`super::decoding::Decoding`].

use super::decoding::{Decoded, decoding, most_rows};
use super::row::Row;
use super::shard::Shard;
use super::{Episode, Limits, Trajectory};
use crate::config::{ExperimentConfig, Parameters};
use crate::cpu::Packed;
use crate::parallel;
use crate::policy::Policy;
use crate::readback::{ReadError, read};

/// How episodes are sampled and when they are cut.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sampling {
    /// Logits are divided by this.
    pub temperature: f64,
    /// Where turns and episodes are cut.
    pub limits: Limits,
    /// Whether the environment's grammar restricts sampling.
    pub legal_token_mask: bool,
    /// Whether turns are decoded by kernels of our own on graphics devices and on slices on the CPU, else by burn's operations.
    /// They draw the same tokens but where two candidates tie within rounding.
    pub kernels: bool,
    /// The task that is played, by name, and its own settings: what an episode needs to be made again elsewhere.
    pub environment: String,
    pub parameters: Parameters,
}

impl Sampling {
    /// The settings of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        Sampling {
            temperature: config.temperature,
            limits: Limits::of(config),
            legal_token_mask: config.legal_token_mask,
            kernels: true,
            environment: config.environment.clone(),
            parameters: config.parameters.clone(),
        }
    }
}

/// Why a rollout failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RolloutError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A sampled token's log-probability is not a number: the weights are broken.
    #[error("a log-probability of the policy is not a finite number")]
    NonFinite,
}

/// Rows that one core plays together: small enough that a few cores share a step evenly, large enough that the work per
/// operation outweighs its overhead. The same on every machine, so that results are too.
const SHARD: usize = 64;

/// Plays all episodes to their end. The result is in the order of `episodes`.
///
/// # Errors
/// When the device fails or a log-probability is not finite.
pub async fn roll_out(policy: &Policy, episodes: Vec<Episode>, sampling: &Sampling) -> Result<Vec<Trajectory>, RolloutError> {
    let packed = Packed::new(policy);
    if let Some(most) = most_rows(policy, sampling) {
        let mut played = Vec::with_capacity(episodes.len());
        let mut rest = episodes.into_iter().peekable();
        while rest.peek().is_some() {
            played.extend(play(&packed, rest.by_ref().take(most).collect(), sampling).await?);
        }
        return Ok(played);
    }
    if !parallel::cuts(&policy.device()) || episodes.len() <= SHARD {
        return play(&packed, episodes, sampling).await;
    }
    let held = policy.hold();
    let mut rest = episodes.into_iter();
    let shards = std::iter::from_fn(|| Some(rest.by_ref().take(SHARD).collect::<Vec<_>>()).filter(|shard| !shard.is_empty()));
    let shards = shards.map(|episodes| Shard { policy: &packed, held, episodes, sampling }).collect();
    let played = parallel::all(&policy.device(), shards).await;
    let played = played.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(played.into_iter().flatten().collect())
}

/// Plays episodes as one batch.
pub(super) async fn play(policy: &Packed, episodes: Vec<Episode>, sampling: &Sampling) -> Result<Vec<Trajectory>, RolloutError> {
    let mut finished: Vec<Option<Trajectory>> = episodes.iter().map(|_| None).collect();
    let mut rows: Vec<Row> = episodes.into_iter().enumerate().map(|(index, episode)| Row::new(index, episode)).collect();
    let grammar = rows.first().filter(|_| sampling.legal_token_mask).map(|row| row.environment.grammar());
    let mut decoding = decoding(policy, &rows, sampling, grammar.as_ref());
    while !rows.is_empty() {
        // [B * 2 turn_tokens]
        let values = match decoding.turn(policy.policy(), &mut rows, sampling)? {
            Decoded::There(values) => read(*values).await?,
            Decoded::Here(values) => values,
        };
        for (row, values) in rows.iter_mut().zip(values.chunks_exact(2 * sampling.limits.turn_tokens)) {
            let (tokens, log_probs) = values.split_at(sampling.limits.turn_tokens);
            let length = row.take_action(tokens, log_probs, sampling, grammar.as_ref())?;
            decoding.rest(row, length, sampling);
        }
        let active: Vec<usize> = (0..rows.len()).filter(|&index| rows[index].end.is_none()).collect();
        if active.len() < rows.len() {
            decoding.keep_rows(&active);
            for row in rows.extract_if(.., |row| row.end.is_some()) {
                let index = row.index;
                finished[index] = Some(row.into_trajectory());
            }
        }
    }
    Ok(finished.into_iter().flatten().collect())
}
