//! Whole trajectories as rows, those that begin alike sharing them.
//!
//! A row is a token that predicts the next one. What a causal network computes of it depends on the tokens up to it alone, so that
//! trajectories share the rows of their common beginning: the prompt of a group, and often the first action. The rows are the nodes of
//! a prefix tree (a trie), and a trajectory is a path in it. The gradient is the same as that of rows of their own, since the slopes
//! by a shared row are the sum of those of its trajectories.

use std::collections::HashMap;

use super::attention::Span;
use super::distribution::Taken;
use crate::vocabulary::{Token, TokenSet};

/// A token, which predicts the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub token: Token,
    pub position: usize,
    /// What the grammar allows as the next token.
    pub legal: TokenSet,
}

/// The rows of a trajectory.
#[derive(Clone, Debug)]
struct Path {
    rows: Vec<usize>,
    /// How many of them an earlier trajectory has too.
    shared: usize,
}

/// Whole trajectories that a policy reads, and of which tokens the probability is wanted.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(super) rows: Vec<Row>,
    paths: Vec<Path>,
    /// The row behind another that has a token and legal next tokens; the first rows are behind none.
    next: HashMap<(Option<usize>, Token, u64), usize>,
    /// Wanted tokens with the rows that predict them.
    wanted: Vec<(usize, Token)>,
}

impl Batch {
    /// Adds a trajectory. `wanted` are the places of the tokens (from 1 on) whose probability is wanted, in rising order; `legal` gives
    /// the legal tokens of each place, and is empty without a grammar.
    pub fn push(&mut self, tokens: &[Token], wanted: impl Iterator<Item = usize>, legal: &[TokenSet]) {
        let mut path = Path { rows: Vec::with_capacity(tokens.len() - 1), shared: 0 };
        for (position, &token) in tokens[..tokens.len() - 1].iter().enumerate() {
            let legal = legal.get(position + 1).copied().unwrap_or(TokenSet::ALL);
            let new = self.rows.len();
            let row = *self.next.entry((path.rows.last().copied(), token, legal.0)).or_insert(new);
            if row == new {
                self.rows.push(Row { token, position, legal });
            } else {
                path.shared = position + 1;
            }
            path.rows.push(row);
        }
        self.wanted.extend(wanted.map(|place| (path.rows[place - 1], tokens[place])));
        self.paths.push(path);
    }

    /// Number of tokens whose probability is wanted.
    pub fn wanted(&self) -> usize {
        self.wanted.len()
    }

    /// Rows that predict wanted tokens, in rising order, and where in them each wanted token is predicted.
    pub(super) fn wanted_rows(&self) -> (Vec<usize>, Vec<Taken>) {
        let mut rows: Vec<usize> = self.wanted.iter().map(|&(row, _)| row).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut places = vec![0; self.rows.len()];
        rows.iter().enumerate().for_each(|(place, &row)| places[row] = place);
        let taken = self.wanted.iter().map(|&(row, token)| Taken { place: places[row], token }).collect();
        (rows, taken)
    }

    /// What the trajectories ask: each the rows that no earlier one has, or those of them that are in `kept`.
    pub(super) fn spans(&self, kept: Option<&[usize]>) -> Vec<Span<'_>> {
        let mut next = 0;
        let span = |path: &'_ Path| {
            let (own, first_query) = (&path.rows[path.shared..], next);
            let positions: Vec<usize> = match (kept, own.last()) {
                (None, _) => (path.shared..path.rows.len()).collect(),
                (Some(_), None) => Vec::new(),
                // Rows of a trajectory's own lie one after another.
                (Some(kept), Some(&last)) => {
                    kept[next..].iter().take_while(|&&row| row <= last).map(|row| path.shared + row - own[0]).collect()
                }
            };
            next += positions.len();
            (first_query, positions)
        };
        let asked: Vec<(usize, Vec<usize>)> = self.paths.iter().map(span).collect();
        let spans = self.paths.iter().zip(asked);
        let spans = spans.map(|(path, (first_query, positions))| Span { path: &path.rows, first_query, positions });
        spans.filter(|span| !span.positions.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trajectories_that_begin_alike_share_their_rows() {
        let mut batch = Batch::default();
        batch.push(&[1, 2, 3, 4], 2..4, &[]);
        batch.push(&[1, 2, 5, 6], 2..4, &[]);
        batch.push(&[1, 2, 3, 4], 3..4, &[]);
        batch.push(&[7, 2], 1..2, &[]);
        let tokens: Vec<(Token, usize)> = batch.rows.iter().map(|row| (row.token, row.position)).collect();
        assert_eq!(tokens, [(1, 0), (2, 1), (3, 2), (5, 2), (7, 0)]);
        let (rows, taken) = batch.wanted_rows();
        assert_eq!(rows, [1, 2, 3, 4]);
        let taken: Vec<(usize, Token)> = taken.iter().map(|taken| (taken.place, taken.token)).collect();
        assert_eq!(taken, [(0, 3), (1, 4), (0, 5), (2, 6), (1, 4), (3, 2)]);
        let asked = |kept: Option<&[usize]>| -> Vec<(Vec<usize>, usize, Vec<usize>)> {
            batch.spans(kept).into_iter().map(|span| (span.path.to_vec(), span.first_query, span.positions)).collect()
        };
        let (first, second, last) = (vec![0, 1, 2], vec![0, 1, 3], vec![4]);
        assert_eq!(asked(None), [(first.clone(), 0, vec![0, 1, 2]), (second.clone(), 3, vec![2]), (last.clone(), 4, vec![0])]);
        assert_eq!(asked(Some(&rows)), [(first, 0, vec![1, 2]), (second, 2, vec![2]), (last, 3, vec![0])]);
    }

    #[test]
    fn rows_after_which_other_tokens_are_legal_are_not_shared() {
        let mut batch = Batch::default();
        let all = TokenSet::ALL;
        batch.push(&[1, 2, 3], 2..3, &[all, all, TokenSet::of(&[3])]);
        batch.push(&[1, 2, 3], 2..3, &[all, all, TokenSet::of(&[3, 4])]);
        assert_eq!(batch.rows.len(), 3);
    }
}
