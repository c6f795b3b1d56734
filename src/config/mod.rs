//! Settings: declared once, with default, bounds, unit and one plain sentence in each language; form, link, command line
//! and documentation all come from that declaration.
//!
//! The common settings are the table in `experiment.rs`; an environment declares its own in its file. Whatever comes in, by
//! [`from_link`], [`from_json`], [`set`] or [`check`], what comes out is an [`ExperimentConfig`] that can be run: a value out of
//! bounds is clamped, a bad one replaced, and each gets a [`Note`]. This module knows no environment: it is handed the
//! [`Registry`].

mod check;
mod compare;
mod description;
mod experiment;
mod json;
mod link;
mod note;
mod read;
mod recipe;
mod setting;
mod value;
mod written;

#[cfg(test)]
pub(crate) mod tests;

pub use check::{GRADIENT_ACTIVATIONS, PROMPT_ROOM, STEP_TOKENS, check};
pub use compare::{Difference, differences, with_environment};
pub use description::{Description, FieldDescription, SectionDescription, describe, markdown};
pub use experiment::{ExperimentConfig, SETTINGS};
pub use json::{from_json, to_json};
pub use link::{
    EXPECTED_STEPS, Expectation, LINK_LIMIT, LINK_VERSION, Link, LinkOutcome, SEEDS_LIMIT, from_link, read_link, to_link,
    write_link,
};
pub use note::{Note, NoteKind};
pub use read::{ReadOutcome, set};
pub use recipe::{GOVERNED, RECIPES, Recipe, recipe_of, with_recipe};
pub use setting::{
    ChoiceOption, ContextNeed, DefaultValue, EnvironmentDeclaration, Kind, Registry, Scale, Section, Setting, Text, text,
};
pub use value::{
    Aggregation, CallPayment, CreditAnchor, CreditMethod, KlEstimator, KlPlacement, LearningRateSchedule, NoSignalGroups,
    Parameters, PolicyLoss, RatioLevel, RewardMode, ScaleRewards, Truncated, TurnBaseline, Value, WarmStart, number_text,
};

/// Most characters of a title.
pub const TITLE_LIMIT: usize = 80;

/// Most significant digits of a number that is not whole, so that links keep [`LINK_LIMIT`] whatever was typed.
pub const DIGITS: usize = 6;

/// Most bytes of a title in UTF-8 (40 Chinese characters), so that links keep [`LINK_LIMIT`] in every script.
pub const TITLE_BYTES: usize = 120;
