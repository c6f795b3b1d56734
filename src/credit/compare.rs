//! Comparing values with those of peers: mean, spread and count, under the conventions that frameworks use.

use std::collections::HashMap;
use std::hash::Hash;

use crate::config::{ExperimentConfig, ScaleRewards};

/// How a standard deviation becomes a divisor that is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpsilonOn {
    /// `std + epsilon` (TRL, verl, rLLM).
    Deviation,
    /// `sqrt(variance + epsilon)` (the masked whitening of verl and SkyRL).
    Variance,
    /// `max(std, epsilon)`.
    DeviationFloor,
    /// `sqrt(max(variance, epsilon))` (the masked whitening of OpenRLHF).
    VarianceFloor,
}

/// A standard deviation as a divisor. The sum of squares is divided by the number of values less `ddof`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub ddof: usize,
    pub epsilon: f64,
    pub epsilon_on: EpsilonOn,
}

impl Spread {
    /// The divisor for a sum of squared differences over a total weight (the count, without weights).
    fn divisor(self, squares: f64, weight: f64) -> f64 {
        let freedom = weight - self.ddof as f64;
        let variance = if freedom > 0.0 { squares / freedom } else { 0.0 };
        match self.epsilon_on {
            EpsilonOn::Deviation => variance.sqrt() + self.epsilon,
            EpsilonOn::Variance => (variance + self.epsilon).sqrt(),
            EpsilonOn::DeviationFloor => variance.sqrt().max(self.epsilon),
            EpsilonOn::VarianceFloor => variance.max(self.epsilon).sqrt(),
        }
    }
}

/// What differences from the baseline are divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// Nothing.
    None,
    /// The spread over the peers.
    Group(Spread),
    /// The spread over all values of the batch (TRL's `scale_rewards="batch"`).
    Batch(Spread),
}

impl Scaling {
    /// The sample deviation plus 1e-4, which are TRL's values, so that figures can be compared.
    pub const SAMPLE: Spread = Spread { ddof: 1, epsilon: 1e-4, epsilon_on: EpsilonOn::Deviation };
    /// What the setting `group` means.
    pub const GROUP: Scaling = Scaling::Group(Scaling::SAMPLE);
    /// What the setting `batch` means.
    pub const BATCH: Scaling = Scaling::Batch(Scaling::SAMPLE);

    /// The setting of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        match config.scale_rewards {
            ScaleRewards::Group => Scaling::GROUP,
            ScaleRewards::Batch => Scaling::BATCH,
            ScaleRewards::None => Scaling::None,
        }
    }

    /// The divisors of differences whose expectation is 0 whatever the policy, such as temporal differences: their root mean
    /// square about 0 (not about their mean, which would let a lone difference explode) takes the place of the deviation.
    pub(super) fn about_zero<K: Copy + Eq + Hash>(self, keys: &[K], differences: &[f64]) -> Vec<f64> {
        let square = |squares: (f64, f64), difference: &f64| (squares.0 + difference * difference, squares.1 + 1.0);
        match self {
            Scaling::None => vec![1.0; differences.len()],
            Scaling::Batch(spread) => {
                let (squares, count) = differences.iter().fold((0.0, 0.0), square);
                vec![Spread { ddof: 0, ..spread }.divisor(squares, count); differences.len()]
            }
            Scaling::Group(spread) => {
                let (places, count) = places(keys);
                let mut sums = vec![(0.0, 0.0); count];
                places.iter().zip(differences).for_each(|(&place, difference)| sums[place] = square(sums[place], difference));
                places.iter().map(|&place| Spread { ddof: 0, ..spread }.divisor(sums[place].0, sums[place].1)).collect()
            }
        }
    }
}

/// What a value without peers is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lone {
    /// 0: there is nothing to compare it with. Ours, and TRL's.
    Zero,
    /// Itself, as if its peers had mean 0 and deviation 1 (verl, SkyRL, rLLM).
    Raw,
}

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convention {
    pub scaling: Scaling,
    pub lone: Lone,
}

impl Convention {
    /// Ours, with the scaling of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        Convention { scaling: Scaling::of(config), lone: Lone::Zero }
    }
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Mean of the peers. Where all are equal it is exactly their value, so that rounding makes no signal.
    pub baseline: f64,
    /// What the difference is divided by; 1 without scaling.
    pub scale: f64,
    /// How many values the mean is over, this one included.
    pub peers: usize,
}

impl Comparison {
    /// `(value - baseline) / scale`.
    pub fn advantage(&self, value: f64) -> f64 {
        (value - self.baseline) / self.scale
    }
}

/// Values that differ by no more than this share of their size are equal.
const ROUNDING: f64 = 1e-12;

/// Whether two values are equal up to the rounding of sums.
pub(super) fn equal(low: f64, high: f64) -> bool {
    high - low <= ROUNDING * low.abs().max(high.abs())
}

/// Sums over the values with one key.
#[derive(Clone, Copy)]
struct Peers {
    weight: f64,
    sum: f64,
    squares: f64,
    count: usize,
    low: f64,
    high: f64,
}

