//! The one vocabulary that every environment shares, so that checkpoints stay compatible between tasks.

/// A token id, `0..SIZE`.
pub type Token = u8;

/// Number of symbols.
pub const SIZE: usize = 44;

/// What each token is called on the page and in transcripts; the index is the token id.
pub const NAMES: [&str; SIZE] = [
    "PAD", "<q>", "?", "<note>", "_", "<search>", "<answer>", "<eot>", "<obs>", "</obs>", "=", ">", "<calc>", "+", "-", "*",
    "ERR", "<run>", "<cache>", ".", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H",
    "I", "J", "<click>", "<back>", "<verify>", "<flag>",
];

pub const PAD: Token = 0;
pub const QUESTION: Token = 1;
pub const QUESTION_MARK: Token = 2;
pub const NOTE: Token = 3;
pub const NONE: Token = 4;
pub const SEARCH: Token = 5;
pub const ANSWER: Token = 6;
/// End of turn. Sampled by the policy, hence trained.
pub const EOT: Token = 7;
/// Opens a tool result. Written by the environment, never trained.
pub const OBS: Token = 8;
/// Closes a tool result. Written by the environment, never trained.
pub const OBS_END: Token = 9;
pub const EQUALS: Token = 10;
pub const REDIRECT: Token = 11;
pub const CALC: Token = 12;
pub const PLUS: Token = 13;
pub const MINUS: Token = 14;
pub const TIMES: Token = 15;
pub const ERR: Token = 16;
pub const RUN: Token = 17;
pub const CACHE: Token = 18;
pub const DOT: Token = 19;
const DIGIT_0: Token = 20;
const ENTITY_A: Token = 30;
pub const CLICK: Token = 40;
pub const BACK: Token = 41;
pub const VERIFY: Token = 42;
pub const FLAG: Token = 43;

/// The token of a digit. `value` is taken modulo 10.
pub const fn digit(value: u8) -> Token {
    DIGIT_0 + value % 10
}

/// The token of an entity, `A` to `J`. `index` is taken modulo 10.
pub const fn entity(index: u8) -> Token {
    ENTITY_A + index % 10
}

/// How many labels there are.
pub const LABELS: u32 = 20;

/// The token of a label, something that can be told apart and copied but means nothing: the digits, then the entities.
/// `index` is taken modulo [`LABELS`].
pub const fn label(index: u8) -> Token {
    let index = index % LABELS as u8;
    if index < 10 { digit(index) } else { entity(index) }
}

/// The value of a digit token, or `None` for any other token.
pub const fn digit_value(token: Token) -> Option<u8> {
    if token >= DIGIT_0 && token < DIGIT_0 + 10 { Some(token - DIGIT_0) } else { None }
}

/// The index of an entity token, or `None` for any other token.
pub const fn entity_index(token: Token) -> Option<u8> {
    if token >= ENTITY_A && token < ENTITY_A + 10 { Some(token - ENTITY_A) } else { None }
}

/// What a token is called; `(unknown)` beyond the vocabulary.
pub fn name(token: Token) -> &'static str {
    NAMES.get(token as usize).copied().unwrap_or("(unknown)")
}

/// A transcript in words, for people: `<q> G ? <note> _`.
pub fn spell(tokens: &[Token]) -> String {
    tokens.iter().map(|&token| name(token)).collect::<Vec<_>>().join(" ")
}

/// A set of tokens as a bit mask: bit `i` stands for token `i`. [`SIZE`] is below 64, so one word is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TokenSet(pub u64);

impl TokenSet {
    /// Every token of the vocabulary.
    pub const ALL: TokenSet = TokenSet((1 << SIZE) - 1);

    /// No token.
    pub const EMPTY: TokenSet = TokenSet(0);

    /// The set of the given tokens.
    pub fn of(tokens: &[Token]) -> Self {
        TokenSet(tokens.iter().fold(0, |bits, &token| bits | 1 << token))
    }

    /// The ten digits.
    pub const fn digits() -> Self {
        TokenSet(0x3ff << DIGIT_0)
    }

    /// The ten entities.
    pub const fn entities() -> Self {
        TokenSet(0x3ff << ENTITY_A)
    }

    /// The twenty labels: digits and entities.
    pub const fn labels() -> Self {
        Self::digits().or(Self::entities())
    }

    /// Tokens in either set.
    pub const fn or(self, other: TokenSet) -> Self {
        TokenSet(self.0 | other.0)
    }

    /// Whether `token` is in the set.
    pub const fn contains(self, token: Token) -> bool {
        token < 64 && self.0 >> token & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_entities_come_back_from_their_tokens() {
        for value in 0..10 {
            assert_eq!(digit_value(digit(value)), Some(value));
            assert_eq!(entity_index(entity(value)), Some(value));
            assert_eq!(NAMES[digit(value) as usize], value.to_string());
            assert!(TokenSet::digits().contains(digit(value)) && TokenSet::entities().contains(entity(value)));
        }
        let labels: std::collections::BTreeSet<Token> = (0..LABELS as u8).map(label).collect();
        assert_eq!(labels.len(), LABELS as usize);
        assert!((0..SIZE as Token).all(|token| TokenSet::labels().contains(token) == labels.contains(&token)));
        assert_eq!(digit_value(ERR), None);
        assert_eq!(entity_index(digit(3)), None);
        assert_eq!(spell(&[QUESTION, entity(6), QUESTION_MARK]), "<q> G ?");
    }
}
