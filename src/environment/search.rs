//! Search: find the digit behind a name, by as many look-ups as it takes.
//!
//! # The game
//!
//! The prompt names an entity, `A` to `J`, and carries a note. A hidden knowledge base has one document per entity, either
//! `E = 7` (the value of E is 7) or `E > F` (see F). The question has 0, 1 or 2 hops: with 0 hops the note already is the
//! answer (and the document would confirm it), with 1 hop the document of the entity has it, with 2 hops that document
//! points to the one that has it. Prompts of 1 and 2 hops look alike, so only the tool result tells whether one search was
//! enough. All other entities have random documents, half of them redirects; the answer is uniform, so guessing is right in
//! one case of ten.
//!
//! # Actions
//!
//! | action | leads to |
//! | --- | --- |
//! | `<search> E <eot>` | the document of E |
//! | `<answer> 7 <eot>` | the end of the episode; so does anything else that starts with `<answer>` and ends with `<eot>` |
//! | anything else | `ERR`, and the episode goes on |
//!
//! # Facts
//!
//! `step_right`: the search asked for the next document of the chain that answers the question, in order and not yet
//! found; with 0 hops there is no such step. `repeated_call`: the same entity was searched for before in this episode.
//!
//! # Parameters
//!
//! The number of entities, the shares of 0, 1 and 2 hops, the share of noisy documents (the tool returns the document of a
//! random entity instead), the number of random tokens after every document, and two shares of the demonstrator.
//!
//! Long documents, `<obs> G > H 7 C 0 J </obs>`, carry digits and names that nobody can predict, drawn afresh for every episode
//! and turn. They show what the loss mask is for: with it off, the policy is trained to foresee them.
//!
//! The demonstrator decides how often it searches before it sees anything, independently of need: exactly once in most
//! episodes, never in some, twice in some. It follows a redirect; where the document had a value already it repeats the same
//! search, a harmless double check. It answers the last value that it saw (a note counts), or a random digit. Imitating it
//! answers about 62 % right; knowing when to search again is left to reinforcement learning.
//!
//! # An episode with two hops
//!
//! ```text
//! <q> G ? <note> _ <search> G <eot> <obs> G > H </obs> <search> H <eot> <obs> H = 3 </obs> <answer> 3 <eot>
//! ```

use super::parameter::{count, demonstrated, share};
use super::{Demonstrator, Environment, Facts, Grammar, Observation, Step};
use crate::config::{ContextNeed, DefaultValue, EnvironmentDeclaration, ExperimentConfig, Parameters, text};
use crate::seed::Draws;
use crate::vocabulary::{
    ANSWER, EOT, EQUALS, LABELS, NAMES, NONE, NOTE, QUESTION, QUESTION_MARK, REDIRECT, SEARCH, Token, TokenSet, digit,
    digit_value, entity, entity_index, label,
};

/// The largest number of entities: the vocabulary has ten.
const MOST_ENTITIES: usize = 10;

/// The largest number of random tokens after a document.
const MOST_RANDOM_TOKENS: u32 = 12;

/// Tokens of the prompt.
const PROMPT: usize = 5;

/// Tokens of a clean document with its delimiters.
const DOCUMENT: usize = 5;

