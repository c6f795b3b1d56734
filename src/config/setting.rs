//! How a setting is declared: what it is called, what it may be, and what a person should know about it.

use super::experiment::ExperimentConfig;

/// A text in both languages of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Text {
    /// English.
    pub en: &'static str,
    /// Chinese.
    pub zh: &'static str,
}

/// A text from its two languages, for declarations.
pub const fn text(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// Where a setting stands in the form, in the order in which data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Seed and length of the run.
    Run,
    /// The task's own parameters.
    Environment,
    /// Size of the transformer.
    Policy,
    /// How episodes are sampled.
    Rollout,
    /// What a fact is worth.
    Reward,
    /// How rewards become advantages.
    Credit,
    /// The loss.
    Objective,
    /// The optimiser.
    Learner,
    /// The imitation before reinforcement learning.
    WarmStart,
}

impl Section {
    /// Every section, in the order of the form.
    pub const ALL: [Section; 9] = [
        Section::Run,
        Section::Environment,
        Section::Reward,
        Section::Credit,
        Section::Rollout,
        Section::Objective,
        Section::Learner,
        Section::Policy,
        Section::WarmStart,
    ];

    /// The heading above the section.
    pub const fn label(self) -> Text {
        match self {
            Section::Run => text("Run", "运行"),
            Section::Environment => text("Environment", "环境"),
            Section::Policy => text("Policy network", "策略网络"),
            Section::Rollout => text("Sampling of episodes", "轨迹采样"),
            Section::Reward => text("Reward", "奖励"),
            Section::Credit => text("Credit assignment", "信用分配"),
            Section::Objective => text("Loss", "损失函数"),
            Section::Learner => text("Optimiser", "优化器"),
            Section::WarmStart => text("Warm start", "热启动"),
        }
    }
}

/// How a slider maps to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// One step adds `step`.
    Linear,
    /// One step multiplies by `10^step`: `step` is in decades. The bounds are positive.
    Log,
}

/// One option of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct ChoiceOption {
    /// The word in JSON, in links and on the command line.
    pub value: &'static str,
    /// What the page calls it.
    pub label: Text,
}

/// What values a setting takes. Bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Kind {
    /// A finite real number.
    Number {
        default: f64,
        min: f64,
        max: f64,
        /// Step of a slider or an arrow key; values in between are allowed. See [`Scale`] for its unit.
        step: f64,
        scale: Scale,
    },
    /// A whole number.
    Integer { default: u32, min: u32, max: u32 },
    /// A whole number out of a list.
    IntegerChoice { default: u32, options: &'static [u32] },
    /// On or off.
    Switch { default: bool },
    /// One word out of a list.
    Choice { default: &'static str, options: &'static [ChoiceOption] },
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Setting {
    /// The name in Rust, in JSON and on the command line. Unique among the settings of an environment and the common ones.
    pub name: &'static str,
    pub section: Section,
    pub kind: Kind,
    /// What the page calls it.
    pub label: Text,
    /// Unit of the value; empty where there is none.
    pub unit: Text,
    /// One plain sentence: what it is, and what turning it up does.
    pub help: Text,
    /// Shown only under "More".
    pub advanced: bool,
}

/// The value by which an environment replaces a default of a common setting, of the same kind as that setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    Number(f64),
    /// For [`Kind::Integer`] and [`Kind::IntegerChoice`].
    Integer(u32),
    Switch(bool),
    Choice(&'static str),
}

/// How many tokens an environment asks of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextNeed {
    /// Tokens of the prompt: a context has to hold it and one action.
    pub prompt: usize,
    /// Tokens below which the context would cut episodes that the task is about; 0 where it asks for no more than the above.
    pub episode: usize,
}

/// What an environment says about itself.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct EnvironmentDeclaration {
    /// The word in JSON, in links and on the command line: lower-case letters, digits and `_`.
    pub name: &'static str,
    /// What the page calls it.
    pub label: Text,
    /// The task in one or two plain sentences.
    pub help: Text,
    /// Its own parameters.
    pub settings: &'static [Setting],
    /// Defaults of common settings that this environment replaces.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub defaults: &'static [(&'static str, DefaultValue)],
    /// The kinds of question that success and calls are reported by.
    pub question_types: &'static [Text],
    /// What else it can do, as words.
    pub capabilities: &'static [&'static str],
    /// What it asks of the context under given settings, each within its bounds. See [`super::check`].
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub context: fn(&ExperimentConfig) -> ContextNeed,
}

/// The environments that a configuration may name. The first is the one that a bad name falls back on.
pub type Registry = [&'static EnvironmentDeclaration];
