//! `turnwise train`: a run into a folder.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use turnwise::config::{self, ExperimentConfig, WarmStart};
use turnwise::credit::CreditMap;
use turnwise::environment::REGISTRY;
use turnwise::policy::{Checkpoint, Policy, PolicyConfig, Precision};
use turnwise::reward::RewardTable;
use turnwise::trainer::{Rollout, Trainer, frozen, initial_policy, shipped_policy};
use turnwise::vocabulary::spell;
use turnwise::web::protocol::{Batch, RecordedRun};

use crate::Failure;
use crate::options::{device, experiment, given};
use crate::warm_start::imitate;

/// Steps whose episodes a recorded run keeps: dense at the start, where things happen.
const RECORDED_STEPS: [usize; 10] = [0, 2, 4, 7, 10, 15, 20, 30, 45, 59];

/// Groups of each step that a recorded run keeps.
const RECORDED_GROUPS: usize = 6;

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let config = experiment(matches)?;
    let out = Path::new(given(matches, "out").unwrap_or_default());
    std::fs::create_dir_all(out).map_err(|error| format!("cannot make the folder {}: {error}", out.display()))?;
    let create = |name: &str| -> Result<BufWriter<File>, Failure> {
        let path = out.join(name);
        Ok(BufWriter::new(File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?))
    };
    let (mut metrics, mut episodes) = (create("metrics.jsonl")?, create("episodes.jsonl")?);
    std::fs::write(out.join("experiment.json"), config::to_json(&config))?;
    let chosen = device(matches);
    let policy = pollster::block_on(starting_policy(&config, matches, &chosen.device))?;
    let mut trainer = Trainer::new(config.clone(), &policy);
    let mut recorded = RecordedRun {
        config: config.clone(),
        made_with: format!("turnwise train '#{}' on the {} CPU", config::to_link(&config, REGISTRY), std::env::consts::ARCH),
        reports: Vec::new(),
        batches: Vec::new(),
    };
    let bar = ProgressBar::new(config.iterations as u64)
        .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}").unwrap_or(ProgressStyle::default_bar()));
    let mut failure = None;
    for iteration in 0..config.iterations {
        let (rollout, rewards, credit, report) = match pollster::block_on(trainer.train_step()) {
            Ok(step) => step,
            Err(error) => {
                failure = Some(format!("stopped at iteration {iteration}: {error}; the checkpoint holds the last good weights"));
                break;
            }
        };
        writeln!(metrics, "{}", serde_json::to_string(&report)?)?;
        write_episodes(&mut episodes, iteration, &rollout, &rewards, &credit)?;
        if RECORDED_STEPS.contains(&iteration) {
            recorded.batches.push(abridged(frozen(iteration, &rollout, Some(&rewards), Some(&credit))));
        }
        bar.inc(1);
        bar.set_message(format!(
            "train {:.2}  held-out {:.2}  return {:.2}  calls {:.2}  {:.0} tokens/s",
            report.train_success, report.held_out_success, report.mean_return, report.calls, report.tokens_per_second
        ));
        recorded.reports.push(report);
    }
    bar.finish();
    let checkpoint = pollster::block_on(checkpoint(&config, &trainer.policy()))?;
    std::fs::write(out.join("checkpoint.safetensors"), checkpoint.to_bytes(Precision::Full)?)?;
    if let Some(file) = given(matches, "record") {
        std::fs::write(file, serde_json::to_string(&recorded)?).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    match failure {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

/// The policy that the experiment starts from.
async fn starting_policy(
    config: &ExperimentConfig,
    matches: &ArgMatches,
    device: &burn::tensor::Device,
) -> Result<Policy, Failure> {
    match config.warm_start {
        WarmStart::None => return Ok(initial_policy(config, device)?),
        WarmStart::Live => {}
        WarmStart::Shipped => {
            let folder = Path::new(given(matches, "warm-starts").unwrap_or_default());
            let path = folder.join(format!("{}.safetensors", config.environment));
            let shipped = std::fs::read(&path)
                .map_err(|error| format!("{}: {error}", path.display()))
                .and_then(|file| shipped_policy(config, &file, device).map_err(|error| error.to_string()));
            match shipped {
                Ok(policy) => return Ok(policy),
                Err(reason) => eprintln!("note: no shipped warm start fits ({reason}); imitating instead"),
            }
        }
    }
    imitate(config, device).await
}

/// A checkpoint of the policy.
pub async fn checkpoint(config: &ExperimentConfig, policy: &Policy) -> Result<Checkpoint, Failure> {
    Ok(Checkpoint {
        policy: PolicyConfig::of(config),
        experiment: config::to_link(config, REGISTRY),
        weights: policy.weights().await?,
    })
}

/// One line per training episode.
fn write_episodes(
    file: &mut impl Write,
    iteration: usize,
    rollout: &Rollout,
    rewards: &RewardTable,
    credit: &CreditMap,
) -> Result<(), Failure> {
    for (index, trajectory) in rollout.training.iter().enumerate() {
        let line = serde_json::json!({
            "iteration": iteration,
            "text": spell(&trajectory.tokens),
            "trajectory": trajectory,
            "rewards": rewards.turns[index],
            "returns_to_go": credit.returns_to_go[index],
            "advantages": credit.advantages[index],
        });
        writeln!(file, "{line}")?;
    }
    Ok(())
}

/// The first groups of a batch, to keep a recorded run small.
fn abridged(mut batch: Batch) -> Batch {
    let kept = batch.trajectories.iter().take_while(|trajectory| trajectory.group < RECORDED_GROUPS).count();
    batch.groups.truncate(RECORDED_GROUPS);
    batch.trajectories.truncate(kept);
    if let Some(rewards) = &mut batch.rewards {
        rewards.turns.truncate(kept);
    }
    if let Some(credit) = &mut batch.credit {
        let arrays = [
            &mut credit.rewards,
            &mut credit.returns_to_go,
            &mut credit.values,
            &mut credit.baselines,
            &mut credit.scales,
            &mut credit.advantages,
        ];
        arrays.into_iter().for_each(|array| array.truncate(kept));
        credit.peers.truncate(kept);
        credit.no_signal.truncate(RECORDED_GROUPS);
    }
    batch
}
