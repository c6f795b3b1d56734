//! Code: find what a program gives, from an error that helps and a cache that misleads.
//!
//! # The game
//!
//! The prompt names a program, `A` to `J`. Hidden are the key that it has to be run with, the value that it then gives, and the
//! value that a cache remembers, which is stale, and then wrong, in most episodes. A run with the wrong key gives an error that
//! carries the right key: ugly, and all that is needed. The cache answers at once and without an error: pretty, and usually
//! worthless. A process reward that pays clean results and fines errors therefore pays for the wrong thing.
//!
//! # Actions
//!
//! | action | leads to |
//! | --- | --- |
//! | `<run> X k <eot>` with the right key | `X = v` |
//! | `<run> X k <eot>` with another key | `ERR` and the right key |
//! | `<cache> X <eot>` | `X = u`, where u is v or stale |
//! | `<run>` or `<cache>` of a program that the prompt does not name | `ERR _` |
//! | `<answer> 6 <eot>` | the end of the episode; so does anything else that starts with `<answer>` and ends with `<eot>` |
//! | anything else | `ERR`, and the episode goes on |
//!
//! # Facts
//!
//! `error_result`: the run or the cache gave an error; `clean_result`: it gave a value, true or stale. `step_right`: the run
//! brought something new that the solution needs, first the key (by its error), then the value. `repeated_call`: the same tokens
//! were called before in this episode. `answer_right`: the answer is v.
//!
//! # Parameters
//!
//! How often the cache is stale, and two shares of the demonstrator.
//!
//! The demonstrator mostly believes the cache. Otherwise it runs the program with a random key, and after an error either gives
//! up with a random digit or runs again with the key that the error named. It answers 39 % right: 88 % where the cache is fresh,
//! 18 % where it is stale.
//!
//! # An episode
//!
//! ```text
//! <q> C ? <run> C 1 <eot> <obs> ERR 7 </obs> <run> C 7 <eot> <obs> C = 6 </obs> <answer> 6 <eot>
//! ```

use super::parameter::{demonstrated, share};
use super::{Demonstrator, Environment, Facts, Grammar, Observation, Step};
use crate::config::{ContextNeed, DefaultValue, EnvironmentDeclaration, Parameters, text};
use crate::seed::Draws;
use crate::vocabulary::{
    ANSWER, CACHE, EOT, EQUALS, ERR, NAMES, NONE, QUESTION, QUESTION_MARK, RUN, Token, TokenSet, digit, digit_value, entity,
    entity_index,
};

pub static DECLARATION: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "code",
    label: text("Code", "代码修复"),
    help: text(
        "Find what a program gives: a run with the wrong key fails with an error that names the right one, a cache answers at \
             once and is usually out of date. The policy must learn that the ugly step is the useful one.",
        "求程序的输出：用错参数运行会报错，但报错里写着正确的参数；缓存总能立刻给出答案，却往往已经过期。策略要学会：难看的那一步才是有用的一步。",
    ),
    settings: &[
        share(
            "stale_cache",
            0.7,
            text("Stale cache", "缓存过期的比例"),
            text(
                "Share of questions whose cache holds a wrong value; turning it up makes the clean-looking step worth less.",
                "缓存里的值已经过期、是错的题目所占比例；调高后，看上去干净的那一步更不值钱。",
            ),
            false,
        ),
        demonstrated(
            "cache_demonstrations",
            0.7,
            text("Demonstrations with the cache", "使用缓存的示范比例"),
            text(
                "Share of demonstrations that answer what the cache says; all others run the program, so that at 1 the policy \
                     never sees a run and reinforcement learning does not discover it.",
                "示范中直接采信缓存的比例，其余示范会运行程序；设为 1 时策略从未见过运行，强化学习也探索不到它。",
            ),
        ),
        demonstrated(
            "give_up",
            0.5,
            text("Giving up after an error", "报错后放弃的比例"),
            text(
                "Share of demonstrations that answer a random digit after an error instead of running again with the key it named; \
                     turning it up makes errors look useless.",
                "示范在报错后随便答一个数字、而不是用报错给出的参数重跑的比例；调高后，报错看起来就没有用。",
            ),
        ),
    ],
    defaults: &[
        ("turn_limit", DefaultValue::Integer(5)),
        ("turn_tokens", DefaultValue::Integer(5)),
        ("context_length", DefaultValue::Integer(36)),
        ("groups", DefaultValue::Integer(16)),
        ("num_generations", DefaultValue::Integer(16)),
        ("entropy_coefficient", DefaultValue::Number(0.01)),
        ("iterations", DefaultValue::Integer(70)),
        ("imitation_steps", DefaultValue::Integer(200)),
        ("valid_call_weight", DefaultValue::Number(0.0)),
        ("format_weight", DefaultValue::Number(0.0)),
        ("clean_result_weight", DefaultValue::Number(0.5)),
        ("error_result_weight", DefaultValue::Number(-0.5)),
    ],
    question_types: &[text("fresh cache", "缓存有效"), text("stale cache", "缓存过期")],
    capabilities: &["tool use", "self-improvement"],
    // The demonstrated repair: prompt, failed run, second run, answer.
    context: |_| ContextNeed { prompt: 3, episode: 3 + (4 + 4) + (4 + 5) + 3 },
};