impl Peers {
    const NONE: Peers = Peers { weight: 0.0, sum: 0.0, squares: 0.0, count: 0, low: f64::INFINITY, high: f64::NEG_INFINITY };

    fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.sum += weight * value;
        self.count += 1;
        (self.low, self.high) = (self.low.min(value), self.high.max(value));
    }

    /// Equal values count as such by comparing the maximum with the minimum, up to the rounding of the sums that they are: no
    /// signal may be made of that.
    fn flat(&self) -> bool {
        self.count > 0 && equal(self.low, self.high)
    }

    fn mean(&self) -> f64 {
        if self.flat() {
            self.low
        } else if self.weight > 0.0 {
            self.sum / self.weight
        } else {
            0.0
        }
    }
}

/// For each key its index among the different keys, in order of appearance, and how many there are.
pub(super) fn places<K: Copy + Eq + Hash>(keys: &[K]) -> (Vec<usize>, usize) {
    let mut known: HashMap<K, usize> = HashMap::new();
    let places = keys
        .iter()
        .map(|&key| {
            let next = known.len();
            *known.entry(key).or_insert(next)
        })
        .collect();
    (places, known.len())
}

/// Compares each value with those that have the same key. `keys` and `values` have the same length.
pub fn compare<K: Copy + Eq + Hash>(keys: &[K], values: &[f64], convention: Convention) -> Vec<Comparison> {
    compare_weighted(keys, values, &vec![1.0; values.len()], convention)
}

/// Like [`compare`], with a non-negative weight for each value in mean and variance. `ddof` is taken from the total weight.
pub fn compare_weighted<K: Copy + Eq + Hash>(
    keys: &[K],
    values: &[f64],
    weights: &[f64],
    convention: Convention,
) -> Vec<Comparison> {
    let (places, count) = places(keys);
    let mut peers = vec![Peers::NONE; count];
    let mut all = Peers::NONE;
    for ((&place, &value), &weight) in places.iter().zip(values).zip(weights) {
        peers[place].add(value, weight);
        all.add(value, weight);
    }
    let (means, mean) = (peers.iter().map(Peers::mean).collect::<Vec<_>>(), all.mean());
    for ((&place, &value), &weight) in places.iter().zip(values).zip(weights) {
        peers[place].squares += weight * (value - means[place]).powi(2);
        all.squares += weight * (value - mean).powi(2);
    }
    let scale = |peers: &Peers| match convention.scaling {
        Scaling::None => 1.0,
        Scaling::Group(spread) => spread.divisor(peers.squares, peers.weight),
        Scaling::Batch(spread) => spread.divisor(all.squares, all.weight),
    };
    let alone = match convention.scaling {
        Scaling::None => 1.0,
        Scaling::Group(spread) | Scaling::Batch(spread) => Spread { ddof: 0, ..spread }.divisor(1.0, 1.0),
    };
    let of = |(place, peers): (usize, &Peers)| match convention.lone {
        Lone::Raw if peers.count == 1 => Comparison { baseline: 0.0, scale: alone, peers: 1 },
        _ => Comparison { baseline: means[place], scale: scale(peers), peers: peers.count },
    };
    let comparisons: Vec<Comparison> = peers.iter().enumerate().map(of).collect();
    // Equal values are compared with themselves: exactly 0 comes of that.
    let lone_raw = |place: usize| convention.lone == Lone::Raw && peers[place].count == 1;
    let own = |place: usize| peers[place].flat() && !lone_raw(place);
    let with = |(&place, &value): (&usize, &f64)| match own(place) {
        true => Comparison { baseline: value, ..comparisons[place] },
        false => comparisons[place],
    };
    places.iter().zip(values).map(with).collect()
}

/// Centring and division over the trained tokens of a batch: `(x - mean) / scale`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Whitening {
    /// Mean over the trained tokens: a turn counts once for each of them.
    pub mean: f64,
    /// Standard deviation over the trained tokens, epsilon included.
    pub scale: f64,
    /// How many tokens.
    pub tokens: usize,
}

impl Whitening {
    /// verl's masked whitening, and ours: sample variance plus 1e-8 under the root.
    pub const VERL: Spread = Spread { ddof: 1, epsilon: 1e-8, epsilon_on: EpsilonOn::Variance };

    /// Statistics of `values`, of which each counts `tokens` times. Values of no token are left out. Equal values are whitened
    /// to exactly 0.
    pub fn of(values: &[f64], tokens: &[f64], spread: Spread) -> Self {
        let counted = || values.iter().zip(tokens).filter(|&(_, &tokens)| tokens > 0.0);
        let mut all = Peers::NONE;
        counted().for_each(|(&value, &tokens)| all.add(value, tokens));
        let mean = if all.count == 0 { 0.0 } else { all.mean() };
        let squares = counted().fold(0.0, |sum, (value, tokens)| sum + tokens * (value - mean).powi(2));
        Whitening { mean, scale: spread.divisor(squares, all.weight), tokens: all.weight as usize }
    }

    /// A value, whitened.
    pub fn apply(&self, value: f64) -> f64 {
        (value - self.mean) / self.scale
    }
}
