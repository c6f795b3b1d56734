//! `turnwise link`: what a link sets, and what was clamped or refused.

use clap::ArgMatches;
use turnwise::config::{self, ExperimentConfig};
use turnwise::environment::REGISTRY;

use crate::Failure;
use crate::options::{given, read, with_options};

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (config, notes) = read(given(matches, "experiment").unwrap_or_default())?;
    let (config, notes) = with_options(matches, config, notes);
    println!("environment: {}", config.environment);
    println!("seed: {}", config.seed);
    if !config.title.is_empty() {
        println!("title: {}", config.title);
    }
    let default = ExperimentConfig::defaults(&config.environment, REGISTRY);
    let differences = config::differences(&config, &default, REGISTRY);
    let changed: Vec<_> = differences.iter().filter(|d| !["environment", "seed", "title"].contains(&d.name)).collect();
    println!(
        "{}",
        if changed.is_empty() {
            "all settings are the environment's defaults"
        } else {
            "differs from the environment's defaults:"
        }
    );
    for difference in changed {
        println!("  {} = {} (default {})", difference.name, difference.a, difference.b);
    }
    println!("{}", if notes.is_empty() { "notes: none" } else { "notes:" });
    for note in &notes {
        println!("  {}", note.text_en);
    }
    println!("canonical link: #{}", config::to_link(&config, REGISTRY));
    Ok(())
}
