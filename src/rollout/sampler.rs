//! Batched sampling, one turn at a time.
//!
//! All rows decode a turn on the device, then one read brings the turn's tokens and log-probabilities to the host, the
//! environments answer, and the answers are fed in one block. Finished rows leave the batch. Rows that start from the same tokens
//! share the work on them. How a turn is decoded is up to a [`Decoding`]: by burn's operations token by token, by kernels of our own
//! in one dispatch, or on the CPU on slices, where nothing has to be read.

use super::row::Row;
use super::shard::Shard;
use super::{Episode, Limits, Trajectory};
use super::{kernels, reference, slices};
use crate::config::{ExperimentConfig, Parameters};
use crate::cpu::Network;
use crate::kernel::Decoder;
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
    /// Whether turns are decoded by kernels of our own where they run ([`crate::kernel::runs_on`]), on slices on the CPU
    /// ([`crate::cpu`]), else by burn's operations.
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
    let most = sampling.kernels.then(|| Decoder::most_rows(policy, sampling.limits.context_length)).flatten();
    if let Some(most) = most {
        let mut played = Vec::with_capacity(episodes.len());
        let mut rest = episodes.into_iter().peekable();
        while rest.peek().is_some() {
            played.extend(play(policy, rest.by_ref().take(most).collect(), sampling).await?);
        }
        return Ok(played);
    }
    if !parallel::cuts(&policy.device()) || episodes.len() <= SHARD {
        return play(policy, episodes, sampling).await;
    }
    let held = policy.hold();
    let mut rest = episodes.into_iter();
    let shards = std::iter::from_fn(|| Some(rest.by_ref().take(SHARD).collect::<Vec<_>>()).filter(|shard| !shard.is_empty()));
    let shards = shards.map(|episodes| Shard { policy, held, episodes, sampling }).collect();
    let played = parallel::all(&policy.device(), shards).await;
    Ok(played.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// How the turns of a batch are decoded.
enum Decoding<'a> {
    /// By burn's operations: on every device, and what the kernels are compared with.
    Reference(reference::Decoding),
    /// By kernels of our own, on graphics devices.
    Kernels(kernels::Decoding),
    /// On slices, on the CPU.
    Slices(slices::Decoding<'a>),
}

/// Plays episodes as one batch.
pub(super) async fn play(policy: &Policy, episodes: Vec<Episode>, sampling: &Sampling) -> Result<Vec<Trajectory>, RolloutError> {
    let mut finished: Vec<Option<Trajectory>> = episodes.iter().map(|_| None).collect();
    let mut rows: Vec<Row> = episodes.into_iter().enumerate().map(|(index, episode)| Row::new(index, episode)).collect();
    let grammar = rows.first().filter(|_| sampling.legal_token_mask).map(|row| row.environment.grammar());
    let kernels = sampling.kernels.then(|| kernels::Decoding::new(policy, &rows, sampling, grammar.as_ref())).flatten();
    let network = (sampling.kernels && kernels.is_none()).then(|| Network::of(policy)).flatten();
    let mut decoding = match (kernels, &network) {
        (Some(decoding), _) => Decoding::Kernels(decoding),
        (None, Some(network)) => Decoding::Slices(slices::Decoding::new(network, rows.len(), grammar.clone())),
        (None, None) => Decoding::Reference(reference::Decoding::new(policy, grammar.clone())),
    };
    while !rows.is_empty() {
        // [B * 2 turn_tokens]
        let values = match &mut decoding {
            Decoding::Reference(decoding) => read(decoding.turn(policy, &mut rows, sampling)).await?,
            Decoding::Kernels(decoding) => read(decoding.turn(&mut rows, sampling)?).await?,
            Decoding::Slices(decoding) => decoding.turn(&mut rows, sampling),
        };
        for (row, values) in rows.iter_mut().zip(values.chunks_exact(2 * sampling.limits.turn_tokens)) {
            let (tokens, log_probs) = values.split_at(sampling.limits.turn_tokens);
            let length = row.take_action(tokens, log_probs, sampling, grammar.as_ref())?;
            match &decoding {
                Decoding::Reference(_) => row.wait_behind_all_fed(length, sampling.limits.turn_tokens),
                Decoding::Kernels(_) | Decoding::Slices(_) => row.wait_from_last(length),
            }
        }
        let active: Vec<usize> = (0..rows.len()).filter(|&index| rows[index].end.is_none()).collect();
        if active.len() < rows.len() {
            if let Decoding::Reference(decoding) = &mut decoding {
                decoding.keep_rows(&active);
            }
            for row in rows.extract_if(.., |row| row.end.is_some()) {
                let index = row.index;
                finished[index] = Some(row.into_trajectory());
            }
        }
    }
    Ok(finished.into_iter().flatten().collect())
}
