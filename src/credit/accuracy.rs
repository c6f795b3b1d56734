//! How well assigned credit agrees with true credit, turn by turn, and how sure one can be of it.

use std::collections::BTreeMap;

use super::compare::places;
use crate::rollout::Trajectory;
use crate::seed::{Purpose, RootSeed};

/// How often groups are drawn anew for an interval.
const RESAMPLES: u32 = 500;

/// Fewest turns for which an agreement is given.
const FEWEST_TURNS: usize = 3;

/// Which turns are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum TurnSelection {
    /// Every turn.
    All,
    /// Well-formed tool calls alone.
    Tool,
}

impl TurnSelection {
    /// Whether each turn is selected, `[trajectory][turn]`.
    pub fn of(self, trajectories: &[Trajectory]) -> Vec<Vec<bool>> {
        let selected = |trajectory: &Trajectory| {
            trajectory.turns.iter().map(|turn| self == TurnSelection::All || turn.facts.valid_call).collect()
        };
        trajectories.iter().map(selected).collect()
    }
}

/// An agreement between -1 and 1 (or 0 and 1), with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Agreement {
    pub value: f64,
    /// 2.5 and 97.5 % quantiles over bootstrap samples of whole groups, since turns of a group are not independent. Nothing with
    /// one group, or where most samples have no agreement.
    pub interval: Option<[f64; 2]>,
}

/// Agreement of assigned with true credit.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Accuracy {
    /// How many turns were compared.
    pub turns: usize,
    /// Linear correlation. Nothing where either credit is the same in all turns.
    pub pearson: Option<Agreement>,
    /// Correlation of ranks; equal credits share the mean of their ranks.
    pub spearman: Option<Agreement>,
    /// Share of turns whose credits have the same sign, among those whose true credit is not exactly 0. An assigned credit of
    /// exactly 0 takes no side and counts as one half, so that guessing, and saying nothing, both give 1/2.
    pub sign_agreement: Option<Agreement>,
}

/// An accuracy with the correlation in each bootstrap sample, so that credits of the same turns can be compared.
pub struct Sampled {
    pub accuracy: Accuracy,
    /// Pearson's, of every sample; nothing where it has none.
    correlations: Vec<Option<f64>>,
}

impl Sampled {
    /// By how much its linear correlation is above that of other credit of the same turns, with the interval of that difference over
    /// the same samples: much narrower than either interval, since what is hard about some groups is hard for both. Nothing where
    /// either has no correlation.
    pub fn ahead_of(&self, other: &Sampled) -> Option<Agreement> {
        let value = self.accuracy.pearson?.value - other.accuracy.pearson?.value;
        let both = self.correlations.iter().zip(&other.correlations);
        Some(Agreement { value, interval: interval(both.filter_map(|(own, other)| Some((*own)? - (*other)?)).collect()) })
    }
}

/// [`sampled`] without the samples.
pub fn accuracy(
    groups: &[usize],
    assigned: &[Vec<f64>],
    truth: &[Vec<Option<f64>>],
    selected: &[Vec<bool>],
    seed: RootSeed,
) -> Accuracy {
    sampled(groups, assigned, truth, selected, seed).accuracy
}