/// The code task.
#[derive(Clone, Debug)]
pub(super) struct Code {
    stale_cache: f64,
    cache_demonstrations: f64,
    give_up: f64,
    /// The program that the prompt names.
    program: u8,
    /// The key it has to be run with.
    key: u8,
    /// What it then gives.
    value: u8,
    /// What the cache says.
    cached: u8,
    /// An error named the key.
    key_seen: bool,
    /// A run gave the value.
    value_seen: bool,
    /// The calls of this episode.
    calls: Vec<Vec<Token>>,
}

impl Code {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Code {
            stale_cache: parameters.number("stale_cache"),
            cache_demonstrations: parameters.number("cache_demonstrations"),
            give_up: parameters.number("give_up"),
            program: 0,
            key: 0,
            value: 0,
            cached: 0,
            key_seen: false,
            value_seen: false,
            calls: Vec::new(),
        }
    }

    fn run(&mut self, program: u8, key: u8) -> (Vec<Token>, Facts) {
        if program != self.program {
            return unknown();
        }
        if key != self.key {
            let step_right = !self.key_seen && !self.value_seen;
            self.key_seen = true;
            return (vec![ERR, digit(self.key)], Facts { step_right, ..Facts::failed_call() });
        }
        let step_right = !self.value_seen;
        self.value_seen = true;
        (vec![entity(program), EQUALS, digit(self.value)], Facts { step_right, ..Facts::clean_call() })
    }

    fn cache(&self, program: u8) -> (Vec<Token>, Facts) {
        if program != self.program {
            return unknown();
        }
        (vec![entity(program), EQUALS, digit(self.cached)], Facts::clean_call())
    }
}

/// What a call of a program gets that the prompt does not name.
fn unknown() -> (Vec<Token>, Facts) {
    (vec![ERR, NONE], Facts::failed_call())
}

impl Environment for Code {
    fn reset(&mut self, mut draws: Draws) -> Vec<Token> {
        self.program = draws.below(10) as u8;
        self.key = draws.below(10) as u8;
        self.value = draws.below(10) as u8;
        let other = 1 + draws.below(9) as u8;
        let stale = draws.chance(self.stale_cache);
        self.cached = if stale { (self.value + other) % 10 } else { self.value };
        (self.key_seen, self.value_seen) = (false, false);
        self.calls.clear();
        vec![QUESTION, entity(self.program), QUESTION_MARK]
    }

