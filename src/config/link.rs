//! Links: the fragment `v=1&env=search&seed=0&gamma=1&c=1a2b3c4d` of the page's address.
//!
//! Only what differs from the environment's default is written (environment and seed always), in the order of the form, so
//! that the same experiment always gives the same link. The last field is a check code over the others: a link that was cut
//! short or damaged on its way still opens, but not silently as another experiment. Settings are read under their short keys
//! and under their full names; of a field that is given twice the first counts.

use std::fmt::Write;

use super::experiment::{ExperimentConfig, LINK_KEYS, SETTINGS, find_environment};
use super::note::{Note, NoteKind};
use super::read::{Given, ReadOutcome, Reader};
use super::setting::Registry;

/// The version that links are written in.
pub const LINK_VERSION: &str = "1";

/// Most characters of a link's fragment, whatever the settings.
pub const LINK_LIMIT: usize = 1500;

/// The fragment of a configuration, without `#`. The configuration has been checked.
pub fn to_link(config: &ExperimentConfig, registry: &Registry) -> String {
    let defaults = ExperimentConfig::defaults(&config.environment, registry);
    let mut fields = vec![("v", LINK_VERSION.to_owned()), ("env", config.environment.clone())];
    for (setting, key) in SETTINGS.iter().zip(LINK_KEYS) {
        let value = config.value(setting.name);
        if setting.name == "seed" || value != defaults.value(setting.name) {
            fields.extend(value.map(|value| (*key, value.to_string())));
        }
    }
    for setting in find_environment(&config.environment, registry).map_or(&[][..], |environment| environment.settings) {
        let value = config.value(setting.name);
        if value != defaults.value(setting.name) {
            fields.extend(value.map(|value| (setting.name, value.to_string())));
        }
    }
    if !config.title.is_empty() {
        fields.push(("title", config.title.clone()));
    }
    let code = check_code(fields.iter().map(|(key, value)| (*key, value.as_str())));
    let mut link = String::new();
    for (key, value) in &fields {
        link.push_str(key);
        link.push('=');
        encode(value, &mut link);
        link.push('&');
    }
    link + "c=" + &code
}

/// Reads a link: a whole address, a fragment with `#`, or without. Never fails; an empty fragment gives the defaults.
pub fn from_link(link: &str, registry: &Registry) -> ReadOutcome {
    let fields: Vec<Field> = fragment(link).split('&').filter(|part| !part.is_empty()).map(Field::parse).collect();
    let find = |wanted: &str| fields.iter().find(|field| field.key == wanted).and_then(|field| field.value.as_deref());
    let environment = find("env").or_else(|| find("environment"));
    let mut reader = Reader::new(environment.map(Given::Text), registry);
    if fields.is_empty() {
        return reader.finish();
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
    for Field { raw, key, value } in &fields {
        let Some(value) = value.as_deref().map(Given::Text) else {
            let text_en = format!("{}: not of the form key=value with valid %-codes; it is ignored.", super::note::shorten(raw));
            let text_zh = format!("{}：不是“键=值”的形式，或百分号编码有误，已忽略。", super::note::shorten(raw));
            reader.note(Note::new(key, NoteKind::Syntax, raw, "", text_en, text_zh));
            continue;
        };
        match key.as_str() {
            "v" => _ = reader.first("v", value),
            "c" => _ = reader.first("c", value),
            "env" | "environment" => _ = reader.first("environment", value),
            key => {
                let position = LINK_KEYS.iter().position(|link_key| *link_key == key);
                reader.field(position.map_or(key, |position| SETTINGS[position].name), value);
            }
        }
    }
    reader.finish()
}

/// Notes a missing or wrong check code.
fn check_whole(fields: &[Field], given: Option<&str>, reader: &mut Reader) {
    let others = fields.iter().filter(|field| field.key != "c");
    let code = check_code(others.map(|field| (field.key.as_str(), field.value.as_deref().unwrap_or(field.raw))));
    let (text_en, text_zh) = match given {
        Some(given) if given == code => return,
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

/// One `key=value` of a fragment. The value is missing where there is no `=` or a %-code is wrong.
struct Field<'a> {
    raw: &'a str,
    key: String,
    value: Option<String>,
}

impl<'a> Field<'a> {
    fn parse(raw: &'a str) -> Self {
        let (key, value) = raw.split_once('=').map_or((raw, None), |(key, value)| (key, Some(value)));
        Field { raw, key: decode(key).unwrap_or_else(|| key.to_owned()), value: value.and_then(decode) }
    }
}

/// The part after `#`, if there is one. A text without `#` is a fragment itself unless it is an address, and in one that starts
/// like a fragment a `#` is a mistake in it.
fn fragment(link: &str) -> &str {
    let link = link.trim();
    let is_address = link.split('=').next().is_some_and(|start| start.contains("://"));
    match link.split_once('#') {
        Some((_, fragment)) if !link.starts_with("v=") => fragment,
        None if is_address => "",
        _ => link,
    }
}

/// FNV-1a (32 bits, Fowler, Noll and Vo) over the decoded fields, so that it does not depend on how they are encoded. A change
/// of a single byte always changes it.
fn check_code<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let bytes = fields.flat_map(|(key, value)| key.bytes().chain([b'=']).chain(value.bytes()).chain([b'&']));
    format!("{:08x}", bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)))
}

/// %-encodes everything but letters, digits and `-_.~` (RFC 3986, unreserved characters).
fn encode(text: &str, link: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            link.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            _ = write!(link, "%{byte:02X}");
        }
    }
}

/// Decodes %-codes; `None` where one is incomplete or the bytes are not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?].map(|digit| char::from(digit).to_digit(16));
                (digits[0]? * 16 + digits[1]?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}
