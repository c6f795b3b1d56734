//! Numbers of public implementations: every case of every file in the folder named by `TURNWISE_GOLDEN`, or in `tests/golden`.
//!
//! A case is compared where its inputs state a convention that this crate offers. Where they do not, the case counts as "did not
//! apply", with the reason; nothing is left out in silence.

mod advantages;
mod case;
#[cfg(feature = "engine")]
mod end_to_end;
#[cfg(feature = "engine")]
mod losses;
#[cfg(feature = "engine")]
mod tensors;
mod tokens;
mod turns;

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
        "adv_baselines" => advantages::baselines,
        "adv_process" => turns::process,
        "adv_turn" => turns::turn,
        "adv_reinforce" => tokens::reinforce,
        "adv_gae" => tokens::gae,
        #[cfg(feature = "engine")]
        "logprob" => tensors::log_probs,
        #[cfg(feature = "engine")]
        "masked_stats" => tensors::masked_statistics,
        #[cfg(feature = "engine")]
        "aggregation" => tensors::aggregation,
        #[cfg(feature = "engine")]
        "kl" => tensors::kl,
        #[cfg(feature = "engine")]
        "policy_loss" => losses::policy_loss,
        #[cfg(feature = "engine")]
        "trl_loss" => losses::trl_loss,
        #[cfg(feature = "engine")]
        "end_to_end" => end_to_end::ten_updates,
        #[cfg(feature = "engine")]
        "value_loss" => losses::value_loss,
        other if NEED_ENGINE.contains(&other) => return Err("needs the feature `engine`".to_string()),
        other => return Err(format!("unknown topic `{other}`")),
    };
    Ok(check)
}

/// Topics that are computed with tensors.
const NEED_ENGINE: [&str; 8] =
    ["aggregation", "end_to_end", "kl", "logprob", "masked_stats", "policy_loss", "trl_loss", "value_loss"];

/// Topics that build without tensors.
const PLAIN: [&str; 6] = ["adv_baselines", "adv_gae", "adv_group", "adv_process", "adv_reinforce", "adv_turn"];

/// Whether this build offers a convention of the topic: a folder that has the topic must then have a case that applies.
fn offered(topic: &str) -> bool {
    PLAIN.contains(&topic) || (cfg!(feature = "engine") && NEED_ENGINE.contains(&topic))
}

#[test]
fn golden_cases_give_the_numbers_of_public_implementations() {
    let folder = std::env::var_os("TURNWISE_GOLDEN").map_or_else(|| crate::root().join("tests/golden"), PathBuf::from);
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
    if offered(topic) && tally.passed + tally.failed.len() == 0 {
        tally.failed.push(format!("{topic}: none of the {} cases applied", cases.len()));
    }
    tally.failed
}
