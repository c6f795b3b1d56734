//! Spin: a few decisions that can be learned, between turns that pay by luck.
//!
//! # The game
//!
//! The prompt lists six labels, one for each of six pages, and then shows the first page. On a decision page stand three labels,
//! of which exactly one is in the prompt: a click on it is right. On a spin page there is nothing to decide: it pays with
//! probability one half, twice as much as a right click, whatever the policy does. The first page is a decision, three of the
//! other five are spin pages, and every turn moves on to the next page.
//!
//! Credit for the whole episode praises and blames the decisions for the luck, credit for each turn does not. For that to show,
//! the turn without a decision has an obvious move, and all turns have the same length, so that every page stands at the same
//! place in the context.
//!
//! # Actions
//!
//! | action | leads to |
//! | --- | --- |
//! | `<click> X <eot>` | the next page; right on a decision page whose label in the prompt is X |
//! | `<back> <flag> <eot>` (read: next) | the next page; the sensible move on a spin page, wrong on a decision page |
//! | anything else | the next page too: malformed, and wrong on a decision page |
//!
//! After the sixth page the episode ends.
//!
//! # Facts
//!
//! `judged`: the page held a decision. `answer_right` and `step_right`: the right click. `lucky`: the spin page paid. Success is
//! the share of decisions that were right; luck does not count. Nothing in an episode can be asked twice.
//!
//! # Rewards
//!
//! By its defaults a right click is worth 1/6 and luck 1/3, so that luck makes most of the differences between episodes.
//!
//! # Parameters
//!
//! How many pages are spin pages and how often they pay, and how often the demonstrator reads: it then clicks on the right label,
//! and on any of the three otherwise, 57 % right in all. On spin pages it moves on.
//!
//! # An episode
//!
//! ```text
//! <q> D 1 9 H 6 2 ? <obs> D J B </obs> <click> D <eot> <obs> <flag> <flag> <flag> </obs> <back> <flag> <eot>
//! <obs> <flag> <flag> <flag> </obs> <back> <flag> <eot> <obs> F H 0 </obs> <click> H <eot>
//! <obs> <flag> <flag> <flag> </obs> <back> <flag> <eot> <obs> 2 A I </obs> <click> 2 <eot>
//! ```

use super::parameter::{RIGHT_CLICKS, count, share};
use super::{Demonstrator, Environment, Facts, Grammar, Observation, Step};
use crate::config::{ContextNeed, DefaultValue, EnvironmentDeclaration, ExperimentConfig, Parameters, text};
use crate::seed::Draws;
use crate::vocabulary::{BACK, CLICK, EOT, FLAG, LABELS, OBS, OBS_END, QUESTION, QUESTION_MARK, Token, TokenSet, label, spell};

/// Pages of an episode.
const PAGES: usize = 6;

/// Tokens of the prompt: the labels between `<q>` and `?`, and the first page.
const PROMPT: usize = PAGES + 2 + PAGE;

/// Tokens of a page with its delimiters.
const PAGE: usize = 5;

pub static DECLARATION: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "spin",
    label: text("Spin", "转盘"),
    help: text(
        "Click the right label on some pages, while other pages in between pay by luck whatever the policy does. Credit for the \
             whole episode mixes the two up; credit for each turn does not.",
        "在一些页面上点对标签，穿插其间的另一些页面则全凭运气付奖励，与策略的动作无关。按整条轨迹分配信用会把两者混在一起，逐轮分配则不会。",
    ),
    settings: &[
        count(
            "spin_pages",
            [3, 0, 5],
            text("Spin pages", "转盘页数"),
            text("of 6 pages", "页（共 6 页）"),
            text(
                "How many of the six pages pay by luck; with more of them there is less to decide and more noise, at 0 nothing is \
                     left to luck.",
                "六页中有多少页全凭运气；越多可做的决定越少、噪声越大，设为 0 则没有任何运气成分。",
            ),
            false,
        ),
        share(
            "luck_chance",
            0.5,
            text("Chance of luck", "中奖概率"),
            text(
                "How often a spin page pays; in the middle luck varies most and credit for whole episodes is noisiest, at 0 and at \
                     1 it never varies.",
                "转盘页付奖励的概率；居中时运气起伏最大，按整条轨迹分配的信用噪声也最大，取 0 或 1 时毫无起伏。",
            ),
            false,
        ),
        RIGHT_CLICKS,
    ],
    defaults: &[
        ("turn_limit", DefaultValue::Integer(PAGES as u32)),
        ("turn_tokens", DefaultValue::Integer(3)),
        ("context_length", DefaultValue::Integer(56)),
        ("groups", DefaultValue::Integer(8)),
        ("num_generations", DefaultValue::Integer(16)),
        ("gamma", DefaultValue::Number(1.0)),
        ("entropy_coefficient", DefaultValue::Number(0.003)),
        ("iterations", DefaultValue::Integer(50)),
        ("imitation_steps", DefaultValue::Integer(250)),
        ("imitation_batch", DefaultValue::Integer(64)),
        ("outcome_weight", DefaultValue::Number(0.166_667)),
        ("luck_weight", DefaultValue::Number(0.333_333)),
    ],
    question_types: &[text("ends with a decision", "以决定结尾"), text("ends with luck", "以运气结尾")],
    capabilities: &["perception", "memory"],
    context: context_need,
};

