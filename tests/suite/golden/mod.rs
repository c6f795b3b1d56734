//! Numbers of public implementations: every case of every file in the folder named by `TURNWISE_GOLDEN`, or in `tests/golden`.
//!
//! A case is compared where its inputs state a convention that this crate offers. Where they do not, the case counts as "did not
//! apply", with the reason; nothing is left out in silence.

mod advantages;
mod case;
mod end_to_end;
mod losses;
mod tensors;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use case::{Case, Stop};

/// How one topic went.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    did_not_apply: BTreeMap<String, usize>,
}

/// Checks one case.
type Check = fn(&Case) -> Result<(), Stop>;

/// The check of a topic, or why there is none.
fn check_of(topic: &str) -> Result<Check, String> {
    let check: Check = match topic {
        "adv_group" => advantages::group,
        "adv_turn" => advantages::turn,
        "logprob" => tensors::log_probs,
        "masked_stats" => tensors::masked_statistics,
        "aggregation" => tensors::aggregation,
        "kl" => tensors::kl,
        "policy_loss" => losses::policy_loss,
        "trl_loss" => losses::trl_loss,
        "end_to_end" => end_to_end::ten_updates,
        "adv_baselines" => return Err("leave-one-out and other baselines are not offered yet".to_string()),
        "adv_gae" => return Err("generalised advantage estimation needs a critic, which is not offered".to_string()),
        "adv_process" => return Err("sums of normalised process rewards are not offered yet".to_string()),
        "adv_reinforce" => return Err("REINFORCE++ is not offered yet".to_string()),
        "value_loss" => return Err("there is no critic".to_string()),
        other => return Err(format!("unknown topic `{other}`")),
    };
    Ok(check)
}

/// Topics of which this crate offers at least one convention: a folder that has the topic must have a case that applies.
const OFFERED: [&str; 9] =
    ["adv_group", "adv_turn", "aggregation", "end_to_end", "kl", "logprob", "masked_stats", "policy_loss", "trl_loss"];

#[test]
fn golden_cases_give_the_numbers_of_public_implementations() {
    let folder = std::env::var_os("TURNWISE_GOLDEN")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("the folder of golden cases cannot be read: {error}"))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no golden cases");
    let mut problems = Vec::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match case::read_file(file) {
            Ok((topic, cases)) => problems.extend(run_topic(&topic, &cases)),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// Runs and prints one topic. Gives what was wrong.
fn run_topic(topic: &str, cases: &[Case]) -> Vec<String> {
    let mut tally = Tally::default();
    for case in cases {
        let outcome = match check_of(topic) {
            // A shape that the tensor library refuses fails the case, not the whole run.
            Ok(check) => std::panic::catch_unwind(AssertUnwindSafe(|| check(case)))
                .unwrap_or_else(|_| Err(Stop::Failed("panicked".to_string()))),
            Err(reason) => Err(Stop::DoesNotApply(reason)),
        };
        match outcome {
            Ok(()) => tally.passed += 1,
            Err(Stop::Failed(what)) => tally.failed.push(format!("{topic} {}: {what}", case.id)),
            Err(Stop::DoesNotApply(reason)) => *tally.did_not_apply.entry(reason).or_default() += 1,
        }
    }
    let not = tally.did_not_apply.values().sum::<usize>();
    println!("{topic}: {} passed, {} failed, {not} did not apply", tally.passed, tally.failed.len());
    for (reason, count) in &tally.did_not_apply {
        println!("    {count:3} {reason}");
    }
    if OFFERED.contains(&topic) && tally.passed + tally.failed.len() == 0 {
        tally.failed.push(format!("{topic}: none of the {} cases applied", cases.len()));
    }
    tally.failed
}
