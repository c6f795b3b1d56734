//! Links: the fragment `v=1&env=search&seed=0&gamma=1&c=1a2b3c4d` of the page's address.
//!
//! Only what differs from the environment's default is written (environment and seed always), in the order of the form, so
//! that the same experiment always gives the same link. Then may come a second configuration for comparison: what differs in it
//! from the first, each key after `b.` (`b.gamma=0.5`); both have the same seed and title. Then the number of seeds to train
//! (`seeds=3`), the title, and what the run should reproduce (`repro=cpu.Zk3`, see [`Expectation`]).
//!
//! The last field is a check code over the others: a link that was cut short or damaged on its way still opens, but not silently
//! as another experiment. Settings are read under their short keys and under their full names; of a field that is given twice
//! the first counts. A recipe (`recipe=ppo`) is read, never written.

mod expectation;
mod fields;

pub use expectation::{EXPECTED_STEPS, Expectation};

use self::fields::{Field, code_of, parse, write};
use super::compare::with_environment;
use super::experiment::{ExperimentConfig, LINK_KEYS, SETTINGS, find_environment};
use super::note::{Note, NoteKind, shorten};
use super::read::{Given, ReadOutcome, Reader};
use super::setting::Registry;

/// The version that links are written in.
pub const LINK_VERSION: &str = "1";

/// Most characters of a link's fragment, whatever the settings.
pub const LINK_LIMIT: usize = 1500;

/// Most seeds that a link asks for.
pub const SEEDS_LIMIT: u32 = 5;

/// What stands before the keys of the second configuration.
const SECOND: &str = "b.";

/// Everything that a link can say.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The experiment.
    pub config: ExperimentConfig,
    /// A second one for comparison, with the same seed and title.
    pub other: Option<ExperimentConfig>,
    /// How many seeds to train, one after another from that of the configuration: 1 to [`SEEDS_LIMIT`].
    pub seeds: u32,
    /// What the run of the first configuration gave where the link was made.
    pub expectation: Option<Expectation>,
}

impl From<ExperimentConfig> for Link {
    /// A link with an experiment and nothing else.
    fn from(config: ExperimentConfig) -> Self {
        Link { config, other: None, seeds: 1, expectation: None }
    }
}

/// A link that can be used, and what had to be changed on the way to it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    pub link: Link,
    /// One note for each bad field. Fields of the second configuration are named `b.gamma`.
    pub notes: Vec<Note>,
}

/// The fragment of a configuration, without `#`; never longer than [`LINK_LIMIT`]. The configuration has been checked.
pub fn to_link(config: &ExperimentConfig, registry: &Registry) -> String {
    write(&link_fields(&Link::from(config.clone()), registry))
}

/// The fragment of a link, without `#`; `None` where it would be longer than [`LINK_LIMIT`], which happens only where the second
/// configuration differs from the first in much. Both have been checked. The second one is written with the first one's seed and
/// title, and left out where nothing else differs.
pub fn write_link(link: &Link, registry: &Registry) -> Option<String> {
    Some(write(&link_fields(link, registry))).filter(|fragment| fragment.len() <= LINK_LIMIT)
}

/// The fields of a link in canonical order, the check code aside.
fn link_fields(link: &Link, registry: &Registry) -> Vec<(String, String)> {
    let config = &link.config;
    let defaults = ExperimentConfig::defaults(&config.environment, registry);
    let mut fields = vec![("v".to_owned(), LINK_VERSION.to_owned()), ("env".to_owned(), config.environment.clone())];
    push_settings(&mut fields, "", config, &defaults, registry);
    if let Some(other) = &link.other {
        let other = ExperimentConfig { seed: config.seed, ..other.clone() };
        if other.environment != config.environment {
            fields.push((format!("{SECOND}env"), other.environment.clone()));
        }
        push_settings(&mut fields, SECOND, &other, &with_environment(config, &other.environment, registry), registry);
    }
    if link.seeds > 1 {
        fields.push(("seeds".to_owned(), link.seeds.min(SEEDS_LIMIT).to_string()));
    }
    if !config.title.is_empty() {
        fields.push(("title".to_owned(), config.title.clone()));
    }
    fields.extend(link.expectation.as_ref().map(|expectation| ("repro".to_owned(), expectation.text())));
    fields
}

