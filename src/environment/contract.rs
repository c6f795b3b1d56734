//! What every registered environment must keep to. A new environment is tested here without writing a line.

use super::*;
use crate::seed::{Purpose, RootSeed};
use crate::vocabulary::{ANSWER, NAMES, spell};

/// Episodes per environment and test.
const EPISODES: u32 = 1000;
const TURNS: u32 = 8;

/// Tasks in which every turn moves on, whatever its form, so that a malformed one is not answered by `ERR`.
const MOVES_ON: [&str; 1] = ["spin"];

/// Tasks whose demonstrator has no plan for its end: the turn limit may cut it.
const OPEN_ENDED: [&str; 2] = ["poisoned", "web"];

/// Draws of one test episode for one purpose.
pub(super) fn draws(purpose: Purpose, episode: u32) -> Draws {
    RootSeed(5).draws(purpose, episode, 0, 0)
}

/// Draws of the tool in one turn of a test episode.
pub(super) fn tool(episode: u32, turn: u32) -> Draws {
    RootSeed(5).draws(Purpose::Tool, episode, 0, 0).from(turn)
}

/// Takes an action given in words, and says what it led to in words.
pub(super) fn act(environment: &mut dyn Environment, words: &str) -> (String, Facts) {
    let token = |word| NAMES.iter().position(|name| *name == word).expect("a word of the vocabulary") as Token;
    let action: Vec<Token> = words.split_whitespace().map(token).collect();
    let step = environment.step(&action, tool(0, 0));
    let observation = step.observation.map(|observation| spell(&environment.format_observation(&observation)));
    (observation.unwrap_or("end".into()), step.facts)
}

/// An episode that the demonstrator played to its end: its actions and what they led to.
pub(super) fn demonstrate(environment: &mut dyn Environment, episode: u32) -> Vec<(Vec<Token>, Step)> {
    demonstrate_within(environment, episode, 20)
}

/// An episode that the demonstrator played to its end or to the turn limit.
pub(super) fn demonstrate_within(environment: &mut dyn Environment, episode: u32, limit: usize) -> Vec<(Vec<Token>, Step)> {
    environment.reset(draws(Purpose::Question, episode));
    let mut demonstrator = environment.demonstrator(draws(Purpose::Demonstration, episode));
    let mut turns: Vec<(Vec<Token>, Step)> = Vec::new();
    while turns.last().is_none_or(|(_, step)| !step.done) && turns.len() < limit {
        let action = demonstrator.act(turns.last().and_then(|(_, step)| step.observation.as_ref()));
        let step = environment.step(&action, tool(episode, turns.len() as u32));
        turns.push((action, step));
    }
    turns
}

/// Runs a test on every environment, with its default configuration.
fn for_every_environment(test: impl Fn(&ExperimentConfig, &EnvironmentDeclaration)) {
    for declaration in REGISTRY {
        test(&ExperimentConfig::defaults(declaration.name, REGISTRY), declaration);
    }
}

/// Any tokens at all, 0 to 12 of them.
fn random_tokens(draws: &mut Draws) -> Vec<Token> {
    (0..draws.below(13)).map(|_| draws.below(SIZE as u32) as Token).collect()
}

/// A random walk through the grammar, `<eot>` included.
fn random_legal(grammar: &Grammar, draws: &mut Draws) -> Vec<Token> {
    let (mut action, mut state) = (Vec::new(), 0);
    while action.last() != Some(&EOT) {
        let legal: Vec<Token> = (0..SIZE as Token).filter(|&token| grammar.legal[state].contains(token)).collect();
        let token = legal[draws.below(legal.len() as u32) as usize];
        state = grammar.next[state][token as usize] as usize;
        action.push(token);
        assert!(action.len() <= 12, "the grammar does not end: {}", spell(&action));
    }
    action
}

/// Whether the grammar allows exactly this action.
fn accepts(grammar: &Grammar, action: &[Token]) -> bool {
    let ends_once = action.iter().position(|&token| token == EOT) == action.len().checked_sub(1) && !action.is_empty();
    ends_once && grammar.along(action).iter().zip(action).all(|(legal, &token)| legal.contains(token))
}

/// The episode after a first call, since some actions are well-formed only then.
fn after_a_call(environment: &dyn Environment, grammar: &Grammar, sample: &mut Draws) -> Box<dyn Environment> {
    for _ in 0..100 {
        let mut clone = environment.boxed_clone();
        let step = clone.step(&random_legal(grammar, sample), tool(0, 0));
        if step.facts.valid_call && !step.done {
            return clone;
        }
    }
    panic!("no legal action is a call");
}

