//! Cases with known values (named by their number in the project's list of public bug reports) and properties that hold for
//! every reward.

use proptest::prelude::*;

use super::*;
use crate::config::RewardMode;
use crate::environment::{Facts, REGISTRY};
use crate::reward::tests::{answer, call, malformed, trajectory};
use crate::reward::{score, weighted_terms};
use crate::rollout::{Trajectory, demonstrate};

/// What [`Scaling::GROUP`] adds to the standard deviation.
const EPSILON: f64 = 1e-4;
const METHODS: [CreditMethod; 2] = [CreditMethod::Grpo, CreditMethod::ReturnToGo];

fn config(credit_method: CreditMethod, scale_rewards: ScaleRewards, gamma: f64) -> ExperimentConfig {
    ExperimentConfig { credit_method, scale_rewards, gamma, ..ExperimentConfig::default() }
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{got:?} against {expected:?}");
    let close = got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= tolerance);
    assert!(close, "{got:?} is not {expected:?} within {tolerance}");
}

/// Four episodes of one group with rewards in the course of them.
fn worked_example() -> Vec<Vec<f64>> {
    vec![vec![0.1, 0.0, 1.0], vec![0.1, 0.0], vec![0.0, 0.0, 0.0], vec![0.1, 1.0]]
}

#[test]
fn return_to_go_gives_the_worked_example_for_three_discounts() {
    let expected = [
        (0.9, [&[0.4075, 0.425, 0.5][..], &[-0.4025, -0.475], &[-0.5025, -0.475, -0.5], &[0.4975, 0.525]]),
        (1.0, [&[0.525, 0.5, 0.5], &[-0.475, -0.5], &[-0.575, -0.5, -0.5], &[0.525, 0.5]]),
        (0.5, [&[0.0875, 0.125, 0.5], &[-0.1625, -0.375], &[-0.2625, -0.375, -0.5], &[0.3375, 0.625]]),
    ];
    for (gamma, advantages) in expected {
        let map = assign(&[0; 4], &worked_example(), &config(CreditMethod::ReturnToGo, ScaleRewards::None, gamma));
        for (got, expected) in map.advantages.iter().zip(advantages) {
            assert_close(got, expected, 1e-12);
        }
    }
}

#[test]
fn the_map_shows_what_an_advantage_was_made_of() {
    let map = assign(&[0; 4], &worked_example(), &config(CreditMethod::ReturnToGo, ScaleRewards::None, 0.9));
    assert_eq!(map.rewards, worked_example());
    assert_close(&map.returns_to_go.concat(), &[0.91, 0.9, 1.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0], 1e-12);
    assert_close(&map.baselines[0], &[0.5025, 0.475, 0.5], 1e-12);
    assert_eq!((&map.peers[0], &map.peers[3]), (&vec![4, 4, 2], &vec![4, 4]));
    assert_eq!(map.no_signal, [false]);
}

#[test]
fn grpo_gives_the_worked_examples_with_and_without_scaling() {
    let one_of_four = [1.0, 0.0, 0.0, 0.0];
    assert_close(&outcome_advantages(&[0; 4], &one_of_four, Scaling::GROUP), &[1.4997, -0.4999, -0.4999, -0.4999], 5e-5);
    assert_close(&outcome_advantages(&[0; 4], &one_of_four, Scaling::None), &[0.75, -0.25, -0.25, -0.25], 1e-12);
    let two_of_eight = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let (high, low) = (1.619835, -0.539945);
    assert_close(&outcome_advantages(&[0; 8], &two_of_eight, Scaling::GROUP), &[high, low, low, high, low, low, low, low], 1e-6);
}

#[test]
fn grpo_gives_every_turn_the_advantage_of_the_discounted_return() {
    let rewards = [vec![0.0, 0.0, 1.0], vec![0.0, 1.0], vec![0.0], vec![0.0, 0.0]];
    let map = assign(&[0; 4], &rewards, &config(CreditMethod::Grpo, ScaleRewards::None, 0.5));
    // Returns 0.25, 0.5, 0 and 0: mean 0.1875.
    assert_eq!(map.advantages, [vec![0.0625; 3], vec![0.3125; 2], vec![-0.1875; 1], vec![-0.1875; 2]]);
    assert_eq!((&map.values[0], &map.baselines[0], &map.scales[0]), (&vec![0.25; 3], &vec![0.1875; 3], &vec![1.0; 3]));
}

