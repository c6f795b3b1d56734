//! Reports: plain numbers per training step, for curves, files and the command line; early warnings about them; what a token's
//! weight is made of; and whether a run reproduces what a link says.

mod accuracy;
mod provenance;
mod report;
mod reproduction;
#[cfg(test)]
mod tests;
mod token_loss;
pub mod warning;
pub use accuracy::{CreditAccuracy, MethodAccuracy};
pub use provenance::{OtherTerm, Provenance, provenance};
pub use report::{Report, TypeStatistics, summarise_episodes};
pub use reproduction::{Reproduction, compare_expectation, expectation_of};
pub use token_loss::{LogProbs, TokenLoss, policy_loss_of, token_losses};
pub use warning::{Warning, WarningKind, Watch};

pub use crate::learner::UpdateStatistics;
