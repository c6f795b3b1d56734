//! Short forms for the parameters that tasks declare.

use crate::config::{Kind, Scale, Section, Setting, Text, text};

/// A parameter that is a share or a probability, 0 to 1.
pub(super) const fn share(name: &'static str, default: f64, label: Text, help: Text, advanced: bool) -> Setting {
    let kind = Kind::Number { default, min: 0.0, max: 1.0, step: 0.01, scale: Scale::Linear };
    Setting { name, section: Section::Environment, kind, label, unit: text("", ""), help, advanced }
}

/// A share of the demonstrator: it stands with the warm start, and a shipped checkpoint fits only if it is as it was there.
pub(super) const fn demonstrated(name: &'static str, default: f64, label: Text, help: Text) -> Setting {
    Setting { section: Section::WarmStart, ..share(name, default, label, help, true) }
}

/// A parameter that is a whole number.
pub(super) const fn count(
    name: &'static str,
    [default, min, max]: [u32; 3],
    label: Text,
    unit: Text,
    help: Text,
    advanced: bool,
) -> Setting {
    Setting { name, section: Section::Environment, kind: Kind::Integer { default, min, max }, label, unit, help, advanced }
}