pub static DECLARATION: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "search",
    label: text("Search", "搜索问答"),
    help: text(
        "Find the digit behind a name by looking up documents that may point to other documents. The policy must find out by \
             itself how many searches a question needs.",
        "通过检索文档找出名称对应的数字；文档可能直接给出数值，也可能指向另一篇文档。策略要自己学会每个问题需要搜索几次。",
    ),
    settings: &[
        share(
            "zero_hop",
            0.25,
            text("Questions with 0 hops", "0 跳问题的比例"),
            text(
                "Relative share of questions whose answer already stands in the note; more of them reward not searching. If \
                     all three shares are 0, they count as equal.",
                "答案已写在备注里的问题所占的相对比例；调高后，不搜索直接回答更划算。三个比例都为 0 时按相等处理。",
            ),
            false,
        ),
        share(
            "one_hop",
            0.30,
            text("Questions with 1 hop", "1 跳问题的比例"),
            text(
                "Relative share of questions that one search answers; more of them make one search the safe habit. If all three \
                     shares are 0, they count as equal.",
                "搜索一次即可回答的问题所占的相对比例；调高后，“只搜一次”会成为稳妥的习惯。三个比例都为 0 时按相等处理。",
            ),
            false,
        ),
        share(
            "two_hop",
            0.45,
            text("Questions with 2 hops", "2 跳问题的比例"),
            text(
                "Relative share of questions whose first document points to a second one; more of them reward searching again. \
                     If all three shares are 0, they count as equal.",
                "第一篇文档只指向第二篇文档的问题所占的相对比例；调高后，再搜一次更划算。三个比例都为 0 时按相等处理。",
            ),
            false,
        ),
        share(
            "noisy_documents",
            0.0,
            text("Noisy documents", "噪声文档的比例"),
            text(
                "Share of searches that return the document of a random entity instead of the one asked for; turning it up makes \
                     tool results less reliable and credit noisier.",
                "搜索时返回随机实体的文档（而非所查实体的文档）的比例；调高后工具结果更不可靠，信用分配的噪声也更大。",
            ),
            false,
        ),
        count(
            "random_tokens",
            [0, 0, MOST_RANDOM_TOKENS],
            text("Random tokens per document", "文档附带的随机词元数"),
            text("tokens", "词元"),
            text(
                "How many random digits and names follow every document, drawn afresh each time; with 8 of them, training on the \
                     tool's tokens (loss mask off) spoils the policy instead of only slowing it down.",
                "每篇文档后面附带多少个随机的数字或名称，每次重新抽取；附带 8 个时，关掉损失掩码不只是变慢，而是会把策略带坏。",
            ),
            false,
        ),
        count(
            "entities",
            [MOST_ENTITIES as u32, 3, MOST_ENTITIES as u32],
            text("Entities", "实体数量"),
            text("", ""),
            text(
                "How many entities the knowledge base has; with fewer, a search at random hits the right document more often.",
                "知识库中的实体数量；数量越少，随机搜索越容易碰上正确的文档。",
            ),
            true,
        ),
        demonstrated(
            "two_search_demonstrations",
            0.17,
            text("Demonstrations with 2 searches", "搜索两次的示范比例"),
            text(
                "Share of demonstrations that search twice, whether needed or not; at 0 the policy never sees a second search and \
                     reinforcement learning does not discover it.",
                "示范中搜索两次的比例（与是否需要无关）；设为 0 时策略从未见过第二次搜索，强化学习也探索不到它。",
            ),
        ),
        demonstrated(
            "no_search_demonstrations",
            0.15,
            text("Demonstrations without a search", "不搜索的示范比例"),
            text(
                "Share of demonstrations that answer at once, whether the note helps or not; more of them make it easier to learn \
                     when no search is needed. All other demonstrations search exactly once.",
                "示范中不搜索、直接回答的比例（与备注是否有用无关）；调高后更容易学会何时无需搜索。其余示范恰好搜索一次。",
            ),
        ),
    ],
    defaults: &[
        ("turn_limit", DefaultValue::Integer(5)),
        ("turn_tokens", DefaultValue::Integer(4)),
        ("context_length", DefaultValue::Integer(40)),
        ("groups", DefaultValue::Integer(16)),
        ("num_generations", DefaultValue::Integer(16)),
        ("entropy_coefficient", DefaultValue::Number(0.01)),
        ("iterations", DefaultValue::Integer(60)),
        ("imitation_steps", DefaultValue::Integer(300)),
    ],
    question_types: &[text("0 hops", "0 跳"), text("1 hop", "1 跳"), text("2 hops", "2 跳")],
    capabilities: &["tool use", "planning"],
    context: context_need,
};

