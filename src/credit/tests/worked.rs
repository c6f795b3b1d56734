//! Examples worked by hand, or given in the papers' terms.

use super::*;

fn with_values(rewards: &[f64], values: &[f64]) -> Evidence {
    let rewards = vec![rewards.to_vec()];
    Evidence { values: Some(vec![values.to_vec()]), ..Evidence::of_rewards(&[0], &rewards) }
}

#[test]
fn return_to_go_gives_the_worked_example_for_three_discounts() {
    let expected = [
        (0.9, [&[0.4075, 0.425, 0.5][..], &[-0.4025, -0.475], &[-0.5025, -0.475, -0.5], &[0.4975, 0.525]]),
        (1.0, [&[0.525, 0.5, 0.5], &[-0.475, -0.5], &[-0.575, -0.5, -0.5], &[0.525, 0.5]]),
        (0.5, [&[0.0875, 0.125, 0.5], &[-0.1625, -0.375], &[-0.2625, -0.375, -0.5], &[0.3375, 0.625]]),
    ];
    for (gamma, advantages) in expected {
        let map = assign_rewards(&[0; 4], &worked_example(), &config(CreditMethod::ReturnToGo, ScaleRewards::None, gamma));
        for (got, expected) in map.advantages.iter().zip(advantages) {
            assert_close(got, expected, 1e-12);
        }
    }
}

#[test]
fn the_pooled_baseline_is_the_mean_over_all_turns() {
    let pooled = |gamma| ExperimentConfig {
        turn_baseline: TurnBaseline::Pooled,
        ..config(CreditMethod::ReturnToGo, ScaleRewards::None, gamma)
    };
    let map = assign_rewards(&[0; 4], &worked_example(), &pooled(0.9));
    assert_close(&map.baselines.concat(), &[0.491; 10], 1e-12);
    assert_close(&map.advantages[0], &[0.419, 0.409, 0.509], 1e-12);
    // Alone, a trajectory's turns are peers of one another.
    let alone = assign_rewards(&[0], &[vec![0.0, 1.0]], &pooled(0.5));
    assert_eq!((alone.advantages, alone.peers), (vec![vec![-0.25, 0.25]], vec![vec![2, 2]]));
}

#[test]
fn grpo_gives_the_worked_examples_with_and_without_scaling() {
    let one_of_four = [1.0, 0.0, 0.0, 0.0];
    assert_close(&outcome_advantages(&[0; 4], &one_of_four, SCALED), &[1.4997, -0.4999, -0.4999, -0.4999], 5e-5);
    assert_close(&outcome_advantages(&[0; 4], &one_of_four, UNSCALED), &[0.75, -0.25, -0.25, -0.25], 1e-12);
    let two_of_eight = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let (high, low) = (1.619835, -0.539945);
    assert_close(&outcome_advantages(&[0; 8], &two_of_eight, SCALED), &[high, low, low, high, low, low, low, low], 1e-6);
}

#[test]
fn grpo_gives_every_turn_the_advantage_of_the_discounted_return() {
    let rewards = [vec![0.0, 0.0, 1.0], vec![0.0, 1.0], vec![0.0], vec![0.0, 0.0]];
    let map = assign_rewards(&[0; 4], &rewards, &config(CreditMethod::Grpo, ScaleRewards::None, 0.5));
    // Returns 0.25, 0.5, 0 and 0: mean 0.1875.
    assert_eq!(map.advantages, [vec![0.0625; 3], vec![0.3125; 2], vec![-0.1875; 1], vec![-0.1875; 2]]);
    assert_eq!((&map.values[0], &map.baselines[0], &map.scales[0]), (&vec![0.25; 3], &vec![0.1875; 3], &vec![1.0; 3]));
}

#[test]
fn batch_scaling_divides_every_group_by_the_deviation_of_all() {
    let returns = [1.0, 0.0, 3.0, 1.0];
    let scale = (4.75_f64 / 3.0).sqrt() + 1e-4;
    let got = outcome_advantages(&[0, 0, 1, 1], &returns, convention(Scaling::BATCH));
    assert_close(&got, &[0.5 / scale, -0.5 / scale, 1.0 / scale, -1.0 / scale], 1e-12);
}