/// A near miss: a legal action with one token changed, removed or added.
fn damaged(mut action: Vec<Token>, draws: &mut Draws) -> Vec<Token> {
    let (place, token) = (draws.below(action.len() as u32) as usize, draws.below(SIZE as u32) as Token);
    match draws.below(3) {
        0 => action[place] = token,
        1 => drop(action.remove(place)),
        _ => action.insert(place, token),
    }
    action
}

/// An action of any of the three kinds.
fn random_action(grammar: &Grammar, draws: &mut Draws) -> Vec<Token> {
    match draws.below(3) {
        0 => random_tokens(draws),
        1 => random_legal(grammar, draws),
        _ => damaged(random_legal(grammar, draws), draws),
    }
}

/// The actions of a test episode, whatever the environment answers.
fn actions(grammar: &Grammar, episode: u32) -> Vec<Vec<Token>> {
    let mut sample = draws(Purpose::SampleToken, episode);
    (0..TURNS).map(|_| random_action(grammar, &mut sample)).collect()
}

/// Plays given actions from turn `first` on, up to the end of the episode.
fn play(environment: &mut dyn Environment, episode: u32, actions: &[Vec<Token>], first: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (turn, action) in actions.iter().enumerate().skip(first) {
        steps.push(environment.step(action, tool(episode, turn as u32)));
        if steps.last().is_some_and(|step| step.done) {
            break;
        }
    }
    steps
}

#[test]
fn the_same_draws_give_the_same_episode_whatever_came_before() {
    for_every_environment(|config, declaration| {
        let mut used = create(config);
        let mut questions = std::collections::HashSet::new();
        for episode in 0..EPISODES {
            let mut fresh = create(config);
            let actions = actions(&fresh.grammar(), episode);
            let prompt = fresh.reset(draws(Purpose::Question, episode));
            let steps = play(fresh.as_mut(), episode, &actions, 0);
            for _ in 0..2 {
                assert_eq!(used.reset(draws(Purpose::Question, episode)), prompt, "{}", declaration.name);
                assert_eq!(used.hidden_state(), fresh.hidden_state());
                assert_eq!(play(used.as_mut(), episode, &actions, 0), steps, "{}", declaration.name);
            }
            questions.insert((prompt, fresh.hidden_state()));
        }
        assert!(questions.len() > 15, "{}: only {} different questions", declaration.name, questions.len());
    });
}

#[test]
fn a_clone_taken_at_any_turn_goes_on_in_the_same_way_and_apart() {
    for_every_environment(|config, declaration| {
        for episode in 0..EPISODES {
            let mut environment = create(config);
            let actions = actions(&environment.grammar(), episode);
            environment.reset(draws(Purpose::Question, episode));
            let whole = play(environment.boxed_clone().as_mut(), episode, &actions, 0);
            for turn in 0..whole.len() {
                let mut clone = environment.boxed_clone();
                assert_eq!(play(clone.as_mut(), episode, &actions, turn), whole[turn..], "{} at {turn}", declaration.name);
                // What the clone did must not show in the original, which goes on from the same turn.
                assert_eq!(environment.step(&actions[turn], tool(episode, turn as u32)), whole[turn]);
            }
        }
    });
}

#[test]
fn any_tokens_give_facts_that_agree_with_each_other() {
    for_every_environment(|config, declaration| {
        let mut environment = create(config);
        let grammar = environment.grammar();
        let moves_on = MOVES_ON.contains(&declaration.name);
        for episode in 0..5 * EPISODES {
            environment.reset(draws(Purpose::Question, episode));
            for (action, step) in actions(&grammar, episode).iter().zip(0..) {
                let Step { observation, facts, done } = environment.step(action, tool(episode, step));
                let place = || format!("{}: {} gave {facts:?}", declaration.name, spell(action));
                let kinds = [facts.answered, facts.valid_call, facts.malformed];
                assert_eq!(kinds.iter().filter(|&&kind| kind).count(), 1, "{}", place());
                assert!(facts.valid_call || !(facts.repeated_call || facts.step_right || facts.new_page), "{}", place());
                let results = [facts.clean_result, facts.error_result].iter().filter(|&&result| result).count();
                assert_eq!(results, usize::from(facts.valid_call), "{}", place());
                assert!(facts.answered || !facts.format_right, "{}", place());
                assert!(!facts.answered || facts.judged, "{}", place());
                assert!(!facts.answer_right || (facts.judged && (facts.format_right || facts.valid_call)), "{}", place());
                assert_eq!(observation.is_none(), done, "{}", place());
                // Where the task has answers, their word and an end of turn make one, whatever stands between.
                let answers = grammar.legal[0].contains(ANSWER);
                let answer = answers && action.len() > 1 && action.first() == Some(&ANSWER) && action.last() == Some(&EOT);
                assert_eq!(facts.answered, answer, "{}", place());
                assert!(if answers { done == answer } else { !done || facts.judged || facts.lucky || moves_on }, "{}", place());
                if facts.malformed && !moves_on {
                    assert_eq!(observation, Some(Observation::error()), "{}", place());
                }
                if let Some(observation) = observation {
                    let tokens = environment.format_observation(&observation);
                    assert_eq!((tokens.first(), tokens.last()), (Some(&OBS), Some(&OBS_END)), "{}", place());
                    let content = &tokens[1..tokens.len() - 1];
                    let plain = |&token: &Token| (token as usize) < SIZE && token != OBS && token != OBS_END;
                    assert!(!content.is_empty() && content.iter().all(plain), "{}", place());
                }
                if done {
                    break;
                }
            }
        }
    });
}