/// Adds the settings in which a configuration differs from a base, under their keys; the seed of the first one always.
fn push_settings(
    fields: &mut Vec<(String, String)>,
    prefix: &str,
    config: &ExperimentConfig,
    base: &ExperimentConfig,
    registry: &Registry,
) {
    let keys = LINK_KEYS.iter().copied();
    let own = find_environment(&config.environment, registry).map_or(&[][..], |environment| environment.settings);
    for (setting, key) in SETTINGS.iter().zip(keys).chain(own.iter().map(|setting| (setting, setting.name))) {
        let value = config.value(setting.name);
        if value != base.value(setting.name) || (setting.name == "seed" && prefix.is_empty()) {
            fields.extend(value.map(|value| (format!("{prefix}{key}"), value.to_string())));
        }
    }
}

/// The first configuration of a link, with all notes; see [`read_link`].
pub fn from_link(link: &str, registry: &Registry) -> ReadOutcome {
    let outcome = read_link(link, registry);
    ReadOutcome { config: outcome.link.config, notes: outcome.notes }
}

/// Reads a link: a whole address, a fragment with `#`, or without. Never fails; an empty fragment gives the defaults.
pub fn read_link(link: &str, registry: &Registry) -> LinkOutcome {
    let fields = parse(link);
    let find = |wanted: &str| fields.iter().find(|field| field.key == wanted).and_then(|field| field.value.as_deref());
    let mut reader = Reader::new(find("env").or_else(|| find("environment")).map(Given::Text), registry);
    if fields.is_empty() {
        let ReadOutcome { config, notes } = reader.finish();
        return LinkOutcome { link: config.into(), notes };
    }
    match find("v") {
        Some(LINK_VERSION) => {}
        Some(version) => reader.note(Note::version("v", version)),
        None => {
            let text_en = "v: the link names no version; it is read as version 1.".to_owned();
            reader.note(Note::new("v", NoteKind::Version, "", "1", text_en, "v：链接没有写版本，按版本 1 读取。".to_owned()));
        }
    }
    check_whole(&fields, find("c"), &mut reader);
    if let Some(name) = find("recipe") {
        reader.recipe(Given::Text(name));
    }
    let (mut seeds, mut expectation) = (1, None);
    for Field { raw, key, value } in &fields {
        let Some(value) = value.as_deref().map(Given::Text) else {
            let text_en = format!("{}: not of the form key=value with valid %-codes; it is ignored.", shorten(raw));
            let text_zh = format!("{}：不是“键=值”的形式，或百分号编码有误，已忽略。", shorten(raw));
            reader.note(Note::new(key, NoteKind::Syntax, raw, "", text_en, text_zh));
            continue;
        };
        match key.as_str() {
            "v" => _ = reader.first("v", value),
            "c" => _ = reader.first("c", value),
            "env" | "environment" => _ = reader.first("environment", value),
            "recipe" => _ = reader.first("recipe", value),
            "seeds" if reader.first("seeds", value) => seeds = read_seeds(value, &mut reader),
            "repro" if reader.first("repro", value) => expectation = read_expectation(value.shown(), &mut reader),
            "seeds" | "repro" => {}
            key if key.starts_with(SECOND) => {}
            key => reader.field(full_name(key), value),
        }
    }
    let ReadOutcome { config, mut notes } = reader.finish();
    let other = read_second(&fields, &config, &mut notes, registry);
    LinkOutcome { link: Link { config, other, seeds, expectation }, notes }
}

/// The name of the setting that a key stands for, or the key itself.
fn full_name(key: &str) -> &str {
    LINK_KEYS.iter().position(|link_key| *link_key == key).map_or(key, |position| SETTINGS[position].name)
}

