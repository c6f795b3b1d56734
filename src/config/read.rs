//! Reading single values, and collecting them into a configuration. Links, JSON and the command line differ only in syntax.

use std::collections::BTreeSet;

use super::check::reconcile;
use super::compare::with_environment;
use super::experiment::{ExperimentConfig, SETTINGS, find_environment};
use super::note::{Note, NoteKind, shorten};
use super::recipe::{RECIPES, with_recipe};
use super::setting::{EnvironmentDeclaration, Kind, Registry, Setting};
use super::value::{Value, rounded};
use super::{TITLE_BYTES, TITLE_LIMIT};

/// Most notes that are kept of one reading.
const NOTE_LIMIT: usize = 100;

/// A configuration that can be used, and what had to be changed on the way to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOutcome {
    pub config: ExperimentConfig,
    pub notes: Vec<Note>,
}

/// What stood for a value.
#[derive(Clone, Copy)]
pub(super) enum Given<'a> {
    /// Bare text, from a link or the command line.
    Text(&'a str),
    /// The text of a JSON value.
    Json(&'a str),
}

impl Given<'_> {
    fn raw(&self) -> &str {
        let (Given::Text(text) | Given::Json(text)) = self;
        text
    }

    /// What a note shows: a JSON string without its quotes.
    pub fn shown(&self) -> &str {
        match self {
            Given::Text(text) => text,
            Given::Json(json) => json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(json),
        }
    }

    /// The text of a string.
    pub fn string(&self) -> Option<String> {
        match self {
            Given::Text(text) => Some((*text).to_owned()),
            Given::Json(json) => serde_json::from_str(json).ok(),
        }
    }

    fn switch(&self) -> Option<bool> {
        match self {
            Given::Text("1" | "true" | "on") | Given::Json("1" | "true") => Some(true),
            Given::Text("0" | "false" | "off") | Given::Json("0" | "false") => Some(false),
            _ => None,
        }
    }

    /// A decimal number. Too large for a double gives infinity, which is clamped later; `inf`, `NaN`, `0x10` are no numbers.
    pub fn number(&self) -> Option<f64> {
        let text = self.raw().trim();
        let decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        // Adding zero turns -0 into 0.
        if decimal { text.parse::<f64>().ok().map(|x| x + 0.0) } else { None }
    }

    fn value(&self, kind: Kind) -> Option<Value> {
        match kind {
            Kind::Number { .. } | Kind::Integer { .. } | Kind::IntegerChoice { .. } => self.number().map(Value::Number),
            Kind::Switch { .. } => self.switch().map(Value::Switch),
            Kind::Choice { .. } => self.string().map(Value::Choice),
        }
    }
}

/// Reads a value for a setting: as it is, clamped to its bounds, or else the `fallback`.
pub(super) fn read(setting: &Setting, given: Given, fallback: &Value) -> (Value, Option<Note>) {
    match given.value(setting.kind).map(|value| fit(setting, value)) {
        Some(Ok(value)) => (value, None),
        Some(Err(Some(near))) => {
            let note = Note::clamped(setting, given.shown(), &near);
            (near, Some(note))
        }
        Some(Err(None)) | None => (fallback.clone(), Some(Note::refused(setting, given.shown(), fallback))),
    }
}

/// The value if the setting accepts it, else the nearest one that it accepts, if there is such a thing.
pub(super) fn fit(setting: &Setting, value: Value) -> Result<Value, Option<Value>> {
    if setting.accepts(&value) {
        return Ok(value);
    }
    let Value::Number(x) = value else { return Err(None) };
    let whole = |min: u32, max: u32| (x.is_infinite() || x.fract() == 0.0).then(|| x.clamp(f64::from(min), f64::from(max)));
    Err(match setting.kind {
        _ if x.is_nan() => None,
        Kind::Number { min, max, .. } => Some(rounded(x.clamp(min, max))),
        Kind::Integer { min, max, .. } => whole(min, max),
        Kind::IntegerChoice { options, .. } => whole(0, u32::MAX).and_then(|x| {
            let distance = |option: &f64| (option - x).abs();
            options.iter().map(|&option| f64::from(option)).min_by(|a, b| distance(a).total_cmp(&distance(b)))
        }),
        Kind::Switch { .. } | Kind::Choice { .. } => None,
    }
    .map(Value::Number))
}

/// The common settings and those of the environment.
pub(super) fn settings_in(environment: Option<&'static EnvironmentDeclaration>) -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain(environment.map_or(&[][..], |environment| environment.settings))
}

/// Collects fields into a configuration.
pub(super) struct Reader<'r> {
    registry: &'r Registry,
    config: ExperimentConfig,
    notes: Vec<Note>,
    /// Notes beyond the limit.
    dropped: usize,
    seen: BTreeSet<&'static str>,
}

impl<'r> Reader<'r> {
    /// Starts from the defaults of the environment that was named, which has to be known before its parameters are read.
    pub fn new(environment: Option<Given>, registry: &'r Registry) -> Self {
        let name = environment.map(|given| given.string().unwrap_or_default());
        let config = ExperimentConfig::defaults(name.as_deref().unwrap_or_default(), registry);
        let mut reader = Reader { registry, config, notes: Vec::new(), dropped: 0, seen: BTreeSet::new() };
        if let (Some(given), Some(name)) = (environment, name)
            && find_environment(&name, registry).is_none()
        {
            reader.note(Note::no_environment(given.shown(), &reader.config.environment, &names(registry)));
        }
        reader
    }

