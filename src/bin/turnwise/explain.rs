//! `turnwise link`: what a link sets, and what was clamped or refused.

use clap::ArgMatches;
use turnwise::config::{self, ExperimentConfig, Link, LinkOutcome};
use turnwise::device::DeviceKind;
use turnwise::environment::REGISTRY;
use turnwise::lesson::lesson_of;

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
    let LinkOutcome { link, notes } = read(given(matches, "experiment").unwrap_or_default())?;
    let (config, notes) = with_options(matches, link.config, notes);
    say!("environment: {}", config.environment);
    say!("seed: {}", config.seed);
    if !config.title.is_empty() {
        let title: String = config.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        say!("title: {title}");
    }
    if let Some(lesson) = lesson_of(&config) {
        say!("lesson: {} ({})", lesson.name, lesson.title.en);
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
    if let Some(other) = &link.other {
        say!("compared with a second configuration (same seed), which differs from the first:");
        for difference in config::differences(&config, other, REGISTRY) {
            say!("  {} = {} (first {})", difference.name, difference.b, difference.a);
        }
    }
    if link.seeds > 1 {
        say!("seeds: {} to {}, one after another", config.seed, u64::from(config.seed) + u64::from(link.seeds) - 1);
    }
    if let Some(expectation) = &link.expectation {
        let device = if expectation.backend == DeviceKind::Webgpu { "WebGPU" } else { "the CPU" };
        say!("says what the first {} training steps gave on {device}", expectation.codes.len());
    }
    say!("{}", if notes.is_empty() { "notes: none" } else { "notes:" });
    for note in &notes {
        say!("  {}", note.text_en);
    }
    match config::write_link(&Link { config, ..link }, REGISTRY) {
        Some(fragment) => say!("canonical link: #{fragment}"),
        None => say!("no canonical link: the configurations differ in too much for {} characters", config::LINK_LIMIT),
    }
    Ok(())
}