#[test]
fn an_outcome_at_the_fourth_turn_is_discounted_once_per_turn() {
    let outcome = [0.0, 0.0, 0.0, 1.0];
    let ladder = [(1.0, [1.0; 4]), (0.9, [0.729, 0.81, 0.9, 1.0]), (0.5, [0.125, 0.25, 0.5, 1.0]), (0.0, outcome)];
    for (gamma, expected) in ladder {
        assert_close(&discounted_returns(&outcome, gamma), &expected, 1e-12);
    }
}

#[test]
fn a_lone_survivor_has_no_peer_and_no_advantage() {
    let map = assign(&[0, 0], &[vec![0.0, 1.0], vec![0.0]], &config(CreditMethod::ReturnToGo, ScaleRewards::Group, 1.0));
    assert_eq!((map.peers[0][1], map.advantages[0][1]), (1, 0.0));
    assert!(map.advantages[0][0] > 0.7 && map.advantages[1][0] < -0.7, "{:?}", map.advantages);
    for method in METHODS {
        let alone = assign(&[0], &[vec![0.5, 1.0]], &config(method, ScaleRewards::Group, 1.0));
        assert_eq!((alone.advantages, alone.no_signal), (vec![vec![0.0; 2]], vec![true]), "a group of one");
    }
}

#[test]
fn equal_returns_give_exactly_nothing_whatever_the_rounding() {
    // The mean of these is not 0.1 in floating point.
    assert_ne!([0.1; 3].iter().sum::<f64>() / 3.0, 0.1);
    for (method, scaling) in METHODS.into_iter().flat_map(|method| [(method, ScaleRewards::Group), (method, ScaleRewards::None)])
    {
        let map = assign(&[0; 3], &[vec![0.1], vec![0.1], vec![0.1]], &config(method, scaling, 0.9));
        assert_eq!((map.advantages, map.no_signal), (vec![vec![0.0]; 3], vec![true]));
    }
}

#[test]
fn t_04_an_empty_episode_counts_once_in_the_baseline_and_trains_nothing() {
    let map = assign(&[0, 0], &[vec![], vec![1.0]], &config(CreditMethod::Grpo, ScaleRewards::None, 1.0));
    assert_eq!((map.advantages, map.baselines), (vec![vec![], vec![0.5]], vec![vec![], vec![0.5]]));
}

#[test]
fn t_17_every_reward_on_the_way_enters_the_returns() {
    let rewards = [0.1, 0.0, 0.1, 1.0];
    assert_close(&discounted_returns(&rewards, 0.9), &[0.91, 0.9, 1.0, 1.0], 1e-12);
    assert_close(&discounted_returns(&rewards, 1.0), &[1.2, 1.1, 1.1, 1.0], 1e-12);
    assert_eq!(discounted_returns(&rewards, 0.0), rewards);
}

#[test]
fn t_18_a_trajectory_counts_once_however_many_turns_it_has() {
    let map = assign(&[0, 0], &[vec![0.0, 0.0, 1.0], vec![0.0]], &config(CreditMethod::Grpo, ScaleRewards::None, 1.0));
    assert_eq!(map.advantages, [vec![0.5; 3], vec![-0.5]]);
    assert_eq!(map.baselines[0][0], 0.5);
}

#[test]
fn t_19_rewards_are_compared_within_their_group() {
    assert_eq!(outcome_advantages(&[0; 4], &[1.0, 0.0, 1.0, 0.0], Scaling::None), [0.5, -0.5, 0.5, -0.5]);
    assert_eq!(outcome_advantages(&[0, 1, 0, 1], &[1.0, 8.0, 0.0, 4.0], Scaling::None), [0.5, 2.0, -0.5, -2.0]);
}

