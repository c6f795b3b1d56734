//! How values of settings are written: as plain JSON values where a person may read them, with their kind where only programs do.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Value;

/// With its kind, for formats that do not say what comes next.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "Value")]
enum Tagged {
    Switch(bool),
    Number(f64),
    Choice(String),
}

/// As it is.
#[derive(serde::Deserialize)]
#[serde(remote = "Value", untagged)]
enum Plain {
    Switch(bool),
    Number(f64),
    Choice(String),
}

impl Serialize for Value {
    /// In JSON whole numbers have no decimal point.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return Tagged::serialize(self, serializer);
        }
        match self {
            Value::Switch(on) => serializer.serialize_bool(*on),
            Value::Number(x) if x.fract() == 0.0 && x.abs() <= f64::from(u32::MAX) => serializer.serialize_i64(*x as i64),
            Value::Number(x) => serializer.serialize_f64(*x),
            Value::Choice(word) => serializer.serialize_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() { Plain::deserialize(deserializer) } else { Tagged::deserialize(deserializer) }
    }
}
