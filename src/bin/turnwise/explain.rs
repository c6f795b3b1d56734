//! `turnwise link`: what a link sets, and what was clamped or refused.

use clap::ArgMatches;
use turnwise::config::{self, ExperimentConfig};
use turnwise::environment::REGISTRY;

use crate::Failure;
use crate::options::{given, read, with_options};

/// Prints a line; a reader that has heard enough (`| head`) is no error.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        if writeln!(std::io::stdout(), $($text)*).is_err() {
            return Ok(());
        }
    }};
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (config, notes) = read(given(matches, "experiment").unwrap_or_default())?;
    let (config, notes) = with_options(matches, config, notes);
    say!("environment: {}", config.environment);
    say!("seed: {}", config.seed);
    if !config.title.is_empty() {
        let title: String = config.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        say!("title: {title}");
    }
    let default = ExperimentConfig::defaults(&config.environment, REGISTRY);
    let differences = config::differences(&config, &default, REGISTRY);
    let changed: Vec<_> = differences.iter().filter(|d| !["environment", "seed", "title"].contains(&d.name)).collect();
    say!(
        "{}",
        if changed.is_empty() {
            "all settings are the environment's defaults"
        } else {
            "differs from the environment's defaults:"
        }
    );
    for difference in changed {
        say!("  {} = {} (default {})", difference.name, difference.a, difference.b);
    }
    say!("{}", if notes.is_empty() { "notes: none" } else { "notes:" });
    for note in &notes {
        say!("  {}", note.text_en);
    }
    say!("canonical link: #{}", config::to_link(&config, REGISTRY));
    Ok(())
}
