//! The JSON form: one object with every setting under its full name, the environment's own under `parameters`.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

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
    let fields = match serde_json::from_str::<Fields>(text.trim_start_matches('\u{feff}')) {
        Ok(Fields(fields)) => fields,
        Err(error) => {
            let mut reader = Reader::new(None, registry);
            let text_en = format!("JSON: not a JSON object ({error}); the defaults are used.");
            let text_zh = format!("JSON：不是 JSON 对象（第 {} 行第 {} 列），改用默认值。", error.line(), error.column());
            reader.note(Note::new("JSON", NoteKind::Syntax, text, "", text_en, text_zh));
            return reader.finish();
        }
    };
    let environment = fields.iter().find(|(name, _)| name == "environment").map(|(_, value)| Given::Json(value.get()));
    let mut reader = Reader::new(environment, registry);
    for (name, value) in &fields {
        let given = Given::Json(value.get());
        match name.as_str() {
            "version" => {
                if reader.first("version", given) && value.get() != FILE_VERSION.to_string() {
                    reader.note(Note::version("version", value.get()));
                }
            }
            "environment" => _ = reader.first("environment", given),
            "parameters" => {
                if reader.first("parameters", given) {
                    read_parameters(value.get(), &mut reader);
                }
            }
            name => reader.field(name, given),
        }
    }
    reader.finish()
}

fn read_parameters(json: &str, reader: &mut Reader) {
    match serde_json::from_str::<Fields>(json) {
        Ok(Fields(fields)) => fields.iter().for_each(|(name, value)| reader.field(name, Given::Json(value.get()))),
        Err(_) => {
            let text_en = format!("parameters: {} is not a JSON object; the defaults are used.", shorten(json));
            let text_zh = format!("parameters：{} 不是 JSON 对象，改用默认值。", shorten(json));
            reader.note(Note::new("parameters", NoteKind::Refused, json, "", text_en, text_zh));
        }
    }
}

/// The fields of an object in order, repeated ones included, with their values as text: so one number that is too large for a
/// double spoils only its own field.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> serde::Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
