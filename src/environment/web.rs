//! Web: click through pages to a goal, with dead ends and a way back.
//!
//! # The game
//!
//! The prompt lists one label for each page on the way, and then shows the first page. Every page shows three labels, of which
//! exactly one is in the prompt: a click on it leads to the next page, and on the last one to the goal. Any other click leads to
//! a dead page, from which only the way back leads out, to the same page again. On a live page the way back leads to the page
//! before. States repeat, within an episode and within a group, and the goal is far: on a deep web a poor policy never reaches
//! it, and only a reward for each new page says whether it came closer.
//!
//! # Actions
//!
//! | action | leads to |
//! | --- | --- |
//! | `<click> X <eot>`, X right | the next page, or the goal, which ends the episode |
//! | `<click> X <eot>`, any other label | the dead page: `ERR` |
//! | `<back> <eot>` on a dead page | the page before the wrong click |
//! | `<back> <eot>` on a live page | the page before, or the first page itself |
//! | `<click> X <eot>` on a dead page | the dead page |
//! | anything else | `ERR`, malformed; nothing moves |
//!
//! # Facts
//!
//! `new_page`: the click reached a page, or the goal, that the episode had not reached before; `step_right` likewise.
//! `error_result`: the call led to a dead page. `repeated_call`: the same call was made on the same page before.
//! `answer_right`, `judged`: the goal. Success is reaching it.
//!
//! # Parameters
//!
//! The number of pages, and how often the demonstrator reads: on a live page it goes back in one turn of ten, else it clicks on
//! the right label when it reads and on any of the three when it does not; from a dead page it goes back in seven turns of ten,
//! else it clicks on any label at all. With three pages and eight turns it reaches the goal in 47 % of the episodes.
//!
//! # An episode
//!
//! ```text
//! <q> D 4 H ? <obs> J D B </obs> <click> D <eot> <obs> 4 7 A </obs> <click> 7 <eot> <obs> ERR </obs> <back> <eot>
//! <obs> 4 7 A </obs> <click> 4 <eot> <obs> F 0 H </obs> <click> H <eot>
//! ```

use super::parameter::{RIGHT_CLICKS, count};
use super::{Demonstrator, Environment, Facts, Grammar, Observation, Step};
use crate::config::{ContextNeed, DefaultValue, EnvironmentDeclaration, ExperimentConfig, Parameters, text};
use crate::seed::Draws;
use crate::vocabulary::{BACK, CLICK, EOT, ERR, LABELS, OBS, OBS_END, QUESTION, QUESTION_MARK, Token, TokenSet, label, spell};

/// The largest number of pages: each takes three of the twenty labels.
const MOST_PAGES: usize = 6;

/// Tokens of a page with its delimiters.
const PAGE: usize = 5;

pub static DECLARATION: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "web",
    label: text("Web pages", "网页导航"),
    help: text(
        "Click through pages to a goal: one link of each page leads on, the others to a dead page and back. The policy must \
             compare each page with its list, and where the goal is far, only a reward for each new page tells it anything.",
        "逐页点击直到目标：每页只有一个链接通向下一页，其余都通向死胡同，只能退回。策略要把每一页与自己的清单对照；目标很远时，只有为新到达的页面给奖励，才有信号可学。",
    ),
    settings: &[
        count(
            "pages",
            [3, 2, MOST_PAGES as u32],
            text("Pages", "页数"),
            text("pages", "页"),
            text(
                "How many right clicks lead to the goal; with more of them success becomes too rare to learn from by itself.",
                "要点对多少次才能到达目标；越多成功越罕见，罕见到光靠结果奖励学不动。",
            ),
            false,
        ),
        RIGHT_CLICKS,
    ],
    defaults: &[
        ("turn_limit", DefaultValue::Integer(8)),
        ("turn_tokens", DefaultValue::Integer(3)),
        ("context_length", DefaultValue::Integer(72)),
        ("groups", DefaultValue::Integer(8)),
        ("num_generations", DefaultValue::Integer(16)),
        ("entropy_coefficient", DefaultValue::Number(0.002)),
        ("iterations", DefaultValue::Integer(60)),
        ("imitation_steps", DefaultValue::Integer(250)),
        ("imitation_batch", DefaultValue::Integer(64)),
        ("valid_call_weight", DefaultValue::Number(0.0)),
        ("new_page_weight", DefaultValue::Number(0.2)),
    ],
    question_types: &[text("any web", "任意网页")],
    capabilities: &["planning", "perception"],
    context: context_need,
};

