//! `turnwise train`: a run into a folder.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use turnwise::config::{self, ExperimentConfig, WarmStart};
use turnwise::environment::{REGISTRY, warm_start_name};
use turnwise::metrics::Watch;
use turnwise::policy::{Checkpoint, Policy, PolicyConfig, Precision};
use turnwise::reward::RewardTable;
use turnwise::rollout::Trajectory;
use turnwise::trainer::{Credit, Rollout, Trainer, TrueCreditRun, frozen, initial_policy, shipped_policy};
use turnwise::web::lines::EpisodeLine;
use turnwise::web::protocol::{Batch, MeasuredCredit, RecordedRun};

use crate::options::{device, experiment, given, with_options};
use crate::warm_start::imitate;
use crate::{Failure, evaluate};

/// Steps whose episodes a recorded run keeps, besides the last one: dense at the start, where things happen.
const RECORDED_STEPS: [usize; 10] = [0, 2, 4, 7, 10, 15, 20, 30, 45, 59];

/// Those whose true credit is measured for it, and with how many continuations of each state.
const MEASURED_STEPS: [usize; 2] = [0, 7];
const MEASURED_ROLLS: usize = 64;

/// Groups of each step that a recorded run keeps: at most so many, and those after the first two only while all of them together
/// have at most so many turns. The page reads and checks the whole file when a task is chosen.
const RECORDED_GROUPS: usize = 6;
const RECORDED_TURNS: usize = 300;

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let resumed = given(matches, "resume").map(|path| evaluate::read(&evaluate::find(Path::new(path)))).transpose()?;
    let config = match &resumed {
        Some(checkpoint) if given(matches, "experiment").is_none() => {
            let (config, notes) = with_options(matches, config::from_link(&checkpoint.experiment, REGISTRY).config, Vec::new());
            notes.iter().for_each(|note| eprintln!("note: {}", note.text_en));
            config
        }
        _ => experiment(matches)?,
    };
    let out = Path::new(given(matches, "out").unwrap_or_default());
    std::fs::create_dir_all(out).map_err(|error| format!("cannot make the folder {}: {error}", out.display()))?;
    let chosen = device(matches);
    let mut trainer = match &resumed {
        Some(checkpoint) => Trainer::resume(config.clone(), checkpoint, &chosen.device)?,
        None => Trainer::new(config.clone(), &pollster::block_on(starting_policy(&config, matches, &chosen.device))?),
    };
    let first = trainer.iteration();
    let (mut metrics, mut episodes) =
        (Lines::go_on(out.join("metrics.jsonl"), first)?, Lines::go_on(out.join("episodes.jsonl"), first)?);
    save(&out.join("experiment.json"), config::to_json(&config).as_bytes())?;
    // What an earlier run left here would be taken for this one's.
    let checkpoint_file = out.join("checkpoint.safetensors");
    if checkpoint_file.exists() {
        std::fs::remove_file(&checkpoint_file)
            .map_err(|error| format!("cannot replace {}: {error}", checkpoint_file.display()))?;
    }
    let mut recorded = RecordedRun {
        config: config.clone(),
        made_with: format!("turnwise train '#{}' (CPU, {})", config::to_link(&config, REGISTRY), std::env::consts::ARCH),
        reports: Vec::new(),
        batches: Vec::new(),
        measured: Vec::new(),
    };
    let bar = ProgressBar::new(config.iterations as u64)
        .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}").unwrap_or(ProgressStyle::default_bar()));
    let mut failure = None;
    let (mut watch, mut warned) = (Watch::new(&config), 0);
    let mut summary = String::new();
    bar.set_position(first as u64);
    for iteration in first..config.iterations {
        let player = trainer.policy();
        let (rollout, rewards, credit, report) = match pollster::block_on(trainer.train_step()) {
            Ok(step) => step,
            Err(error) => {
                failure = Some(format!("stopped at iteration {iteration}: {error}; the checkpoint holds the last good weights"));
                break;
            }
        };
        let written = metrics
            .write(&serde_json::to_string(&report)?)
            .and_then(|()| write_episodes(&mut episodes, &config, &rollout, &rewards, &credit))
            .and_then(|()| metrics.flush())
            .and_then(|()| episodes.flush());
        if let Err(error) = written {
            failure = Some(format!("stopped after iteration {iteration}: {error}"));
            break;
        }
        let last = iteration + 1 == config.iterations;
        if given(matches, "record").is_some() && (last || RECORDED_STEPS.contains(&iteration)) {
            if MEASURED_STEPS.contains(&iteration) {
                recorded.measured.push(measured(&config, &player, &rollout, &rewards, &credit)?);
            }
            recorded.batches.push(abridged(frozen(&rollout, Some(&rewards), Some(&credit))));
        }
        bar.inc(1);
        summary = format!(
            "train {:.2}  held-out {:.2}  return {:.2}  calls {:.2}  {:.0} tokens/s",
            report.train_success, report.held_out_success, report.mean_return, report.calls, report.tokens_per_second
        );
        bar.set_message(summary.clone());
        watch.add(&report);
        for warning in &watch.warnings()[warned..] {
            bar.suspend(|| eprintln!("warning at iteration {}: {}", warning.iteration, warning.text_en));
        }
        warned = watch.warnings().len();
        if given(matches, "record").is_some() {
            recorded.reports.push(report);
        }
        if (iteration + 1).is_multiple_of(CHECKPOINT_EVERY) {
            save(&checkpoint_file, &checkpoint_bytes(&trainer)?)?;
        }
    }
    bar.finish();
    // The last update has not been sampled from yet; one that broke the weights is taken back here.
    if let (None, Err(error)) = (&failure, pollster::block_on(trainer.sample())) {
        failure = Some(format!("the last update was taken back: {error}"));
    }
    save(&checkpoint_file, &checkpoint_bytes(&trainer)?)?;
    if let Some(file) = given(matches, "record") {
        save(Path::new(file), serde_json::to_string(&recorded)?.as_bytes())?;
    }
    println!("step {} of {}: {summary}", trainer.iteration(), config.iterations);
    println!("in {}: experiment.json, metrics.jsonl, episodes.jsonl, checkpoint.safetensors", out.display());
    match failure {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

/// Training steps between checkpoints, so that an interrupted run loses little.
const CHECKPOINT_EVERY: usize = 10;

fn checkpoint_bytes(trainer: &Trainer) -> Result<Vec<u8>, Failure> {
    Ok(pollster::block_on(trainer.checkpoint())?.to_bytes(Precision::Full)?)
}

/// Writes a whole file beside its place, then moves it there: an interruption leaves the old one or the new one.
///
/// # Errors
/// When it cannot be written, naming the path.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// A file of lines whose errors name it.
pub struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    /// A file that goes on after the lines of the steps before `first`, which a run that was interrupted has left; those of later
    /// steps are dropped. With `first` 0 an empty one. A long run has left more than fits in memory: its lines are copied one by
    /// one to a file beside this one, which then takes its place.
    pub fn go_on(path: PathBuf, first: usize) -> Result<Self, Failure> {
        #[derive(serde::Deserialize)]
        struct Step {
            iteration: usize,
        }
        let Some(earlier) = (first > 0).then(|| File::open(&path).ok()).flatten() else {
            return Lines::create(path);
        };
        let mut beside = path.clone().into_os_string();
        beside.push(".part");
        let mut lines = Lines::create(PathBuf::from(&beside))?;
        for line in BufReader::new(earlier).split(b'\n') {
            let line = line.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            // The last line of a run that was killed may be cut short.
            if serde_json::from_slice::<Step>(&line).is_ok_and(|step| step.iteration < first) {
                lines.write(&String::from_utf8_lossy(&line))?;
            }
        }
        lines.flush()?;
        std::fs::rename(&beside, &path).map_err(|error| format!("cannot replace {}: {error}", path.display()))?;
        Ok(Lines { path, ..lines })
    }

    pub fn create(path: PathBuf) -> Result<Self, Failure> {
        let file = File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Lines { path, file: BufWriter::new(file) })
    }

    pub fn write(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.file, "{line}").map_err(|error| format!("cannot write {}: {error}", self.path.display()).into())
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| format!("cannot write {}: {error}", self.path.display()).into())
    }
}