#[test]
fn t_21_a_scaled_group_of_two_forgets_the_gap() {
    let [narrow, wide] = [[0.51, 0.5], [1.0, 0.0]].map(|returns| outcome_advantages(&[0; 2], &returns, Scaling::GROUP));
    assert_close(&narrow, &[0.697246, -0.697246], 1e-6);
    assert_close(&narrow, &wide, 0.02 * wide[0]);
}

#[test]
fn t_24_small_groups_are_often_uninformative() {
    for (group, expected) in [(2, 0.7048), (4, 0.4532), (8, 0.2044), (16, 0.0418)] {
        assert_close(&[uninformative_probability(0.18, group)], &[expected], 5e-5);
    }
    for (p, group, expected) in [(0.0, 8, 1.0), (1.0, 8, 1.0), (0.5, 1, 1.0), (0.5, 0, 1.0), (7.0, 4, 1.0), (0.5, 64, 0.0)] {
        assert_close(&[uninformative_probability(p, group)], &[expected], 1e-12);
    }
}

#[test]
fn t_28_turns_rise_through_an_episode_and_each_is_discounted_once() {
    let trajectories = demonstrate(&ExperimentConfig { demonstrations: 200, ..ExperimentConfig::defaults("search", REGISTRY) });
    let rewards: Vec<Vec<f64>> = trajectories.iter().map(|trajectory| vec![1.0; trajectory.turns.len()]).collect();
    let groups = vec![0; rewards.len()];
    let map = assign(&groups, &rewards, &config(CreditMethod::ReturnToGo, ScaleRewards::None, 0.5));
    for (Trajectory { turns, prompt_length, tokens, .. }, returns) in trajectories.iter().zip(&map.returns_to_go) {
        let mut place = *prompt_length;
        for turn in turns {
            assert!(turn.start == place && turn.action_end > turn.start && turn.end >= turn.action_end);
            place = turn.end;
        }
        assert_eq!(place, tokens.len());
        // 1 + 1/2 + 1/4 + ... over the turns that are left.
        let expected: Vec<f64> = (0..turns.len()).map(|turn| 2.0 - 0.5_f64.powi((turns.len() - turn) as i32 - 1)).collect();
        assert_eq!(returns, &expected);
    }
    assert!(map.returns_to_go.iter().any(|returns| returns.len() == 3));
}

#[test]
fn t_29_more_steps_for_the_same_return_earn_no_credit() {
    let rewards = [vec![0.75; 2], vec![0.25; 6]];
    for scaling in [ScaleRewards::Group, ScaleRewards::None] {
        let map = assign(&[0, 0], &rewards, &config(CreditMethod::Grpo, scaling, 1.0));
        assert_eq!(map.advantages, [vec![0.0; 2], vec![0.0; 6]]);
    }
    // Against the same turn of the others the sign follows what is still to come, first for neither, then for the longer one.
    let map = assign(&[0, 0], &rewards, &config(CreditMethod::ReturnToGo, ScaleRewards::None, 1.0));
    assert_eq!(map.advantages, [vec![0.0, -0.25], vec![0.0, 0.25, 0.0, 0.0, 0.0, 0.0]]);
}

#[test]
fn t_31_one_gamma_for_every_number_of_the_map() {
    for (method, gamma) in METHODS.into_iter().flat_map(|method| [(method, 0.3), (method, 0.95), (method, 1.0)]) {
        let map = assign(&[0, 1, 0, 1], &worked_example(), &config(method, ScaleRewards::None, gamma));
        for (index, rewards) in map.rewards.iter().enumerate() {
            let returns = discounted_returns(rewards, gamma);
            assert_eq!(map.returns_to_go[index], returns);
            for turn in 0..rewards.len() {
                let value = if method == CreditMethod::Grpo { returns[0] } else { returns[turn] };
                assert_eq!(map.values[index][turn], value);
                assert_close(&[map.values[index][turn] - map.baselines[index][turn]], &[map.advantages[index][turn]], 1e-15);
            }
        }
    }
}

