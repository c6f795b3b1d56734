//! Tests of the calculator task.

use super::super::contract::{act, demonstrate, draws};
use super::*;
use crate::config::Value;
use crate::seed::Purpose;
use crate::vocabulary::spell;

fn defaults() -> Calculator {
    Calculator::new(&Parameters::defaults(&DECLARATION))
}

/// `3 + 4 * 7`
fn right_first() -> Calculator {
    let question = Question { form: Form::RightFirst, operands: [3, 4, 7], operators: [PLUS, TIMES] };
    Calculator { question, ..defaults() }
}

#[test]
fn the_transcript_of_the_header_is_what_happens() {
    let mut environment = right_first();
    let step = Facts { step_right: true, ..Facts::clean_call() };
    assert_eq!(act(&mut environment, "<calc> 4 * 7 <eot>"), ("<obs> 2 8 </obs>".into(), step));
    assert_eq!(act(&mut environment, "<calc> 3 + 2 8 <eot>"), ("<obs> 3 1 </obs>".into(), step));
    let right = Facts::answer(true, true);
    assert_eq!(act(&mut environment, "<answer> 3 1 <eot>"), ("end".into(), right));
    assert_eq!(environment.hidden_state(), "4 * 7 = 28, 3 + 28 = 31");
}

#[test]
fn results_are_taken_modulo_100_and_never_negative() {
    let mut environment = right_first();
    for (call, result) in [("3 - 7", "9 6"), ("9 9 * 9 9", "0 1"), ("9 9 + 9", "0 8"), ("0 - 9 9", "0 1"), ("0 5 - 5", "0 0")] {
        let given = act(&mut environment, &format!("<calc> {call} <eot>")).0;
        assert_eq!(given, format!("<obs> {result} </obs>"), "{call}");
    }
}

#[test]
fn steps_are_judged_by_their_result_in_order_and_once() {
    let mut environment = right_first();
    let judged = ["3 + 4", "3 + 2 8", "7 * 4", "7 * 4", "4 * 7", "2 8 + 3"].map(|call| {
        let facts = act(&mut environment, &format!("<calc> {call} <eot>")).1;
        assert!(facts.valid_call);
        (facts.step_right, facts.repeated_call)
    });
    assert_eq!(judged, [(false, false), (false, false), (true, false), (false, true), (false, false), (true, false)]);
}

#[test]
fn malformed_turns_get_an_error_and_malformed_answers_end_the_episode() {
    let mut environment = right_first();
    for words in [
        "",
        "<eot>",
        "<calc> <eot>",
        "<calc> 3 <eot>",
        "<calc> 3 + <eot>",
        "<calc> + 3 <eot>",
        "<calc> 3 + 4",
        "3 + 4 <eot>",
        "<calc> 3 + 4 + 5 <eot>",
        "<calc> 1 2 3 + 4 <eot>",
        "<calc> 3 + 1 2 3 <eot>",
        "<calc> A + 4 <eot>",
        "<answer> 3 1",
    ] {
        let malformed = Facts::malformed();
        assert_eq!(act(&mut environment, words), ("<obs> ERR </obs>".into(), malformed), "{words}");
    }
    for words in ["<answer> <eot>", "<answer> 3 <eot>", "<answer> 0 3 1 <eot>", "<answer> 3 + <eot>", "<answer> 3 1 <eot> <eot>"]
    {
        assert_eq!(act(&mut environment, words), ("end".into(), Facts::answer(false, false)), "{words}");
    }
    let wrong = Facts::answer(true, false);
    assert_eq!(act(&mut environment, "<answer> 4 9 <eot>"), ("end".into(), wrong), "solved from the left");
}

/// The value of a prompt by school arithmetic, apart from [`Question::solution`].
fn value_of(prompt: &[Token]) -> i32 {
    let mut terms: Vec<i32> = Vec::new();
    for pair in prompt[..prompt.len() - 1].chunks(2) {
        let Some(value) = digit_value(pair[1]).map(i32::from) else { break };
        match pair[0] {
            TIMES => *terms.last_mut().unwrap() *= value,
            MINUS => terms.push(-value),
            _ => terms.push(value),
        }
    }
    terms.iter().sum::<i32>().rem_euclid(100)
}

#[test]
fn questions_follow_the_shares_and_solutions_obey_the_order_of_operations() {
    let mut environment = defaults();
    let mut forms = [0; 3];
    let mut operators = std::collections::BTreeMap::new();
    for episode in 0..20_000 {
        let prompt = environment.reset(draws(Purpose::Question, episode));
        forms[environment.question_type()] += 1;
        assert_eq!(value_of(&prompt), i32::from(environment.question.answer()), "{}", spell(&prompt));
        assert!(prompt.iter().filter_map(|&token| digit_value(token)).all(|value| value > 0), "{}", spell(&prompt));
        *operators.entry((environment.question_type(), prompt[2], prompt[4])).or_insert(0) += 1;
    }
    for (count, share) in forms.iter().zip([0.2, 0.4, 0.4]) {
        assert!((f64::from(*count) / 20_000.0 - share).abs() < 0.012, "{forms:?}");
    }
    for (&(form, first, second), &count) in &operators {
        let expected = if form == 0 { 20_000 / 15 } else { 20_000 / 5 };
        assert!((expected - 250..expected + 250).contains(&count), "{form} {first} {second}: {operators:?}");
        assert_eq!(
            [first, second].iter().filter(|&&operator| operator == TIMES).count(),
            usize::from(form > 0 || first == TIMES)
        );
    }
    assert_eq!(operators.len(), 3 + 2 + 2, "{operators:?}");
}

#[test]
fn the_choice_of_operators_holds_for_every_type_of_question() {
    for (value, allowed) in [("plus", PLUS), ("minus", MINUS)] {
        let mut parameters = Parameters::defaults(&DECLARATION);
        parameters.insert("operators", Value::Choice(value.to_owned()));
        let mut environment = Calculator::new(&parameters);
        for episode in 0..500 {
            let prompt = environment.reset(draws(Purpose::Question, episode));
            assert!([prompt[2], prompt[4]].iter().all(|token| [allowed, TIMES, NONE].contains(token)), "{}", spell(&prompt));
        }
    }
}

#[test]
fn demonstrations_answer_directly_or_in_either_order_and_succeed_as_often_as_computed() {
    let mut environment = defaults();
    let (mut episodes, mut direct, mut successes) = ([0.0_f64; 3], [0.0_f64; 3], [0.0_f64; 3]);
    for episode in 0..20_000 {
        let turns = demonstrate(&mut environment, episode);
        let form = environment.question_type();
        assert!(turns.len() == 1 || turns.len() == if form == 0 { 2 } else { 3 });
        let answer = turns.last().unwrap().1.facts;
        assert!(answer.answer_right || turns.len() == 3, "direct answers and single calls are right");
        episodes[form] += 1.0;
        direct[form] += f64::from(u8::from(turns.len() == 1));
        successes[form] += f64::from(u8::from(answer.answer_right));
    }
    // From the wrong end the result is right by chance in one case of nine: `1 * b + c` and `a + b * 1`.
    let mixed = 0.3 + 0.7 * (0.5 + 0.5 / 9.0);
    for (form, expected) in [1.0, mixed, mixed].into_iter().enumerate() {
        assert!((direct[form] / episodes[form] - 0.3).abs() < 0.02, "{direct:?} of {episodes:?}");
        assert!((successes[form] / episodes[form] - expected).abs() < 0.02, "{successes:?} of {episodes:?}");
    }
}
