//! Calculator: work out an expression of one-digit numbers with a tool that takes one operation at a time.
//!
//! # The game
//!
//! The prompt is `<q> a o b o c ?` with digits 1 to 9. One fifth of the questions have one operator (`<q> a o b _ _ ?`); the
//! others have exactly one product and one sum or difference, half of them solved from the left (`a * b + c`) and half from the
//! right (`a + b * c`: multiplication binds tighter). Every result
//! is taken modulo 100 (never negative: `3 - 7` is `96`) and written with two digits. What must be learned is the order of the
//! calls, and to copy a result into the next call. Doing the sums in the head is out of reach for so small a policy.
//!
//! # Actions
//!
//! | action | leads to |
//! | --- | --- |
//! | `<calc> x o y <eot>` (x and y of one or two digits, o one of `+ - *`) | the result, two digits |
//! | `<answer> d d <eot>` | the end of the episode; so does anything else that starts with `<answer>` and ends with `<eot>` |
//! | anything else | `ERR`, and the episode goes on |
//!
//! # Facts
//!
//! `step_right`: the call gave the next intermediate result on the way to the solution, in order and not yet made (judged by
//! its result: `7 * 4` does for `4 * 7`, and so does a coincidence). `repeated_call`: the same tokens were called before in this
//! episode.
//!
//! # Parameters
//!
//! The share of questions with one operator, which of `+` and `-` occur, and the share of demonstrations that answer directly.
//!
//! The demonstrator answers some questions at once, with the right digits, which the policy cannot work out: imitation
//! learns to make them up. All others it solves with the tool, from the left or from the right by the toss of a coin, so that
//! about half of its two-step solutions are wrong.
//!
//! # An episode solved from the right
//!
//! ```text
//! <q> 3 + 4 * 7 ? <calc> 4 * 7 <eot> <obs> 2 8 </obs> <calc> 3 + 2 8 <eot> <obs> 3 1 </obs> <answer> 3 1 <eot>
//! ```

use super::parameter::{demonstrated, share};
use super::{Demonstrator, Environment, Facts, Grammar, Observation, Step};
use crate::config::{ChoiceOption, ContextNeed, DefaultValue, EnvironmentDeclaration, Kind, Parameters, Section, Setting, text};
use crate::seed::Draws;
use crate::vocabulary::{
    ANSWER, CALC, EOT, MINUS, NAMES, NONE, PLUS, QUESTION, QUESTION_MARK, TIMES, Token, TokenSet, digit, digit_value,
};

pub static DECLARATION: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "calculator",
    label: text("Calculator", "计算器"),
    help: text(
        "Work out an expression with a calculator that takes one operation at a time. The policy must learn which operation \
             comes first and how to carry a result into the next call.",
        "用每次只能做一步运算的计算器求表达式的值。策略要学会先算哪一步，以及如何把中间结果代入下一次调用。",
    ),
    settings: &[
        Setting {
            name: "operators",
            section: Section::Environment,
            kind: Kind::Choice {
                default: "plus_minus",
                options: &[
                    ChoiceOption { value: "plus_minus", label: text("+ and -", "+ 和 -") },
                    ChoiceOption { value: "plus", label: text("+ only", "仅 +") },
                    ChoiceOption { value: "minus", label: text("- only", "仅 -") },
                ],
            },
            label: text("Operators beside *", "乘法之外的运算符"),
            unit: text("", ""),
            help: text(
                "Which operators questions use beside the product; with one alone there is less to learn.",
                "题目中除乘法外还使用哪些运算符；只用一种时要学的内容更少。",
            ),
            advanced: false,
        },
        share(
            "one_operator",
            0.2,
            text("Questions with one operator", "单运算符题目的比例"),
            text(
                "Share of questions that one call solves; the rest is split equally between those solved \
                     from the left and from the right. Turning it up makes the task easier.",
                "只需调用一次工具的题目所占比例；其余题目中“先算左边”与“先算右边”各占一半。调高后任务更容易。",
            ),
            false,
        ),
        demonstrated(
            "direct_answers",
            0.3,
            text("Demonstrations without the tool", "不用工具的示范比例"),
            text(
                "Share of demonstrations that answer at once with the right digits; the policy cannot work them out, so more of \
                     them teach it to make answers up.",
                "示范中不用工具、直接写出正确答案的比例；策略自己算不出这些答案，因此调高后会学到凭空编造答案。",
            ),
        ),
    ],
    defaults: &[
        ("turn_limit", DefaultValue::Integer(4)),
        ("turn_tokens", DefaultValue::Integer(7)),
        ("context_length", DefaultValue::Integer(40)),
        ("groups", DefaultValue::Integer(32)),
        ("num_generations", DefaultValue::Integer(8)),
        ("entropy_coefficient", DefaultValue::Number(0.02)),
        ("iterations", DefaultValue::Integer(110)),
        ("imitation_steps", DefaultValue::Integer(400)),
    ],
    question_types: &[text("one operator", "单运算符"), text("left first", "先算左边"), text("right first", "先算右边")],
    capabilities: &["tool use", "reasoning"],
    context: |_| ContextNeed { prompt: 7, episode: 0 },
};

