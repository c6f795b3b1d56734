//! Examples as the kernels take them: rows of all trajectories one after another, without padding between them.
//!
//! A row is an input token with its target. Matrix products act on rows whatever trajectory they belong to, and attention looks from
//! the first row of its own trajectory on, so that no work is done on padding and trajectories need not be sorted by length. The
//! number of rows is rounded up to whole tiles with rows that are trajectories of their own and train nothing.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::product::TILE;
use crate::kernel::Buffer;
use crate::learner::TrainingExample;
use crate::policy::Layout;
use crate::vocabulary::{PAD, TokenSet};

/// Columns of the table of rows, each as long as there are rows: token, target, first row of the trajectory, row after its last,
/// flags, two words of legal tokens. After them, for every trajectory its first row and its number of rows.
pub(super) const TOKEN: usize = 0;
pub(super) const TARGET: usize = 1;
pub(super) const START: usize = 2;
pub(super) const END: usize = 3;
pub(super) const FLAGS: usize = 4;
pub(super) const LEGAL: usize = 5;
pub(super) const END_COLUMNS: usize = 7;

/// Flags: the token is trained; the policy sampled it.
pub(super) const TRAINED: u32 = 1;
pub(super) const SAMPLED: u32 = 2;

/// Examples on the device.
pub(super) struct Rows {
    /// Number of rows, a multiple of [`TILE`].
    pub count: usize,
    /// Trajectories.
    pub trajectories: usize,
    /// The table, see [`END_COLUMNS`].
    pub table: Buffer,
    pub chunks: Chunks,
    /// Which rows of a chunk have a token or a position. For every chunk, symbol and position where its list begins (and where the last
    /// one ends), then the lists.
    pub lists: Buffer,
    /// Log-probability of each row's target when it was sampled; 0 where it was not.
    pub old: Buffer,
    /// Advantage of each row's target; then the weight of every trajectory in the loss.
    pub constants: Buffer,
    /// Whether a grammar restricts the tokens.
    pub grammar: bool,
    /// Whether tokens are trained that the policy did not sample.
    pub trains_tool_tokens: bool,
}

/// How rows are cut where sums over them are added up in two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    /// Rows of each, but for the last.
    pub rows: usize,
    pub count: usize,
}

/// Rows of a chunk at least.
const LEAST_ROWS: usize = 64;

impl Chunks {
    /// At most `most` chunks of `rows` rows.
    fn of(rows: usize, most: usize) -> Chunks {
        let each = rows.div_ceil(most.min(rows.div_ceil(LEAST_ROWS)));
        Chunks { rows: each, count: rows.div_ceil(each) }
    }
}

/// Rows of an example.
pub(super) fn rows_of(example: &TrainingExample) -> usize {
    example.tokens.len().saturating_sub(1)
}

impl Rows {
    /// Uploads examples with their weights in the loss, in at most so many chunks; `None` where the device is not one that runs kernels.
    pub fn new(
        examples: &[TrainingExample],
        weights: &[f32],
        layout: &Layout,
        most_chunks: usize,
        device: &Device,
    ) -> Option<Rows> {
        let used: usize = examples.iter().map(rows_of).sum();
        let count = used.next_multiple_of(TILE).max(TILE);
        let mut columns = vec![0u32; END_COLUMNS * count];
        let mut spans = Vec::with_capacity(2 * examples.len());
        let (mut old, mut constants) = (vec![0.0; count], vec![0.0; count]);
        let mut row = 0;
        for example in examples {
            let (start, end) = (row, row + rows_of(example));
            spans.extend([start as u32, (end - start) as u32]);
            for target in 1..example.tokens.len() {
                let legal = example.legal.get(target).copied().unwrap_or(TokenSet::ALL).0;
                let trained = if example.loss_mask[target] { TRAINED } else { 0 };
                let sampled = if example.sampled[target] { SAMPLED } else { 0 };
                let values = [
                    u32::from(example.tokens[target - 1]),
                    u32::from(example.tokens[target]),
                    start as u32,
                    end as u32,
                    trained | sampled,
                    legal as u32,
                    (legal >> 32) as u32,
                ];
                values.iter().enumerate().for_each(|(column, &value)| columns[column * count + row] = value);
                (old[row], constants[row]) = (example.old_log_probs[target], example.advantages[target]);
                row += 1;
            }
        }
        for row in used..count {
            let all = TokenSet::ALL.0;
            let values = [u32::from(PAD), u32::from(PAD), row as u32, row as u32 + 1, 0, all as u32, (all >> 32) as u32];
            values.iter().enumerate().for_each(|(column, &value)| columns[column * count + row] = value);
        }
        let chunks = Chunks::of(count, most_chunks);
        let lists = lists(&columns, count, chunks, layout);
        columns.extend(spans);
        constants.extend_from_slice(weights);
        Some(Rows {
            count,
            trajectories: examples.len(),
            table: integers(columns, device)?,
            chunks,
            lists: integers(lists, device)?,
            old: floats(old, device)?,
            constants: floats(constants, device)?,
            grammar: examples.iter().any(|example| !example.legal.is_empty()),
            trains_tool_tokens: examples.iter().any(|example| example.loss_mask != example.sampled),
        })
    }
}

/// The rows of each chunk by their token, then by their position, each in order: see [`Rows::lists`].
fn lists(columns: &[u32], count: usize, chunks: Chunks, layout: &Layout) -> Vec<u32> {
    let vectors = layout.vocabulary + layout.context_length;
    let (mut bounds, mut rows) = (Vec::with_capacity(chunks.count * vectors + 1), Vec::with_capacity(2 * count));
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); vectors];
    for chunk in 0..chunks.count {
        for row in chunk * chunks.rows..((chunk + 1) * chunks.rows).min(count) {
            let position = row - columns[START * count + row] as usize;
            own[columns[TOKEN * count + row] as usize].push(row as u32);
            own[layout.vocabulary + position].push(row as u32);
        }
        for list in &mut own {
            bounds.push(rows.len() as u32);
            rows.append(list);
        }
    }
    bounds.push(rows.len() as u32);
    bounds.append(&mut rows);
    bounds
}

/// Uploads numbers.
fn floats(values: Vec<f32>, device: &Device) -> Option<Buffer> {
    let length = values.len();
    Buffer::floats(Tensor::from_data(TensorData::new(values, [length]), device))
}

/// Uploads whole numbers below 2^32, bit by bit.
pub(super) fn integers(values: Vec<u32>, device: &Device) -> Option<Buffer> {
    let length = values.len();
    let values: Vec<i32> = values.into_iter().map(u32::cast_signed).collect();
    Buffer::integers(Tensor::<1, Int>::from_data(TensorData::new(values, [length]), device))
}
