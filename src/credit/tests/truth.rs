//! True credit and agreement with it.

use super::*;
use crate::seed::{Purpose, RootSeed};

fn re_rolls(returns: &[f64]) -> ReRolls {
    let mut rolls = ReRolls::default();
    returns.iter().for_each(|&value| rolls.push(value));
    rolls
}

#[test]
fn re_rolls_keep_mean_and_error() {
    let rolls = re_rolls(&[1.0, 0.0, 0.0, 1.0, 1.0]);
    assert_close(&[rolls.mean, rolls.squares], &[0.6, 1.2], 1e-12);
    assert_close(&[rolls.error_variance().unwrap()], &[0.06], 1e-12);
    assert_eq!((ReRolls::default().value(), re_rolls(&[0.5]).error_variance()), (None, None));
}

/// Two members start alike and go apart; a third, of another group, has the same hashes.
fn shared() -> Evidence {
    Evidence {
        histories: vec![vec![0, 1, 2], vec![0, 3, 4], vec![0, 1]],
        ..Evidence::of_rewards(&[0, 0, 1], &[vec![0.0, 1.0], vec![0.5, 0.0], vec![1.0]])
    }
}

#[test]
fn identical_prefixes_of_a_group_are_one_state() {
    let prefixes = Prefixes::of(&shared());
    assert_eq!(prefixes.of_turn, [vec![0, 1], vec![0, 2], vec![3]]);
    assert_eq!(prefixes.holders, [vec![(0, 0), (1, 0)], vec![(0, 1)], vec![(1, 1)], vec![(2, 0)]]);
}

#[test]
fn true_credit_is_the_reward_plus_the_change_of_value() {
    let (evidence, prefixes) = (shared(), Prefixes::of(&shared()));
    let rolls = [re_rolls(&[1.0, 0.0, 0.0, 1.0]), re_rolls(&[1.0, 1.0]), re_rolls(&[0.0]), ReRolls::default()];
    let truth = TrueCredit::of(&evidence.rewards, &prefixes, &rolls, 0.9);
    let start_error: f64 = 1.0 / 12.0; // sample variance 1/3 over 4
    assert_eq!(truth.credits, [vec![Some(0.9 - 0.5), Some(0.0)], vec![Some(0.5 - 0.5), Some(0.0)], vec![None]]);
    assert_eq!(truth.standard_errors[0], [Some(start_error.sqrt()), Some(0.0)]);
    // One re-roll gives a value, but no error.
    assert_eq!(truth.standard_errors[1..], [vec![None, None], vec![None]]);
    assert_eq!((truth.values[0].clone(), truth.complete_values()), (vec![Some(0.5), Some(1.0)], None));
    let noisy = [rolls[0], re_rolls(&[0.0, 1.0]), rolls[2], rolls[3]];
    let truth = TrueCredit::of(&evidence.rewards, &prefixes, &noisy, 0.5);
    assert_close(&[truth.standard_errors[0][0].unwrap()], &[(start_error + 0.25 * 0.25).sqrt()], 1e-12);
}

#[test]
fn reliability_is_the_share_of_real_spread() {
    let estimates = |credits: &[f64], errors: &[f64]| TrueCredit {
        credits: vec![credits.iter().map(|&x| Some(x)).collect()],
        standard_errors: vec![errors.iter().map(|&x| Some(x)).collect()],
        values: vec![],
    };
    let all = [vec![true; 3]];
    assert_eq!(estimates(&[-1.0, 0.0, 1.0], &[0.5, 0.5, 0.5]).reliability(&all), Some(0.75));
    assert_eq!(estimates(&[-1.0, 0.0, 1.0], &[2.0, 2.0, 2.0]).reliability(&all), Some(0.0));
    assert_eq!(estimates(&[1.0, 1.0, 1.0], &[0.5, 0.5, 0.5]).reliability(&all), None);
    assert_eq!(estimates(&[-1.0, 0.0, 1.0], &[0.5; 3]).reliability(&[vec![true, true, false]]), None);
}

