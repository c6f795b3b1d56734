//! Poisoned: a document that looks fine and is wrong, and a check that tells.
//!
//! # The game
//!
//! The prompt names an entity, `A` to `J`; asked for is its digit. A search finds its document at once, but in most episodes
//! somebody has poisoned it: the digit is wrong, and a small mark, `-` in place of `.`, is all that shows. A check of the document
//! always tells the truth, and there is nothing to check before something was found. So the smooth step, search and
//! answer, dooms the episode more often than not, and the mark decides whether the extra step is worth its time.
//!
//! # Actions
//!
//! | action | leads to |
//! | --- | --- |
//! | `<search> E <eot>` | the document: `E = 3 .`, or `E = 9 -` where it is poisoned |
//! | `<verify> E <eot>` after a search in this episode | the truth: `E = 3 .` |
//! | `<verify> E <eot>` before it | `ERR`: malformed |
//! | `<answer> 3 <eot>` | the end of the episode; so does anything else that starts with `<answer>` and ends with `<eot>` |
//! | anything else | `ERR`, and the episode goes on |
//!
//! The grammar, which knows no state, allows `<verify>` from the first turn on.
//!
//! # Facts
//!
//! `clean_result`: every call, the poisoned document included, which is the point. `step_right`: the first search for the
//! entity asked about, and, where its document is poisoned, the first check after it. `repeated_call`: the same tokens were
//! called before in this episode.
//!
//! # Parameters
//!
//! How often documents are poisoned, and three shares of the demonstrator.
//!
//! The demonstrator guesses at once in a few episodes and else searches. From then on, in every turn, it mostly answers the last
//! digit that it saw, whatever the mark, and sometimes checks or searches once more. It answers 46 % right within five turns.
//!
//! # An episode
//!
//! ```text
//! <q> H ? <search> H <eot> <obs> H = 9 - </obs> <verify> H <eot> <obs> H = 3 . </obs> <answer> 3 <eot>
//! ```

use super::parameter::{demonstrated, share};
use super::{Demonstrator, Environment, Facts, Grammar, Observation, Step};
use crate::config::{ContextNeed, DefaultValue, EnvironmentDeclaration, ExperimentConfig, Parameters, text};
use crate::seed::Draws;
use crate::vocabulary::{
    ANSWER, DOT, EOT, EQUALS, MINUS, NAMES, QUESTION, QUESTION_MARK, SEARCH, Token, TokenSet, VERIFY, digit, digit_value, entity,
    entity_index,
};

pub static DECLARATION: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "poisoned",
    label: text("Poisoned document", "被污染的文档"),
    help: text(
        "Find the digit behind a name in a document that may have been tampered with; a small mark shows it, and a check tells \
             the truth. The policy must learn to read the mark before it believes what it found.",
        "在可能被篡改的文档里查找名称对应的数字；只有一个小小的标记会露出破绽，核实则总能得到真相。策略要学会先看标记，再决定信不信。",
    ),
    settings: &[
        share(
            "poisoned_documents",
            0.6,
            text("Poisoned documents", "被污染文档的比例"),
            text(
                "Share of documents whose digit is wrong and whose mark says so; turning it up makes believing what was found \
                     worse and checking it more worth the turn.",
                "数字有误、且标记已变的文档所占比例；调高后，轻信更吃亏，多花一轮核实更划算。",
            ),
            false,
        ),
        demonstrated(
            "guess_demonstrations",
            0.1,
            text("Demonstrations that guess", "直接猜测的示范比例"),
            text(
                "Share of demonstrations that answer a random digit at once; all others begin with a search.",
                "示范中一上来就随便答一个数字的比例，其余示范先搜索；调高后，热启动的成功率更低。",
            ),
        ),
        demonstrated(
            "verify_demonstrations",
            0.2,
            text("Checks in demonstrations", "示范核实的比例"),
            text(
                "How often a demonstration checks, in each turn after its search and whatever the mark says; at 0 the policy never \
                     sees a check and reinforcement learning does not discover it.",
                "示范在搜索之后的每一轮选择核实的比例（与标记无关）；设为 0 时策略从未见过核实，强化学习也探索不到它。",
            ),
        ),
        demonstrated(
            "search_again",
            0.2,
            text("Further searches in demonstrations", "示范再次搜索的比例"),
            text(
                "How often a demonstration searches once more, in each turn after its search; whoever neither checks nor searches \
                     answers the last digit seen.",
                "示范在搜索之后的每一轮选择再搜一次的比例；既不核实也不再搜时，就回答最后看到的数字。",
            ),
        ),
    ],
    defaults: &[
        ("turn_limit", DefaultValue::Integer(5)),
        ("turn_tokens", DefaultValue::Integer(3)),
        ("context_length", DefaultValue::Integer(42)),
        ("groups", DefaultValue::Integer(16)),
        ("num_generations", DefaultValue::Integer(16)),
        ("entropy_coefficient", DefaultValue::Number(0.01)),
        ("iterations", DefaultValue::Integer(45)),
        ("imitation_steps", DefaultValue::Integer(200)),
        ("imitation_batch", DefaultValue::Integer(64)),
    ],
    question_types: &[text("clean document", "文档无误"), text("poisoned document", "文档被污染")],
    capabilities: &["tool use", "reasoning"],
    context: context_need,
};