/// Clean documents ask for nothing: at the default limits five turns fit. Long ones ask for as many tokens as an episode up to
/// the turn limit can have, so that none is cut short by the documents' length.
fn context_need(config: &ExperimentConfig) -> ContextNeed {
    let (turns, random) = (config.turn_limit, config.parameters.integer("random_tokens"));
    let episode = PROMPT + turns * config.turn_tokens + turns.saturating_sub(1) * (DOCUMENT + random);
    ContextNeed { prompt: PROMPT, episode: if random > 0 { episode } else { 0 } }
}

/// What the knowledge base says about one entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Document {
    /// `E = digit`
    Value(u8),
    /// `E > F`: see the entity with this index.
    Redirect(u8),
}

/// The search task.
#[derive(Clone, Debug)]
pub(super) struct Search {
    entities: u8,
    hop_shares: [f64; 3],
    noisy_documents: f64,
    random_tokens: usize,
    two_search_demonstrations: f64,
    no_search_demonstrations: f64,
    /// How many searches the question needs.
    hops: usize,
    /// The entity asked about and the one that its document may point to.
    chain: [u8; 2],
    answer: u8,
    documents: [Document; MOST_ENTITIES],
    /// How many documents of the chain have been seen.
    found: usize,
    /// Entities searched for in this episode.
    searched: [bool; MOST_ENTITIES],
}

impl Search {
    pub(super) fn new(parameters: &Parameters) -> Self {
        let hop_shares = ["zero_hop", "one_hop", "two_hop"].map(|name| parameters.number(name));
        Search {
            entities: parameters.integer("entities").clamp(3, MOST_ENTITIES) as u8,
            hop_shares: if hop_shares.iter().any(|&share| share > 0.0) { hop_shares } else { [1.0; 3] },
            noisy_documents: parameters.number("noisy_documents"),
            random_tokens: parameters.integer("random_tokens").min(MOST_RANDOM_TOKENS as usize),
            two_search_demonstrations: parameters.number("two_search_demonstrations"),
            no_search_demonstrations: parameters.number("no_search_demonstrations"),
            hops: 0,
            chain: [0, 1],
            answer: 0,
            documents: [Document::Value(0); MOST_ENTITIES],
            found: 0,
            searched: [false; MOST_ENTITIES],
        }
    }

    /// The entity of a token, if the knowledge base has it.
    fn known_entity(&self, token: Token) -> Option<u8> {
        entity_index(token).filter(|&index| index < self.entities)
    }

    /// The entities whose documents answer the question, in order; none when the note does.
    fn needed(&self) -> &[u8] {
        &self.chain[..self.hops]
    }

    /// The content of the document of an entity.
    fn document(&self, index: u8) -> Vec<Token> {
        match self.documents[index as usize] {
            Document::Value(value) => vec![entity(index), EQUALS, digit(value)],
            Document::Redirect(other) => vec![entity(index), REDIRECT, entity(other)],
        }
    }

    /// Looks up `asked`, or, in a noisy call, a random entity. The first draw decides both whether and which; the random tokens
    /// after the document take the draws that follow it.
    fn search(&mut self, asked: u8, mut tool: Draws) -> Step {
        let luck = f64::from(tool.unit());
        let noisy = luck < self.noisy_documents;
        let returned = if noisy { (luck / self.noisy_documents * f64::from(self.entities)) as u8 } else { asked };
        let next = self.needed().get(self.found).copied();
        let (repeated_call, step_right) = (self.searched[asked as usize], next == Some(asked));
        self.searched[asked as usize] = true;
        if next == Some(returned) {
            self.found += 1;
        }
        let mut content = self.document(returned);
        content.extend((0..self.random_tokens).map(|_| label(tool.below(LABELS) as u8)));
        Step::call(content, Facts { repeated_call, step_right, ..Facts::clean_call() })
    }
}