#[test]
fn rloo_compares_with_the_mean_of_the_others() {
    let third = 1.0 / 3.0;
    let rewards: Vec<Vec<f64>> = [1.0, 0.0, 0.0, 0.0].map(|reward| vec![0.0, reward]).to_vec();
    for scaling in SCALINGS {
        let map = assign_rewards(&[0; 4], &rewards, &config(CreditMethod::Rloo, scaling, 1.0));
        assert_rows_close(&map.advantages, &[vec![1.0; 2], vec![-third; 2], vec![-third; 2], vec![-third; 2]], 1e-12);
        assert_close(&map.baselines[1], &[third; 2], 1e-12);
    }
}

#[test]
fn process_supervision_gives_the_worked_example_with_either_deviation() {
    let spread = |ddof| Spread { ddof, epsilon: 1e-6, epsilon_on: EpsilonOn::Deviation };
    let expected = [
        (1, vec![vec![1.003954, 1.322281, 1.885474], vec![-0.881520, -0.563194], vec![-1.689581, -1.126387, -0.563194]]),
        (0, vec![vec![1.058260, 1.393806, 1.987464], vec![-0.929204, -0.593658], vec![-1.780974, -1.187316, -0.593658]]),
    ];
    for (ddof, expected) in expected {
        let normalised = normalised_rewards(&[0; 4], &worked_example(), false, convention(Scaling::Group(spread(ddof))));
        assert_rows_close(&sums_to_come(&normalised)[..3], &expected, 1e-6);
    }
    // The method itself, with ours: sample deviation 0.4322 over ten rewards of mean 0.23, epsilon 1e-4.
    let map = assign_rewards(&[0; 4], &worked_example(), &config(CreditMethod::Process, ScaleRewards::Group, 1.0));
    assert_close(&map.advantages[3], &[1.567147, 1.885474], 5e-4);
    // A discount weighs what comes later less.
    let unscaled = assign_rewards(&[0; 4], &worked_example(), &config(CreditMethod::Process, ScaleRewards::None, 0.5));
    assert_close(&unscaled.advantages[3], &[-0.13 + 0.5 * 0.77, 0.77], 1e-12);
}

#[test]
fn mt_grpo_adds_the_turn_to_the_outcome_on_all_turns_but_the_last() {
    let (turn, outcome) = ([1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]);
    let rewards: Vec<Vec<f64>> = turn.iter().map(|&turn| vec![turn, 0.0]).collect();
    let got = mt_grpo_advantages(&[0; 4], &rewards, &outcome, 1.0, SingleTurn::Outcome, SCALED);
    let expected = [vec![1.731751, 0.865875], vec![0.0, 0.865875], vec![0.0, -0.865875], vec![-1.731751, -0.865875]];
    assert_rows_close(&got, &expected, 1e-6);
    // The same out of evidence, with half the coefficient, and a trajectory of one turn, whose turn has no peers.
    let evidence = Evidence {
        rewards: vec![vec![1.0, 1.0], vec![0.0, 1.0], vec![0.5]],
        outcome_rewards: vec![vec![0.0, 1.0], vec![0.0, 1.0], vec![0.0]],
        ..Evidence::of_rewards(&[0; 3], &[vec![0.0; 2], vec![0.0; 2], vec![0.0]])
    };
    let half = ExperimentConfig { turn_coefficient: 0.5, ..config(CreditMethod::MtGrpo, ScaleRewards::None, 1.0) };
    let third = 1.0 / 3.0;
    let expected = [vec![third + 0.25, third], vec![third - 0.25, third], vec![-2.0 * third]];
    assert_rows_close(&assign(&evidence, &half).advantages, &expected, 1e-12);
}

