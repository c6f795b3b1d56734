//! What happened in a turn, in words that hold for every task.

/// What happened in one turn. Worth is given to facts by `reward`, elsewhere.
///
/// A turn is exactly one of `answered`, `valid_call` and `malformed`, and a valid call has exactly one of `clean_result` and
/// `error_result`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(default)]
pub struct Facts {
    /// The turn was an answer (it ends the episode).
    pub answered: bool,
    /// The turn was right where the task can tell right from wrong: the right answer, the last right click, or the right
    /// click on one of several pages. Such a turn is always `judged`.
    pub answer_right: bool,
    /// The answer has the form that the task asks for.
    pub format_right: bool,
    /// The turn was a well-formed tool call.
    pub valid_call: bool,
    /// The turn was a tool call that this episode has made before, in the same place.
    pub repeated_call: bool,
    /// The turn was neither a well-formed call nor an answer.
    pub malformed: bool,
    /// The call was a step on the way to the solution, as judged by the task.
    pub step_right: bool,
    /// Success depends on this turn: it was right (`answer_right`) or wrong. See [`crate::rollout::Trajectory::success`].
    pub judged: bool,
    /// The call was answered without an error. Says nothing about whether the result is true or of use.
    pub clean_result: bool,
    /// The call was well-formed, and what came back was an error.
    pub error_result: bool,
    /// The turn led on to a page that the episode had not reached before; the goal counts as one.
    pub new_page: bool,
    /// The turn was paid by chance, whatever the policy did in it.
    pub lucky: bool,
}

impl Facts {
    /// A well-formed call whose result is no error.
    pub fn clean_call() -> Self {
        Facts { valid_call: true, clean_result: true, ..Facts::default() }
    }

    /// A well-formed call whose result is an error.
    pub fn failed_call() -> Self {
        Facts { valid_call: true, error_result: true, ..Facts::default() }
    }

    /// An answer; only one of the right form can be right.
    pub fn answer(format_right: bool, answer_right: bool) -> Self {
        Facts { answered: true, judged: true, format_right, answer_right, ..Facts::default() }
    }

    /// Neither a call nor an answer.
    pub fn malformed() -> Self {
        Facts { malformed: true, ..Facts::default() }
    }
}
