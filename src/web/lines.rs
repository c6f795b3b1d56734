//! Episodes as JSON lines: one object per episode, the same from the command line and from the page.

use super::protocol::Batch;
use crate::config::CreditMethod;
use crate::credit::TrueCredit;
use crate::reward::WeightedTerm;
use crate::rollout::Trajectory;
use crate::vocabulary::{name, spell};

/// One episode with everything that is known of it. Arrays of turns have the length of `trajectory.turns`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct EpisodeLine<'a> {
    pub iteration: usize,
    /// The whole conversation in words.
    pub text: String,
    /// What each token of `trajectory.tokens` is called.
    pub token_names: Vec<&'static str>,
    /// What the policy did not see.
    pub hidden_state: &'a str,
    /// Group, member, token ids, `loss_mask`, `log_probs`, turns with their facts.
    pub trajectory: &'a Trajectory,
    /// `[turn][term]`: what was earned; `null` before the episode was scored.
    pub rewards: Option<&'a [Vec<WeightedTerm>]>,
    /// The method that `advantages` are from; `null` where there are none.
    pub credit_method: Option<CreditMethod>,
    /// `[turn]`: discounted rewards from the turn on.
    pub returns_to_go: Option<&'a [f64]>,
    /// `[turn]`: the weight of the turn's tokens in the update.
    pub advantages: Option<&'a [f64]>,
    /// What was measured by re-rolls, where it was.
    #[serde(flatten)]
    pub measured: Option<MeasuredLine<'a>>,
}

/// True credit of one episode, `[turn]` each; `null` where a state has not been re-rolled (often enough).
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct MeasuredLine<'a> {
    /// Expected return before the turn.
    pub values_before: &'a [Option<f64>],
    pub true_credit: &'a [Option<f64>],
    pub standard_errors: &'a [Option<f64>],
}

impl<'a> EpisodeLine<'a> {
    /// The episodes of a batch in its order. `method` is the one that the batch was credited with; `truth` may end before the
    /// batch does, and the episodes beyond it have no measured credit.
    pub fn of(batch: &'a Batch, method: CreditMethod, truth: Option<&'a TrueCredit>) -> impl Iterator<Item = EpisodeLine<'a>> {
        batch.trajectories.iter().enumerate().map(move |(index, trajectory)| {
            let row = |map: &'a Vec<Vec<f64>>| map.get(index).map(Vec::as_slice);
            let credit = batch.credit.as_ref();
            EpisodeLine {
                iteration: batch.iteration,
                text: spell(&trajectory.tokens),
                token_names: trajectory.tokens.iter().map(|&token| name(token)).collect(),
                hidden_state: batch.groups.get(trajectory.group).map_or("", |group| &group.hidden_state),
                trajectory,
                rewards: batch.rewards.as_ref().and_then(|rewards| rewards.turns.get(index)).map(Vec::as_slice),
                credit_method: credit.map(|_| method),
                returns_to_go: credit.and_then(|credit| row(&credit.returns_to_go)),
                advantages: credit.and_then(|credit| row(&credit.advantages)),
                measured: truth.and_then(|truth| {
                    Some(MeasuredLine {
                        values_before: truth.values.get(index)?,
                        true_credit: truth.credits.get(index)?,
                        standard_errors: truth.standard_errors.get(index)?,
                    })
                }),
            }
        })
    }
}

/// The episodes of a batch as text, a line each, every line ended.
///
/// # Errors
/// When an episode cannot be written as JSON.
pub fn episode_lines(batch: &Batch, method: CreditMethod, truth: Option<&TrueCredit>) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for line in EpisodeLine::of(batch, method, truth) {
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ExperimentConfig;
    use crate::reward::tests::{answer, call, trajectory};
    use crate::rollout::GroupInfo;
    use crate::web::frozen::FrozenBatch;

    /// Two episodes of one group, credited.
    fn batch() -> Batch {
        let trajectories: Vec<_> = [true, false].map(|right| trajectory(0, &[call(), answer(right)])).into();
        let groups = vec![GroupInfo { prompt: vec![1, 1], question_type: 0, hidden_state: "A > B".into() }];
        let bare = Batch { iteration: 3, groups, trajectories, rewards: None, credit: None, values: None, valued_by: None };
        let other = FrozenBatch::new(bare.clone()).unwrap().recredit(&ExperimentConfig::default());
        Batch { rewards: Some(other.rewards), credit: Some(other.credit), ..bare }
    }

    fn lines(batch: &Batch, truth: Option<&TrueCredit>) -> Vec<serde_json::Value> {
        let text = episode_lines(batch, CreditMethod::Grpo, truth).unwrap();
        assert!(text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_holds_the_episode_with_its_rewards_and_credit() {
        let batch = batch();
        let lines = lines(&batch, None);
        assert_eq!(lines.len(), 2);
        for (line, (trajectory, credit)) in
            lines.iter().zip(batch.trajectories.iter().zip(&batch.credit.as_ref().unwrap().advantages))
        {
            let read: Trajectory = serde_json::from_value(line["trajectory"].clone()).unwrap();
            assert_eq!((&read.tokens, &read.loss_mask), (&trajectory.tokens, &trajectory.loss_mask));
            assert_eq!(line["token_names"].as_array().unwrap().len(), trajectory.tokens.len());
            assert_eq!(line["text"], spell(&trajectory.tokens));
            assert_eq!(line["hidden_state"], "A > B");
            assert_eq!(line["rewards"].as_array().unwrap().len(), trajectory.turns.len());
            assert_eq!(line["advantages"], serde_json::json!(credit));
            assert_eq!(line["credit_method"], "grpo");
            assert!(line.get("true_credit").is_none(), "nothing was measured");
        }
        assert_ne!(lines[0]["advantages"], lines[1]["advantages"]);
    }

    #[test]
    fn measured_credit_goes_with_its_episode_and_may_end_early() {
        let row = vec![Some(0.25), None];
        let truth = TrueCredit { credits: vec![row.clone()], standard_errors: vec![row.clone()], values: vec![row] };
        let lines = lines(&batch(), Some(&truth));
        assert_eq!(lines[0]["true_credit"], serde_json::json!([0.25, null]));
        assert_eq!(lines[0]["values_before"], lines[0]["standard_errors"]);
        assert!(lines[1].get("true_credit").is_none());
    }

    #[test]
    fn an_episode_that_was_only_sampled_says_so() {
        let lines = lines(&Batch { rewards: None, credit: None, ..batch() }, None);
        for name in ["rewards", "credit_method", "returns_to_go", "advantages"] {
            assert!(lines[0][name].is_null(), "{name}");
        }
    }
}
