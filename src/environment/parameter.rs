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

/// How well the demonstrator of the tasks with pages reads them.
pub(super) const RIGHT_CLICKS: Setting = demonstrated(
    "right_clicks",
    0.35,
    text("Demonstrations that read", "示范看清标签的比例"),
    text(
        "How often a demonstration finds the right label; otherwise it clicks on any of the three, so that turning it up gives a \
         better warm start.",
        "示范找到正确标签的比例，其余时候在三个标签中随便点一个；调高后热启动更好。",
    ),
);

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
