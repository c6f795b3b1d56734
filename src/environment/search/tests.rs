//! Tests of the search task.

use super::super::contract::{act, demonstrate, draws, tool};
use super::*;
use crate::config::Value;
use crate::seed::Purpose;
use crate::vocabulary::{SIZE, spell};

fn defaults() -> Search {
    Search::new(&Parameters::defaults(&DECLARATION))
}

/// `G > H`, `H = 3`; every other document says 9.
fn two_hops() -> Search {
    let mut documents = [Document::Value(9); MOST_ENTITIES];
    documents[6] = Document::Redirect(7);
    documents[7] = Document::Value(3);
    Search { hops: 2, chain: [6, 7], answer: 3, documents, ..defaults() }
}

#[test]
fn the_transcript_of_the_header_is_what_happens() {
    let mut environment = two_hops();
    let step = Facts { step_right: true, ..Facts::clean_call() };
    assert_eq!(act(&mut environment, "<search> G <eot>"), ("<obs> G > H </obs>".into(), step));
    assert_eq!(act(&mut environment, "<search> H <eot>"), ("<obs> H = 3 </obs>".into(), step));
    let right = Facts::answer(true, true);
    assert_eq!(act(&mut environment, "<answer> 3 <eot>"), ("end".into(), right));
    assert_eq!(environment.hidden_state(), "G > H, H = 3");
}

#[test]
fn only_the_next_document_of_the_chain_is_a_right_step() {
    let mut environment = two_hops();
    let judged = ["H", "G", "G", "A", "H"].map(|name| {
        let facts = act(&mut environment, &format!("<search> {name} <eot>")).1;
        (facts.step_right, facts.repeated_call)
    });
    assert_eq!(judged, [(false, false), (true, false), (false, true), (false, false), (true, true)]);
    let mut note = Search { hops: 0, ..two_hops() };
    assert!(!act(&mut note, "<search> G <eot>").1.step_right, "a note needs no search");
}

#[test]
fn malformed_turns_get_an_error_and_malformed_answers_end_the_episode() {
    let mut environment = two_hops();
    for words in ["", "<eot>", "<search> <eot>", "<search> 3 <eot>", "<search> G", "G <eot>", "<answer> 3", "<obs> G = 3 </obs>"]
    {
        let malformed = Facts::malformed();
        assert_eq!(act(&mut environment, words), ("<obs> ERR </obs>".into(), malformed), "{words}");
    }
    for words in ["<answer> <eot>", "<answer> G <eot>", "<answer> 3 3 <eot>", "<answer> 3 <eot> <eot>"] {
        assert_eq!(act(&mut environment, words), ("end".into(), Facts::answer(false, false)), "{words}");
    }
    assert!(!act(&mut environment, "<answer> 4 <eot>").1.answer_right);
}

#[test]
fn t_55_an_answer_that_the_policy_did_not_give_is_never_scored() {
    let mut environment = Search { hop_shares: [1.0, 0.0, 0.0], ..defaults() };
    let prompt = environment.reset(draws(Purpose::Question, 0));
    let answer = digit(environment.answer);
    assert_eq!(prompt.last(), Some(&answer), "the note holds the answer");
    let quoted = [prompt.clone(), vec![ANSWER, answer, EOT]].concat();
    for action in [&prompt[..], &[answer, EOT], &quoted, &[SEARCH, ANSWER, answer, EOT], &[EOT]] {
        let step = environment.step(action, tool(0, 0));
        assert!(step.facts.malformed && !step.facts.answer_right && !step.done, "{}", spell(action));
    }
    assert!(environment.step(&[ANSWER, answer, EOT], tool(0, 0)).facts.answer_right);
}

#[test]
fn questions_follow_the_shares_and_their_documents_lead_to_the_answer() {
    let mut environment = defaults();
    let (mut hops, mut answers) = ([0; 3], [0; 10]);
    for episode in 0..20_000 {
        let prompt = environment.reset(draws(Purpose::Question, episode));
        let Search { answer, chain, documents, .. } = environment.clone();
        hops[environment.hops] += 1;
        answers[answer as usize] += 1;
        assert_eq!(prompt[4], if environment.hops == 0 { digit(answer) } else { NONE });
        let first = documents[entity_index(prompt[1]).unwrap() as usize];
        let last = if environment.hops == 2 { documents[chain[1] as usize] } else { first };
        assert_eq!(last, Document::Value(answer));
        assert_eq!(first == Document::Redirect(chain[1]), environment.hops == 2);
    }
    for (count, share) in hops.iter().zip([0.25, 0.30, 0.45]) {
        assert!((f64::from(*count) / 20_000.0 - share).abs() < 0.015, "{hops:?}");
    }
    assert!(answers.iter().all(|count| (1800..2200).contains(count)), "{answers:?}");
}

#[test]
fn three_shares_of_zero_count_as_equal() {
    let mut parameters = Parameters::defaults(&DECLARATION);
    for name in ["zero_hop", "one_hop", "two_hop"] {
        parameters.insert(name, Value::Number(0.0));
    }
    let mut environment = Search::new(&parameters);
    let mut hops = [0; 3];
    for episode in 0..3000 {
        environment.reset(draws(Purpose::Question, episode));
        hops[environment.question_type()] += 1;
    }
    assert!(hops.iter().all(|count| (900..1100).contains(count)), "{hops:?}");
}

