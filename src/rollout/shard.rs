//! Episodes that one core plays together, as a job for another worker.
//!
//! Environments are reproducible: their draws and the actions so far are sent, and only the actions that were sampled come back,
//! with their log-probabilities. Whoever asked plays them on the environments it has.

use super::episode::repeat;
use super::sampler::play;
use super::{Episode, Origin, Prefix, RolloutError, Sampling, Trajectory, Turn};
use crate::cpu::Packed;
use crate::environment::{Facts, create_named};
use crate::parallel::{Held, Job, Kind, Packet, spelled, spelling};
use crate::seed::Draws;
use crate::vocabulary::Token;

/// Episodes to be played by one core.
pub(super) struct Shard<'a> {
    pub policy: &'a Packed,
    /// The policy as other workers know it.
    pub held: Option<Held>,
    pub episodes: Vec<Episode>,
    pub sampling: &'a Sampling,
}

/// How many beginnings episodes have, those that begin alike standing together.
fn beginnings(episodes: &[Episode]) -> usize {
    episodes.chunk_by(|a, b| a.prefix.tokens == b.prefix.tokens).count()
}

/// A shard as other workers are told of it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Task {
    sampling: Sampling,
    episodes: Vec<Start>,
}

/// Where an episode starts: what makes its environment and its tokens again.
#[derive(serde::Serialize, serde::Deserialize)]
struct Start {
    tokens: Vec<Token>,
    /// Start and end of the actions so far.
    actions: Vec<(usize, usize)>,
    origin: Origin,
    sampling: Draws,
    tool: Draws,
}

/// Whether an answer has episodes.
#[derive(PartialEq, serde::Serialize, serde::Deserialize)]
enum Outcome {
    Played,
    NonFinite,
}

impl Job for Shard<'_> {
    const KIND: Kind = Kind::Episodes;

    type Result = Result<Vec<Trajectory>, RolloutError>;

    /// Episodes that begin alike are decoded together for as long as they stay alike: most of the work is in the beginnings.
    fn size(&self) -> usize {
        4 * beginnings(&self.episodes) + self.episodes.len()
    }

    async fn here(self) -> Self::Result {
        play(self.policy, self.episodes, self.sampling).await
    }

    fn packet(&self) -> Option<Packet> {
        let start = |episode: &Episode| Start {
            tokens: episode.prefix.tokens.clone(),
            actions: episode.prefix.turns.iter().map(|turn| (turn.start, turn.action_end)).collect(),
            origin: episode.origin.clone(),
            sampling: episode.sampling.clone(),
            tool: episode.tool.clone(),
        };
        let task = Task { sampling: self.sampling.clone(), episodes: self.episodes.iter().map(start).collect() };
        Some(Packet { kind: Self::KIND, task: spelled(&task)?, numbers: Vec::new(), needs: vec![self.held?] })
    }

    fn answered(&self, answer: Packet) -> Option<Self::Result> {
        let outcome: Outcome = spelling(&answer.task)?;
        if outcome == Outcome::NonFinite {
            return Some(Err(RolloutError::NonFinite));
        }
        let mut numbers = answer.numbers.as_slice();
        let trajectories = self.episodes.iter().map(|episode| play_on(episode, self.sampling, &mut numbers));
        let trajectories = trajectories.collect::<Option<Vec<_>>>()?;
        numbers.is_empty().then_some(Ok(trajectories))
    }
}

/// Plays episodes described by a packet and gives the actions: for each episode the number of its turns, for each turn its length,
/// tokens and log-probabilities. Nothing where the packet does not say what to play.
pub async fn play_packet(policy: &Packed, packet: &Packet) -> Option<Packet> {
    let Task { sampling, episodes } = spelling(&packet.task)?;
    let known: Vec<usize> = episodes.iter().map(|start| start.actions.len()).collect();
    let episodes = episodes.into_iter().map(|start| start.episode(&sampling)).collect();
    let answer = |outcome, numbers| Some(Packet { kind: Kind::Episodes, task: spelled(&outcome)?, numbers, needs: Vec::new() });
    match play(policy, episodes, &sampling).await {
        Ok(played) => {
            let actions = played.iter().zip(known).flat_map(|(played, known)| actions(played, known));
            answer(Outcome::Played, actions.collect())
        }
        Err(RolloutError::NonFinite) => answer(Outcome::NonFinite, Vec::new()),
        Err(RolloutError::Read(_)) => None,
    }
}

impl Start {
    fn episode(self, sampling: &Sampling) -> Episode {
        let turn = |(start, action_end)| Turn { start, action_end, end: action_end, facts: Facts::default() };
        let prefix = Prefix { turns: self.actions.into_iter().map(turn).collect(), ..Prefix::prompt(self.tokens) };
        let mut environment = create_named(&sampling.environment, &sampling.parameters);
        environment.reset(self.origin.question.clone());
        repeat(environment.as_mut(), prefix.actions(), &self.origin.tool);
        Episode { group: 0, member: 0, environment, origin: self.origin, prefix, sampling: self.sampling, tool: self.tool }
    }
}

/// The actions of a trajectory from turn `known` on. Lengths and tokens are small whole numbers, exact in `f32`.
fn actions(trajectory: &Trajectory, known: usize) -> Vec<f32> {
    let turns = trajectory.turns.iter().skip(known);
    let mut numbers = vec![turns.len() as f32];
    for turn in turns {
        let place = turn.start..turn.action_end;
        numbers.push(place.len() as f32);
        numbers.extend(trajectory.tokens[place.clone()].iter().map(|&token| f32::from(token)));
        numbers.extend(&trajectory.log_probs[place]);
    }
    numbers
}

/// Plays an episode to its end with actions that were sampled elsewhere; takes them off the front of `numbers`.
fn play_on(episode: &Episode, sampling: &Sampling, numbers: &mut &[f32]) -> Option<Trajectory> {
    let mut environment = episode.environment.boxed_clone();
    let mut prefix = episode.prefix.clone();
    let grammar = sampling.legal_token_mask.then(|| environment.grammar());
    let turns = take(numbers, 1)?[0] as usize;
    let mut end = None;
    for _ in 0..turns {
        let length = take(numbers, 1)?[0] as usize;
        let action: Vec<Token> = take(numbers, length)?.iter().map(|&token| token as Token).collect();
        let log_probs = take(numbers, length)?;
        if let Some(grammar) = &grammar {
            prefix.note_legal(grammar, &action);
        }
        end = prefix.take_turn(environment.as_mut(), &action, log_probs, &episode.tool, &sampling.limits);
    }
    let question_type = environment.question_type();
    Some(prefix.into_trajectory(episode.group, episode.member, question_type, end?))
}

fn take<'a>(numbers: &mut &'a [f32], count: usize) -> Option<&'a [f32]> {
    let (own, rest) = numbers.split_at_checked(count)?;
    *numbers = rest;
    Some(own)
}
