//! One report per training step. It describes the policy as it was *before* the update of that step.

use crate::environment::Facts;
use crate::learner::UpdateStatistics;
use crate::rollout::{End, Trajectory};

/// Plain numbers of one training step.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Report {
    /// Training steps before this one: the first is 0.
    pub iteration: usize,
    /// Mean success of the training episodes (see [`Trajectory::success`]; with one answer per episode, the share that was
    /// right), sampled at the training temperature.
    pub train_success: f64,
    /// The same of the held-out episodes, at the same temperature; the questions are the same in every step.
    pub held_out_success: f64,
    /// How many held-out episodes that mean is over (where each is right or wrong, its standard error is `sqrt(p (1 - p) / n)`).
    pub held_out_episodes: usize,
    /// Mean discounted return of the training episodes.
    pub mean_return: f64,
    /// Well-formed tool calls per training episode.
    pub calls: f64,
    /// The same, and success, by type of question.
    pub by_type: Vec<TypeStatistics>,
    /// Turns per training episode.
    pub turns: f64,
    /// Share of training episodes that a limit cut.
    pub truncated: f64,
    /// Share of turns that were malformed.
    pub malformed: f64,
    /// Calls per training episode that the task judges to be steps towards the solution.
    #[serde(default)]
    pub right_steps: f64,
    /// Calls per training episode that the episode had made before.
    #[serde(default)]
    pub repeated_calls: f64,
    /// Calls per training episode that gave an error.
    #[serde(default)]
    pub error_results: f64,
    /// Pages per training episode that were reached for the first time, the goal included.
    #[serde(default)]
    pub new_pages: f64,
    /// Share of groups in which all returns were equal, so that nothing could be learned from them.
    pub no_signal_groups: f64,
    /// The update.
    pub update: UpdateStatistics,
    /// Tokens of the training episodes, tool tokens included.
    pub tokens: usize,
    /// Those, divided by the seconds of the step.
    pub tokens_per_second: f64,
    /// Wall-clock seconds of the step: sampling (held-out episodes included), scoring and update.
    pub seconds: f64,
    /// Seconds of it spent sampling.
    pub rollout_seconds: f64,
}

/// How one type of question went.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct TypeStatistics {
    pub episodes: usize,
    /// Mean success; `null` without episodes.
    pub success: Option<f64>,
    /// Well-formed tool calls per episode; `null` without episodes.
    pub calls: Option<f64>,
}