/// Every turn with the whole budget, as demonstrations may take every turn there is.
fn context_need(config: &ExperimentConfig) -> ContextNeed {
    let prompt = config.parameters.integer("pages") + 2 + PAGE;
    let turns = config.turn_limit;
    ContextNeed { prompt, episode: prompt + turns * config.turn_tokens + turns.saturating_sub(1) * PAGE }
}

/// A page: three labels, and which of them leads on.
#[derive(Clone, Copy, Debug)]
struct Page {
    shown: [Token; 3],
    right: Token,
}

/// The web task.
#[derive(Clone, Debug)]
pub(super) struct Web {
    right_clicks: f64,
    /// The pages on the way, in order.
    pages: Vec<Page>,
    /// How many pages there are to be.
    depth: usize,
    /// Index of the page on show, or of the one before the dead page.
    level: usize,
    /// A dead page is on show.
    dead: bool,
    /// The furthest page reached; `depth` is the goal.
    furthest: usize,
    /// The calls of this episode, each with where it was made.
    calls: Vec<(usize, bool, Vec<Token>)>,
}

impl Web {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Web {
            right_clicks: parameters.number("right_clicks"),
            pages: Vec::new(),
            depth: parameters.integer("pages").clamp(1, MOST_PAGES),
            level: 0,
            dead: false,
            furthest: 0,
            calls: Vec::new(),
        }
    }

    fn right(&self) -> Option<Token> {
        self.pages.get(self.level).map(|page| page.right)
    }

    /// What is on show.
    fn content(&self) -> Vec<Token> {
        match self.pages.get(self.level) {
            Some(page) if !self.dead => page.shown.to_vec(),
            _ => vec![ERR],
        }
    }

    /// Moves, and says what happened but for repetition.
    fn click(&mut self, clicked: Token) -> Facts {
        if self.dead || Some(clicked) != self.right() {
            self.dead = true;
            return Facts::failed_call();
        }
        self.level += 1;
        let (new_page, goal) = (self.level > self.furthest, self.level == self.depth);
        self.furthest = self.furthest.max(self.level);
        Facts { new_page, step_right: new_page, answer_right: goal, judged: goal, ..Facts::clean_call() }
    }

    fn back(&mut self) -> Facts {
        if self.dead {
            self.dead = false;
        } else {
            self.level = self.level.saturating_sub(1);
        }
        Facts::clean_call()
    }
}

impl Environment for Web {
    fn reset(&mut self, mut draws: Draws) -> Vec<Token> {
        // The first labels are the prompt's, the others stand beside the right one, two on each page.
        let labels = draws.permutation::<{ LABELS as usize }>().map(label);
        let page = |page: usize| {
            let (right, wrong) = (labels[page], &labels[self.depth + 2 * page..]);
            let stood = [right, wrong[0], wrong[1]];
            Page { shown: draws.permutation::<3>().map(|place| stood[usize::from(place)]), right }
        };
        self.pages = (0..self.depth).map(page).collect();
        (self.level, self.dead, self.furthest) = (0, false, 0);
        self.calls.clear();
        [&[QUESTION][..], &labels[..self.depth], &[QUESTION_MARK, OBS], &self.content(), &[OBS_END]].concat()
    }

    fn step(&mut self, action: &[Token], _tool: Draws) -> Step {
        let place = (self.level, self.dead, action.to_vec());
        let facts = match *action {
            [CLICK, clicked, EOT] if TokenSet::labels().contains(clicked) => self.click(clicked),
            [BACK, EOT] => self.back(),
            _ => return Step::malformed(),
        };
        let facts = Facts { repeated_call: self.calls.contains(&place), ..facts };
        self.calls.push(place);
        if self.level == self.depth { Step::end(facts) } else { Step::call(self.content(), facts) }
    }

