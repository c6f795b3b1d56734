//! What a rollout holds on the device while rows are decoded, and the two launches of a turn.

use burn::tensor::{Device, Int, Tensor, TensorData};
use cubecl::client::Client;
use cubecl::prelude::{CubeCount, CubeDim};

use super::Buffer;
use super::decode::{FORBIDDEN, START, decode};
use super::prefill::{SPAN, prefill};
use super::shape::Shape;
use crate::policy::{Layout, Policy};

/// Bytes of the cache at most: what a storage buffer may have on every WebGPU device.
const CACHE_BYTES: usize = 128 << 20;

/// How the work of a step is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows of a workgroup while decoding, and tokens of a row at a time in a prefill: a power of two. Fewer are taken where
    /// workgroup memory is short.
    pub lanes: usize,
    /// Units (invocations) of a workgroup.
    pub units: usize,
}

impl Tile {
    /// The tile for a policy on a device: a unit per column of the narrowest products, so that every weight is read once for four
    /// lanes. Where the widest group of units that the hardware runs in step has four or fewer, the device is a processor with
    /// vector registers (SwiftShader): there a workgroup is such a group, which makes barriers nearly free, and serves more lanes.
    /// Not so on Mesa's lavapipe, whose groups have eight units: it ends a unit's loops after 65,535 iterations in all
    /// (`LP_MAX_TGSI_LOOP_ITERATIONS` in its source), which few units reach within a turn.
    fn of(layout: &Layout, client: &Client) -> Tile {
        let in_step = client.properties().hardware.plane_size_max as usize;
        if in_step <= 4 {
            return Tile { lanes: 8, units: in_step.max(4) };
        }
        Tile { lanes: 4, units: layout.d_model.next_power_of_two().clamp(64, 256) }
    }
}

/// Weights, cache and grammar on the device.
pub struct Decoder {
    weights: Buffer,
    cache: Buffer,
    grammar: Buffer,
    restricted: bool,
    shape: Shape,
    device: Device,
}

/// Where a row's tokens are in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Row of the cache.
    pub row: usize,
    /// Row that holds the first slots (itself, or one that starts with the same tokens).
    pub origin: usize,
    /// How many slots that row holds for this one.
    pub shared: usize,
}

/// Tokens that are given, to be added to a row.
#[derive(Clone, Debug)]
pub struct Span<'a> {
    pub home: Home,
    /// Position of the first token.
    pub slot: usize,
    pub tokens: &'a [u8],
}

/// Where a row begins to sample.
#[derive(Clone, Debug)]
pub struct Start {
    pub home: Home,
    /// Position of the last token so far, which is not in the cache yet.
    pub slot: usize,
    /// That token.
    pub token: u8,
    /// Most tokens to sample.
    pub most: usize,
    /// A multiple of 2^-24 for each token: see [`crate::seed::Draws::unit_at`].
    pub uniforms: Vec<u32>,
}

/// A grammar as the kernel reads it: for each state and token the next state, `None` where the token is forbidden.
pub type Edges = Vec<Option<u8>>;

impl Decoder {
    /// Room for `rows` trajectories of at most `slots` tokens, and a copy of the weights as they are now. `edges` is
    /// `[states, V]`, where a grammar restricts sampling. Without a `tile` that of the device is taken.
    ///
    /// `None` where there are no kernels for the device or the policy, or too many rows: see [`Decoder::most_rows`].
    pub fn new(policy: &Policy, rows: usize, slots: usize, edges: Option<Edges>, tile: Option<Tile>) -> Option<Decoder> {
        if rows > Decoder::most_rows(policy, slots)? {
            return None;
        }
        let device = policy.device().without_autodiff();
        let weights = Buffer::floats(Tensor::cat(policy.tensors(), 0))?;
        let layout = Layout::of(policy)?;
        let shape = Shape::new(layout, slots, tile.unwrap_or_else(|| Tile::of(&layout, weights.client())))?;
        let restricted = edges.is_some();
        let next = |edge: Option<u8>| edge.map_or(FORBIDDEN, u32::from);
        let grammar: Vec<u32> = edges.map_or(vec![0], |edges| edges.into_iter().map(next).collect());
        Some(Decoder {
            cache: Buffer::room(rows * shape.row(), &device)?,
            grammar: upload(grammar, &device)?,
            weights,
            restricted,
            shape,
            device,
        })
    }

