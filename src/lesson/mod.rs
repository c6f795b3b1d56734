//! Lessons: experiments with a few sentences, in the order of a course for somebody who knows supervised learning and has never
//! seen a policy gradient.
//!
//! A lesson is a task, the settings that differ from its defaults, perhaps a second set of settings to compare with, and what to
//! press, what to watch and what it means. Its promise was measured over five seeds (`evidence`, and `tests/README.md`); where an
//! effect is small or absent the lesson says so. Page, links, command line and tests all come from this one declaration.

mod credit;
mod first_steps;
mod reward;
mod training;

#[cfg(test)]
mod tests;

use crate::config::{self, ExperimentConfig, Link, Note, Text, text};
use crate::environment::REGISTRY;

/// A region of the page that a lesson is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum Focus {
    /// The buttons that train and step.
    Run,
    /// Success, calls and other measures over the training steps.
    Curves,
    /// The conversations and their colours.
    Episodes,
    /// Where the weight of one token comes from.
    Why,
    /// True credit beside the credit that every method assigns.
    CreditCheck,
}

/// A claim about reinforcement learning over several turns that lessons make visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// One turn has one state and ends with the answer; agents need several.
    Turns,
    /// Observe, decide, act, observe again.
    Loop,
    /// The policy sees only what tools return.
    PartialObservability,
    /// An action is text or a call, and calls have results.
    ToolCalls,
    /// Reward at the end only, on the way, or both.
    RewardDensity,
    /// What a later reward is worth now.
    Discount,
    /// Paying for the way can help, and can be gamed.
    ProcessReward,
    /// Which step earned the reward.
    CreditAssignment,
    /// Only tokens that the policy wrote are trained.
    LossMask,
    /// Training knows three methods of a task and nothing else.
    EnvironmentInterface,
    /// Search, judge whether it is enough, search again.
    SearchAgain,
    /// Imitation copies a pattern of calls; reinforcement learning finds when to call.
    Imitation,
    /// PPO, DPO, GRPO and their settings.
    Algorithms,
    /// Planning, tool use, perception: tasks of several kinds.
    Capabilities,
    /// Trust in what a tool says, and checking it.
    Verification,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Topic; 15] = [
        Topic::Turns,
        Topic::Loop,
        Topic::PartialObservability,
        Topic::ToolCalls,
        Topic::RewardDensity,
        Topic::Discount,
        Topic::ProcessReward,
        Topic::CreditAssignment,
        Topic::LossMask,
        Topic::EnvironmentInterface,
        Topic::SearchAgain,
        Topic::Imitation,
        Topic::Algorithms,
        Topic::Capabilities,
        Topic::Verification,
    ];
}

/// Settings as text, by name, that differ from the task's defaults.
pub type Overrides = &'static [(&'static str, &'static str)];

/// A lesson.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Lesson {
    /// The word on the command line: lower-case letters and `-`.
    pub name: &'static str,
    pub title: Text,
    /// What to press.
    pub press: Text,
    /// What to watch.
    pub watch: Text,
    /// What it means.
    pub meaning: Text,
    /// How the promise was measured, and what came out.
    pub evidence: Text,
    /// The task.
    pub environment: &'static str,
    /// The lesson's settings.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub settings: Overrides,
    /// Those of the run that it is compared with, of the same task.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub other: Option<Overrides>,
    /// What it makes visible.
    pub topics: &'static [Topic],
    /// Where to look.
    pub focus: Focus,
    /// What to colour tokens by, in the page's word for it (`advantage`, `true_credit`, `method:tree` ...).
    pub quantity: &'static str,
}

impl Lesson {
    /// The experiment, with seed 0 unless the lesson names another.
    pub fn config(&self) -> ExperimentConfig {
        self.read(self.settings).0
    }

    /// The experiment that it is compared with.
    pub fn other_config(&self) -> Option<ExperimentConfig> {
        self.other.map(|settings| self.read(settings).0)
    }

    /// What its link holds: both experiments.
    pub fn link(&self) -> Link {
        Link { other: self.other_config(), ..Link::from(self.config()) }
    }

    /// The experiment with some settings, and what was wrong with them: nothing, as a test sees to.
    fn read(&self, settings: Overrides) -> (ExperimentConfig, Vec<Note>) {
        let mut config = ExperimentConfig::defaults(self.environment, REGISTRY);
        let mut notes: Vec<Note> = Vec::new();
        for (name, value) in settings {
            notes.extend(config::set(&mut config, name, value, REGISTRY));
        }
        let checked = config::check(&config, REGISTRY);
        notes.extend(checked.notes);
        (checked.config, notes)
    }
}

/// Every lesson, in the order of the course.
pub fn lessons() -> impl Iterator<Item = &'static Lesson> {
    [first_steps::LESSONS, reward::LESSONS, credit::LESSONS, training::LESSONS].into_iter().flatten()
}

/// The lesson of a name.
pub fn lesson(name: &str) -> Option<&'static Lesson> {
    lessons().find(|lesson| lesson.name == name)
}

/// The lesson whose first settings a configuration has, whatever its seed and title.
pub fn lesson_of(config: &ExperimentConfig) -> Option<&'static Lesson> {
    let same = |own: ExperimentConfig| ExperimentConfig { seed: config.seed, title: config.title.clone(), ..own } == *config;
    // Those of other tasks need not be made up.
    lessons().filter(|lesson| lesson.environment == config.environment).find(|lesson| same(lesson.config()))
}

/// A lesson with its experiments, for the page.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct LessonEntry {
    pub lesson: &'static Lesson,
    pub config: ExperimentConfig,
    /// The experiment that it is compared with.
    pub other: Option<ExperimentConfig>,
}

/// Every lesson with its experiments, in the order of the course.
pub fn lesson_entries() -> Vec<LessonEntry> {
    lessons().map(|lesson| LessonEntry { lesson, config: lesson.config(), other: lesson.other_config() }).collect()
}