    fn step(&mut self, action: &[Token], _tool: Draws) -> Step {
        let result = match *action {
            [ANSWER, value, EOT] => {
                let value = digit_value(value);
                return Step::answer(value.is_some(), value == Some(self.value));
            }
            [ANSWER, .., EOT] => return Step::answer(false, false),
            [RUN, program, key, EOT] => entity_index(program).zip(digit_value(key)).map(|(program, key)| self.run(program, key)),
            [CACHE, program, EOT] => entity_index(program).map(|program| self.cache(program)),
            _ => None,
        };
        let Some((content, facts)) = result else { return Step::malformed() };
        let repeated_call = self.calls.iter().any(|call| call == action);
        self.calls.push(action.to_vec());
        Step::call(content, Facts { repeated_call, ..facts })
    }

    fn grammar(&self) -> Grammar {
        Grammar::from_edges(
            6,
            &[
                (0, TokenSet::of(&[RUN]), 1),
                (1, TokenSet::entities(), 2),
                (2, TokenSet::digits(), 5),
                (0, TokenSet::of(&[CACHE]), 3),
                (3, TokenSet::entities(), 5),
                (0, TokenSet::of(&[ANSWER]), 4),
                (4, TokenSet::digits(), 5),
                (5, TokenSet::of(&[EOT]), 0),
            ],
        )
    }

    fn demonstrator(&self, mut draws: Draws) -> Box<dyn Demonstrator> {
        let program = entity(self.program);
        let cache = draws.chance(self.cache_demonstrations);
        let key = digit(draws.below(10) as u8);
        let give_up = draws.chance(self.give_up);
        let first = if cache { vec![CACHE, program, EOT] } else { vec![RUN, program, key, EOT] };
        Box::new(Script { program, first, give_up, guess: digit(draws.below(10) as u8) })
    }

    fn question_type(&self) -> usize {
        usize::from(self.cached != self.value)
    }

    fn hidden_state(&self) -> String {
        let name = NAMES[usize::from(entity(self.program))];
        format!("<run> {name} {} = {}, <cache> {name} = {}", self.key, self.value, self.cached)
    }

    fn boxed_clone(&self) -> Box<dyn Environment> {
        Box::new(self.clone())
    }
}

/// Makes its first call, then answers the value it got; after an error it gives up or runs again with the key.
struct Script {
    program: Token,
    first: Vec<Token>,
    give_up: bool,
    /// The answer of one who gives up.
    guess: Token,
}