/// Groups and rewards of a batch: one to three groups of one to five trajectories of one to four turns, interleaved.
fn batches() -> impl Strategy<Value = (Vec<usize>, Vec<Vec<f64>>)> {
    let turns = prop::collection::vec((-8_i32..=8).prop_map(|quarters| f64::from(quarters) / 4.0), 1..=4);
    prop::collection::vec((0_usize..3, turns), 1..=15).prop_map(|batch| batch.into_iter().unzip())
}

fn methods() -> impl Strategy<Value = CreditMethod> {
    prop::sample::select(METHODS.to_vec())
}

fn scalings() -> impl Strategy<Value = ScaleRewards> {
    prop::sample::select(vec![ScaleRewards::Group, ScaleRewards::None])
}

/// Trajectories of two groups with any mixture of turns.
fn episodes() -> impl Strategy<Value = Vec<Trajectory>> {
    let repeated = Facts { repeated_call: true, ..call() };
    let step = prop::sample::select(vec![call(), malformed(), repeated]);
    let last = prop::sample::select(vec![answer(true), answer(false), malformed()]);
    let turns = (prop::collection::vec(step, 0..4), last).prop_map(|(mut turns, last)| {
        turns.push(last);
        turns
    });
    prop::collection::vec((0_usize..2, turns).prop_map(|(group, facts)| trajectory(group, &facts)), 2..12)
}

/// Scores and assigns credit, as a training step does.
fn credited(trajectories: &[Trajectory], config: &ExperimentConfig) -> CreditMap {
    let groups: Vec<usize> = trajectories.iter().map(|trajectory| trajectory.group).collect();
    assign(&groups, &score(trajectories, &weighted_terms(config)).totals(), config)
}