#[test]
fn a_small_knowledge_base_has_no_other_entities() {
    let mut environment = Search { entities: 3, ..defaults() };
    for episode in 0..500 {
        let prompt = environment.reset(draws(Purpose::Question, episode));
        assert!((entity(0)..entity(3)).contains(&prompt[1]));
        for index in 0..3 {
            let content = environment.step(&[SEARCH, entity(index), EOT], tool(episode, 0)).observation.unwrap().content;
            assert!(content[1] == EQUALS || (content[2] != entity(index) && content[2] < entity(3)), "{}", spell(&content));
        }
        assert!(environment.step(&[SEARCH, entity(3), EOT], tool(episode, 0)).facts.malformed);
    }
}

#[test]
fn a_noisy_call_returns_a_random_document_drawn_per_turn() {
    let mut environment = Search { noisy_documents: 0.4, ..two_hops() };
    let mut returned = [0; 10];
    for episode in 0..20_000 {
        environment.found = 0;
        let step = environment.step(&[SEARCH, entity(6), EOT], tool(episode, episode % 5));
        let key = entity_index(step.observation.unwrap().content[0]).unwrap();
        assert!(step.facts.step_right && environment.found == usize::from(key == 6));
        returned[key as usize] += 1;
    }
    // 0.6 of the calls are clean, the other 0.4 spread over ten documents, that of G among them.
    for (index, count) in returned.iter().enumerate() {
        let share = if index == 6 { 0.64 } else { 0.04 };
        assert!((f64::from(*count) / 20_000.0 - share).abs() < 0.01, "{returned:?}");
    }
}

#[test]
fn random_tokens_follow_the_same_documents_and_change_with_the_draws() {
    let mut long = Search { random_tokens: 8, noisy_documents: 0.4, ..two_hops() };
    let mut clean = Search { random_tokens: 0, ..long.clone() };
    let mut counts = [0; SIZE];
    let mut tails = std::collections::HashSet::new();
    for episode in 0..2000 {
        let [document, plain] = [&mut long, &mut clean]
            .map(|environment| environment.step(&[SEARCH, entity(6), EOT], tool(episode, 256)).observation.unwrap().content);
        assert_eq!(document[..3], plain, "whether and which document is returned does not depend on the length");
        assert_eq!(document.len(), 11);
        document[3..].iter().for_each(|&token| counts[usize::from(token)] += 1);
        tails.insert(document[3..].to_vec());
    }
    assert!(tails.len() > 1990, "only {} different tails", tails.len());
    for (token, &count) in counts.iter().enumerate() {
        let expected = if TokenSet::labels().contains(token as Token) { 700..900 } else { 0..1 };
        assert!(expected.contains(&count), "{}: {count}", NAMES[token]);
    }
}

#[test]
fn long_documents_change_neither_questions_nor_what_the_demonstrator_does() {
    let (mut clean, mut long) = (defaults(), Search { random_tokens: 12, ..defaults() });
    for episode in 0..500 {
        let [a, b] = [&mut clean, &mut long].map(|environment| demonstrate(environment, episode));
        let told =
            |turns: Vec<(Vec<Token>, Step)>| turns.into_iter().map(|(action, step)| (action, step.facts)).collect::<Vec<_>>();
        assert_eq!(told(a), told(b));
    }
}

#[test]
fn long_documents_ask_for_a_context_that_cuts_no_episode() {
    let mut config = ExperimentConfig { parameters: Parameters::defaults(&DECLARATION), ..ExperimentConfig::default() };
    assert_eq!(context_need(&config), ContextNeed { prompt: 5, episode: 0 });
    config.parameters.insert("random_tokens", Value::Number(8.0));
    assert_eq!(context_need(&config).episode, 5 + 5 * 4 + 4 * 13);
    config.turn_limit = 4;
    assert_eq!(context_need(&config).episode, 60);
}

#[test]
fn demonstrations_search_independently_of_need_and_succeed_as_often_as_computed() {
    let mut environment = defaults();
    let (mut searches, mut episodes, mut successes) = ([[0.0_f64; 3]; 3], [0.0_f64; 3], [0.0_f64; 3]);
    for episode in 0..20_000 {
        let turns = demonstrate(&mut environment, episode);
        let hops = environment.hops;
        episodes[hops] += 1.0;
        searches[hops][turns.len() - 1] += 1.0;
        successes[hops] += f64::from(u8::from(turns.last().unwrap().1.facts.answer_right));
        assert_eq!(turns.len() == 3 && turns[0].0 == turns[1].0, turns.len() == 3 && hops < 2, "double check or redirect");
    }
    // With 1 hop, answering at once is a guess; with 2 hops, everything but the second search is.
    let expected = [1.0, 0.85 + 0.15 * 0.1, 0.17 + 0.83 * 0.1];
    for hops in 0..3 {
        for (count, share) in searches[hops].iter().zip([0.15, 0.68, 0.17]) {
            assert!((count / episodes[hops] - share).abs() < 0.02, "{searches:?}");
        }
        assert!((successes[hops] / episodes[hops] - expected[hops]).abs() < 0.02, "{successes:?} of {episodes:?}");
    }
    assert!((successes.iter().sum::<f64>() / 20_000.0 - 0.623).abs() < 0.012, "{successes:?}");
}

#[test]
fn a_document_that_was_not_asked_for_leaves_the_demonstrator_guessing() {
    let script = || Script { searches: 0, key: entity(6), value: Some(digit(3)), guess: digit(5) };
    for (content, answer) in [([entity(6), EQUALS, digit(3)], 3), ([entity(1), EQUALS, digit(8)], 5)] {
        let action = script().act(Some(&Observation { content: content.to_vec() }));
        assert_eq!(action, [ANSWER, digit(answer), EOT], "after {}", spell(&content));
    }
    assert_eq!(script().act(None), [ANSWER, digit(3), EOT], "a note counts as a value seen");
}