impl Demonstrator for Script {
    fn act(&mut self, observation: Option<&Observation>) -> Vec<Token> {
        let Some(observation) = observation else { return self.first.clone() };
        match *observation.content {
            [_, EQUALS, value] => vec![ANSWER, value, EOT],
            [ERR, key] if !self.give_up => vec![RUN, self.program, key, EOT],
            _ => vec![ANSWER, self.guess, EOT],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{act, demonstrate, draws};
    use super::*;
    use crate::seed::Purpose;
    use crate::vocabulary::spell;

    /// Program C, key 7, value 6, the cache says 2.
    fn stale() -> Code {
        Code { program: 2, key: 7, value: 6, cached: 2, ..Code::new(&Parameters::defaults(&DECLARATION)) }
    }

    #[test]
    fn the_transcript_of_the_header_is_what_happens() {
        let mut environment = stale();
        let failed = Facts { step_right: true, ..Facts::failed_call() };
        assert_eq!(act(&mut environment, "<run> C 1 <eot>"), ("<obs> ERR 7 </obs>".into(), failed));
        let ran = Facts { step_right: true, ..Facts::clean_call() };
        assert_eq!(act(&mut environment, "<run> C 7 <eot>"), ("<obs> C = 6 </obs>".into(), ran));
        assert_eq!(act(&mut environment, "<answer> 6 <eot>"), ("end".into(), Facts::answer(true, true)));
        assert_eq!(environment.hidden_state(), "<run> C 7 = 6, <cache> C = 2");
    }

    #[test]
    fn the_stale_cache_looks_clean_and_is_no_step_on_the_way() {
        let mut environment = stale();
        assert_eq!(act(&mut environment, "<cache> C <eot>"), ("<obs> C = 2 </obs>".into(), Facts::clean_call()));
        assert_eq!(act(&mut environment, "<answer> 2 <eot>"), ("end".into(), Facts::answer(true, false)));
    }

    #[test]
    fn only_runs_that_bring_something_new_are_right_steps() {
        let mut environment = stale();
        let judged = ["<run> C 1", "<run> C 2", "<run> C 1", "<run> D 7", "<run> C 7", "<run> C 7", "<run> C 3"].map(|call| {
            let facts = act(&mut environment, &format!("{call} <eot>")).1;
            (facts.error_result, facts.step_right, facts.repeated_call)
        });
        let expected = [
            (true, true, false),
            (true, false, false),
            (true, false, true),
            (true, false, false),
            (false, true, false),
            (false, false, true),
            (true, false, false),
        ];
        assert_eq!(judged, expected);
        let mut at_once = stale();
        assert!(act(&mut at_once, "<run> C 7 <eot>").1.step_right);
        assert!(!act(&mut at_once, "<run> C 1 <eot>").1.step_right, "the key is of no use once the value is known");
    }

    #[test]
    fn other_programs_and_malformed_turns_give_errors_of_their_own() {
        let mut environment = stale();
        for words in ["<run> D 7 <eot>", "<cache> A <eot>"] {
            assert_eq!(act(&mut environment, words), ("<obs> ERR _ </obs>".into(), Facts::failed_call()), "{words}");
        }
        for words in ["", "<run> C <eot>", "<run> C 1", "<run> 1 C <eot>", "<cache> <eot>", "<cache> C 7 <eot>", "<answer> 6"] {
            assert_eq!(act(&mut environment, words), ("<obs> ERR </obs>".into(), Facts::malformed()), "{words}");
        }
        for words in ["<answer> <eot>", "<answer> C <eot>", "<answer> 6 6 <eot>"] {
            assert_eq!(act(&mut environment, words), ("end".into(), Facts::answer(false, false)), "{words}");
        }
    }

    #[test]
    fn caches_are_stale_as_often_as_set_and_a_stale_one_is_wrong() {
        let mut environment = stale();
        let (mut stale, mut keys, mut cached) = (0, [0; 10], [0; 10]);
        for episode in 0..20_000 {
            let prompt = environment.reset(draws(Purpose::Question, episode));
            assert_eq!(spell(&prompt), format!("<q> {} ?", NAMES[usize::from(entity(environment.program))]));
            stale += environment.question_type();
            keys[usize::from(environment.key)] += 1;
            cached[usize::from(environment.cached)] += 1;
        }
        assert!((stale as f64 / 20_000.0 - 0.7).abs() < 0.013, "{stale}");
        assert!(keys.iter().chain(&cached).all(|count| (1800..2200).contains(count)), "{keys:?} {cached:?}");
    }

    #[test]
    fn demonstrations_succeed_as_often_as_computed() {
        let mut environment = stale();
        let (mut episodes, mut successes, mut runs) = ([0.0_f64; 2], [0.0_f64; 2], 0.0_f64);
        for episode in 0..4096 {
            let turns = demonstrate(&mut environment, episode);
            let last = turns.last().unwrap();
            assert!(last.1.done && turns.len() <= 3);
            runs += f64::from(u8::from(turns[0].0[0] == RUN));
            episodes[environment.question_type()] += 1.0;
            successes[environment.question_type()] += f64::from(u8::from(last.1.facts.answer_right));
        }
        // A run: the key by chance in one case of ten, else half give up and guess, the others run again.
        let run = 0.1 + 0.9 * (0.5 * 0.1 + 0.5);
        let expected = [0.7 + 0.3 * run, 0.3 * run];
        for kind in 0..2 {
            assert!((successes[kind] / episodes[kind] - expected[kind]).abs() < 0.03, "{successes:?} of {episodes:?}");
        }
        let total = 0.3 * expected[0] + 0.7 * expected[1];
        assert!((total - 0.3885).abs() < 1e-9);
        assert!((successes.iter().sum::<f64>() / 4096.0 - total).abs() < 0.023, "{successes:?}");
        assert!((runs / 4096.0 - 0.3).abs() < 0.022, "{runs}");
    }
}
