//! What the page and the training worker say to each other, and what the page asks of the small wasm module.
//!
//! The TypeScript types of the page (`www/src/protocol.ts`) are generated from these types; a test checks that the file is
//! current, `UPDATE_TYPES=1 cargo test` rewrites it.

use crate::config::{CreditMethod, Expectation, ExperimentConfig, Note};
use crate::credit::{CreditMap, TrueCredit};
use crate::device::{DeviceChoice, DeviceReport};
use crate::metrics::{CreditAccuracy, Report};
use crate::reward::{RewardTable, WeightedTerm};
use crate::rollout::{GroupInfo, Trajectory};
use crate::vocabulary::Token;

/// From the page to the worker.
// Messages are made and taken apart once each: their size on the stack does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Sets up a run on the device of that choice (the worker opens it first): makes the policy, does or loads the warm start. Whatever ran before is dropped.
    /// Answered by `device`, perhaps `progress`, then `ready`.
    /// With `resume` the run goes on from the checkpoint that the worker was handed before, if that fits; `ready` says from where.
    Configure { config: ExperimentConfig, device: DeviceChoice, resume: bool },
    /// Goes on until the run's stated end, `pause`, or a failure. The episodes of a step are sent where those sent last are at least
    /// `episodes_every` milliseconds old (0: of every step), and those of the last step always.
    Train {
        #[serde(default)]
        #[cfg_attr(test, ts(optional, as = "Option<f64>"))]
        episodes_every: f64,
    },
    /// Stops after the phase in progress.
    Pause,
    /// Does one phase.
    Step,
    /// Measures the true credit of the last episodes that were credited, by playing on from every turn until each state has
    /// `rolls` continuations; what was measured of the same episodes before counts. Answered by `true_credit` after every few
    /// continuations, then `stopped`. `pause` ends it early.
    MeasureCredit { rolls: usize },
    /// Changes one turn of the episodes that were credited last and plays on with the same randomness: `replacement` takes the place
    /// of the action of `turn` of `trajectory`, or without one the turn is left out. Answered by `counterfactual`, then `stopped`.
    Counterfactual { trajectory: usize, turn: usize, replacement: Option<Vec<Token>>, rolls: usize },
}

/// From the worker to the page.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The worker is alive, with its wasm loaded. Sent once.
    Loaded,
    /// What the run computes on.
    Device { device: DeviceReport },
    /// Something that takes time: download in bytes, imitation in updates.
    Progress { stage: Stage, done: f64, total: f64 },
    /// One update of a live warm start.
    Imitation { step: usize, loss: f64 },
    /// Ready to train or step. `warm_start` says where the policy came from.
    Ready { warm_start: WarmStartReport, iteration: usize },
    /// A phase was done; `next` is the one that comes after it. `batch` is present after `sample` (with neither rewards nor
    /// credit), `score` (rewards) and `credit`; while training without stepping only after `credit`, as often as `train` says.
    /// `report` is present after `update`.
    Phase { iteration: usize, done: Phase, next: Phase, batch: Option<Batch>, report: Option<Report> },
    /// The episodes that were credited last, where they were not sent with their phase: the run is about to stand still.
    Episodes { batch: Batch },
    /// True credit of the episodes of `iteration`, as far as it has been measured; and how close every method came.
    TrueCredit { wanted: usize, measured: MeasuredCredit },
    /// How the episode goes with the change.
    Counterfactual { counterfactual: Counterfactual },
    /// The run stands still.
    Stopped { reason: StopReason, iteration: usize },
    /// Something broke; the worker cannot go on and should be replaced.
    Failed { message: String },
}

/// The four phases of a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Sample,
    Score,
    Credit,
    Update,
}

/// What a progress bar is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Bytes of the training module.
    Download,
    /// Updates of a live warm start.
    Imitation,
}

/// Where the policy came from.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct WarmStartReport {
    /// `shipped`, `live` or `none`.
    pub source: WarmStartSource,
    /// Why not the shipped one or the checkpoint, when it was asked for and does not fit.
    pub note: String,
    /// Parameters of the policy.
    pub parameters: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum WarmStartSource {
    Shipped,
    Live,
    None,
    /// The checkpoint of a run that goes on.
    Checkpoint,
}

/// Why a run stands still.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StopReason {
    /// The stated number of iterations is done.
    Finished,
    Paused,
    /// A loss, gradient or log-probability was not a number. The weights are those before the step.
    NonFinite {
        quantity: String,
    },
}

/// The episodes of one training step, frozen: they can be credited again without a new rollout.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Batch {
    pub iteration: usize,
    /// Indexed by `Trajectory::group`.
    pub groups: Vec<GroupInfo>,
    /// Sorted by group, then member.
    pub trajectories: Vec<Trajectory>,
    pub rewards: Option<RewardTable>,
    pub credit: Option<CreditMap>,
    /// The values of states that the credit was made from, `[trajectory][turn]`, where its method needs some.
    pub values: Option<Vec<Vec<f64>>>,
    /// The method that they were made for: a critic's values are no measured ones. No other method is given them.
    #[serde(default)]
    pub valued_by: Option<CreditMethod>,
}

