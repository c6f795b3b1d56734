//! What was clamped, refused or ignored while reading settings: one note per bad field, in both languages.

use super::setting::{Kind, Setting};
use super::value::{Value, number_text};
use super::{DIGITS, TITLE_BYTES, TITLE_LIMIT};

/// Most characters of what was given that a note repeats.
const GIVEN_LIMIT: usize = 40;

/// What happened to one bad field.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Note {
    /// Name of the setting, or what stood in its place.
    pub field: String,
    pub kind: NoteKind,
    /// What was given, shortened, without control characters. Text of a stranger: never to be shown as markup.
    pub given: String,
    /// What is used instead; empty where nothing is.
    pub used: String,
    /// The whole story in one English sentence: field, bound, what is used instead.
    pub text_en: String,
    /// The same in Chinese.
    pub text_zh: String,
}

/// Why a field was not taken as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Outside its bounds, alone or together with other settings; the nearest allowed value is used.
    Clamped,
    /// Not a value of its kind; the value from before, or the default, is used.
    Refused,
    /// No setting of this name; ignored.
    Unknown,
    /// Not readable, or a link that was cut or changed on its way.
    Syntax,
    /// Written by another version.
    Version,
    /// Given more than once; the first counts.
    Duplicate,
    /// A short form of several settings, read as those.
    Expanded,
}

impl Note {
    /// A note in full words.
    pub(super) fn new(field: &str, kind: NoteKind, given: &str, used: &str, text_en: String, text_zh: String) -> Self {
        Note { field: shorten(field), kind, given: shorten(given), used: used.to_owned(), text_en, text_zh }
    }

    /// The note with `prefix` before the name of its field. How many more notes there are belongs to no field.
    pub(super) fn behind(mut self, prefix: &str) -> Self {
        if !self.field.is_empty() || self.kind != NoteKind::Syntax {
            [&mut self.field, &mut self.text_en, &mut self.text_zh].into_iter().for_each(|text| text.insert_str(0, prefix));
        }
        self
    }

    /// A value of the right kind outside the setting's bounds.
    pub(super) fn clamped(setting: &Setting, given: &str, used: &Value) -> Self {
        let (name, (en, zh), shown) = (setting.name, allowed(setting), shorten(given));
        let text_en = format!("{name}: {shown} is not {en}; {used} is used instead.");
        let text_zh = format!("{name}：{shown} 不是{zh}，改用 {used}。");
        Note::new(name, NoteKind::Clamped, given, &used.to_string(), text_en, text_zh)
    }

    /// A value that is not of the setting's kind.
    pub(super) fn refused(setting: &Setting, given: &str, used: &Value) -> Self {
        let (name, (en, zh), shown) = (setting.name, allowed(setting), shorten(given));
        let text_en = format!("{name}: \"{shown}\" is not {en}; {used} is used instead.");
        let text_zh = format!("{name}：“{shown}”不是{zh}，改用 {used}。");
        Note::new(name, NoteKind::Refused, given, &used.to_string(), text_en, text_zh)
    }

    /// A field that names no setting.
    pub(super) fn unknown(field: &str, given: &str, environment: &str) -> Self {
        let shown = shorten(field);
        let text_en = format!("{shown}: the environment \"{environment}\" has no such setting; it is ignored.");
        let text_zh = format!("{shown}：环境“{environment}”没有这项设置，已忽略。");
        Note::new(field, NoteKind::Unknown, given, "", text_en, text_zh)
    }

    /// A recipe, read as the settings that it stands for.
    pub(super) fn recipe(given: &str) -> Self {
        let text_en = format!("recipe: read as the settings of {given}; links that are made here name those one by one.");
        let text_zh = format!("recipe：按 {given} 的各项设置读取；这里生成的链接会逐项写出这些设置。");
        Note::new("recipe", NoteKind::Expanded, given, given, text_en, text_zh)
    }

    /// A recipe that does not exist.
    pub(super) fn no_recipe(given: &str, names: &[&str]) -> Self {
        let (shown, names) = (shorten(given), names.join(", "));
        let text_en = format!("recipe: \"{shown}\" is not one of {names}; it is ignored.");
        let text_zh = format!("recipe：“{shown}”不在已知配方（{names}）之中，已忽略。");
        Note::new("recipe", NoteKind::Refused, given, "", text_en, text_zh)
    }

    /// A field that was given before.
    pub(super) fn duplicate(field: &str, given: &str) -> Self {
        let shown = shorten(field);
        let text_en = format!("{shown}: given more than once; the first one counts.");
        let text_zh = format!("{shown}：重复给出，以第一个为准。");
        Note::new(field, NoteKind::Duplicate, given, "", text_en, text_zh)
    }

    /// An environment that is not registered.
    pub(super) fn no_environment(given: &str, used: &str, names: &[&str]) -> Self {
        let (shown, names) = (shorten(given), names.join(", "));
        let text_en = format!("environment: \"{shown}\" is not one of {names}; {used} is used instead.");
        let text_zh = format!("environment：“{shown}”不在可选环境（{names}）之中，改用 {used}。");
        Note::new("environment", NoteKind::Refused, given, used, text_en, text_zh)
    }

    /// A title beyond its limits.
    pub(super) fn long_title(given: &str, used: &str) -> Self {
        let text_en = format!("title: longer than {TITLE_LIMIT} characters or {TITLE_BYTES} bytes; it is cut there.");
        let text_zh = format!("title：超过 {TITLE_LIMIT} 个字符或 {TITLE_BYTES} 字节，已在该处截断。");
        Note::new("title", NoteKind::Clamped, given, used, text_en, text_zh)
    }

    /// A version this program does not know.
    pub(super) fn version(field: &str, given: &str) -> Self {
        let shown = shorten(given);
        let text_en = format!("{field}: version \"{shown}\" is not known here (1 is); what could be read was read.");
        let text_zh = format!("{field}：不认识版本“{shown}”（这里是 1），能读的都已读取。");
        Note::new(field, NoteKind::Version, given, "1", text_en, text_zh)
    }
}

/// What a setting takes, as the end of "... is not".
fn allowed(setting: &Setting) -> (String, String) {
    let between = |min: f64, max: f64, en: &str, zh: &str| {
        let (min, max) = (number_text(min), number_text(max));
        (format!("{en} from {min} to {max}"), format!(" {min} 到 {max} 之间的{zh}"))
    };
    let among = |words: Vec<String>| (format!("one of {}", words.join(", ")), format!("可选值（{}）之一", words.join("、")));
    match setting.kind {
        Kind::Number { min, max, .. } => {
            let (en, zh) = between(min, max, "a number", "数");
            (format!("{en} with at most {DIGITS} digits"), format!("{zh}（至多 {DIGITS} 位有效数字）"))
        }
        Kind::Integer { min, max, .. } => between(f64::from(min), f64::from(max), "a whole number", "整数"),
        Kind::IntegerChoice { options, .. } => among(options.iter().map(u32::to_string).collect()),
        Kind::Switch { .. } => ("1 (on) or 0 (off)".to_owned(), " 1（开）或 0（关）".to_owned()),
        Kind::Choice { options, .. } => among(options.iter().map(|option| option.value.to_owned()).collect()),
    }
}

/// At most [`GIVEN_LIMIT`] characters, without control characters and marks that change the direction of writing.
pub(super) fn shorten(text: &str) -> String {
    let hidden =
        |c: &char| c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut characters = text.chars().filter(|c| !hidden(c));
    let mut short: String = characters.by_ref().take(GIVEN_LIMIT).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}