#[test]
fn the_grammar_is_exactly_the_well_formed_actions_within_the_budget() {
    for_every_environment(|config, declaration| {
        let mut environment = create(config);
        let grammar = environment.grammar();
        let mut sample = draws(Purpose::SampleToken, 0);
        let (mut accepted, mut refused) = (0, 0);
        for episode in 0..5 * EPISODES {
            environment.reset(draws(Purpose::Question, episode));
            let legal = random_legal(&grammar, &mut sample);
            assert!(accepts(&grammar, &legal) && legal.len() <= config.turn_tokens, "{}: {}", declaration.name, spell(&legal));
            let opened = after_a_call(environment.as_ref(), &grammar, &mut sample);
            for action in [damaged(legal.clone(), &mut sample), random_tokens(&mut sample), legal] {
                let well_formed = |environment: &dyn Environment| {
                    let facts = environment.boxed_clone().step(&action, tool(episode, 0)).facts;
                    facts.valid_call || facts.format_right
                };
                let accepted_here = accepts(&grammar, &action);
                assert_eq!(accepted_here, well_formed(opened.as_ref()), "{}: {}", declaration.name, spell(&action));
                assert!(accepted_here || !well_formed(environment.as_ref()), "{}: {}", declaration.name, spell(&action));
                *(if accepted_here { &mut accepted } else { &mut refused }) += 1;
            }
        }
        assert!(accepted > EPISODES && refused > EPISODES, "{}: {accepted} against {refused}", declaration.name);
    });
}

#[test]
fn an_action_is_legal_if_every_token_may_follow_those_before_it() {
    for_every_environment(|config, declaration| {
        let grammar = create(config).grammar();
        let mut sample = draws(Purpose::SampleToken, 1);
        for _ in 0..EPISODES {
            let action = random_action(&grammar, &mut sample);
            let follows = |at: usize| grammar.following(&action[..at]).contains(action[at]);
            let ends = action.last() == Some(&EOT);
            let place = || format!("{}: {}", declaration.name, spell(&action));
            assert_eq!(ends && (0..action.len()).all(follows), accepts(&grammar, &action), "{}", place());
            assert!(!ends || grammar.following(&action) == TokenSet::EMPTY, "nothing follows the end of {}", place());
        }
    });
}

#[test]
fn demonstrations_are_well_formed_and_fit_the_default_limits() {
    for_every_environment(|config, declaration| {
        let mut environment = create(config);
        let grammar = environment.grammar();
        let mut ended = 0;
        for episode in 0..EPISODES {
            let prompt = environment.reset(draws(Purpose::Question, episode));
            let turns = demonstrate_within(environment.as_mut(), episode, config.turn_limit);
            let mut transcript = prompt;
            for (action, step) in &turns {
                assert!(accepts(&grammar, action), "{}: {}", declaration.name, spell(action));
                assert!(action.len() <= config.turn_tokens, "{}: {}", declaration.name, spell(action));
                transcript.extend(action);
                transcript.extend(step.observation.iter().flat_map(|observation| environment.format_observation(observation)));
            }
            let done = turns.last().is_some_and(|(_, step)| step.done);
            assert!(done || OPEN_ENDED.contains(&declaration.name), "{}: {}", declaration.name, spell(&transcript));
            ended += u32::from(done);
            // The last observation is not kept where the turn limit cuts.
            let kept = transcript.len() - if done { 0 } else { observed(&turns, environment.as_ref()) };
            assert!(kept <= config.context_length, "{}: {}", declaration.name, spell(&transcript));
        }
        assert!(ended > EPISODES / 3, "{}: only {ended} demonstrations end by themselves", declaration.name);
    });
}

