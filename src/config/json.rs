//! The JSON form: one object with every setting under its full name, the environment's own under `parameters`.

use serde::de::IgnoredAny;

use super::experiment::ExperimentConfig;
use super::note::{Note, NoteKind, shorten};
use super::read::{Given, ReadOutcome, Reader};
use super::setting::Registry;

/// The version that files are written in.
const FILE_VERSION: u32 = 1;

#[derive(serde::Serialize)]
struct File<'a> {
    version: u32,
    #[serde(flatten)]
    config: &'a ExperimentConfig,
}

/// Every setting, indented.
pub fn to_json(config: &ExperimentConfig) -> String {
    // Fails only for maps whose keys are no strings, and there are none.
    serde_json::to_string_pretty(&File { version: FILE_VERSION, config }).unwrap_or_default()
}

/// Reads JSON. Never fails: settings that are not named have the environment's default, a bad one is noted and replaced, and
/// text that is not JSON gives the defaults and one note.
pub fn from_json(text: &str, registry: &Registry) -> ReadOutcome {
    let fields = match fields(text.trim_start_matches('\u{feff}')) {
        Ok(fields) => fields,
        Err(error) => {
            let mut reader = Reader::new(None, registry);
            let text_en = format!("JSON: not a JSON object ({error}); the defaults are used.");
            let text_zh = format!("JSON：不是 JSON 对象（第 {} 行第 {} 列），改用默认值。", error.line(), error.column());
            reader.note(Note::new("JSON", NoteKind::Syntax, text, "", text_en, text_zh));
            return reader.finish();
        }
    };
    let environment = fields.iter().find(|(name, _)| name == "environment").map(|(_, value)| Given::Json(value));
    let mut reader = Reader::new(environment, registry);
    if let Some((_, value)) = fields.iter().find(|(name, _)| name == "recipe") {
        reader.recipe(Given::Json(value));
    }
    for (name, value) in &fields {
        let given = Given::Json(value);
        match name.as_str() {
            "version" => {
                if reader.first("version", given) && *value != FILE_VERSION.to_string() {
                    reader.note(Note::version("version", value));
                }
            }
            "environment" => _ = reader.first("environment", given),
            "recipe" => _ = reader.first("recipe", given),
            "parameters" => {
                if reader.first("parameters", given) {
                    read_parameters(value, &mut reader);
                }
            }
            name => reader.field(name, given),
        }
    }
    reader.finish()
}

fn read_parameters(json: &str, reader: &mut Reader) {
    match fields(json) {
        Ok(fields) => fields.iter().for_each(|(name, value)| reader.field(name, Given::Json(value))),
        Err(_) => {
            let text_en = format!("parameters: {} is not a JSON object; the defaults are used.", shorten(json));
            let text_zh = format!("parameters：{} 不是 JSON 对象，改用默认值。", shorten(json));
            reader.note(Note::new("parameters", NoteKind::Refused, json, "", text_en, text_zh));
        }
    }
}

/// The fields of an object in order, repeated ones included, each with the text of its value: so a number that is too large for
/// a double spoils only its own field, and every number is read from its own digits.
fn fields(text: &str) -> Result<Vec<(String, &str)>, serde_json::Error> {
    let after_object = checked_length(text)?;
    if let Some(rest) = text.get(after_object..).filter(|rest| !rest.trim().is_empty()) {
        return Err(serde::de::Error::custom(format!("text after the object: {}", shorten(rest.trim()))));
    }
    let mut rest = text.trim_start().strip_prefix('{').ok_or_else(|| serde::de::Error::custom("it does not start with {"))?;
    let mut fields = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        if rest.is_empty() || rest.starts_with('}') {
            return Ok(fields);
        }
        let key_length = checked_length(rest)?;
        let (key, after) = rest.split_at(key_length);
        let value = after.trim_start_matches(|c: char| c == ':' || c.is_ascii_whitespace());
        let value_length = checked_length(value)?;
        let (value, after) = value.split_at(value_length);
        fields.push((serde_json::from_str(key)?, value));
        rest = after;
    }
}

/// The length of the JSON value that the text starts with, having checked its syntax.
fn checked_length(text: &str) -> Result<usize, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => Ok(values.byte_offset()),
        Some(Err(error)) => Err(error),
        None => Err(serde::de::Error::custom("it is empty")),
    }
}