#[test]
fn reliability_is_the_squared_correlation_with_what_re_rolls_measure() {
    // Credits known exactly, each measured with 8 re-rolls that succeed with that probability.
    let mut draws = RootSeed(3).draws(Purpose::Question, 0, 0, 0);
    let (mut chances, mut rolls) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        let chance = f64::from(draws.unit());
        rolls.push(re_rolls(&(0..8).map(|_| f64::from(u8::from(draws.chance(chance)))).collect::<Vec<_>>()));
        chances.push(-chance);
    }
    // One turn each: the credit is the reward 0 less the value before.
    let rewards = vec![vec![0.0]; chances.len()];
    let groups: Vec<usize> = (0..chances.len()).map(|index| index / 100).collect();
    let prefixes = Prefixes::of(&Evidence::of_rewards(&groups, &rewards));
    let truth = TrueCredit::of(&rewards, &prefixes, &rolls, 1.0);
    let all = vec![vec![true]; chances.len()];
    let assigned: Vec<Vec<f64>> = chances.iter().map(|&chance| vec![chance]).collect();
    let agreement = accuracy(&groups, &assigned, &truth.credits, &all, RootSeed(0)).pearson.unwrap().value;
    assert_close(&[truth.reliability(&all).unwrap()], &[agreement.powi(2)], 0.03);
}

/// Some groups are harder for everybody: each correlation is uncertain, and which of the two is larger is not.
#[test]
fn credits_are_compared_on_the_same_groups() {
    let mut draws = RootSeed(5).draws(Purpose::Question, 0, 0, 0);
    let (mut truth, mut near, mut far) = (Vec::new(), Vec::new(), Vec::new());
    for group in 0..12 {
        let hard = if group % 2 == 0 { 3.0 } else { 0.2 };
        for _ in 0..8 {
            let (value, noise) = (f64::from(draws.unit()) - 0.5, f64::from(draws.unit()) - 0.5);
            truth.push(value);
            near.push(value + hard * noise);
            far.push(value + 1.3 * hard * noise);
        }
    }
    let rows = |values: &[f64]| -> Vec<Vec<f64>> { values.chunks(8).map(<[f64]>::to_vec).collect() };
    let known: Vec<Vec<Option<f64>>> = rows(&truth).into_iter().map(|row| row.into_iter().map(Some).collect()).collect();
    let (groups, selected): (Vec<usize>, _) = ((0..12).collect(), vec![vec![true; 8]; 12]);
    let over = |values: &[f64]| sampled(&groups, &rows(values), &known, &selected, RootSeed(0));
    let (near, far) = (over(&near), over(&far));
    let interval = |sampled: &Sampled| sampled.accuracy.pearson.and_then(|pearson| pearson.interval).unwrap();
    assert!(interval(&near)[0] < interval(&far)[1], "the intervals of the two overlap");
    let ahead = near.ahead_of(&far).unwrap();
    assert_eq!(ahead.value, near.accuracy.pearson.unwrap().value - far.accuracy.pearson.unwrap().value);
    assert!(ahead.interval.unwrap()[0] > 0.0, "{ahead:?}");
    let itself = near.ahead_of(&near).unwrap();
    assert_eq!((itself.value, itself.interval), (0.0, Some([0.0, 0.0])));
}

/// Credits of turns in groups of `size`, one trajectory to a group.
fn compared(assigned: &[f64], truth: &[f64], size: usize) -> Accuracy {
    let rows: Vec<Vec<f64>> = assigned.chunks(size).map(<[f64]>::to_vec).collect();
    let truth: Vec<Vec<Option<f64>>> = truth.chunks(size).map(|row| row.iter().map(|&x| Some(x)).collect()).collect();
    let selected: Vec<Vec<bool>> = rows.iter().map(|row| vec![true; row.len()]).collect();
    accuracy(&(0..rows.len()).collect::<Vec<_>>(), &rows, &truth, &selected, RootSeed(0))
}

fn values(accuracy: &Accuracy) -> [Option<f64>; 3] {
    [accuracy.pearson, accuracy.spearman, accuracy.sign_agreement].map(|agreement| agreement.map(|agreement| agreement.value))
}

