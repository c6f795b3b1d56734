//! Which episodes a training step plays: questions and draws by their place.

use crate::config::ExperimentConfig;
use crate::environment::{self, Environment};
use crate::rollout::{Episode, GroupInfo, Origin, Prefix};
use crate::seed::{Draws, Purpose, RootSeed};
use crate::vocabulary::Token;

/// Where a group starts: enough to play any of its episodes again.
pub struct GroupStart {
    /// Just reset.
    pub environment: Box<dyn Environment>,
    /// The draws of the question.
    pub question: Draws,
    pub prompt: Vec<Token>,
    /// Its place in the draws of the step; differs from its index where the group was sampled in place of another.
    pub place: u32,
}

impl GroupStart {
    /// The question at a place of a training step.
    pub fn new(config: &ExperimentConfig, iteration: usize, place: u32) -> Self {
        let mut environment = environment::create(config);
        let question = RootSeed(config.seed).draws(Purpose::Question, iteration as u32, place, 0);
        GroupStart { prompt: environment.reset(question.clone()), environment, question, place }
    }

    /// What the members of the group share.
    pub fn info(&self) -> GroupInfo {
        GroupInfo {
            prompt: self.prompt.clone(),
            question_type: self.environment.question_type(),
            hidden_state: self.environment.hidden_state(),
        }
    }

    /// The episodes of the group: the same question and hidden state, sampling draws of their own.
    pub fn episodes(&self, config: &ExperimentConfig, iteration: usize, group: usize) -> impl Iterator<Item = Episode> {
        let root = RootSeed(config.seed);
        (0..config.num_generations).map(move |member| Episode {
            group,
            member,
            environment: self.environment.boxed_clone(),
            origin: self.origin(config, iteration, member),
            prefix: Prefix::prompt(self.prompt.clone()),
            sampling: root.draws(Purpose::SampleToken, iteration as u32, self.place, member as u32),
            tool: self.tool_draws(config, iteration, member),
        })
    }

    /// What the environment of one member comes from.
    pub fn origin(&self, config: &ExperimentConfig, iteration: usize, member: usize) -> Origin {
        Origin { question: self.question.clone(), tool: self.tool_draws(config, iteration, member) }
    }

    /// The tool draws of one member.
    pub fn tool_draws(&self, config: &ExperimentConfig, iteration: usize, member: usize) -> Draws {
        RootSeed(config.seed).draws(Purpose::Tool, iteration as u32, self.place, member as u32)
    }
}

/// All that a training step plays, which does not depend on the policy.
pub struct Plan {
    pub iteration: usize,
    /// Where each group starts.
    pub starts: Vec<GroupStart>,
    /// Those of the groups, then the held-out ones.
    pub episodes: Vec<Episode>,
}

impl Plan {
    /// The plan of a step.
    pub fn new(config: &ExperimentConfig, iteration: usize) -> Self {
        let starts: Vec<GroupStart> = (0..config.groups).map(|group| GroupStart::new(config, iteration, group as u32)).collect();
        let mut episodes = training_episodes(config, iteration, starts.iter().enumerate());
        episodes.extend(held_out_episodes(config, config.held_out));
        Plan { iteration, starts, episodes }
    }
}

/// The episodes of groups, with the index of each.
pub fn training_episodes<'a>(
    config: &ExperimentConfig,
    iteration: usize,
    starts: impl Iterator<Item = (usize, &'a GroupStart)>,
) -> Vec<Episode> {
    starts.flat_map(|(group, start)| start.episodes(config, iteration, group)).collect()
}

/// The held-out questions: the same, with the same draws, in every step.
pub fn held_out_episodes(config: &ExperimentConfig, count: usize) -> impl Iterator<Item = Episode> {
    let root = RootSeed(config.seed);
    (0..count).map(move |index| {
        let mut environment = environment::create(config);
        let draws = |purpose: Purpose| root.draws(purpose, 0, index as u32, 0);
        let (question, tool) = (draws(Purpose::HeldOutQuestion), draws(Purpose::HeldOutTool));
        Episode {
            group: index,
            member: 0,
            prefix: Prefix::prompt(environment.reset(question.clone())),
            environment,
            origin: Origin { question, tool: tool.clone() },
            sampling: draws(Purpose::HeldOutSampleToken),
            tool,
        }
    })
}