/// Well-formed turns up to the turn limit: demonstrations may take them all.
fn context_need(config: &ExperimentConfig) -> ContextNeed {
    let turns = config.turn_limit;
    ContextNeed { prompt: 3, episode: 3 + turns * 3 + turns.saturating_sub(1) * 6 }
}

/// What is known about an entity.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    truth: u8,
    /// What the document says.
    written: u8,
}

impl Entry {
    fn poisoned(self) -> bool {
        self.truth != self.written
    }
}

/// The poisoned-document task.
#[derive(Clone, Debug)]
pub(super) struct Poisoned {
    poisoned_documents: f64,
    guess_demonstrations: f64,
    verify_demonstrations: f64,
    search_again: f64,
    /// The entity that the prompt names.
    asked: u8,
    entries: [Entry; 10],
    /// Entities searched for and checked in this episode.
    searched: [bool; 10],
    verified: [bool; 10],
}

impl Poisoned {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Poisoned {
            poisoned_documents: parameters.number("poisoned_documents"),
            guess_demonstrations: parameters.number("guess_demonstrations"),
            verify_demonstrations: parameters.number("verify_demonstrations"),
            search_again: parameters.number("search_again"),
            asked: 0,
            entries: [Entry::default(); 10],
            searched: [false; 10],
            verified: [false; 10],
        }
    }

    fn target(&self) -> Entry {
        self.entries[usize::from(self.asked)]
    }

    fn search(&mut self, index: u8) -> Step {
        let (entry, repeated_call) = (self.entries[usize::from(index)], self.searched[usize::from(index)]);
        self.searched[usize::from(index)] = true;
        let mark = if entry.poisoned() { MINUS } else { DOT };
        let step_right = index == self.asked && !repeated_call;
        let facts = Facts { repeated_call, step_right, ..Facts::clean_call() };
        Step::call(vec![entity(index), EQUALS, digit(entry.written), mark], facts)
    }

    fn verify(&mut self, index: u8) -> Step {
        if !self.searched.contains(&true) {
            return Step::malformed();
        }
        let (entry, repeated_call) = (self.entries[usize::from(index)], self.verified[usize::from(index)]);
        self.verified[usize::from(index)] = true;
        let found = self.searched[usize::from(index)];
        let step_right = index == self.asked && found && entry.poisoned() && !repeated_call;
        let facts = Facts { repeated_call, step_right, ..Facts::clean_call() };
        Step::call(vec![entity(index), EQUALS, digit(entry.truth), DOT], facts)
    }
}

impl Environment for Poisoned {
    fn reset(&mut self, mut draws: Draws) -> Vec<Token> {
        self.asked = draws.below(10) as u8;
        for entry in &mut self.entries {
            let (truth, other) = (draws.below(10) as u8, 1 + draws.below(9) as u8);
            let poisoned = draws.chance(self.poisoned_documents);
            *entry = Entry { truth, written: if poisoned { (truth + other) % 10 } else { truth } };
        }
        (self.searched, self.verified) = ([false; 10], [false; 10]);
        vec![QUESTION, entity(self.asked), QUESTION_MARK]
    }