#[test]
fn agreement_gives_the_known_values() {
    let rounded = |accuracy| values(&accuracy).map(|value| value.map(|value| (value * 1e4).round() / 1e4));
    // Pearson 2/sqrt(5 * 4): ranks 1..4 against 1.5 1.5 3.5 3.5.
    let got = compared(&[-2.0, -1.0, 1.0, 2.0], &[-1.0, -1.0, 1.0, 1.0], 2);
    assert_eq!(rounded(got), [Some(0.9487), Some(0.8944), Some(1.0)]);
    // A monotone curve has perfect ranks.
    let got = compared(&[1.0, 2.0, 3.0, 4.0], &[1.0, 8.0, 27.0, 64.0], 2);
    assert_eq!(rounded(got), [Some(0.9514), Some(1.0), Some(1.0)]);
    // Zeros: a true 0 is left out, an assigned 0 counts one half. Signs: + +, 0 +, - +, + 0, - -: (1 + 1/2 + 0 + 1) / 4.
    let got = compared(&[1.0, 0.0, -1.0, 1.0, -1.0], &[1.0, 1.0, 1.0, 0.0, -1.0], 5);
    assert_eq!(values(&got)[2], Some(0.625));
}

#[test]
fn agreement_of_too_little_is_none() {
    assert_eq!(values(&compared(&[1.0, 2.0], &[1.0, 2.0], 1)), [None; 3]);
    assert_eq!(values(&compared(&[], &[], 1)), [None; 3]);
    // A constant agrees with nothing, but it has signs.
    assert_eq!(values(&compared(&[0.1; 5], &[1.0, -1.0, 1.0, -1.0, 2.0], 1)), [None, None, Some(0.6)]);
    assert_eq!(values(&compared(&[1.0, -1.0, 1.0], &[0.0; 3], 1)), [None; 3]);
    // One group gives no interval.
    let one = compared(&[1.0, 2.0, 3.0, 5.0], &[1.0, 2.0, 4.0, 3.0], 4);
    assert!(one.pearson.is_some_and(|agreement| agreement.interval.is_none()));
}

#[test]
fn only_selected_turns_with_a_known_truth_are_compared() {
    let assigned = [vec![1.0, 9.0, 2.0], vec![3.0, 4.0]];
    let truth = [vec![Some(1.0), Some(-9.0), Some(2.0)], vec![None, Some(4.0)]];
    let selected = [vec![true, false, true], vec![true, true]];
    let got = accuracy(&[0, 1], &assigned, &truth, &selected, RootSeed(0));
    assert_eq!((got.turns, values(&got)[1]), (3, Some(1.0)));
    let trajectories = [trajectory(0, &[call(), malformed(), answer(true)]), trajectory(0, &[answer(false)])];
    assert_eq!(TurnSelection::Tool.of(&trajectories), [vec![true, false, false], vec![false]]);
    assert_eq!(TurnSelection::All.of(&trajectories), [vec![true; 3], vec![true]]);
}

#[test]
fn intervals_cover_the_correlation_of_the_population_about_as_often_as_they_say() {
    // Pairs x, (x + noise) with correlation 1/sqrt(2), in 24 groups of 4; 60 such samples.
    let mut draws = RootSeed(5).draws(Purpose::Question, 0, 0, 0);
    let (mut covered, mut width, samples) = (0, 0.0, 60);
    for _ in 0..samples {
        let x: Vec<f64> = (0..96).map(|_| f64::from(draws.normal())).collect();
        let y: Vec<f64> = x.iter().map(|x| x + f64::from(draws.normal())).collect();
        let [low, high] = compared(&x, &y, 4).pearson.and_then(|agreement| agreement.interval).unwrap();
        assert!(low < high);
        covered += usize::from((low..=high).contains(&0.5_f64.sqrt()));
        width += (high - low) / f64::from(samples);
    }
    assert!((51..=60).contains(&covered), "{covered} of {samples}");
    // The standard error of a correlation is (1 - rho^2) / sqrt(n): 4 * 0.051.
    assert!((0.16..0.25).contains(&width), "{width}");
}

#[test]
fn the_same_input_gives_the_same_interval() {
    let (x, y): (Vec<f64>, Vec<f64>) = (0..40).map(|i| (f64::from(i % 7), f64::from(i % 5))).unzip();
    assert_eq!(compared(&x, &y, 4), compared(&x, &y, 4));
}
