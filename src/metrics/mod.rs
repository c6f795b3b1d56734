//! Reports: plain numbers per training step, for curves, files and the command line; early warnings about them; and what a token's
//! weight is made of.

mod accuracy;
mod provenance;
mod report;
#[cfg(test)]
mod tests;
mod token_loss;
pub mod warning;
pub use accuracy::{CreditAccuracy, MethodAccuracy};
pub use provenance::{OtherTerm, Provenance, provenance};
pub use report::{Report, TypeStatistics, summarise_episodes};
pub use token_loss::{LogProbs, TokenLoss, policy_loss_of, token_losses};
pub use warning::{Warning, WarningKind, warnings};

pub use crate::learner::UpdateStatistics;
