//! Tasks: what happens when the policy acts. Environments state facts, never worth.
//!
//! Training knows three methods, [`Environment::reset`], [`Environment::step`] and [`Environment::format_observation`], and
//! nothing else of a task. All randomness comes in as counter-based [`Draws`], and the state is plain data that can be cloned,
//! so any prefix of an episode can be restored exactly and rolled again.
//!
//! One environment is one file; a new one is that file and one line in `registry!`.
//!
//! | task | what it shows | capabilities |
//! | --- | --- | --- |
//! | `search` | when to search again; with random tokens in its documents, what the loss mask is for | tool use, planning |
//! | `calculator` | the order of operations, and a result carried into the next call | tool use, reasoning |
//! | `code` | an error that carries the information beside a clean result that is usually stale | tool use, self-improvement |
//! | `poisoned` | a smooth step that dooms the episode: a document that looks fine and is wrong | tool use, reasoning |
//! | `spin` | luck between decisions, where credit for each turn beats credit for the episode | perception, memory |
//! | `web` | dead ends, the way back, states that repeat, and a goal too far for its reward to be felt | planning, perception |

mod calculator;
mod code;
#[cfg(test)]
mod contract;
mod facts;
mod parameter;
mod poisoned;
mod search;
mod spin;
mod warm_start;
mod web;

pub use facts::Facts;
pub use warm_start::{EXTRA_WARM_STARTS, ExtraWarmStart, warm_start_name};

use crate::config::{EnvironmentDeclaration, ExperimentConfig, Parameters};
use crate::seed::Draws;
use crate::vocabulary::{EOT, ERR, OBS, OBS_END, SIZE, Token, TokenSet};

/// Makes the list of tasks and their constructor from one line per task.
macro_rules! registry {
    ($($module:ident :: $environment:ident),+ $(,)?) => {
        /// Every task, in the order in which the page lists them.
        pub static REGISTRY: &[&EnvironmentDeclaration] = &[$(&$module::DECLARATION),+];

        fn build(name: &str, parameters: &Parameters) -> Option<Box<dyn Environment>> {
            $(if name == $module::DECLARATION.name {
                return Some(Box::new($module::$environment::new(parameters)));
            })+
            None
        }
    };
}

registry!(search::Search, calculator::Calculator, code::Code, poisoned::Poisoned, spin::Spin, web::Web);

/// Makes the environment that a configuration names, before its first [`Environment::reset`].
///
/// The configuration has been checked, so its environment is registered; an unknown name falls back on the first task.
pub fn create(config: &ExperimentConfig) -> Box<dyn Environment> {
    create_named(&config.environment, &config.parameters)
}

/// The same from a task's name and its own settings.
pub fn create_named(name: &str, parameters: &Parameters) -> Box<dyn Environment> {
    build(name, parameters).unwrap_or_else(|| Box::new(search::Search::new(parameters)))
}

/// What is declared about the environment that a configuration names.
pub fn declaration(config: &ExperimentConfig) -> &'static EnvironmentDeclaration {
    REGISTRY.iter().find(|declaration| declaration.name == config.environment).unwrap_or(&REGISTRY[0])
}

/// A task that the policy talks to, one turn at a time.
///
/// Its `Debug` form must show the whole state: states are told apart by it.
pub trait Environment: std::fmt::Debug + Send + Sync {
    /// Starts a new episode and gives the prompt. The same draws give the same question and the same hidden state.
    fn reset(&mut self, draws: Draws) -> Vec<Token>;

    /// Takes the tokens of one action, its `<eot>` included when the policy wrote one within the budget. `tool` holds the
    /// draws of this trajectory and turn. Any tokens are allowed; what is malformed is a fact, not an error.
    fn step(&mut self, action: &[Token], tool: Draws) -> Step;

    /// Writes an observation as tokens: its content between `<obs>` and `</obs>`.
    fn format_observation(&self, observation: &Observation) -> Vec<Token> {
        let mut tokens = vec![OBS];
        tokens.extend(&observation.content);
        tokens.push(OBS_END);
        tokens
    }

