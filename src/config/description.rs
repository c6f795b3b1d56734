//! Everything a form or a manual needs to know about the settings.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::compare::ENVIRONMENT_LABEL;
use super::experiment::{ExperimentConfig, LINK_KEYS, SETTINGS};
use super::recipe::{RECIPES, Recipe};
use super::setting::{EnvironmentDeclaration, Kind, Registry, Section, Setting, Text, text};
use super::value::{Value, number_text};
use super::{DIGITS, TITLE_BYTES, TITLE_LIMIT};

/// All settings, for the page's form.
#[derive(Clone, Debug, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Description {
    /// The sections of the form, in order.
    pub sections: Vec<SectionDescription>,
    /// The choice of the environment.
    pub environment: FieldDescription,
    /// The free text that names an experiment.
    pub title: FieldDescription,
    /// Most characters of a title.
    pub title_limit: usize,
    /// The common settings, in order within their sections.
    pub settings: &'static [Setting],
    /// Published recipes that set the choices of credit and objective.
    pub recipes: &'static [Recipe],
    /// The environments, in order, each with its own settings.
    pub environments: Vec<&'static EnvironmentDeclaration>,
    /// The default configuration of each environment, by name: the "reset" value of every setting.
    pub defaults: BTreeMap<&'static str, ExperimentConfig>,
}

/// A section with its heading.
#[derive(Clone, Debug, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct SectionDescription {
    pub section: Section,
    pub label: Text,
}

/// A field that is not in the table of settings.
#[derive(Clone, Debug, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct FieldDescription {
    pub label: Text,
    pub help: Text,
}

/// Describes the settings under the given environments.
pub fn describe(registry: &Registry) -> Description {
    Description {
        sections: Section::ALL.map(|section| SectionDescription { section, label: section.label() }).to_vec(),
        environment: FieldDescription {
            label: ENVIRONMENT_LABEL,
            help: text(
                "The task that the policy learns; another task brings its own parameters and defaults.",
                "策略要学的任务；换一个任务，会带来它自己的参数和默认值。",
            ),
        },
        title: FieldDescription {
            label: text("Title", "标题"),
            help: text(
                "A name for the experiment, shown to whoever opens the link; it changes nothing in the run.",
                "给实验起的名字，打开链接的人会看到；不影响运行。",
            ),
        },
        title_limit: TITLE_LIMIT,
        settings: SETTINGS,
        recipes: RECIPES,
        environments: registry.to_vec(),
        defaults: registry.iter().map(|entry| (entry.name, ExperimentConfig::defaults(entry.name, registry))).collect(),
    }
}

/// The reference of all settings as Markdown tables, in English.
pub fn markdown(registry: &Registry) -> String {
    let mut text = format!(
        "Every setting has the same name in JSON and on the command line (`--name VALUE`); `key` is its name in links. Common to \
         all are `environment` ({}) and `title` (free text, at most {TITLE_LIMIT} characters and {TITLE_BYTES} bytes). Numbers that are not whole \
         have at most {DIGITS} significant digits.\n",
        registry.iter().map(|environment| format!("`{}`", environment.name)).collect::<Vec<_>>().join(", "),
    );
    for section in Section::ALL {
        let rows: Vec<String> = SETTINGS
            .iter()
            .zip(LINK_KEYS)
            .filter(|(setting, _)| setting.section == section)
            .map(|(setting, key)| row(setting, key, &other_defaults(setting, registry)))
            .collect();
        if !rows.is_empty() {
            table(&mut text, section.label().en, "", &rows);
        }
    }
    _ = writeln!(
        text,
        "\n### Recipes\n\n`--recipe NAME` sets the choices of credit and objective to those of a paper, and nothing else.\n\n| recipe | \
         paper | what it is | sets |\n| --- | --- | --- | --- |"
    );
    for recipe in RECIPES {
        let choices = recipe.choices.iter().map(|&(name, value)| format!("`{name}` {}", Value::from(value))).collect::<Vec<_>>();
        _ = writeln!(text, "| `{}` | {} | {} | {} |", recipe.name, recipe.cite, recipe.help.en, choices.join(", "));
    }
    for environment in registry {
        let rows: Vec<String> = environment.settings.iter().map(|setting| row(setting, setting.name, "")).collect();
        table(&mut text, &format!("Environment `{}`", environment.name), environment.help.en, &rows);
    }
    text
}

fn table(text: &mut String, heading: &str, help: &str, rows: &[String]) {
    let help = if help.is_empty() { String::new() } else { format!("{help}\n\n") };
    let head = "| setting | key | default | values | unit | what it does |\n| --- | --- | --- | --- | --- | --- |";
    // Writing to a string cannot fail.
    _ = writeln!(text, "\n### {heading}\n\n{help}{head}\n{}", rows.join("\n"));
}

fn row(setting: &Setting, key: &str, others: &str) -> String {
    let name = setting.name;
    let default = setting.default_value();
    let words = |words: Vec<String>| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let values = match setting.kind {
        Kind::Number { min, max, .. } => format!("{} to {}", number_text(min), number_text(max)),
        Kind::Integer { min, max, .. } => format!("{min} to {max}, whole"),
        Kind::IntegerChoice { options, .. } => words(options.iter().map(u32::to_string).collect()),
        Kind::Switch { .. } => words(vec!["1".to_owned(), "0".to_owned()]),
        Kind::Choice { options, .. } => words(options.iter().map(|option| option.value.to_owned()).collect()),
    };
    let help = setting.help.en.replace('|', "\\|");
    format!("| `{name}` | `{key}` | {default}{others} | {values} | {} | {help} |", setting.unit.en)
}

/// The defaults that environments replace: ` (calculator: 8)`.
fn other_defaults(setting: &Setting, registry: &Registry) -> String {
    let default = setting.default_value();
    let others = registry.iter().map(|environment| (environment.name, setting.default_in(environment)));
    let others: Vec<String> =
        others.filter(|(_, value)| *value != default).map(|(name, value)| format!("{name}: {value}")).collect();
    if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) }
}