/// One turn of a frozen episode changed, and what became of it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Counterfactual {
    /// The step whose episodes were changed.
    pub iteration: usize,
    /// Index of the trajectory in the batch of that step.
    pub trajectory: usize,
    /// The turn, from 0.
    pub turn: usize,
    /// The action in its place; nothing where the turn was left out.
    pub replacement: Option<Vec<Token>>,
    pub original: Trajectory,
    pub changed: Trajectory,
    /// `[turn]`.
    pub original_rewards: Vec<Vec<WeightedTerm>>,
    pub changed_rewards: Vec<Vec<WeightedTerm>>,
    /// Discounted return of the whole episode.
    pub original_reward: f64,
    pub changed_reward: f64,
    /// Mean discounted return over `rolls` continuations after the turn as it was and after the change, and its standard error;
    /// nothing without continuations (for the error: with fewer than two).
    pub original_value: Option<f64>,
    pub original_error: Option<f64>,
    pub changed_value: Option<f64>,
    pub changed_error: Option<f64>,
    pub rolls: usize,
}

/// Rewards and credit of frozen episodes under some settings.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Recredit {
    pub rewards: RewardTable,
    pub credit: CreditMap,
}

/// What one method makes of frozen episodes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct MethodCredit {
    pub method: CreditMethod,
    /// `[trajectory][turn]`.
    pub advantages: Vec<Vec<f64>>,
    /// The method needs values of states and there are none: all advantages are 0.
    pub needs_values: bool,
}

/// A configuration read from a link or file, with what was clamped or refused on the way.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct ReadConfig {
    pub config: ExperimentConfig,
    pub notes: Vec<Note>,
}

/// Everything that a link says, with what was clamped or refused on the way.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct ReadLink {
    pub config: ExperimentConfig,
    /// A second configuration for comparison, with the same seed.
    pub other: Option<ExperimentConfig>,
    /// How many seeds to train, one after another from that of the configuration.
    pub seeds: u32,
    /// What the run of the first configuration should reproduce.
    pub expectation: Option<Expectation>,
    /// One for each bad field; those of the second configuration are named `b.gamma`.
    pub notes: Vec<Note>,
}

/// A run kept in a file, so that the page is never empty.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct RecordedRun {
    pub config: ExperimentConfig,
    /// The command and the machine it was made with.
    pub made_with: String,
    pub reports: Vec<Report>,
    /// Some steps' episodes.
    pub batches: Vec<Batch>,
    /// Measured credit of some of those, by iteration.
    #[serde(default)]
    pub measured: Vec<MeasuredCredit>,
}

/// True credit of the episodes of one step, and how close every method came to it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct MeasuredCredit {
    pub iteration: usize,
    pub credit: TrueCredit,
    pub accuracy: CreditAccuracy,
}

#[cfg(test)]
mod types {
    use std::collections::BTreeMap;

    use ts_rs::{Config, TS, TypeVisitor};

    use super::*;
    use crate::config::{Description, Difference};
    use crate::lesson::LessonEntry;
    use crate::metrics::{Provenance, Reproduction, Warning};

    const HEADER: &str =
        "// Generated from src/web/protocol.rs by `UPDATE_TYPES=1 cargo test --no-default-features --lib types`; do not edit.\n";

    /// Declarations by name, of the types visited and of everything they are made of.
    struct Declarations {
        config: Config,
        found: BTreeMap<String, String>,
    }

    impl TypeVisitor for Declarations {
        fn visit<T: TS + 'static + ?Sized>(&mut self) {
            // Only types of this crate have a path; numbers, strings and containers are TypeScript's own.
            if T::output_path().is_some() {
                let name = T::ident(&self.config);
                if self.found.contains_key(&name) {
                    return;
                }
                let docs = T::docs().map(|docs| docs.trim_end().to_string() + "\n").unwrap_or_default();
                self.found.insert(name, format!("\n{docs}export {}\n", plain(&T::decl(&self.config))));
            }
            T::visit_dependencies(self);
            T::visit_generics(self);
        }
    }

    /// A declaration without the comments of its fields, which are to be read in Rust, in one line.
    fn plain(declaration: &str) -> String {
        let mut parts = declaration.split("/**");
        let first = parts.next().unwrap_or_default().to_string();
        let rest = parts.map(|part| part.split_once("*/").map_or("", |(_, code)| code));
        let code: Vec<String> = std::iter::once(first).chain(rest.map(str::to_string)).collect();
        code.join("").split_whitespace().collect::<Vec<_>>().join(" ").replace(", }", " }")
    }

    fn typescript() -> String {
        let mut declarations = Declarations { config: Config::new().with_large_int("number"), found: BTreeMap::new() };
        declarations.visit::<Command>();
        declarations.visit::<Event>();
        declarations.visit::<RecordedRun>();
        declarations.visit::<ReadConfig>();
        declarations.visit::<ReadLink>();
        declarations.visit::<Reproduction>();
        declarations.visit::<Recredit>();
        declarations.visit::<MethodCredit>();
        declarations.visit::<Provenance>();
        declarations.visit::<Description>();
        declarations.visit::<Difference>();
        declarations.visit::<Warning>();
        declarations.visit::<LessonEntry>();
        HEADER.to_string() + &declarations.found.into_values().collect::<String>()
    }

    #[test]
    fn the_page_s_types_are_those_of_the_protocol() {
        // A target folder may be shared between clones: the one of this run counts.
        let root =
            std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), std::path::PathBuf::from);
        let path = root.join("www/src/protocol.ts");
        let wanted = typescript();
        if std::env::var_os("UPDATE_TYPES").is_some() {
            std::fs::write(&path, &wanted).expect("the file can be written");
        }
        let found = std::fs::read_to_string(&path).expect("the file can be read");
        let differs = wanted.lines().zip(found.lines()).find(|(wanted, found)| wanted != found);
        assert!(
            found == wanted,
            "www/src/protocol.ts is out of date, run the command in its first line; (wanted, found): {differs:?}"
        );
    }
}