    /// The optional grammar of one action. It is the same in every turn: it knows no state of the episode.
    fn grammar(&self) -> Grammar;

    /// A scripted actor for the episode that was just reset: it makes the demonstrations of the warm start. `draws` must be
    /// apart from those of [`Environment::reset`], or what it does would depend on the hidden state.
    fn demonstrator(&self, draws: Draws) -> Box<dyn Demonstrator>;

    /// Which kind of question this episode asks: an index into the declaration's `question_types`.
    fn question_type(&self) -> usize;

    /// What the policy does not see, in words, for the person who watches.
    fn hidden_state(&self) -> String;

    /// A copy with the same state, from which the episode can go on apart.
    fn boxed_clone(&self) -> Box<dyn Environment>;
}

/// A scripted actor. It may know what the policy cannot see.
pub trait Demonstrator {
    /// The next action, given the observation of the last one (`None` on the first turn).
    fn act(&mut self, observation: Option<&Observation>) -> Vec<Token>;
}

/// What a tool gave back, without the delimiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub content: Vec<Token>,
}

impl Observation {
    /// What a malformed action gets.
    pub fn error() -> Self {
        Observation { content: vec![ERR] }
    }
}

/// What one action led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `None` when the episode ended.
    pub observation: Option<Observation>,
    pub facts: Facts,
    /// Ended by the rules of the task.
    pub done: bool,
}

impl Step {
    /// An answer, which ends the episode whatever its form.
    pub fn answer(format_right: bool, answer_right: bool) -> Self {
        Step::end(Facts::answer(format_right, answer_right))
    }

    /// A turn after which the episode goes on, and the content of what came back.
    pub fn call(content: Vec<Token>, facts: Facts) -> Self {
        Step { observation: Some(Observation { content }), facts, done: false }
    }

    /// Neither a call nor an answer: `ERR`, and the episode goes on.
    pub fn malformed() -> Self {
        Step::call(Observation::error().content, Facts::malformed())
    }

    /// The last turn of the episode, by the rules of the task.
    pub fn end(facts: Facts) -> Self {
        Step { observation: None, facts, done: true }
    }
}

/// The legal actions as a finite automaton, so that sampling under it needs nothing from the host. State 0 starts a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    /// For each state the tokens that may come next.
    pub legal: Vec<TokenSet>,
    /// For each state and token the state after it. Only read for legal tokens.
    pub next: Vec<[u8; SIZE]>,
}

impl Grammar {
    /// An automaton from its edges (state, tokens, next state). `<eot>` leads back to state 0.
    pub fn from_edges(states: usize, edges: &[(usize, TokenSet, usize)]) -> Self {
        let mut grammar = Grammar { legal: vec![TokenSet::EMPTY; states], next: vec![[0; SIZE]; states] };
        for &(from, tokens, to) in edges {
            grammar.legal[from] = grammar.legal[from].or(tokens);
            for token in (0..SIZE as Token).filter(|&token| tokens.contains(token) && token != EOT) {
                grammar.next[from][token as usize] = to as u8;
            }
        }
        grammar
    }

    /// The tokens that may follow the beginning of an action; none after its `<eot>` and after a token that is not legal.
    pub fn following(&self, beginning: &[Token]) -> TokenSet {
        let mut state = 0;
        for &token in beginning {
            if token == EOT || !self.legal[state].contains(token) {
                return TokenSet::EMPTY;
            }
            state = usize::from(self.next[state][usize::from(token)]);
        }
        self.legal[state]
    }

    /// The legal sets along an action: entry `i` is what token `i` was chosen from.
    pub fn along(&self, action: &[Token]) -> Vec<TokenSet> {
        let mut state = 0;
        action
            .iter()
            .map(|&token| {
                let legal = self.legal[state];
                state = self.next[state][token as usize] as usize;
                legal
            })
            .collect()
    }
}