    fn grammar(&self) -> Grammar {
        let end = TokenSet::of(&[EOT]);
        Grammar::from_edges(
            3,
            &[(0, TokenSet::of(&[CLICK]), 1), (1, TokenSet::labels(), 2), (0, TokenSet::of(&[BACK]), 2), (2, end, 0)],
        )
    }

    fn demonstrator(&self, draws: Draws) -> Box<dyn Demonstrator> {
        let rights = self.pages.iter().map(|page| page.right).collect();
        Box::new(Script { rights, page: self.content(), right_clicks: self.right_clicks, draws })
    }

    fn question_type(&self) -> usize {
        0
    }

    fn hidden_state(&self) -> String {
        self.pages.iter().map(|page| spell(&page.shown)).collect::<Vec<_>>().join(" | ")
    }

    fn boxed_clone(&self) -> Box<dyn Environment> {
        Box::new(self.clone())
    }
}

/// Wanders towards the goal: sometimes reads, sometimes clicks anywhere, sometimes goes back.
struct Script {
    /// The right label of every page.
    rights: Vec<Token>,
    /// What is on show.
    page: Vec<Token>,
    right_clicks: f64,
    draws: Draws,
}

impl Demonstrator for Script {
    fn act(&mut self, observation: Option<&Observation>) -> Vec<Token> {
        if let Some(observation) = observation {
            self.page.clone_from(&observation.content);
        }
        let right = self.page.iter().copied().find(|token| self.rights.contains(token));
        let (back, reads, any) = (self.draws.unit(), self.draws.chance(self.right_clicks), self.draws.below(LABELS * 3));
        match right {
            Some(_) if back < 0.1 => vec![BACK, EOT],
            Some(right) if reads => vec![CLICK, right, EOT],
            Some(_) => vec![CLICK, self.page[any as usize % 3], EOT],
            None if back < 0.7 => vec![BACK, EOT],
            None => vec![CLICK, label((any % LABELS) as u8), EOT],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{act, demonstrate_within, draws};
    use super::*;
    use crate::config::Value;
    use crate::seed::Purpose;
    use crate::vocabulary::NAMES;

    fn defaults() -> Web {
        Web::new(&Parameters::defaults(&DECLARATION))
    }

    /// The web of the header's episode.
    fn header() -> Web {
        let token = |name: &str| NAMES.iter().position(|&other| other == name).unwrap() as Token;
        let page = |shown: [&str; 3], right| Page { shown: shown.map(token), right: token(right) };
        let pages = vec![page(["J", "D", "B"], "D"), page(["4", "7", "A"], "4"), page(["F", "0", "H"], "H")];
        Web { pages, ..defaults() }
    }

    #[test]
    fn the_transcript_of_the_header_is_what_happens() {
        let mut environment = header();
        let onward = Facts { new_page: true, step_right: true, ..Facts::clean_call() };
        let turns = [
            ("<click> D <eot>", "<obs> 4 7 A </obs>", onward),
            ("<click> 7 <eot>", "<obs> ERR </obs>", Facts::failed_call()),
            ("<back> <eot>", "<obs> 4 7 A </obs>", Facts::clean_call()),
            ("<click> 4 <eot>", "<obs> F 0 H </obs>", onward),
            ("<click> H <eot>", "end", Facts { judged: true, answer_right: true, ..onward }),
        ];
        for (action, observation, facts) in turns {
            assert_eq!(act(&mut environment, action), (observation.into(), facts), "{action}");
        }
        assert_eq!(header().hidden_state(), "J D B | 4 7 A | F 0 H");
    }

    #[test]
    fn only_the_way_back_leads_out_of_a_dead_page_and_no_page_is_new_twice() {
        let mut environment = header();
        let mut told = |words: &str| {
            let (observation, facts) = act(&mut environment, words);
            (observation, facts.new_page, facts.repeated_call)
        };
        let (first, second) = ("<obs> J D B </obs>", "<obs> 4 7 A </obs>");
        assert_eq!(told("<back> <eot>"), (first.into(), false, false));
        assert_eq!(told("<back> <eot>"), (first.into(), false, true));
        assert_eq!(told("<click> D <eot>"), (second.into(), true, false));
        assert_eq!(told("<back> <eot>"), (first.into(), false, false));
        assert_eq!(told("<click> D <eot>"), (second.into(), false, true));
        assert_eq!(told("<click> D <eot>"), ("<obs> ERR </obs>".into(), false, false));
        assert_eq!(told("<click> 4 <eot>"), ("<obs> ERR </obs>".into(), false, false));
        assert_eq!(told("<search> <eot>"), ("<obs> ERR </obs>".into(), false, false));
        assert_eq!(told("<back> <eot>"), (second.into(), false, false));
    }

    #[test]
    fn malformed_turns_move_nothing_and_cannot_answer() {
        let mut environment = header();
        for words in ["", "<back>", "<back> <flag> <eot>", "<click> <eot>", "<click> = <eot>", "<click> D", "<answer> D <eot>"] {
            assert_eq!(act(&mut environment, words), ("<obs> ERR </obs>".into(), Facts::malformed()), "{words}");
        }
        assert_eq!(act(&mut environment, "<click> D <eot>").0, "<obs> 4 7 A </obs>");
    }

    #[test]
    fn pages_show_one_label_of_the_prompt_at_any_place() {
        for depth in 2..=MOST_PAGES {
            let mut parameters = Parameters::defaults(&DECLARATION);
            parameters.insert("pages", Value::Number(depth as f64));
            let mut environment = Web::new(&parameters);
            let mut places = [0; 3];
            for episode in 0..3000 {
                let prompt = environment.reset(draws(Purpose::Question, episode));
                assert_eq!((prompt.len(), environment.pages.len()), (depth + 7, depth));
                let listed = &prompt[1..=depth];
                for (page, &label) in environment.pages.iter().zip(listed) {
                    let here: Vec<Token> = page.shown.into_iter().filter(|token| listed.contains(token)).collect();
                    assert_eq!((here.as_slice(), page.right), ([label].as_slice(), label));
                    places[page.shown.iter().position(|&token| token == label).unwrap()] += 1;
                }
            }
            assert!(places.iter().all(|count| (count - 1000 * depth as i32).abs() < 100 * depth as i32), "{places:?}");
        }
    }

    /// The chance that the demonstrator reaches the goal within a number of turns, by its odds: it clicks right with
    /// `.9 (p + (1 - p) / 3)`, and comes out of a dead page with .7.
    fn odds(depth: usize, turns: usize, reads: f64) -> f64 {
        let right = 0.9 * (reads + (1.0 - reads) / 3.0);
        let (mut live, mut dead, mut goal) = (vec![0.0; depth], vec![0.0; depth], 0.0);
        live[0] = 1.0;
        for _ in 0..turns {
            let (mut next_live, mut next_dead) = (vec![0.0; depth], vec![0.0; depth]);
            for level in 0..depth {
                *next_live.get_mut(level + 1).unwrap_or(&mut goal) += live[level] * right;
                next_live[level.saturating_sub(1)] += live[level] * 0.1;
                next_dead[level] += live[level] * (0.9 - right) + dead[level] * 0.3;
                next_live[level] += dead[level] * 0.7;
            }
            (live, dead) = (next_live, next_dead);
        }
        goal
    }

    #[test]
    fn demonstrations_reach_the_goal_as_often_as_computed() {
        for (depth, reads) in [(3, 0.35), (5, 0.25)] {
            let mut environment = Web { depth, right_clicks: reads, ..defaults() };
            let mut reached = 0.0_f64;
            for episode in 0..4096 {
                let turns = demonstrate_within(&mut environment, episode, 8);
                assert!(turns.iter().all(|(_, step)| step.done == step.facts.answer_right && !step.facts.malformed));
                reached += f64::from(u8::from(turns.last().unwrap().1.done));
            }
            let expected = odds(depth, 8, reads);
            assert!((reached / 4096.0 - expected).abs() < 0.023, "{depth} pages: {reached}, expected {expected}");
        }
        assert!((odds(3, 8, 0.35) - 0.4737).abs() < 1e-4, "{}", odds(3, 8, 0.35));
    }
}