    fn step(&mut self, action: &[Token], _tool: Draws) -> Step {
        match *action {
            [ANSWER, value, EOT] => {
                let value = digit_value(value);
                Step::answer(value.is_some(), value == Some(self.target().truth))
            }
            [ANSWER, .., EOT] => Step::answer(false, false),
            [SEARCH, name, EOT] => entity_index(name).map_or_else(Step::malformed, |index| self.search(index)),
            [VERIFY, name, EOT] => entity_index(name).map_or_else(Step::malformed, |index| self.verify(index)),
            _ => Step::malformed(),
        }
    }

    fn grammar(&self) -> Grammar {
        Grammar::from_edges(
            4,
            &[
                (0, TokenSet::of(&[SEARCH, VERIFY]), 1),
                (1, TokenSet::entities(), 3),
                (0, TokenSet::of(&[ANSWER]), 2),
                (2, TokenSet::digits(), 3),
                (3, TokenSet::of(&[EOT]), 0),
            ],
        )
    }

    fn demonstrator(&self, draws: Draws) -> Box<dyn Demonstrator> {
        let (verify, again) = (self.verify_demonstrations, self.search_again);
        Box::new(Script {
            name: entity(self.asked),
            guess: self.guess_demonstrations,
            moves: [(1.0 - verify - again).max(0.0), verify, again],
            draws,
        })
    }

    fn question_type(&self) -> usize {
        usize::from(self.target().poisoned())
    }

    fn hidden_state(&self) -> String {
        let (Entry { truth, written }, name) = (self.target(), NAMES[usize::from(entity(self.asked))]);
        let mark = if truth == written { "." } else { "-" };
        format!("{name} = {truth}, <search> {name} = {written} {mark}")
    }

    fn boxed_clone(&self) -> Box<dyn Environment> {
        Box::new(self.clone())
    }
}

/// Guesses or searches; then answers, checks or searches again, by lot in every turn.
struct Script {
    name: Token,
    /// Probability of a guess in the first turn.
    guess: f64,
    /// Weights of answering, checking and searching in later turns.
    moves: [f64; 3],
    draws: Draws,
}