/// What a question looks like; the discriminant is its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    OneOperator = 0,
    LeftFirst = 1,
    RightFirst = 2,
}

/// `a o b o c`; the second operator and the third operand are unused with one operator.
#[derive(Clone, Copy, Debug)]
struct Question {
    form: Form,
    operands: [u8; 3],
    operators: [Token; 2],
}

impl Question {
    /// The operations that solve it, in order: left operand, operator, right operand, result.
    fn solution(&self) -> Vec<(u8, Token, u8, u8)> {
        let ([a, b, c], [first, second]) = (self.operands, self.operators);
        let step = |x, operator, y| (x, operator, y, apply(operator, x, y));
        match self.form {
            Form::OneOperator => vec![step(a, first, b)],
            Form::LeftFirst => vec![step(a, first, b), step(apply(first, a, b), second, c)],
            Form::RightFirst => vec![step(b, second, c), step(a, first, apply(second, b, c))],
        }
    }

    /// The value of the expression, `0..100`.
    fn answer(&self) -> u8 {
        self.solution().last().map_or(0, |&(.., result)| result)
    }
}

/// `x operator y`, modulo 100 and non-negative. An operator other than `+`, `-` and `*` counts as `*`.
fn apply(operator: Token, x: u8, y: u8) -> u8 {
    let (x, y) = (i32::from(x), i32::from(y));
    let exact = match operator {
        PLUS => x + y,
        MINUS => x - y,
        _ => x * y,
    };
    exact.rem_euclid(100) as u8
}

/// A number below 100 as two digits.
fn two_digits(number: u8) -> [Token; 2] {
    [digit(number / 10), digit(number)]
}

/// The value of one or two digit tokens.
fn number(tokens: &[Token]) -> Option<u8> {
    match *tokens {
        [only] => digit_value(only),
        [tens, ones] => Some(10 * digit_value(tens)? + digit_value(ones)?),
        _ => None,
    }
}

/// The result of a well-formed call; `None` for any other tokens.
fn called(action: &[Token]) -> Option<u8> {
    let [CALC, expression @ .., EOT] = action else { return None };
    let place = expression.iter().position(|token| [PLUS, MINUS, TIMES].contains(token))?;
    Some(apply(expression[place], number(&expression[..place])?, number(&expression[place + 1..])?))
}

/// The calculator task.
#[derive(Clone, Debug)]
pub(super) struct Calculator {
    /// The operators that questions use beside `*`.
    others: &'static [Token],
    one_operator: f64,
    direct_answers: f64,
    question: Question,
    /// How many intermediate results of the solution have been made.
    made: usize,
    /// The calls of this episode.
    calls: Vec<Vec<Token>>,
}

impl Calculator {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Calculator {
            others: match parameters.choice("operators") {
                "plus" => &[PLUS],
                "minus" => &[MINUS],
                _ => &[PLUS, MINUS],
            },
            one_operator: parameters.number("one_operator"),
            direct_answers: parameters.number("direct_answers"),
            question: Question { form: Form::OneOperator, operands: [1; 3], operators: [TIMES; 2] },
            made: 0,
            calls: Vec::new(),
        }
    }
}

