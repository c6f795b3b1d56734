//! Reports: plain numbers per training step, for curves, files and the command line.

mod accuracy;
mod report;
pub use accuracy::{CreditAccuracy, MethodAccuracy};
pub use report::{Report, TypeStatistics, summarise_episodes};

pub use crate::learner::UpdateStatistics;
