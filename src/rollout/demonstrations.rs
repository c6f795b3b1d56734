//! Episodes of a scripted actor, for the warm start.

use super::{End, Trajectory, Turn};
use crate::config::ExperimentConfig;
use crate::environment;
use crate::seed::{Purpose, RootSeed};
use crate::vocabulary::TokenSet;

/// `config.demonstrations` episodes of the environment's demonstrator, cut by the same limits as the policy's. Log-probabilities
/// are 0: nobody sampled these tokens from a policy.
pub fn demonstrate(config: &ExperimentConfig) -> Vec<Trajectory> {
    let root = RootSeed(config.seed);
    (0..config.demonstrations).map(|index| demonstration(config, root, index)).collect()
}

fn demonstration(config: &ExperimentConfig, root: RootSeed, index: usize) -> Trajectory {
    let draws = |member: u32| root.draws(Purpose::Demonstration, 0, index as u32, member);
    let mut environment = environment::create(config);
    let mut tokens = environment.reset(draws(0));
    let prompt_length = tokens.len();
    let mut actor = environment.demonstrator(draws(1));
    let (mut loss_mask, mut turns, mut observation) = (vec![false; prompt_length], Vec::new(), None);
    let end = loop {
        let start = tokens.len();
        let mut action = actor.act(observation.as_ref());
        action.truncate(config.turn_tokens.min(config.context_length.saturating_sub(start)));
        tokens.extend(&action);
        loss_mask.resize(tokens.len(), true);
        let step = environment.step(&action, draws(2 + turns.len() as u32));
        let mut turn = Turn { start, action_end: tokens.len(), end: tokens.len(), facts: step.facts };
        let answer = step.observation.as_ref().map(|observation| environment.format_observation(observation));
        let end = match answer {
            _ if step.done => Some(End::Terminated),
            _ if turns.len() + 1 >= config.turn_limit => Some(End::TurnLimit),
            Some(answer) if tokens.len() + answer.len() < config.context_length => {
                tokens.extend(&answer);
                loss_mask.resize(tokens.len(), false);
                turn.end = tokens.len();
                None
            }
            _ => Some(End::ContextEnd),
        };
        turns.push(turn);
        observation = step.observation;
        if let Some(end) = end {
            break end;
        }
    };
    let legal: Vec<TokenSet> = Vec::new();
    let log_probs = vec![0.0; tokens.len()];
    let question_type = environment.question_type();
    Trajectory { group: index, member: 0, tokens, prompt_length, loss_mask, log_probs, turns, end, question_type, legal }
}