impl Environment for Calculator {
    fn reset(&mut self, mut draws: Draws) -> Vec<Token> {
        let rest = (1.0 - self.one_operator) / 2.0;
        let form = [Form::OneOperator, Form::LeftFirst, Form::RightFirst][draws.weighted(&[self.one_operator, rest, rest])];
        let operands = [(); 3].map(|()| 1 + draws.below(9) as u8);
        let other = self.others[draws.below(self.others.len() as u32) as usize];
        let operators = match form {
            // All operators in use are equally likely, the product included.
            Form::OneOperator => match draws.below(self.others.len() as u32 + 1) {
                0 => [TIMES, NONE],
                _ => [other, NONE],
            },
            Form::LeftFirst => [TIMES, other],
            Form::RightFirst => [other, TIMES],
        };
        self.question = Question { form, operands, operators };
        self.made = 0;
        self.calls.clear();
        let [a, b, c] = operands.map(digit);
        let third = if form == Form::OneOperator { NONE } else { c };
        vec![QUESTION, a, operators[0], b, operators[1], third, QUESTION_MARK]
    }

    fn step(&mut self, action: &[Token], _tool: Draws) -> Step {
        if let [ANSWER, digits @ .., EOT] = action {
            let value = if digits.len() == 2 { number(digits) } else { None };
            return Step::answer(value.is_some(), value == Some(self.question.answer()));
        }
        let Some(result) = called(action) else { return Step::malformed() };
        let step_right = self.question.solution().get(self.made).is_some_and(|&(.., expected)| expected == result);
        self.made += usize::from(step_right);
        let repeated_call = self.calls.iter().any(|call| call == action);
        self.calls.push(action.to_vec());
        Step::call(two_digits(result).to_vec(), Facts { repeated_call, step_right, ..Facts::clean_call() })
    }

    fn grammar(&self) -> Grammar {
        let (digits, end) = (TokenSet::digits(), TokenSet::of(&[EOT]));
        let operator = TokenSet::of(&[PLUS, MINUS, TIMES]);
        Grammar::from_edges(
            9,
            &[
                (0, TokenSet::of(&[CALC]), 1),
                (1, digits, 2),
                (2, digits, 3),
                (2, operator, 4),
                (3, operator, 4),
                (4, digits, 5),
                (5, digits, 6),
                (5, end, 0),
                (6, end, 0),
                (0, TokenSet::of(&[ANSWER]), 7),
                (7, digits, 8),
                (8, digits, 6),
            ],
        )
    }

    fn demonstrator(&self, mut draws: Draws) -> Box<dyn Demonstrator> {
        let (direct, from_left) = (draws.chance(self.direct_answers), draws.chance(0.5));
        let Question { form, operands, operators } = self.question;
        let [a, b, c] = operands.map(digit);
        let [first, second] = operators;
        let calls = match form {
            _ if direct => vec![],
            Form::OneOperator => vec![[Part::Is(a), Part::Is(first), Part::Is(b)]],
            _ if from_left => {
                vec![[Part::Is(a), Part::Is(first), Part::Is(b)], [Part::Result, Part::Is(second), Part::Is(c)]]
            }
            _ => vec![[Part::Is(b), Part::Is(second), Part::Is(c)], [Part::Is(a), Part::Is(first), Part::Result]],
        };
        Box::new(Script { calls: calls.into_iter(), result: two_digits(self.question.answer()).to_vec() })
    }

    fn question_type(&self) -> usize {
        self.question.form as usize
    }

    fn hidden_state(&self) -> String {
        let spell =
            |&(x, operator, y, result): &(u8, Token, u8, u8)| format!("{x} {} {y} = {result}", NAMES[usize::from(operator)]);
        self.question.solution().iter().map(spell).collect::<Vec<_>>().join(", ")
    }

    fn boxed_clone(&self) -> Box<dyn Environment> {
        Box::new(self.clone())
    }
}

/// A part of a scripted call: a token, or the last result.
#[derive(Clone, Copy)]
enum Part {
    Is(Token),
    Result,
}

/// Makes the planned calls, then answers the last result; without a call it answers what it knew from the start.
struct Script {
    calls: std::vec::IntoIter<[Part; 3]>,
    result: Vec<Token>,
}

impl Demonstrator for Script {
    fn act(&mut self, observation: Option<&Observation>) -> Vec<Token> {
        if let Some(observation) = observation {
            self.result.clone_from(&observation.content);
        }
        let (opening, mut body) = (self.calls.next(), Vec::new());
        match opening {
            Some(parts) => parts.iter().for_each(|part| match part {
                Part::Is(token) => body.push(*token),
                Part::Result => body.extend(&self.result),
            }),
            None => body.extend(&self.result),
        }
        [&[if opening.is_some() { CALC } else { ANSWER }][..], &body, &[EOT]].concat()
    }
}

#[cfg(test)]
mod tests;
