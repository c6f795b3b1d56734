//! Settings on the command line: one option each, from their declaration.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use turnwise::config::{self, ExperimentConfig, Kind, LinkOutcome, Note, SETTINGS, Setting};
use turnwise::device::{Chosen, DeviceChoice, DeviceKind, DeviceReason, choose, native_adapter};
use turnwise::environment::REGISTRY;

use crate::Failure;

/// Adds `--SETTING VALUE` for every setting of the experiment and of every environment.
pub fn with_settings(command: Command) -> Command {
    let environments = REGISTRY.iter().flat_map(|environment| {
        environment.settings.iter().map(|setting| (setting, format!("Settings of the environment `{}`", environment.name)))
    });
    let all = SETTINGS.iter().map(|setting| (setting, "Settings".to_string())).chain(environments);
    let environment = Arg::new("environment").long("environment").value_name("NAME").help_heading("Settings").help(
        REGISTRY.iter().map(|environment| format!("{}: {}", environment.name, environment.help.en)).collect::<Vec<_>>().join(" "),
    );
    let recipes = config::RECIPES.iter().map(|recipe| recipe.name);
    let recipe = Arg::new("recipe")
        .long("recipe")
        .value_name("NAME")
        .value_parser(clap::builder::PossibleValuesParser::new(recipes))
        .help_heading("Settings")
        .help("Sets the choices of credit and objective to those of a published recipe; options beside it come on top");
    all.fold(command.arg(environment).arg(recipe), |command, (setting, heading)| {
        if command.get_arguments().any(|known| known.get_id() == setting.name) {
            return command;
        }
        command.arg(option(setting, heading))
    })
}

fn option(setting: &'static Setting, heading: String) -> Arg {
    let bounds = match setting.kind {
        Kind::Number { min, max, .. } => format!("{min} to {max}"),
        Kind::Integer { min, max, .. } => format!("{min} to {max}"),
        Kind::IntegerChoice { options, .. } => options.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        Kind::Switch { .. } => "true, false".to_string(),
        Kind::Choice { options, .. } => options.iter().map(|option| option.value).collect::<Vec<_>>().join(", "),
    };
    Arg::new(setting.name)
        .long(setting.name.replace('_', "-"))
        .alias(setting.name)
        .value_name("VALUE")
        .allow_hyphen_values(true)
        .help_heading(heading)
        .help(format!("{} [{bounds}]", setting.help.en))
}

/// The experiment that the arguments describe. What was clamped or refused is said on standard error.
///
/// # Errors
/// When the named file cannot be read, there is no lesson of the name, or `--other` asks for a configuration that link or lesson do
/// not have.
pub fn experiment(matches: &ArgMatches) -> Result<ExperimentConfig, Failure> {
    let LinkOutcome { link, notes } = match (given(matches, "experiment"), given(matches, "lesson")) {
        (Some(text), _) => read(text)?,
        (None, Some(name)) => LinkOutcome { link: crate::lesson::find(name)?.link(), notes: Vec::new() },
        (None, None) => {
            let base = ExperimentConfig::defaults(given(matches, "environment").unwrap_or("search"), REGISTRY);
            return Ok(told(with_options(matches, base, Vec::new())));
        }
    };
    let second = matches.try_get_one::<bool>("other").ok().flatten().copied().unwrap_or(false);
    let base = match link.other {
        Some(other) if second => other,
        None if second => return Err("--other: there is no second configuration".into()),
        Some(_) => {
            eprintln!("there are two configurations: this is the first (`turnwise train --other` trains the second)");
            link.config
        }
        None => link.config,
    };
    Ok(told(with_options(matches, base, notes)))
}

/// Says the notes on standard error and gives the configuration.
fn told((config, notes): (ExperimentConfig, Vec<Note>)) -> ExperimentConfig {
    notes.iter().for_each(|note| eprintln!("note: {}", note.text_en));
    config
}

/// A link, or a file with settings in JSON.
///
/// # Errors
/// When the named file cannot be read.
pub fn read(text: &str) -> Result<LinkOutcome, Failure> {
    // A link has `=` or `#` in it; what has neither and ends in .json, or is a file, is a file.
    let link = text.contains(['=', '#']);
    if link || !(text.ends_with(".json") || std::path::Path::new(text).is_file()) {
        return Ok(config::read_link(text, REGISTRY));
    }
    let json = std::fs::read_to_string(text).map_err(|error| format!("cannot read the settings file {text}: {error}"))?;
    let outcome = config::from_json(&json, REGISTRY);
    Ok(LinkOutcome { link: outcome.config.into(), notes: outcome.notes })
}

/// Applies the options to a configuration; the environment first, since it moves defaults.
pub fn with_options(matches: &ArgMatches, mut config: ExperimentConfig, mut notes: Vec<Note>) -> (ExperimentConfig, Vec<Note>) {
    let names = std::iter::once("environment")
        .chain(SETTINGS.iter().map(|setting| setting.name))
        .chain(REGISTRY.iter().flat_map(|environment| environment.settings.iter().map(|setting| setting.name)));
    let mut done: Vec<&str> = Vec::new();
    for name in names {
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        if let Some(value) = given(matches, name) {
            notes.extend(config::set(&mut config, name, value, REGISTRY));
        }
        // A recipe comes after the environment, which moves defaults, and before everything else.
        if let ("environment", Some(recipe)) = (name, given(matches, "recipe")) {
            config = config::with_recipe(&config, recipe, REGISTRY).unwrap_or(config);
        }
    }
    let checked = config::check(&config, REGISTRY);
    notes.extend(checked.notes);
    (checked.config, notes)
}

/// The device that `--device` asks for; says which one it is.
pub fn device(matches: &ArgMatches) -> Chosen {
    let choice = match given(matches, "device") {
        Some("gpu") => DeviceChoice::Gpu,
        Some("auto") => DeviceChoice::Auto,
        _ => DeviceChoice::Cpu,
    };
    let chosen = pollster::block_on(choose(choice, native_adapter));
    let kind = if chosen.report.kind == DeviceKind::Webgpu { "GPU" } else { "CPU" };
    let reason = match chosen.report.reason {
        DeviceReason::Chosen if matches.value_source("device") == Some(ValueSource::DefaultValue) => "the default",
        DeviceReason::Chosen => "as chosen",
        DeviceReason::SoftwareAdapter => "the only GPU adapter is software",
        DeviceReason::DeviceRefused => "the GPU refused to open",
        DeviceReason::AdapterFound => "a GPU adapter was found",
        _ => "no GPU adapter was found",
    };
    let line = format!("device: {kind} ({}): {reason} {}", chosen.report.name, chosen.report.detail);
    eprintln!("{}", line.trim_end());
    chosen
}

/// The text of an argument, if the command has it and it was given.
pub fn given<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.try_get_one::<String>(name).ok().flatten().map(String::as_str)
}
