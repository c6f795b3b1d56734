//! `turnwise evaluate`: how a checkpoint does on held-out questions.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use clap::ArgMatches;
use turnwise::config::{self, ExperimentConfig};
use turnwise::environment::{REGISTRY, declaration};
use turnwise::metrics::summarise_episodes;
use turnwise::policy::{Checkpoint, Policy, PolicyConfig};
use turnwise::trainer::Trainer;
use turnwise::vocabulary::SIZE;

use crate::Failure;
use crate::options::{device, given, with_options};

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let path = find(Path::new(given(matches, "checkpoint").unwrap_or_default()));
    let checkpoint = read(&path)?;
    let outcome = config::from_link(&checkpoint.experiment, REGISTRY);
    let (config, notes) = with_options(matches, outcome.config, outcome.notes);
    notes.iter().for_each(|note| eprintln!("note: {}", note.text_en));
    if checkpoint.experiment.is_empty() {
        eprintln!("note: {} does not say what experiment it is from: evaluated on {}", path.display(), config.environment);
    }
    let chosen = device(matches);
    let policy = fitting(&checkpoint, &path, &config, &chosen.device)?;
    let episodes = matches.get_one::<u32>("episodes").copied().unwrap_or(1024) as usize;
    pollster::block_on(evaluate(&config, &policy, episodes))
}

/// The policy of a checkpoint file, if it can play the experiment.
///
/// # Errors
/// When the file cannot be read, is no checkpoint, or its policy does not fit, naming what.
pub fn policy(path: &Path, config: &ExperimentConfig, device: &Device) -> Result<Policy, Failure> {
    let path = find(path);
    fitting(&read(&path)?, &path, config, device)
}

/// A checkpoint file.
///
/// # Errors
/// When it cannot be read or is no checkpoint, naming it.
pub fn read(path: &Path) -> Result<Checkpoint, Failure> {
    let file = std::fs::read(path).map_err(|error| format!("cannot read the checkpoint {}: {error}", path.display()))?;
    Ok(Checkpoint::from_bytes(&file).map_err(|error| format!("{}: {error}", path.display()))?)
}

fn fitting(checkpoint: &Checkpoint, path: &Path, config: &ExperimentConfig, device: &Device) -> Result<Policy, Failure> {
    let (path, shape) = (path.display(), &checkpoint.policy);
    if shape.vocabulary != SIZE {
        return Err(format!("{path}: its policy knows {} symbols; the environments speak {SIZE}", shape.vocabulary).into());
    }
    if config.context_length > shape.context_length {
        let (asked, most) = (config.context_length, shape.context_length);
        return Err(format!("context_length is {asked}; the policy of {path} reads at most {most} tokens").into());
    }
    let made_for = config::from_link(&checkpoint.experiment, REGISTRY).config;
    if !checkpoint.experiment.is_empty() && made_for.environment != config.environment {
        eprintln!("note: {path} was trained on {}; it plays {} here", made_for.environment, config.environment);
    }
    let wanted = PolicyConfig::of(config);
    for (name, used, asked) in [
        ("d_model", shape.d_model, wanted.d_model),
        ("layers", shape.layers, wanted.layers),
        ("heads", shape.heads, wanted.heads),
    ] {
        if used != asked {
            eprintln!("note: {name}: {asked} is not used; the policy of {path} has {used}");
        }
    }
    Ok(load(checkpoint, device).map_err(|error| format!("{path}: {error}"))?)
}

/// The file that a person means: it, or `checkpoint.safetensors` in a folder that `train` wrote, or the name with its ending.
pub fn find(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.join("checkpoint.safetensors");
    }
    let ended = path.with_extension("safetensors");
    if !path.exists() && ended.exists() { ended } else { path.to_path_buf() }
}

fn load(checkpoint: &Checkpoint, device: &Device) -> Result<Policy, Failure> {
    Ok(checkpoint.policy.init(device).with_weights(&checkpoint.weights)?)
}

/// Plays `episodes` held-out questions and prints success and calls with their standard errors.
pub async fn evaluate(config: &ExperimentConfig, policy: &Policy, episodes: usize) -> Result<(), Failure> {
    let played = Trainer::new(config.clone(), policy).play_held_out(episodes).await?;
    let types = declaration(config).question_types;
    let summary = summarise_episodes(0, &played, &[], &[], types.len());
    let error = |p: f64, n: usize| (p * (1.0 - p) / n.max(1) as f64).sqrt();
    println!("environment {}, {} held-out episodes", config.environment, played.len());
    println!("success {:.3} +- {:.3}", summary.train_success, error(summary.train_success, played.len()));
    println!(
        "calls {:.2}  turns {:.2}  truncated {:.3}  malformed {:.3}",
        summary.calls, summary.turns, summary.truncated, summary.malformed
    );
    for (kind, statistics) in types.iter().zip(&summary.by_type) {
        if let (Some(success), Some(calls)) = (statistics.success, statistics.calls) {
            let margin = error(success, statistics.episodes);
            println!("  {}: success {success:.3} +- {margin:.3}  calls {calls:.2}  ({} episodes)", kind.en, statistics.episodes);
        }
    }
    Ok(())
}