proptest! {
    #[test]
    fn property_1_advantages_of_a_group_sum_to_zero((groups, rewards) in batches(), method in methods(), scaling in scalings()) {
        let map = assign(&groups, &rewards, &config(method, scaling, 0.9));
        for group in 0..3 {
            for turn in 0..4 {
                // One advantage per trajectory with GRPO; one per trajectory that reached the turn otherwise.
                let of_group = (0..groups.len()).filter(|&i| groups[i] == group);
                let sum: f64 = match method {
                    CreditMethod::Grpo => of_group.map(|i| map.advantages[i][0]).sum(),
                    CreditMethod::ReturnToGo => of_group.filter_map(|i| map.advantages[i].get(turn)).sum(),
                };
                prop_assert!(sum.abs() < 1e-9, "{sum} in {:?}", map.advantages);
            }
        }
    }

    #[test]
    fn property_2_permuting_members_permutes_advantages(
        (groups, rewards) in batches(), method in methods(), scaling in scalings(), shift in 0_usize..15,
    ) {
        let config = config(method, scaling, 0.9);
        let order: Vec<usize> = (0..groups.len()).map(|i| (i + shift) % groups.len()).rev().collect();
        let permuted_groups: Vec<usize> = order.iter().map(|&i| groups[i]).collect();
        let permuted_rewards: Vec<Vec<f64>> = order.iter().map(|&i| rewards[i].clone()).collect();
        let (straight, permuted) = (assign(&groups, &rewards, &config), assign(&permuted_groups, &permuted_rewards, &config));
        for (place, &i) in order.iter().enumerate() {
            assert_close(&permuted.advantages[place], &straight.advantages[i], 1e-9);
        }
    }

    #[test]
    fn property_3_a_constant_added_to_all_returns_changes_nothing(
        (groups, returns) in batches(), scaling in scalings(), constant in -10.0_f64..10.0,
    ) {
        let scaling = Scaling::of(&config(CreditMethod::Grpo, scaling, 1.0));
        let moved: Vec<Vec<f64>> = returns.iter().map(|turns| turns.iter().map(|x| x + constant).collect()).collect();
        let first = |returns: &[Vec<f64>]| returns.iter().map(|turns| turns[0]).collect::<Vec<_>>();
        let (before, after) = (turn_advantages(&groups, &returns, scaling), turn_advantages(&groups, &moved, scaling));
        assert_close(&before.concat(), &after.concat(), 1e-8);
        let outcome = |returns: &[Vec<f64>]| outcome_advantages(&groups, &first(returns), scaling);
        assert_close(&outcome(&returns), &outcome(&moved), 1e-8);
    }

    #[test]
    fn property_4_scaled_advantages_do_not_depend_on_the_unit_of_reward(
        (groups, rewards) in batches(), method in methods(), factor in 0.1_f64..10.0,
    ) {
        let larger: Vec<Vec<f64>> = rewards.iter().map(|turns| turns.iter().map(|x| x * factor).collect()).collect();
        let both = |scaling| [&rewards, &larger].map(|rewards| assign(&groups, rewards, &config(method, scaling, 1.0)));
        let [before, after] = both(ScaleRewards::Group);
        let scales = before.scales.concat();
        for ((before, after), scale) in before.advantages.concat().iter().zip(after.advantages.concat()).zip(scales) {
            // Exactly what the epsilon beside the standard deviation allows.
            let allowed = before.abs() * EPSILON * (factor - 1.0).abs() / (factor * (scale - EPSILON) + EPSILON);
            prop_assert!((before - after).abs() <= allowed + 1e-9, "{before} became {after}");
        }
        let [before, after] = both(ScaleRewards::None);
        let expected: Vec<f64> = before.advantages.concat().iter().map(|advantage| advantage * factor).collect();
        assert_close(&after.advantages.concat(), &expected, 1e-9);
    }

    #[test]
    fn property_5_process_terms_that_never_pay_leave_the_outcome_alone(outcomes in prop::collection::vec(any::<bool>(), 2..8)) {
        let ending = |right| Facts { answered: true, answer_right: right, ..Facts::default() };
        let silent: Vec<_> = outcomes.iter().map(|&right| trajectory(0, &[Facts::default(), ending(right)])).collect();
        for method in METHODS {
            let outcome = config(method, ScaleRewards::Group, 0.9);
            let mixed = ExperimentConfig { reward_mode: RewardMode::Mixed, ..outcome.clone() };
            prop_assert_eq!(credited(&silent, &mixed), credited(&silent, &outcome));
        }
    }

    #[test]
    fn property_6_weights_of_zero_turn_a_mixture_into_either_part(
        episodes in episodes(), method in methods(), (w_o, w_p) in (-2.0_f64..2.0, -1.0_f64..1.0),
    ) {
        let mixture = |outcome_weight: f64, process_weight: f64| ExperimentConfig {
            reward_mode: RewardMode::Mixed,
            outcome_weight,
            valid_call_weight: process_weight,
            format_weight: 0.5 * process_weight,
            malformed_weight: -0.5 * process_weight,
            repeated_call_weight: -0.25 * process_weight,
            turn_weight: -0.125 * process_weight,
            ..config(method, ScaleRewards::Group, 0.9)
        };
        let only = |reward_mode, mixture| ExperimentConfig { reward_mode, ..mixture };
        let outcome = credited(&episodes, &only(RewardMode::Outcome, mixture(1.0, 1.0)));
        let process = credited(&episodes, &only(RewardMode::Process, mixture(1.0, 1.0)));
        prop_assert_eq!(&credited(&episodes, &mixture(1.0, 0.0)), &outcome);
        prop_assert_eq!(&credited(&episodes, &mixture(0.0, 1.0)), &process);
        let parts = outcome.returns_to_go.concat().into_iter().zip(process.returns_to_go.concat());
        let expected: Vec<f64> = parts.map(|(outcome, process)| w_o * outcome + w_p * process).collect();
        assert_close(&credited(&episodes, &mixture(w_o, w_p)).returns_to_go.concat(), &expected, 1e-9);
    }

    #[test]
    fn property_8_gamma_one_sums_all_rewards_and_gamma_zero_none_to_come((_, rewards) in batches()) {
        for turns in &rewards {
            assert_close(&discounted_returns(turns, 1.0)[..1], &[turns.iter().sum()], 1e-12);
            prop_assert_eq!(&discounted_returns(turns, 0.0), turns);
        }
    }
}