impl Environment for Search {
    fn reset(&mut self, mut draws: Draws) -> Vec<Token> {
        self.hops = draws.weighted(&self.hop_shares);
        self.answer = draws.below(10) as u8;
        let order = draws.permutation::<MOST_ENTITIES>();
        let mut known = order.into_iter().filter(|&index| index < self.entities);
        self.chain = [known.next().unwrap_or(0), known.next().unwrap_or(1)];
        for index in 0..MOST_ENTITIES as u8 {
            let (redirects, value) = (draws.chance(0.5), draws.bits());
            let other = 1 + (value % (u32::from(self.entities) - 1)) as u8;
            self.documents[index as usize] = match redirects {
                true => Document::Redirect((index + other) % self.entities),
                false => Document::Value((value % 10) as u8),
            };
        }
        let [asked, second] = self.chain.map(usize::from);
        if self.hops == 2 {
            self.documents[asked] = Document::Redirect(self.chain[1]);
            self.documents[second] = Document::Value(self.answer);
        } else {
            self.documents[asked] = Document::Value(self.answer);
        }
        self.found = 0;
        self.searched = [false; MOST_ENTITIES];
        let note = if self.hops == 0 { digit(self.answer) } else { NONE };
        vec![QUESTION, entity(self.chain[0]), QUESTION_MARK, NOTE, note]
    }

    fn step(&mut self, action: &[Token], tool: Draws) -> Step {
        match *action {
            [ANSWER, value, EOT] => match digit_value(value) {
                Some(value) => Step::answer(true, value == self.answer),
                None => Step::answer(false, false),
            },
            [ANSWER, .., EOT] => Step::answer(false, false),
            [SEARCH, key, EOT] => match self.known_entity(key) {
                Some(asked) => self.search(asked, tool),
                None => Step::malformed(),
            },
            _ => Step::malformed(),
        }
    }

    fn grammar(&self) -> Grammar {
        let known: Vec<Token> = (0..self.entities).map(entity).collect();
        Grammar::from_edges(
            4,
            &[
                (0, TokenSet::of(&[SEARCH]), 1),
                (0, TokenSet::of(&[ANSWER]), 2),
                (1, TokenSet::of(&known), 3),
                (2, TokenSet::digits(), 3),
                (3, TokenSet::of(&[EOT]), 0),
            ],
        )
    }

    fn demonstrator(&self, mut draws: Draws) -> Box<dyn Demonstrator> {
        let (none, two) = (self.no_search_demonstrations, self.two_search_demonstrations);
        let searches = draws.weighted(&[none, (1.0 - none - two).max(0.0), two]);
        Box::new(Script {
            searches,
            key: entity(self.chain[0]),
            value: (self.hops == 0).then(|| digit(self.answer)),
            guess: digit(draws.below(10) as u8),
        })
    }

    fn question_type(&self) -> usize {
        self.hops
    }

    fn hidden_state(&self) -> String {
        let name = |index: u8| NAMES[entity(index) as usize];
        let [asked, second] = self.chain.map(name);
        match self.hops {
            2 => format!("{asked} > {second}, {second} = {}", self.answer),
            _ => format!("{asked} = {}", self.answer),
        }
    }

    fn boxed_clone(&self) -> Box<dyn Environment> {
        Box::new(self.clone())
    }
}

/// Searches a number of times that was drawn beforehand, then answers the last value it saw.
struct Script {
    /// Searches still to make.
    searches: usize,
    /// What to search for next.
    key: Token,
    /// The last value seen, unless a redirect or somebody else's document came after it.
    value: Option<Token>,
    /// The answer if no value was seen.
    guess: Token,
}

impl Demonstrator for Script {
    fn act(&mut self, observation: Option<&Observation>) -> Vec<Token> {
        if let Some(observation) = observation {
            self.value = None;
            match *observation.content {
                [key, EQUALS, value, ..] if key == self.key => self.value = Some(value),
                [key, REDIRECT, other, ..] if key == self.key => self.key = other,
                _ => {}
            }
        }
        if self.searches > 0 {
            self.searches -= 1;
            vec![SEARCH, self.key, EOT]
        } else {
            vec![ANSWER, self.value.unwrap_or(self.guess), EOT]
        }
    }
}

#[cfg(test)]
mod tests;