impl Demonstrator for Script {
    fn act(&mut self, observation: Option<&Observation>) -> Vec<Token> {
        let Some(observation) = observation else {
            let (guess, value) = (self.draws.chance(self.guess), digit(self.draws.below(10) as u8));
            return if guess { vec![ANSWER, value, EOT] } else { vec![SEARCH, self.name, EOT] };
        };
        match (self.draws.weighted(&self.moves), observation.content.get(2)) {
            (0, Some(&seen)) => vec![ANSWER, seen, EOT],
            (1, _) => vec![VERIFY, self.name, EOT],
            _ => vec![SEARCH, self.name, EOT],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{act, demonstrate_within, draws};
    use super::*;
    use crate::seed::Purpose;

    /// H is 3, its document says 9; everybody else's says 0, rightly.
    fn poisoned() -> Poisoned {
        let mut entries = [Entry::default(); 10];
        entries[7] = Entry { truth: 3, written: 9 };
        Poisoned { asked: 7, entries, ..Poisoned::new(&Parameters::defaults(&DECLARATION)) }
    }

    #[test]
    fn the_transcript_of_the_header_is_what_happens() {
        let mut environment = poisoned();
        let step = Facts { step_right: true, ..Facts::clean_call() };
        assert_eq!(act(&mut environment, "<search> H <eot>"), ("<obs> H = 9 - </obs>".into(), step));
        assert_eq!(act(&mut environment, "<verify> H <eot>"), ("<obs> H = 3 . </obs>".into(), step));
        assert_eq!(act(&mut environment, "<answer> 3 <eot>"), ("end".into(), Facts::answer(true, true)));
        assert_eq!(environment.hidden_state(), "H = 3, <search> H = 9 -");
    }

    #[test]
    fn the_smooth_way_is_wrong() {
        let mut environment = poisoned();
        assert!(act(&mut environment, "<search> H <eot>").1.clean_result);
        assert_eq!(act(&mut environment, "<answer> 9 <eot>"), ("end".into(), Facts::answer(true, false)));
    }

    #[test]
    fn there_is_nothing_to_verify_before_a_search() {
        let mut environment = poisoned();
        for _ in 0..2 {
            assert_eq!(act(&mut environment, "<verify> H <eot>"), ("<obs> ERR </obs>".into(), Facts::malformed()));
        }
        assert_eq!(act(&mut environment, "<search> A <eot>"), ("<obs> A = 0 . </obs>".into(), Facts::clean_call()));
        let (observation, facts) = act(&mut environment, "<verify> H <eot>");
        assert_eq!((observation.as_str(), facts), ("<obs> H = 3 . </obs>", Facts::clean_call()));
        environment.reset(draws(Purpose::Question, 0));
        assert!(act(&mut environment, "<verify> H <eot>").1.malformed, "a new episode starts without a search");
    }

    #[test]
    fn a_check_is_a_right_step_only_where_it_is_needed_and_once() {
        let mut environment = poisoned();
        let mut judge = |words: &str| {
            let facts = act(&mut environment, words).1;
            (facts.step_right, facts.repeated_call)
        };
        assert_eq!(judge("<search> H <eot>"), (true, false));
        assert_eq!(judge("<search> H <eot>"), (false, true));
        assert_eq!(judge("<verify> A <eot>"), (false, false));
        assert_eq!(judge("<verify> H <eot>"), (true, false));
        assert_eq!(judge("<verify> H <eot>"), (false, true));
        let mut clean = Poisoned { asked: 0, ..poisoned() };
        assert!(act(&mut clean, "<search> A <eot>").1.step_right);
        assert!(!act(&mut clean, "<verify> A <eot>").1.step_right, "the mark already said so");
    }

    #[test]
    fn malformed_turns_get_an_error_and_malformed_answers_end_the_episode() {
        let mut environment = poisoned();
        act(&mut environment, "<search> H <eot>");
        for words in ["", "<verify> <eot>", "<verify> 3 <eot>", "<verify> H", "<search> H H <eot>", "<answer> 3"] {
            assert_eq!(act(&mut environment, words), ("<obs> ERR </obs>".into(), Facts::malformed()), "{words}");
        }
        for words in ["<answer> <eot>", "<answer> H <eot>", "<answer> 3 . <eot>"] {
            assert_eq!(act(&mut environment, words), ("end".into(), Facts::answer(false, false)), "{words}");
        }
    }

    #[test]
    fn documents_are_poisoned_as_often_as_set_and_then_wrong() {
        let mut environment = poisoned();
        let (mut poisoned, mut truths) = (0, [0; 10]);
        for episode in 0..20_000 {
            environment.reset(draws(Purpose::Question, episode));
            poisoned += environment.question_type();
            truths[usize::from(environment.target().truth)] += 1;
        }
        assert!((poisoned as f64 / 20_000.0 - 0.6).abs() < 0.014, "{poisoned}");
        assert!(truths.iter().all(|count| (1800..2200).contains(count)), "{truths:?}");
    }

    #[test]
    fn demonstrations_succeed_as_often_as_computed() {
        let mut environment = poisoned();
        let (mut episodes, mut successes, mut guesses) = ([0.0_f64; 2], [0.0_f64; 2], 0.0_f64);
        for episode in 0..4096 {
            let turns = demonstrate_within(&mut environment, episode, 5);
            assert!(turns.iter().all(|(_, step)| !step.facts.malformed));
            let kind = environment.question_type();
            episodes[kind] += 1.0;
            guesses += f64::from(u8::from(turns.len() == 1));
            successes[kind] += f64::from(u8::from(turns.iter().any(|(_, step)| step.facts.answer_right)));
        }
        // After the search, four turns in which to answer with .6; a wrong digit can be answered unless the last call was a
        // check. Shares of having seen the truth last (`seen`) and of not having answered yet (`left`), turn by turn.
        let (mut left, mut seen, mut right) = (1.0, 0.0, 0.0);
        for _ in 0..4 {
            right += 0.6 * seen;
            (left, seen) = (0.4 * left, 0.2 * left);
        }
        let expected = [0.1 * 0.1 + 0.9 * (1.0 - left), 0.1 * 0.1 + 0.9 * right];
        for kind in 0..2 {
            assert!((successes[kind] / episodes[kind] - expected[kind]).abs() < 0.035, "{successes:?} of {episodes:?}");
        }
        let total = 0.4 * expected[0] + 0.6 * expected[1];
        assert!((total - 0.4619).abs() < 0.0001, "{total}");
        assert!((successes.iter().sum::<f64>() / 4096.0 - total).abs() < 0.024, "{successes:?}");
        assert!((guesses / 4096.0 - 0.1).abs() < 0.015, "{guesses}");
    }
}