#[test]
fn gigpo_compares_visits_of_the_same_page() {
    let (l, p, q) = (1, 2, 3);
    let evidence = Evidence {
        observations: vec![vec![l, p, q], vec![l, q], vec![l, p, l]],
        ..Evidence::of_rewards(&[0; 3], &[vec![0.0, 0.0, 1.0], vec![0.0, 1.0], vec![0.0; 3]])
    };
    let observed = ExperimentConfig {
        credit_anchor: CreditAnchor::Observation,
        step_weight: 1.0,
        ..config(CreditMethod::Gigpo, ScaleRewards::None, 0.95)
    };
    let map = assign(&evidence, &observed);
    let step = |index: usize| map.parts[index].iter().map(|parts| parts[1].contribution()).collect::<Vec<_>>();
    assert_close(&step(0), &[0.439375, 0.475, 0.0], 1e-9);
    assert_close(&step(1), &[0.486875, 0.0], 1e-9);
    assert_close(&step(2), &[-0.463125, -0.475, -0.463125], 1e-9);
    // The step part counts omega times; without it this is GRPO.
    let weighted = |step_weight| assign(&evidence, &ExperimentConfig { step_weight, ..observed.clone() }).advantages;
    let grpo = assign(&evidence, &config(CreditMethod::Grpo, ScaleRewards::None, 0.95)).advantages;
    assert_eq!(weighted(0.0), grpo);
    assert_close(&weighted(3.0)[1], &[grpo[1][0] + 3.0 * 0.486875, grpo[1][1]], 1e-9);
    // Every exact history but the first is unique: there only the first turn is compared.
    let exact = Evidence { histories: vec![vec![1, 2, 3, 4], vec![1, 5, 6], vec![1, 7, 8, 9]], ..evidence };
    let map = assign(&exact, &config(CreditMethod::Gigpo, ScaleRewards::None, 0.95));
    let peers: Vec<Vec<usize>> = map.parts.iter().map(|turns| turns.iter().map(|parts| parts[1].peers).collect()).collect();
    assert_eq!(peers, [vec![3, 1, 1], vec![3, 1], vec![3, 1, 1]]);
}

#[test]
fn tree_gives_the_change_of_the_group_s_own_values() {
    // Two members go left, where one of two succeeds; two go right and fail.
    let evidence = Evidence {
        histories: vec![vec![0, 1, 3], vec![0, 1, 4], vec![0, 2, 5], vec![0, 2, 5]],
        ..Evidence::of_rewards(&[0; 4], &[vec![0.0, 1.0], vec![0.0, 0.0], vec![0.0, 0.0], vec![0.0, 0.0]])
    };
    let map = assign(&evidence, &config(CreditMethod::Tree, ScaleRewards::None, 1.0));
    assert_eq!(map.advantages, [vec![0.25, 0.5], vec![0.25, -0.5], vec![-0.25, 0.0], vec![-0.25, 0.0]]);
    assert_eq!(map.peers, [vec![4, 2], vec![4, 2], vec![4, 2], vec![4, 2]]);
    // Left and right once more, discounted: values 0.5 * 0.5 and 0 after the first turn, 0.125 before it.
    let map = assign(&evidence, &config(CreditMethod::Tree, ScaleRewards::None, 0.5));
    assert_eq!(map.advantages[0], [0.125, 0.5]);
    // Divided by the root mean square of the eight differences.
    let rms = ((4.0 * 0.0625 + 2.0 * 0.25) / 8.0_f64).sqrt() + 1e-4;
    let map = assign(&evidence, &config(CreditMethod::Tree, ScaleRewards::Group, 1.0));
    assert_close(&map.advantages[0], &[0.25 / rms, 0.5 / rms], 1e-12);
    // Where every history is a member's own, nothing can be said.
    let alone = Evidence { histories: vec![vec![0, 1, 3], vec![2, 4, 5], vec![6, 7, 8], vec![9, 10, 11]], ..evidence };
    let map = assign(&alone, &config(CreditMethod::Tree, ScaleRewards::Group, 0.9));
    assert_eq!((map.advantages, map.peers), (vec![vec![0.0; 2]; 4], vec![vec![1; 2]; 4]));
}