    /// How many rows one decoder may have; `None` where kernels do not run on the policy's device or do not fit the policy.
    pub fn most_rows(policy: &Policy, slots: usize) -> Option<usize> {
        if !super::runs_on(&policy.device()) {
            return None;
        }
        let layout = Layout::of(policy).filter(|layout| slots <= layout.context_length)?;
        let shape = Shape::new(layout, slots, Tile { lanes: 1, units: 1 })?;
        Some((CACHE_BYTES / 4 / shape.row()).max(1))
    }

    /// Lanes and units of a workgroup.
    pub fn tile(&self) -> Tile {
        Tile { lanes: self.shape.lanes, units: self.shape.units }
    }

    /// Adds given tokens to the cache: one dispatch, or none where there are no tokens.
    pub fn prefill(&self, spans: &[Span]) {
        let spans: Vec<&Span> = spans.iter().filter(|span| !span.tokens.is_empty()).collect();
        let most = spans.iter().map(|span| span.tokens.len()).max().unwrap_or(0);
        let mut numbers: Vec<u32> = Vec::new();
        let mut place = spans.len() * SPAN;
        for span in &spans {
            let count = span.tokens.len();
            numbers.extend(span.home.numbers());
            numbers.extend([span.slot, place, count].map(|number| number as u32));
            place += count;
        }
        numbers.extend(spans.iter().flat_map(|span| span.tokens).map(|&token| u32::from(token)));
        let Some(uploaded) = (most > 0).then(|| upload(numbers, &self.device)).flatten() else { return };
        prefill::launch(
            self.weights.client(),
            CubeCount::Static(spans.len() as u32, 1, 1),
            CubeDim::new_1d(self.shape.units as u32),
            self.weights.arg(),
            self.cache.arg(),
            uploaded.arg(),
            most as u32,
            self.shape,
        );
    }

    /// Samples up to `turn_tokens` tokens for every row, `stop` ending a row: one dispatch. Gives `[rows, 2 turn_tokens]` as one
    /// vector: tokens (exact in `f32`), then log-probabilities; what lies behind a row's end is undefined.
    pub fn decode(&self, starts: &[Start], turn_tokens: usize, stop: u32, temperature: f32) -> Option<Tensor<1>> {
        let mut numbers = Vec::with_capacity(starts.len() * (START + turn_tokens));
        for start in starts {
            numbers.extend(start.home.numbers());
            numbers.extend([start.slot as u32, u32::from(start.token), start.most as u32]);
            numbers.extend((0..turn_tokens).map(|token| start.uniforms.get(token).copied().unwrap_or(0)));
        }
        let uploaded = upload(numbers, &self.device)?;
        let drawn = Buffer::room(starts.len() * 2 * turn_tokens, &self.device)?;
        decode::launch(
            self.weights.client(),
            CubeCount::Static(starts.len().div_ceil(self.shape.lanes) as u32, 1, 1),
            CubeDim::new_1d(self.shape.units as u32),
            self.weights.arg(),
            self.cache.arg(),
            uploaded.arg(),
            self.grammar.arg(),
            drawn.arg(),
            starts.len() as u32,
            turn_tokens as u32,
            stop,
            temperature,
            self.restricted,
            self.shape,
        );
        Some(drawn.into_tensor())
    }
}

impl Home {
    fn numbers(&self) -> [u32; 3] {
        [self.row, self.origin, self.shared].map(|number| number as u32)
    }
}

/// Integers on the device; no dispatch.
fn upload(numbers: Vec<u32>, device: &Device) -> Option<Buffer> {
    let numbers: Vec<i32> = numbers.into_iter().map(u32::cast_signed).collect();
    let length = numbers.len();
    Buffer::integers(Tensor::<1, Int>::from_data(TensorData::new(numbers, [length]), device))
}
