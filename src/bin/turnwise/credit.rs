//! `turnwise credit`: true credit by playing on from every turn, and how close every method comes to it.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ArgMatches;
use indicatif::ProgressBar;
use turnwise::config::CreditMethod;
use turnwise::credit::{Agreement, TrueCredit};
use turnwise::metrics::{CreditAccuracy, MethodAccuracy};
use turnwise::trainer::{Run, TrueCreditRun};
use turnwise::web::lines::EpisodeLine;
use turnwise::web::protocol::{Batch, Phase};

use crate::Failure;
use crate::options::{device, experiment, given};
use crate::train::{Lines, save, starting_policy};

/// Continuations of each state between two lines of progress.
const ROLLS_AT_ONCE: usize = 8;

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let config = experiment(matches)?;
    let number = |name: &str| matches.get_one::<u32>(name).copied().unwrap_or(0) as usize;
    let (rolls, after) = (number("rolls"), number("after"));
    let chosen = device(matches);
    let policy = match given(matches, "checkpoint") {
        Some(path) => crate::evaluate::policy(Path::new(path), &config, &chosen.device)?,
        None => pollster::block_on(starting_policy(&config, matches, &chosen.device))?,
    };
    let method = config.credit_method;
    let mut run = Run::new(config, &policy);
    if let Some(folder) = given(matches, "out") {
        // Known before the work, not after it.
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make the folder {folder}: {error}"))?;
    }
    let batch = pollster::block_on(credited_episodes(&mut run, after))?;
    let Some(mut measurement) = run.true_credit() else { return Err("no episodes were credited".into()) };
    let start = std::time::Instant::now();
    while measurement.rolls() < rolls {
        let more = ROLLS_AT_ONCE.min(rolls - measurement.rolls());
        pollster::block_on(measurement.advance(more))?;
        eprintln!("{} of {rolls} continuations", measurement.rolls());
    }
    let measured = measurement.measured();
    let accuracy = measurement.accuracy(&measured);
    print_table(&accuracy, after, start.elapsed().as_secs_f64());
    if !measurement.has_critic() {
        println!("gae is left out: it needs a critic, which a run has with --credit-method gae");
    }
    if let Some(folder) = given(matches, "out") {
        write(Path::new(folder), &batch, method, &measurement, &measured, &accuracy)?;
    }
    Ok(())
}

/// Trains `after` steps, then samples and credits the episodes of the next one.
async fn credited_episodes(run: &mut Run, after: usize) -> Result<Batch, Failure> {
    let bar = ProgressBar::new(after as u64);
    loop {
        let iteration = run.trainer().iteration();
        let result =
            run.advance().await.map_err(|error| format!("training stopped at iteration {iteration} of {after}: {error}"))?;
        bar.set_position(result.iteration as u64);
        if let (Phase::Credit, true, Some(batch)) = (result.done, result.iteration >= after, run.credited()) {
            return Ok(batch);
        }
    }
}

fn print_table(accuracy: &CreditAccuracy, after: usize, seconds: f64) {
    let CreditAccuracy { reliability, rolls, states, turns, .. } = accuracy;
    println!("true credit after {after} training steps: {turns} turns, {states} distinct states, {rolls} continuations each");
    println!(
        "reliability of the measurement {}; {seconds:.1} s",
        reliability.map_or("-".to_string(), |share| format!("{share:.3}"))
    );
    println!(
        "| method | turns | Pearson (95 %) | Spearman | same sign | tool turns | Pearson | Spearman | same sign | behind the closest |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for MethodAccuracy { method, all_turns, tool_turns, behind } in &accuracy.methods {
        let cells = [all_turns, tool_turns].map(|accuracy| {
            let figures = [&accuracy.pearson, &accuracy.spearman, &accuracy.sign_agreement].map(figure);
            format!("{} | {}", accuracy.turns, figures.join(" | "))
        });
        println!("| {} | {} | {} |", word(method), cells.join(" | "), figure(behind));
    }
}

/// An agreement with its interval.
fn figure(agreement: &Option<Agreement>) -> String {
    match agreement {
        None => "-".to_string(),
        Some(Agreement { value, interval: None }) => format!("{value:.2}"),
        Some(Agreement { value, interval: Some([low, high]) }) => format!("{value:.2} ({low:.2} to {high:.2})"),
    }
}

/// The word of a method in links and on the command line.
fn word(method: &CreditMethod) -> String {
    serde_json::to_value(method).ok().and_then(|word| word.as_str().map(str::to_string)).unwrap_or_default()
}

/// Writes `accuracy.json` and `credit.jsonl`, one line per episode.
fn write(
    folder: &Path,
    batch: &Batch,
    method: CreditMethod,
    measurement: &TrueCreditRun,
    measured: &TrueCredit,
    accuracy: &CreditAccuracy,
) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    save(&folder.join("accuracy.json"), serde_json::to_string(accuracy)?.as_bytes())?;
    let mut file = Lines::create(folder.join("credit.jsonl"))?;
    let assigned = measurement.assigned();
    for (index, episode) in EpisodeLine::of(batch, method, Some(measured)).enumerate() {
        let by_method = assigned.iter().map(|(method, advantages)| (word(method), &advantages[index])).collect();
        file.write(&serde_json::to_string(&Line { episode, assigned: by_method })?)?;
    }
    file.flush()
}

/// An episode with the advantages that every method gives its turns.
#[derive(serde::Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    episode: EpisodeLine<'a>,
    assigned: BTreeMap<String, &'a Vec<f64>>,
}