/// Every turn with the whole budget, so that no page is cut off.
fn context_need(config: &ExperimentConfig) -> ContextNeed {
    let turns = config.turn_limit.min(PAGES);
    ContextNeed { prompt: PROMPT, episode: PROMPT + turns * config.turn_tokens + turns.saturating_sub(1) * PAGE }
}

/// What a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    /// Three labels, and which of them is right.
    Decision {
        shown: [Token; 3],
        right: Token,
    },
    Spin,
}

impl Page {
    fn content(self) -> [Token; 3] {
        match self {
            Page::Decision { shown, .. } => shown,
            Page::Spin => [FLAG; 3],
        }
    }
}

/// The spin task.
#[derive(Clone, Debug)]
pub(super) struct Spin {
    spin_pages: usize,
    luck_chance: f64,
    right_clicks: f64,
    pages: [Page; PAGES],
    /// Index of the page on show.
    place: usize,
}

impl Spin {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Spin {
            spin_pages: parameters.integer("spin_pages").min(PAGES - 1),
            luck_chance: parameters.number("luck_chance"),
            right_clicks: parameters.number("right_clicks"),
            pages: [Page::Spin; PAGES],
            place: 0,
        }
    }
}

impl Environment for Spin {
    fn reset(&mut self, mut draws: Draws) -> Vec<Token> {
        // The first six labels are the prompt's, the others stand beside the right one, two on each page.
        let labels = draws.permutation::<{ LABELS as usize }>().map(label);
        let later = draws.permutation::<{ PAGES - 1 }>();
        self.pages = std::array::from_fn(|page| {
            let (right, wrong) = (labels[page], &labels[PAGES + 2 * page..]);
            let stood = [right, wrong[0], wrong[1]];
            let shown = draws.permutation::<3>().map(|place| stood[usize::from(place)]);
            match page.checked_sub(1) {
                Some(index) if usize::from(later[index]) < self.spin_pages => Page::Spin,
                _ => Page::Decision { shown, right },
            }
        });
        self.place = 0;
        [&[QUESTION][..], &labels[..PAGES], &[QUESTION_MARK, OBS], &self.pages[0].content(), &[OBS_END]].concat()
    }

    fn step(&mut self, action: &[Token], mut tool: Draws) -> Step {
        let clicked = match *action {
            [CLICK, clicked, EOT] if TokenSet::labels().contains(clicked) => Some(clicked),
            _ => None,
        };
        let well_formed = clicked.is_some() || *action == [BACK, FLAG, EOT];
        let facts = if well_formed { Facts::clean_call() } else { Facts::malformed() };
        let facts = match self.pages.get(self.place) {
            Some(&Page::Decision { right, .. }) => {
                let is_right = clicked == Some(right);
                Facts { judged: true, answer_right: is_right, step_right: is_right, ..facts }
            }
            _ => Facts { lucky: tool.chance(self.luck_chance), ..facts },
        };
        self.place += 1;
        match self.pages.get(self.place) {
            Some(page) => Step::call(page.content().to_vec(), facts),
            None => Step::end(facts),
        }
    }