/// The second configuration, starting from the first one. `None` where the link has none, or where it equals the first.
fn read_second(
    fields: &[Field],
    first: &ExperimentConfig,
    notes: &mut Vec<Note>,
    registry: &Registry,
) -> Option<ExperimentConfig> {
    // Those without a value have been noted.
    let own = |field: &Field| Some((field.key.strip_prefix(SECOND)?.to_owned(), field.value.clone()?));
    let fields: Vec<(String, String)> = fields.iter().filter_map(own).collect();
    if fields.is_empty() {
        return None;
    }
    let find = |wanted: &str| fields.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
    let environment = find("env").or_else(|| find("environment"));
    let mut reader = Reader::moved(first, environment, registry);
    if let Some(name) = find("recipe") {
        reader.recipe(Given::Text(name));
    }
    for (key, value) in &fields {
        let given = Given::Text(value);
        match full_name(key) {
            "env" | "environment" => _ = reader.first("environment", given),
            "recipe" => _ = reader.first("recipe", given),
            key @ ("seed" | "title" | "seeds") => {
                let text_en = format!("{key}: that of the first configuration holds for both; it is ignored.");
                let text_zh = format!("{key}：两个配置共用第一个的，已忽略。");
                reader.note(Note::new(key, NoteKind::Refused, value, "", text_en, text_zh));
            }
            key => reader.field(key, given),
        }
    }
    let outcome = reader.finish();
    notes.extend(outcome.notes.into_iter().map(|note| note.behind(SECOND)));
    let differs = outcome.config != *first;
    if !differs {
        let text_en = "b: the second configuration equals the first one, so there is nothing to compare.".to_owned();
        let text_zh = "b：第二个配置与第一个相同，没有可比较的。".to_owned();
        notes.push(Note::new("b", NoteKind::Refused, "", "", text_en, text_zh));
    }
    differs.then_some(outcome.config)
}

/// A number of seeds within its bounds; 1 for what is no whole number.
fn read_seeds(given: Given, reader: &mut Reader) -> u32 {
    let shown = given.shown();
    let number = given.number().filter(|number| number.is_infinite() || number.fract() == 0.0);
    let used = number.map_or(1.0, |number| number.clamp(1.0, f64::from(SEEDS_LIMIT)));
    if number != Some(used) {
        let text_en = format!("seeds: \"{}\" is not a whole number from 1 to {SEEDS_LIMIT}; {used} is used.", shorten(shown));
        let text_zh = format!("seeds：“{}”不是 1 到 {SEEDS_LIMIT} 之间的整数，改用 {used}。", shorten(shown));
        let kind = if number.is_some() { NoteKind::Clamped } else { NoteKind::Refused };
        reader.note(Note::new("seeds", kind, shown, &used.to_string(), text_en, text_zh));
    }
    used as u32
}

/// An expectation; a bad one is noted and left out.
fn read_expectation(text: &str, reader: &mut Reader) -> Option<Expectation> {
    let read = Expectation::parse(text);
    if read.is_none() {
        let shown = shorten(text);
        let text_en = format!(
            "repro: \"{shown}\" is not a device (cpu or webgpu), a point and 1 to {EXPECTED_STEPS} characters for the steps; \
             nothing is compared."
        );
        let text_zh =
            format!("repro：“{shown}”不是“设备（cpu 或 webgpu）、点、1 到 {EXPECTED_STEPS} 个步骤字符”的形式，不作比对。");
        reader.note(Note::new("repro", NoteKind::Refused, text, "", text_en, text_zh));
    }
    read
}

/// Notes a missing or wrong check code.
fn check_whole(fields: &[Field], given: Option<&str>, reader: &mut Reader) {
    let (text_en, text_zh) = match given {
        Some(given) if given == code_of(fields) => return,
        Some(_) => (
            "c: the check code does not match, so the link was changed or damaged after it was made; it is read as it stands.",
            "c：校验码不符，链接生成后被改动或损坏；按现有内容读取。",
        ),
        None => (
            "c: the link has no check code at its end, so it was cut short or written by hand; it is read as it stands.",
            "c：链接末尾没有校验码，可能被截断，也可能是手写的；按现有内容读取。",
        ),
    };
    let given = given.unwrap_or_default();
    reader.note(Note::new("c", NoteKind::Syntax, given, "", text_en.to_owned(), text_zh.to_owned()));
}