/// The policy that the experiment starts from.
pub async fn starting_policy(
    config: &ExperimentConfig,
    matches: &ArgMatches,
    device: &burn::tensor::Device,
) -> Result<Policy, Failure> {
    match config.warm_start {
        WarmStart::None => return Ok(initial_policy(config, device)?),
        WarmStart::Live => {}
        WarmStart::Shipped => {
            let folder = Path::new(given(matches, "warm-starts").unwrap_or_default());
            let path = folder.join(format!("{}.safetensors", warm_start_name(config)));
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
        training: None,
    })
}

/// One line per training episode.
fn write_episodes(
    file: &mut Lines,
    config: &ExperimentConfig,
    rollout: &Rollout,
    rewards: &RewardTable,
    credit: &Credit,
) -> Result<(), Failure> {
    for line in EpisodeLine::of(&frozen(rollout, Some(rewards), Some(credit)), config.credit_method, None) {
        file.write(&serde_json::to_string(&line)?)?;
    }
    Ok(())
}

/// True credit of the episodes of a step. The accuracy is that over all of them; of the credit, what [`abridged`] keeps.
fn measured(
    config: &ExperimentConfig,
    policy: &Policy,
    rollout: &Rollout,
    rewards: &RewardTable,
    credit: &Credit,
) -> Result<MeasuredCredit, Failure> {
    let mut run = TrueCreditRun::new(config, policy, rollout, rewards, credit.values.clone());
    pollster::block_on(run.advance(MEASURED_ROLLS))?;
    let mut credit = run.measured();
    let accuracy = run.accuracy(&credit);
    let (_, kept) = kept_of(&rollout.training);
    [&mut credit.credits, &mut credit.standard_errors, &mut credit.values].into_iter().for_each(|array| array.truncate(kept));
    Ok(MeasuredCredit { iteration: rollout.iteration, credit, accuracy })
}

/// How many groups, and how many trajectories with them, a recorded run keeps of a step.
fn kept_of(trajectories: &[Trajectory]) -> (usize, usize) {
    let (mut groups, mut kept, mut turns) = (0, 0, 0);
    for group in trajectories.chunk_by(|a, b| a.group == b.group) {
        turns += group.iter().map(|trajectory| trajectory.turns.len()).sum::<usize>();
        if groups == RECORDED_GROUPS || (groups >= 2 && turns > RECORDED_TURNS) {
            break;
        }
        (groups, kept) = (groups + 1, kept + group.len());
    }
    (groups, kept)
}

/// The first groups of a batch, to keep a recorded run small.
fn abridged(mut batch: Batch) -> Batch {
    let (groups, kept) = kept_of(&batch.trajectories);
    batch.groups.truncate(groups);
    batch.trajectories.truncate(kept);
    if let Some(rewards) = &mut batch.rewards {
        rewards.turns.truncate(kept);
    }
    if let Some(values) = &mut batch.values {
        values.truncate(kept);
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
        credit.parts.truncate(kept);
        credit.no_signal.truncate(groups);
        credit.whitening.truncate(groups);
    }
    batch
}