    /// Starts from a configuration that has been checked, moved to another environment where one is named.
    pub fn moved(config: &ExperimentConfig, environment: Option<&str>, registry: &'r Registry) -> Self {
        let config = with_environment(config, environment.unwrap_or(&config.environment), registry);
        let mut reader = Reader { registry, config, notes: Vec::new(), dropped: 0, seen: BTreeSet::new() };
        if let Some(name) = environment.filter(|name| find_environment(name, registry).is_none()) {
            reader.note(Note::no_environment(name, &reader.config.environment, &names(registry)));
        }
        reader
    }

    /// Takes the choices of a recipe. To be called before the fields, which come on top.
    pub fn recipe(&mut self, given: Given) {
        let name = given.string().unwrap_or_default();
        match with_recipe(&self.config, &name, self.registry) {
            Some(config) => {
                self.config = config;
                self.note(Note::recipe(&name));
            }
            None => self.note(Note::no_recipe(given.shown(), &RECIPES.iter().map(|recipe| recipe.name).collect::<Vec<_>>())),
        }
    }

    /// Adds a note.
    pub fn note(&mut self, note: Note) {
        if self.notes.len() < NOTE_LIMIT { self.notes.push(note) } else { self.dropped += 1 }
    }

    /// The setting of a name under the environment in question.
    pub fn setting(&self, name: &str) -> Option<&'static Setting> {
        settings_in(find_environment(&self.config.environment, self.registry)).find(|setting| setting.name == name)
    }

    /// Whether a field comes for the first time; otherwise it is noted.
    pub fn first(&mut self, name: &'static str, given: Given) -> bool {
        let first = self.seen.insert(name);
        if !first {
            self.note(Note::duplicate(name, given.shown()));
        }
        first
    }

    /// Takes a title or a setting; anything else is noted as unknown.
    pub fn field(&mut self, name: &str, given: Given) {
        if name == "title" {
            if self.first("title", given) {
                let (title, note) = read_title(given, &self.config.title);
                self.config.title = title;
                note.into_iter().for_each(|note| self.note(note));
            }
        } else if let Some(setting) = self.setting(name) {
            if self.first(setting.name, given) {
                let fallback = self.config.value(setting.name).unwrap_or_else(|| setting.default_value());
                let (value, note) = read(setting, given, &fallback);
                self.config.assign(setting.name, &value);
                note.into_iter().for_each(|note| self.note(note));
            }
        } else {
            self.note(Note::unknown(name, given.shown(), &self.config.environment));
        }
    }

    /// Checks the fields against each other and hands the configuration over.
    pub fn finish(mut self) -> ReadOutcome {
        for note in reconcile(&mut self.config, self.registry) {
            self.note(note);
        }
        if self.dropped > 0 {
            let text_en = format!("There are {} more such notes.", self.dropped);
            let text_zh = format!("另有 {} 条类似的提示。", self.dropped);
            self.notes.push(Note::new("", NoteKind::Syntax, "", "", text_en, text_zh));
        }
        ReadOutcome { config: self.config, notes: self.notes }
    }
}

/// A title within its limits.
fn read_title(given: Given, fallback: &str) -> (String, Option<Note>) {
    let Some(title) = given.string() else {
        let text_en = format!("title: \"{}\" is not a text; none is used.", shorten(given.shown()));
        let text_zh = format!("title：“{}”不是文本，不予采用。", shorten(given.shown()));
        let note = Note::new("title", NoteKind::Refused, given.shown(), fallback, text_en, text_zh);
        return (fallback.to_owned(), Some(note));
    };
    let short = fit_title(&title);
    let note = (short.len() < title.len()).then(|| Note::long_title(&title, short));
    (short.to_owned(), note)
}

/// The longest beginning of a title that keeps its limits.
pub(super) fn fit_title(title: &str) -> &str {
    let fits = |&(count, (start, character)): &(usize, (usize, char))| {
        count < TITLE_LIMIT && start + character.len_utf8() <= TITLE_BYTES
    };
    let end = title.char_indices().enumerate().take_while(fits).last();
    &title[..end.map_or(0, |(_, (start, character))| start + character.len_utf8())]
}

/// The registered names.
pub(super) fn names(registry: &Registry) -> Vec<&'static str> {
    registry.iter().map(|environment| environment.name).collect()
}

/// Sets one setting by name, as on the command line (`--turn-limit 3`): hyphens and underscores are the same. A value out of
/// bounds is clamped; a bad one leaves the setting as it is. Settings are not checked against each other, see [`super::check`].
pub fn set(config: &mut ExperimentConfig, name: &str, value: &str, registry: &Registry) -> Option<Note> {
    let name = name.replace('-', "_");
    if name == "environment" {
        if find_environment(value, registry).is_none() {
            return Some(Note::no_environment(value, &config.environment, &names(registry)));
        }
        *config = super::with_environment(config, value, registry);
        return None;
    }
    if name == "title" {
        let (title, note) = read_title(Given::Text(value), &config.title);
        config.title = title;
        return note;
    }
    let Some(setting) = settings_in(find_environment(&config.environment, registry)).find(|setting| setting.name == name) else {
        return Some(Note::unknown(&name, value, &config.environment));
    };
    let fallback = config.value(setting.name).unwrap_or_else(|| setting.default_value());
    let (read, note) = read(setting, Given::Text(value), &fallback);
    config.assign(setting.name, &read);
    note
}