/// Compares credits over the turns where `selected` is true and the truth is known. `groups` is `[trajectory]`, the others
/// `[trajectory][turn]`. The draws of the intervals come from `seed`; the same input gives the same intervals.
pub fn sampled(
    groups: &[usize],
    assigned: &[Vec<f64>],
    truth: &[Vec<Option<f64>>],
    selected: &[Vec<bool>],
    seed: RootSeed,
) -> Sampled {
    let (mut x, mut y, mut group_of) = (Vec::new(), Vec::new(), Vec::new());
    for (index, &group) in groups.iter().enumerate() {
        for ((&assigned, &truth), &selected) in assigned[index].iter().zip(&truth[index]).zip(&selected[index]) {
            if let (true, Some(truth)) = (selected, truth) {
                x.push(assigned);
                y.push(truth);
                group_of.push(group);
            }
        }
    }
    let turns = x.len();
    if turns < FEWEST_TURNS {
        let accuracy = Accuracy { turns, pearson: None, spearman: None, sign_agreement: None };
        return Sampled { accuracy, correlations: Vec::new() };
    }
    let (place, count) = places(&group_of);
    let pairs = Pairs::of(&x, &y, &place, count);
    let mut ranks = [Vec::new(), Vec::new()];
    let [pearson, spearman, sign] = pairs.agreements(&vec![1.0; count], &mut ranks);
    let mut samples: [Vec<f64>; 3] = Default::default();
    let mut correlations = Vec::new();
    for resample in 0..if count > 1 { RESAMPLES } else { 0 } {
        let mut draws = seed.draws(Purpose::Bootstrap, resample, 0, 0);
        let mut times = vec![0.0; count];
        (0..count).for_each(|_| times[draws.below(count as u32) as usize] += 1.0);
        let found = pairs.agreements(&times, &mut ranks);
        correlations.push(found[0]);
        samples.iter_mut().zip(found).for_each(|(samples, value)| samples.extend(value));
    }
    let [of_pearson, of_spearman, of_sign] = samples.map(interval);
    let with = |value: Option<f64>, interval| value.map(|value| Agreement { value, interval });
    let accuracy = Accuracy {
        turns,
        pearson: with(pearson, of_pearson),
        spearman: with(spearman, of_spearman),
        sign_agreement: with(sign, of_sign),
    };
    Sampled { accuracy, correlations }
}

/// Sums over the turns of a group, from which sums over any bootstrap sample are made. Credits less their overall means.
#[derive(Clone, Copy)]
struct Sums {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
    /// Smallest and largest, to tell a constant from one that only rounding makes vary.
    range_x: [f64; 2],
    range_y: [f64; 2],
    /// Turns with a true credit other than 0, and how many of them agree in sign.
    signed: f64,
    agreeing: f64,
}

impl Sums {
    const NONE: Sums = Sums {
        count: 0.0,
        x: 0.0,
        y: 0.0,
        xx: 0.0,
        yy: 0.0,
        xy: 0.0,
        range_x: [f64::INFINITY, f64::NEG_INFINITY],
        range_y: [f64::INFINITY, f64::NEG_INFINITY],
        signed: 0.0,
        agreeing: 0.0,
    };

    /// Adds other sums, `times` over.
    fn add(&mut self, other: &Sums, times: f64) {
        if times > 0.0 {
            let wider = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
            *self = Sums {
                count: self.count + times * other.count,
                x: self.x + times * other.x,
                y: self.y + times * other.y,
                xx: self.xx + times * other.xx,
                yy: self.yy + times * other.yy,
                xy: self.xy + times * other.xy,
                range_x: wider(self.range_x, other.range_x),
                range_y: wider(self.range_y, other.range_y),
                signed: self.signed + times * other.signed,
                agreeing: self.agreeing + times * other.agreeing,
            };
        }
    }

    /// Pearson's correlation; nothing where either side is constant.
    fn correlation(&self) -> Option<f64> {
        let varies = |range: [f64; 2]| range[0] < range[1];
        let product = (self.xx - self.x * self.x / self.count) * (self.yy - self.y * self.y / self.count);
        let covariance = self.xy - self.x * self.y / self.count;
        let defined = varies(self.range_x) && varies(self.range_y) && product > 0.0;
        defined.then(|| (covariance / product.sqrt()).clamp(-1.0, 1.0))
    }
}

/// Two credits of the same turns, prepared for many bootstrap samples.
struct Pairs {
    sums: Vec<Sums>,
    /// The runs of equal values of each credit.
    runs: [Runs; 2],
    /// How many turns belong to a run of each credit and to a group: turns alike in these are alike in every sample.
    cells: Vec<([usize; 2], usize, f64)>,
}