#[test]
fn monte_carlo_gives_the_change_of_the_measured_value() {
    let evidence = with_values(&[0.0, 0.0, 1.0], &[0.25, 0.75, 0.5]);
    let map = assign(&evidence, &config(CreditMethod::MonteCarlo, ScaleRewards::None, 1.0));
    assert_eq!(map.advantages, [vec![0.5, -0.25, 0.5]]);
    let rms = (0.5625_f64 / 3.0).sqrt() + 1e-4;
    let map = assign(&evidence, &config(CreditMethod::MonteCarlo, ScaleRewards::Group, 1.0));
    assert_close(&map.advantages[0], &[0.5 / rms, -0.25 / rms, 0.5 / rms], 1e-12);
    assert_eq!(fill_missing_values(&[0.5, 0.0, 1.0], &[Some(0.2), None, None], 0.5), [0.2, 0.5, 1.0]);
}

#[test]
fn gae_gives_the_worked_example_for_three_settings() {
    let (rewards, values) = ([0.0, 0.0, 1.0], [0.25, 0.75, 0.5]);
    let expected = [(1.0, 1.0, [0.75, 0.25, 0.5]), (1.0, 0.0, [0.5, -0.25, 0.5]), (0.9, 0.95, [0.534_012_5, 0.1275, 0.5])];
    for (gamma, lambda, expected) in expected {
        assert_close(&generalised_advantages(&rewards, &values, gamma, lambda), &expected, 1e-12);
    }
    // The method whitens over trained tokens: the middle turn has two of the four.
    let evidence = Evidence { trained_tokens: vec![vec![1, 2, 1]], ..with_values(&rewards, &values) };
    let settings = ExperimentConfig { gae_lambda: 0.0, ..config(CreditMethod::Gae, ScaleRewards::Group, 1.0) };
    let map = assign(&evidence, &settings);
    let (mean, deviation) = (0.125, (4.0 * 0.140_625 / 3.0 + 1e-8_f64).sqrt());
    assert_close(&map.advantages[0], &[0.375 / deviation, -0.375 / deviation, 0.375 / deviation], 1e-12);
    assert_eq!(map.whitening[0].map(|whitening| (whitening.mean, whitening.tokens)), Some((mean, 4)));
}

#[test]
fn reinforce_plus_plus_compares_with_the_whole_batch() {
    // Group 0 always succeeds, group 1 never: that is signal here, and none within the groups.
    let rewards = [vec![0.0, 1.0], vec![1.0], vec![0.0], vec![0.0, 0.0]];
    let assigned = |method| assign_rewards(&[0, 0, 1, 1], &rewards, &config(method, ScaleRewards::Group, 1.0));
    let map = assigned(CreditMethod::ReinforcePp);
    let one = 0.5 / (0.3_f64 + 1e-8).sqrt();
    assert_rows_close(&map.advantages, &[vec![one; 2], vec![one], vec![-one], vec![-one; 2]], 1e-12);
    assert_eq!(map.no_signal, [false, false]);
    let map = assigned(CreditMethod::ReinforcePpBaseline);
    assert_eq!((map.advantages.concat(), map.no_signal), (vec![0.0; 6], vec![true, true]));
}

#[test]
fn reinforce_plus_plus_with_baseline_whitens_what_the_group_leaves() {
    // Centred returns 1/2 (two tokens), -1/2 (one token): mean 1/6, squares 2/3.
    let map = assign_rewards(
        &[0, 0],
        &[vec![0.0, 1.0], vec![0.0]],
        &config(CreditMethod::ReinforcePpBaseline, ScaleRewards::None, 1.0),
    );
    let deviation = (1.0 / 3.0 + 1e-8_f64).sqrt();
    let third = 1.0 / 3.0;
    assert_rows_close(&map.advantages, &[vec![third / deviation; 2], vec![-2.0 * third / deviation]], 1e-12);
}

#[test]
fn an_outcome_at_the_fourth_turn_is_discounted_once_per_turn() {
    let outcome = [0.0, 0.0, 0.0, 1.0];
    let ladder = [(1.0, [1.0; 4]), (0.9, [0.729, 0.81, 0.9, 1.0]), (0.5, [0.125, 0.25, 0.5, 1.0]), (0.0, outcome)];
    for (gamma, expected) in ladder {
        assert_close(&discounted_returns(&outcome, gamma), &expected, 1e-12);
    }
}