    fn grammar(&self) -> Grammar {
        Grammar::from_edges(
            4,
            &[
                (0, TokenSet::of(&[CLICK]), 1),
                (1, TokenSet::labels(), 3),
                (0, TokenSet::of(&[BACK]), 2),
                (2, TokenSet::of(&[FLAG]), 3),
                (3, TokenSet::of(&[EOT]), 0),
            ],
        )
    }

    fn demonstrator(&self, draws: Draws) -> Box<dyn Demonstrator> {
        Box::new(Script { pages: self.pages.into_iter(), right_clicks: self.right_clicks, draws })
    }

    fn question_type(&self) -> usize {
        usize::from(self.pages[PAGES - 1] == Page::Spin)
    }

    fn hidden_state(&self) -> String {
        self.pages.map(|page| spell(&page.content())).join(" | ")
    }

    fn boxed_clone(&self) -> Box<dyn Environment> {
        Box::new(self.clone())
    }
}

/// Clicks on the right label or on any, page by page.
struct Script {
    pages: std::array::IntoIter<Page, PAGES>,
    right_clicks: f64,
    draws: Draws,
}

impl Demonstrator for Script {
    fn act(&mut self, _observation: Option<&Observation>) -> Vec<Token> {
        let (reads, any) = (self.draws.chance(self.right_clicks), self.draws.below(3) as usize);
        match self.pages.next() {
            Some(Page::Decision { shown, right }) => vec![CLICK, if reads { right } else { shown[any] }, EOT],
            _ => vec![BACK, FLAG, EOT],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{act, demonstrate, draws, tool};
    use super::*;
    use crate::seed::{Purpose, RootSeed};
    use crate::vocabulary::NAMES;

    fn defaults() -> Spin {
        Spin::new(&Parameters::defaults(&DECLARATION))
    }

    fn token(name: &str) -> Token {
        NAMES.iter().position(|&other| other == name).unwrap() as Token
    }

    /// The pages of the header's episode.
    fn header() -> Spin {
        let decision = |shown: [&str; 3], right| Page::Decision { shown: shown.map(token), right: token(right) };
        let (first, fourth, last) =
            (decision(["D", "J", "B"], "D"), decision(["F", "H", "0"], "H"), decision(["2", "A", "I"], "2"));
        Spin { pages: [first, Page::Spin, Page::Spin, fourth, Page::Spin, last], ..defaults() }
    }

    #[test]
    fn the_transcript_of_the_header_is_what_happens() {
        let mut environment = Spin { luck_chance: 0.0, ..header() };
        let spin = "<obs> <flag> <flag> <flag> </obs>";
        let right = Facts { judged: true, answer_right: true, step_right: true, ..Facts::clean_call() };
        let turns = [
            ("<click> D <eot>", spin, right),
            ("<back> <flag> <eot>", spin, Facts::clean_call()),
            ("<back> <flag> <eot>", "<obs> F H 0 </obs>", Facts::clean_call()),
            ("<click> H <eot>", spin, right),
            ("<back> <flag> <eot>", "<obs> 2 A I </obs>", Facts::clean_call()),
            ("<click> 2 <eot>", "end", right),
        ];
        for (action, observation, facts) in turns {
            assert_eq!(act(&mut environment, action), (observation.into(), facts), "{action}");
        }
        assert_eq!(header().hidden_state().split(" | ").nth(3), Some("F H 0"));
    }

    #[test]
    fn every_turn_moves_on_and_a_decision_missed_counts_as_wrong() {
        for words in ["", "<click> J <eot>", "<click> 7 <eot>", "<back> <flag> <eot>", "<click> D", "<answer> D <eot>"] {
            let mut environment = header();
            let (observation, facts) = act(&mut environment, words);
            assert_eq!(observation, "<obs> <flag> <flag> <flag> </obs>", "{words}");
            assert!(facts.judged && !facts.answer_right && !facts.answered, "{words}");
            let well_formed = words.ends_with("<eot>") && !words.starts_with("<answer>");
            assert_eq!((facts.valid_call, facts.malformed), (well_formed, !well_formed), "{words}");
        }
        let mut environment = header();
        let ends: Vec<bool> = (0..PAGES as u32).map(|turn| environment.step(&[], tool(0, turn)).done).collect();
        assert_eq!(ends, [false, false, false, false, false, true], "a malformed last turn ends the episode like any other");
    }

    #[test]
    fn luck_is_drawn_for_each_member_and_turn_whatever_the_action() {
        let mut environment = Spin { luck_chance: 0.3, ..defaults() };
        let (mut spun, mut paid, mut apart) = (0.0_f64, 0.0_f64, 0);
        for group in 0..2000 {
            let root = RootSeed(9);
            environment.reset(root.draws(Purpose::Question, 0, group, 0));
            let luck = |member: u32, action: &[Token]| {
                let mut clone = environment.clone();
                let tool = root.draws(Purpose::Tool, 0, group, member);
                (0..PAGES as u32).map(|turn| clone.step(action, tool.from(256 * turn)).facts.lucky).collect::<Vec<bool>>()
            };
            let first = luck(0, &[BACK, FLAG, EOT]);
            assert_eq!(first, luck(0, &[]), "the action changes nothing");
            assert_eq!(environment.pages.map(|page| page == Page::Spin).map(usize::from).iter().sum::<usize>(), 3);
            assert!(first.iter().zip(environment.pages).all(|(&lucky, page)| !lucky || page == Page::Spin));
            apart += usize::from(first != luck(1, &[BACK, FLAG, EOT]));
            spun += 3.0;
            paid += first.iter().filter(|&&lucky| lucky).count() as f64;
        }
        assert!((paid / spun - 0.3).abs() < 0.02, "{paid} of {spun}");
        // Two members agree on all three pages with probability (.3^2 + .7^2)^3 = .195.
        assert!((apart as f64 / 2000.0 - 0.805).abs() < 0.035, "{apart}");
    }

    #[test]
    fn pages_show_one_label_of_the_prompt_at_any_place() {
        let mut environment = defaults();
        let (mut places, mut spins) = ([0; 3], [0; PAGES]);
        for episode in 0..4000 {
            let prompt = environment.reset(draws(Purpose::Question, episode));
            let listed = &prompt[1..=PAGES];
            assert!(listed.iter().all(|token| listed.iter().filter(|other| *other == token).count() == 1), "{}", spell(&prompt));
            assert_eq!(prompt[PAGES + 3..PROMPT - 1], environment.pages[0].content());
            for (page, &label) in environment.pages.iter().zip(listed) {
                let Page::Decision { shown, right } = *page else { continue };
                assert_eq!((right, shown.iter().filter(|token| listed.contains(token)).count()), (label, 1));
                places[shown.iter().position(|&token| token == right).unwrap()] += 1;
            }
            (0..PAGES).for_each(|page| spins[page] += usize::from(environment.pages[page] == Page::Spin));
        }
        assert!(places.iter().all(|count| (3800..4200).contains(count)), "{places:?}");
        assert!(spins[0] == 0 && spins[1..].iter().all(|count| (2250..2550).contains(count)), "{spins:?}");
    }

    #[test]
    fn the_number_of_spin_pages_is_a_setting() {
        for spin_pages in 0..PAGES {
            let mut environment = Spin { spin_pages, ..defaults() };
            for episode in 0..50 {
                environment.reset(draws(Purpose::Question, episode));
                assert_eq!(environment.pages.iter().filter(|page| **page == Page::Spin).count(), spin_pages);
            }
        }
    }

    #[test]
    fn demonstrations_decide_right_as_often_as_computed() {
        let mut environment = defaults();
        let (mut decisions, mut right) = (0.0_f64, 0.0_f64);
        for episode in 0..4096 {
            let turns = demonstrate(&mut environment, episode);
            assert_eq!(turns.len(), PAGES);
            for (index, (action, step)) in turns.iter().enumerate() {
                assert_eq!(action[0] == BACK, environment.pages[index] == Page::Spin, "it moves on where nothing is to decide");
                decisions += f64::from(u8::from(step.facts.judged));
                right += f64::from(u8::from(step.facts.answer_right));
            }
        }
        assert_eq!(decisions, 3.0 * 4096.0);
        assert!((right / decisions - (0.35 + 0.65 / 3.0)).abs() < 0.014, "{right} of {decisions}");
    }
}
