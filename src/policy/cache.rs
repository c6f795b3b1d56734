//! Keys and values of the tokens so far, for decoding without repeating work.

use burn::tensor::{Device, Tensor, TensorData};

/// Added to attention scores that must not count: large enough that the softmax gives exactly 0, finite so that a row which
/// sees nothing gives numbers and not NaN.
pub(super) const HIDDEN: f32 = -1e9;

/// Slots are added this many at a time.
const GROWTH: usize = 32;

/// Key and value slots of every layer, `[B, H, capacity, d / H]` each. All rows fill the same slot at the same time; rows
/// whose token in a slot does not count hide it ([`Visible`]).
#[derive(Debug)]
pub struct Cache {
    keys: Vec<Tensor<4>>,
    values: Vec<Tensor<4>>,
    filled: usize,
}

impl Cache {
    /// An empty cache.
    pub fn new(layers: usize, batch: usize, heads: usize, head_width: usize, device: &Device) -> Self {
        let empty = || (0..layers).map(|_| Tensor::zeros([batch, heads, GROWTH, head_width], device)).collect();
        Cache { keys: empty(), values: empty(), filled: 0 }
    }

    /// Slots in use.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Writes `key` and `value` `[B, H, n, d / H]` behind the filled slots and gives all slots so far, these included.
    pub(super) fn append(&mut self, layer: usize, key: Tensor<4>, value: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        let end = self.filled + key.dims()[2];
        let all = |store: &mut Tensor<4>, new: Tensor<4>| {
            let [batch, heads, capacity, width] = store.dims();
            if end > capacity {
                let more = (end - capacity).next_multiple_of(GROWTH);
                store.inplace(|store| {
                    let room = Tensor::zeros([batch, heads, more, width], &store.device());
                    Tensor::cat(vec![store, room], 2)
                });
            }
            let place = [0..batch, 0..heads, self.filled..end, 0..width];
            store.inplace(|store| store.slice_assign(place, new));
            store.clone().slice([0..batch, 0..heads, 0..end, 0..width])
        };
        (all(&mut self.keys[layer], key), all(&mut self.values[layer], value))
    }

    /// Counts the slots just written as filled.
    pub(super) fn advance(&mut self, slots: usize) {
        self.filled += slots;
    }

    /// Keeps the given rows, in that order; a row may be given more than once.
    pub fn keep_rows(&mut self, rows: &[usize]) {
        let Some(first) = self.keys.first() else { return };
        let index = rows.iter().map(|&row| row as i32).collect::<Vec<_>>();
        let index = Tensor::from_data(TensorData::new(index, [rows.len()]), &first.device());
        for store in self.keys.iter_mut().chain(&mut self.values) {
            store.inplace(|store| store.select(0, index.clone()));
        }
    }
}

/// Which slots the new tokens of each row may attend to.
#[derive(Clone, Debug)]
pub struct Visible {
    batch: usize,
    new: usize,
    slots: usize,
    bias: Vec<f32>,
}

impl Visible {
    /// `old[row]` tells for each filled slot whether the row may see it; `new[row]` for each of the `n` new tokens whether it
    /// counts. A new token sees the visible old slots and the new tokens up to itself that count.
    pub fn new(old: &[&[bool]], new: &[&[bool]]) -> Self {
        let (filled, length) = (old.first().map_or(0, |row| row.len()), new.first().map_or(0, |row| row.len()));
        let mut bias = Vec::with_capacity(old.len() * length * (filled + length));
        for (old, new) in old.iter().zip(new) {
            for query in 0..length {
                bias.extend(old.iter().map(|&seen| if seen { 0.0 } else { HIDDEN }));
                bias.extend(new.iter().enumerate().map(|(key, &counts)| if counts && key <= query { 0.0 } else { HIDDEN }));
            }
        }
        Visible { batch: old.len(), new: length, slots: filled + length, bias }
    }

    /// `[B, 1, n, S]`, to be added to attention scores.
    pub(super) fn bias(&self, device: &Device) -> Tensor<4> {
        Tensor::from_data(TensorData::new(self.bias.clone(), [self.batch, 1, self.new, self.slots]), device)
    }
}