impl Pairs {
    fn of(x: &[f64], y: &[f64], place: &[usize], groups: usize) -> Self {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (mean_x, mean_y) = (mean(x), mean(y));
        let mut sums = vec![Sums::NONE; groups];
        for ((&assigned, &truth), &place) in x.iter().zip(y).zip(place) {
            let (x, y) = (assigned - mean_x, truth - mean_y);
            let agrees = if assigned == 0.0 { 0.5 } else { f64::from(u8::from((assigned > 0.0) == (truth > 0.0))) };
            let signed = f64::from(u8::from(truth != 0.0));
            let (range_x, range_y) = ([assigned; 2], [truth; 2]);
            let one =
                Sums { count: 1.0, x, y, xx: x * x, yy: y * y, xy: x * y, range_x, range_y, signed, agreeing: signed * agrees };
            sums[place].add(&one, 1.0);
        }
        let (of_x, of_y) = (run_of(x), run_of(y));
        let mut cells = BTreeMap::<([usize; 2], usize), f64>::new();
        for ((&x, &y), &place) in of_x.iter().zip(&of_y).zip(place) {
            *cells.entry(([x, y], place)).or_default() += 1.0;
        }
        let cells = cells.into_iter().map(|((runs, place), count)| (runs, place, count)).collect();
        Pairs { sums, runs: [Runs::of(&of_x, place), Runs::of(&of_y, place)], cells }
    }

    /// Pearson, Spearman and sign agreement when each group occurs `times` over. `ranks` is room to compute in.
    fn agreements(&self, times: &[f64], ranks: &mut [Vec<f64>; 2]) -> [Option<f64>; 3] {
        let mut all = Sums::NONE;
        self.sums.iter().zip(times).for_each(|(sums, &times)| all.add(sums, times));
        let [x, y] = ranks;
        let xx = self.runs[0].ranks(times, all.count, x);
        let yy = self.runs[1].ranks(times, all.count, y);
        let xy = self.cells.iter().fold(0.0, |sum, &(runs, place, count)| sum + count * times[place] * x[runs[0]] * y[runs[1]]);
        let spearman = (xx > 0.0 && yy > 0.0).then(|| (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0));
        [all.correlation(), spearman, (all.signed > 0.0).then(|| all.agreeing / all.signed)]
    }
}

/// Runs of equal values, from the smallest to the largest.
struct Runs {
    /// Groups that have turns in a run, with their number; run after run.
    entries: Vec<(usize, f64)>,
    /// Where each run ends in `entries`.
    ends: Vec<usize>,
}

impl Runs {
    /// From the run and the group of each turn.
    fn of(run: &[usize], place: &[usize]) -> Self {
        let mut counts = BTreeMap::<(usize, usize), f64>::new();
        run.iter().zip(place).for_each(|(&run, &place)| *counts.entry((run, place)).or_default() += 1.0);
        let mut ends = vec![0; run.iter().max().map_or(0, |&last| last + 1)];
        counts.keys().enumerate().for_each(|(index, &(run, _))| ends[run] = index + 1);
        Runs { entries: counts.into_iter().map(|((_, place), count)| (place, count)).collect(), ends }
    }

    /// The rank of each run less the mean rank, and the sum of their squares over turns, of which there are `count`. Equal credits
    /// share the mean of their ranks.
    fn ranks(&self, times: &[f64], count: f64, ranks: &mut Vec<f64>) -> f64 {
        ranks.clear();
        let (mut start, mut below, mut squares) = (0, 0.0, 0.0);
        for &end in &self.ends {
            let weight = self.entries[start..end].iter().fold(0.0, |sum, &(place, count)| sum + count * times[place]);
            let rank = below + (weight - count) / 2.0;
            ranks.push(rank);
            below += weight;
            squares += weight * rank * rank;
            start = end;
        }
        squares
    }
}

/// The run of each value: equal values have the same, larger ones a later one.
fn run_of(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut run = vec![0; values.len()];
    for pair in order.windows(2) {
        run[pair[1]] = run[pair[0]] + usize::from(values[pair[0]] != values[pair[1]]);
    }
    run
}

/// The 2.5 and 97.5 % quantiles, if at least half of the samples gave a value.
fn interval(mut samples: Vec<f64>) -> Option<[f64; 2]> {
    samples.sort_by(f64::total_cmp);
    let at = |share: f64| samples[(share * (samples.len() - 1) as f64).round() as usize];
    (2 * samples.len() >= RESAMPLES as usize).then(|| [at(0.025), at(0.975)])
}