/// Tokens of the last observation.
fn observed(turns: &[(Vec<Token>, Step)], environment: &dyn Environment) -> usize {
    let last = turns.last().and_then(|(_, step)| step.observation.as_ref());
    last.map_or(0, |observation| environment.format_observation(observation).len())
}

#[test]
fn t_55_only_what_the_policy_wrote_is_judged_never_the_prompt() {
    for_every_environment(|config, declaration| {
        let mut environment = create(config);
        let answers = environment.grammar().legal[0].contains(ANSWER);
        for episode in 0..EPISODES {
            let prompt = environment.reset(draws(Purpose::Question, episode));
            for tail in [&[][..], &[EOT], &[ANSWER, prompt[1], EOT]] {
                let step = environment.boxed_clone().step(&[&prompt, tail].concat(), tool(episode, 0));
                let place = || format!("{}: {}", declaration.name, spell(&prompt));
                assert!(step.facts.malformed && !step.facts.answer_right && !step.done, "{}", place());
                assert!(!answers || !step.facts.judged, "{}", place());
            }
        }
    });
}

#[test]
fn prompts_have_one_length_and_every_type_of_question_occurs() {
    for_every_environment(|config, declaration| {
        let mut environment = create(config);
        let length = environment.reset(draws(Purpose::Question, 0)).len();
        let mut types = vec![0; declaration.question_types.len()];
        for episode in 0..EPISODES {
            let prompt = environment.reset(draws(Purpose::Question, episode));
            assert_eq!(prompt.len(), length, "{}", declaration.name);
            assert!(prompt.iter().all(|&token| (token as usize) < SIZE), "{}: {prompt:?}", declaration.name);
            assert!(!environment.hidden_state().is_empty(), "{}", declaration.name);
            types[environment.question_type()] += 1;
        }
        assert!(types.iter().all(|&count| count > 0), "{}: {types:?}", declaration.name);
    });
}

#[test]
fn every_registered_name_makes_an_environment_of_its_own() {
    let mut seen = std::collections::HashSet::new();
    for declaration in REGISTRY {
        let mut environment = create(&ExperimentConfig::defaults(declaration.name, REGISTRY));
        let mut question = |episode| (environment.reset(draws(Purpose::Question, episode)), environment.hidden_state());
        let questions: Vec<_> = (0..20).map(&mut question).collect();
        assert!(seen.insert(questions), "{} is made as another environment: see `build`", declaration.name);
    }
}

#[test]
fn every_declaration_agrees_with_the_common_settings() {
    crate::config::tests::audit(REGISTRY);
    for_every_environment(|config, declaration| {
        let prompt = create(config).reset(draws(Purpose::Question, 0));
        assert_eq!((declaration.context)(config).prompt, prompt.len(), "{}", declaration.name);
    });
}

#[test]
fn a_context_that_was_checked_holds_every_well_formed_episode_where_the_task_asks_for_it() {
    for_every_environment(|config, declaration| {
        let mut sample = draws(Purpose::SampleToken, 1);
        for episode in 0..200 {
            let mut config = config.clone();
            for setting in declaration.settings {
                if let crate::config::Kind::Integer { min, max, .. } = setting.kind {
                    config.parameters.insert(setting.name, f64::from(min + sample.below(max - min + 1)).into());
                }
            }
            (config.turn_limit, config.turn_tokens) = (1 + sample.below(8) as usize, 3 + sample.below(10) as usize);
            config.context_length = 16;
            let config = crate::config::check(&config, REGISTRY).config;
            let mut environment = create(&config);
            let prompt = environment.reset(draws(Purpose::Question, episode));
            assert!(prompt.len() + config.turn_tokens <= config.context_length, "{}", declaration.name);
            let turns = demonstrate_within(environment.as_mut(), episode, config.turn_limit);
            let observations: usize = turns[..turns.len() - 1]
                .iter()
                .flat_map(|(_, step)| &step.observation)
                .map(|observation| environment.format_observation(observation).len())
                .sum();
            let length = prompt.len() + turns.iter().map(|(action, _)| action.len()).sum::<usize>() + observations;
            let asks = (declaration.context)(&config).episode > 0;
            assert!(!asks || length <= config.context_length, "{}: {length} of {}", declaration.name, config.context_length);
        }
    });
}
