//! `turnwise warm-start`: imitation into a checkpoint.

use std::path::Path;

use clap::ArgMatches;
use indicatif::ProgressBar;
use turnwise::config::ExperimentConfig;
use turnwise::policy::{Policy, Precision};
use turnwise::trainer::imitation;

use crate::Failure;
use crate::evaluate::evaluate;
use crate::options::{device, experiment, given};
use crate::train::{checkpoint, save};

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let config = experiment(matches)?;
    let out = given(matches, "out").unwrap_or_default();
    // Known before the work, not after it.
    if let Some(folder) = Path::new(out).parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    }
    let chosen = device(matches);
    let policy = pollster::block_on(imitate(&config, &chosen.device))?;
    let checkpoint = pollster::block_on(checkpoint(&config, &policy))?;
    save(Path::new(out), &checkpoint.to_bytes(Precision::Half)?)?;
    pollster::block_on(evaluate(&config, &policy, 4096))
}

/// Runs the whole imitation with a progress bar.
pub async fn imitate(config: &ExperimentConfig, device: &burn::tensor::Device) -> Result<Policy, Failure> {
    let mut imitation = imitation(config, device)?;
    let bar = ProgressBar::new(config.imitation_steps as u64);
    while let Some(loss) = imitation.advance().await? {
        bar.inc(1);
        if let Some(loss) = loss {
            bar.set_message(format!("imitation loss {loss:.3} nats"));
        }
    }
    bar.finish();
    Ok(imitation.policy())
}
