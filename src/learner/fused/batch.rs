//! Examples as the kernels take them: rows of all trajectories one after another, without padding between them.
//!
//! A row is an input token with its target. Matrix products act on rows whatever trajectory they belong to, and attention looks from
//! the first row of its own trajectory on, so that no work is done on padding and trajectories need not be sorted by length. The
//! number of rows is rounded up to whole tiles with rows that are trajectories of their own and train nothing.
//!
//! The loss needs the distribution of some rows only, those whose target was sampled or is trained: the *wanted* rows. In the last layer
//! attention still reads the keys and values of all, but what comes after it is computed for these alone.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::product::TILE;
use crate::kernel::Buffer;
use crate::learner::TrainingExample;
use crate::policy::Layout;
use crate::vocabulary::{PAD, Token, TokenSet};

/// Columns of the table of rows, each as long as there are rows: token, first row of the trajectory, row after its last, place among the
/// wanted rows from 1 on (0: not among them).
pub(super) const TOKEN: usize = 0;
pub(super) const START: usize = 1;
pub(super) const END: usize = 2;
pub(super) const PLACE: usize = 3;
const ROW_COLUMNS: usize = 4;

/// Columns of the table of wanted rows, each as long as there are of them: row, target, flags, two words of legal tokens. After them, for
/// every trajectory the first of its wanted rows and their number.
pub(super) const ROW: usize = 0;
pub(super) const TARGET: usize = 1;
pub(super) const FLAGS: usize = 2;
pub(super) const LEGAL: usize = 3;
pub(super) const END_COLUMNS: usize = 5;

/// Flags: the token is trained; the policy sampled it.
pub(super) const TRAINED: u32 = 1;
pub(super) const SAMPLED: u32 = 2;

/// Examples on the device.
pub(super) struct Rows {
    /// Number of rows, a multiple of [`TILE`].
    pub count: usize,
    /// Number of wanted rows, a multiple of [`TILE`]: some of the others fill up the last tile.
    pub wanted: usize,
    /// The place of every row among the wanted ones, from 1 on; 0 where it is not among them.
    pub places: Vec<u32>,
    /// Trajectories.
    pub trajectories: usize,
    /// The table of rows, see [`TOKEN`].
    pub table: Buffer,
    /// The table of wanted rows, see [`ROW`].
    pub wanted_table: Buffer,
    pub chunks: Chunks,
    /// Which rows of a chunk have a token or a position. For every chunk, symbol and position where its list begins (and where the last
    /// one ends), then the lists.
    pub lists: Buffer,
    /// Log-probability of each wanted row's target when it was sampled; 0 where it was not.
    pub old: Buffer,
    /// Advantage of each wanted row's target; then the weight of every trajectory in the loss.
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
        let mut flags: Vec<u32> = Vec::with_capacity(count);
        for example in examples {
            let of = |target: usize| {
                let trained = if example.loss_mask[target] { TRAINED } else { 0 };
                trained | if example.sampled[target] { SAMPLED } else { 0 }
            };
            flags.extend((1..example.tokens.len()).map(of));
        }
        flags.resize(count, 0);
        let places = places(&flags);
        let wanted = places.iter().filter(|&&place| place > 0).count();

        let mut table = vec![0u32; ROW_COLUMNS * count];
        table[PLACE * count..].copy_from_slice(&places);
        let mut wanted_table = vec![0u32; END_COLUMNS * wanted];
        let (mut old, mut constants) = (vec![0.0; wanted], vec![0.0; wanted]);
        let mut set = |row: usize, token: Token, (start, end): (usize, usize), target: Token, legal: u64, numbers: (f32, f32)| {
            let columns = [u32::from(token), start as u32, end as u32];
            columns.iter().enumerate().for_each(|(column, &value)| table[column * count + row] = value);
            if let Some(place) = (places[row] as usize).checked_sub(1) {
                let columns = [row as u32, u32::from(target), flags[row], legal as u32, (legal >> 32) as u32];
                columns.iter().enumerate().for_each(|(column, &value)| wanted_table[column * wanted + place] = value);
                (old[place], constants[place]) = numbers;
            }
        };
        let mut spans = Vec::with_capacity(2 * examples.len());
        let (mut row, mut place) = (0, 0);
        for example in examples {
            let (start, end) = (row, row + rows_of(example));
            let own = places[start..end].iter().filter(|&&place| place > 0).count() as u32;
            spans.extend([place, own]);
            place += own;
            for target in 1..example.tokens.len() {
                let legal = example.legal.get(target).copied().unwrap_or(TokenSet::ALL).0;
                let numbers = (example.old_log_probs[target], example.advantages[target]);
                set(row, example.tokens[target - 1], (start, end), example.tokens[target], legal, numbers);
                row += 1;
            }
        }
        for row in used..count {
            set(row, PAD, (row, row + 1), PAD, TokenSet::ALL.0, (0.0, 0.0));
        }
        let chunks = Chunks::of(count, most_chunks);
        let lists = lists(&table, count, chunks, layout);
        wanted_table.extend(spans);
        constants.extend_from_slice(weights);
        Some(Rows {
            count,
            wanted,
            places,
            trajectories: examples.len(),
            table: integers(table, device)?,
            wanted_table: integers(wanted_table, device)?,
            chunks,
            lists: integers(lists, device)?,
            old: floats(old, device)?,
            constants: floats(constants, device)?,
            grammar: examples.iter().any(|example| !example.legal.is_empty()),
            trains_tool_tokens: examples.iter().any(|example| example.loss_mask != example.sampled),
        })
    }
}

/// The places of rows with flags among the wanted ones, in order, from 1 on; 0 for others. The last of those fill up the last tile.
fn places(flags: &[u32]) -> Vec<u32> {
    let mut wanted: Vec<bool> = flags.iter().map(|&flags| flags > 0).collect();
    let count = wanted.iter().filter(|&&wanted| wanted).count();
    let missing = count.next_multiple_of(TILE).max(TILE) - count;
    wanted.iter_mut().rev().filter(|wanted| !**wanted).take(missing).for_each(|wanted| *wanted = true);
    let mut place = 0;
    let of = |wanted: bool| {
        place += u32::from(wanted);
        if wanted { place } else { 0 }
    };
    wanted.into_iter().map(of).collect()
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