/// Fills the parts of a report that come from episodes alone; update, no-signal share and times are left at zero.
pub fn summarise_episodes(
    iteration: usize,
    training: &[Trajectory],
    held_out: &[Trajectory],
    returns: &[f64],
    question_types: usize,
) -> Report {
    let mean = |values: &mut dyn Iterator<Item = f64>, of: usize| if of == 0 { 0.0 } else { values.sum::<f64>() / of as f64 };
    let share = |count: usize, of: usize| if of == 0 { 0.0 } else { count as f64 / of as f64 };
    let success = |episodes: &[Trajectory]| mean(&mut episodes.iter().map(Trajectory::success), episodes.len());
    let turns: usize = training.iter().map(|e| e.turns.len()).sum();
    let facts = |fact: fn(&Facts) -> bool| training.iter().flat_map(|e| &e.turns).filter(|turn| fact(&turn.facts)).count();
    let per_episode = |fact: fn(&Facts) -> bool| share(facts(fact), training.len());
    let by_type = (0..question_types)
        .map(|kind| {
            let of_type: Vec<&Trajectory> = training.iter().filter(|e| e.question_type == kind).collect();
            let episodes = of_type.len();
            let success = mean(&mut of_type.iter().map(|e| e.success()), episodes);
            let calls = mean(&mut of_type.iter().map(|e| e.calls() as f64), episodes);
            let known = |value: f64| (episodes > 0).then_some(value);
            TypeStatistics { episodes, success: known(success), calls: known(calls) }
        })
        .collect();
    Report {
        iteration,
        train_success: success(training),
        held_out_success: success(held_out),
        held_out_episodes: held_out.len(),
        mean_return: if returns.is_empty() { 0.0 } else { returns.iter().sum::<f64>() / returns.len() as f64 },
        calls: share(training.iter().map(Trajectory::calls).sum(), training.len()),
        by_type,
        turns: share(turns, training.len()),
        truncated: share(training.iter().filter(|e| e.end != End::Terminated).count(), training.len()),
        malformed: share(facts(|facts| facts.malformed), turns),
        right_steps: per_episode(|facts| facts.step_right),
        repeated_calls: per_episode(|facts| facts.repeated_call),
        error_results: per_episode(|facts| facts.error_result),
        new_pages: per_episode(|facts| facts.new_page),
        no_signal_groups: 0.0,
        update: UpdateStatistics::default(),
        tokens: training.iter().map(|e| e.tokens.len()).sum(),
        tokens_per_second: 0.0,
        seconds: 0.0,
        rollout_seconds: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::tests::{answer, call, malformed, trajectory};

    #[test]
    fn episodes_are_counted_by_success_type_and_end() {
        let training = [
            Trajectory { question_type: 0, ..trajectory(0, &[answer(true)]) },
            Trajectory { question_type: 2, ..trajectory(0, &[call(), call(), answer(true)]) },
            Trajectory { question_type: 2, ..trajectory(1, &[call(), malformed(), answer(false)]) },
            Trajectory { question_type: 2, end: End::TurnLimit, ..trajectory(1, &[malformed()]) },
        ];
        let held_out = [true, false, false, false].map(|right| trajectory(0, &[answer(right)]));
        let report = summarise_episodes(7, &training, &held_out, &[1.0, 0.9, 0.0, -0.3], 3);
        assert_eq!(
            (report.iteration, report.train_success, report.held_out_success, report.held_out_episodes),
            (7, 0.5, 0.25, 4)
        );
        assert!((report.mean_return - 0.4).abs() < 1e-12);
        assert_eq!((report.calls, report.turns, report.truncated, report.malformed), (0.75, 2.0, 0.25, 0.25));
        assert_eq!(report.tokens, 24);
        let type_of = |episodes, success, calls| TypeStatistics { episodes, success, calls };
        let third = 1.0 / 3.0;
        let expected = [type_of(1, Some(1.0), Some(0.0)), type_of(0, None, None), type_of(3, Some(third), Some(1.0))];
        assert_eq!(report.by_type, expected);
    }

    #[test]
    fn facts_are_counted_per_episode_and_success_is_the_share_of_judged_turns_that_were_right() {
        let decision = |right| Facts { judged: true, answer_right: right, step_right: right, ..call() };
        let onward = Facts { new_page: true, step_right: true, ..call() };
        let again = Facts { repeated_call: true, ..Facts::failed_call() };
        let training = [
            trajectory(0, &[decision(true), Facts { lucky: true, ..call() }, decision(false), decision(true)]),
            trajectory(0, &[onward, again, again, Facts { judged: true, answer_right: true, ..onward }]),
            trajectory(0, &[onward, malformed()]),
            trajectory(0, &[answer(false)]),
        ];
        let success = training.each_ref().map(Trajectory::success);
        assert_eq!(success, [2.0 / 3.0, 1.0, 0.0, 0.0]);
        let report = summarise_episodes(0, &training, &training[..2], &[], 1);
        assert!((report.train_success - 5.0 / 12.0).abs() < 1e-12 && (report.held_out_success - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!(report.by_type[0].success, Some(report.train_success));
        let figures = [report.right_steps, report.new_pages, report.error_results, report.repeated_calls];
        assert_eq!(figures, [1.25, 0.75, 0.5, 0.5]);
    }

    #[test]
    fn an_empty_step_gives_zeros_and_no_success_by_type() {
        let report = summarise_episodes(0, &[], &[], &[], 2);
        let shares = [report.train_success, report.held_out_success, report.mean_return, report.calls, report.turns];
        assert_eq!(shares, [0.0; 5]);
        assert_eq!((report.truncated, report.malformed, report.tokens), (0.0, 0.0, 0));
        assert!(report.by_type.iter().all(|kind| kind.success.is_none() && kind.calls.is_none()));
    }
}
