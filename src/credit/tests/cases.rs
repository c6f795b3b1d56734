//! Cases named by their number in the project's list of public bug reports.

use super::*;

/// A batch of the same trajectories for every method, with values where they are needed.
fn assigned(groups: &[usize], rewards: &[Vec<f64>], config: &ExperimentConfig) -> CreditMap {
    let values = rewards.iter().map(|turns| vec![0.25; turns.len()]).collect();
    assign(&Evidence { values: Some(values), ..Evidence::of_rewards(groups, rewards) }, config)
}

#[test]
fn t_01_a_return_is_carried_across_what_is_not_trained() {
    let trained = |mask: &[u8]| mask.iter().map(|&mask| mask == 1).collect::<Vec<_>>();
    let rewards = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
    let got = token_returns(&rewards, &trained(&[1, 1, 0, 0, 1, 1]), 1.0, Untrained::Skipped);
    assert_eq!(got, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    let got = |untrained| token_returns(&[0.0, 0.0, 1.0], &trained(&[1, 0, 1]), 0.5, untrained);
    assert_eq!((got(Untrained::Skipped), got(Untrained::Walked)), (vec![0.5, 0.0, 1.0], vec![0.25, 0.0, 1.0]));
    // Per turn there is nothing to carry across: a long tool result costs no discount.
    let map = assign_rewards(&[0], &[vec![0.0, 1.0]], &config(CreditMethod::ReinforcePp, ScaleRewards::None, 0.5));
    assert_eq!(map.returns_to_go, [[0.5, 1.0]]);
}

#[test]
fn t_02_values_at_observation_tokens_stay_out_of_gae() {
    let (rewards, values) = ([0.0, 0.0, 0.0, 0.0, 0.0, 1.0], [0.2, 0.3, 9.0, 9.0, 0.5, 0.6]);
    let trained = [true, true, false, false, true, true];
    let got = |gamma, lambda, untrained| {
        let row = token_advantages(&rewards, &values, &trained, (gamma, lambda), untrained);
        assert_eq!((row[2], row[3]), (0.0, 0.0));
        [row[0], row[1], row[4], row[5]]
    };
    let (skip, walk) = (Untrained::Skipped, Untrained::Walked);
    assert_close(&got(1.0, 0.0, skip), &[0.1, 0.2, 0.1, 0.4], 1e-12);
    assert_close(&got(1.0, 0.0, walk), &[0.1, 8.7, 0.1, 0.4], 1e-12);
    assert_close(&got(1.0, 1.0, skip), &[0.8, 0.7, 0.5, 0.4], 1e-12);
    assert_close(&got(1.0, 1.0, walk), &[0.8, 0.7, 0.5, 0.4], 1e-12);
    assert_close(&got(0.9, 0.95, skip), &[0.477_502, 0.476_61, 0.382, 0.4], 1e-6);
    assert_close(&got(0.9, 0.95, walk), &[0.941_242, 1.018_996, 0.382, 0.4], 1e-6);
    // The method sees one value per turn, so there is none at an observation: the long result changes nothing.
    let short = assigned(&[0, 0], &[vec![0.0, 1.0], vec![0.0]], &config(CreditMethod::Gae, ScaleRewards::None, 0.9));
    assert_close(&[short.parts[0][0][0].value, short.parts[0][1][0].value], &[0.225, 1.0], 1e-12);
}

#[test]
fn t_04_an_empty_episode_counts_once_in_the_baseline_and_trains_nothing() {
    let map = assigned(&[0, 0], &[vec![], vec![1.0]], &config(CreditMethod::Grpo, ScaleRewards::None, 1.0));
    assert_eq!((map.advantages, map.baselines), (vec![vec![], vec![0.5]], vec![vec![], vec![0.5]]));
    for (&method, scaling) in METHODS.iter().flat_map(|method| SCALINGS.map(|scaling| (method, scaling))) {
        let map = assigned(&[0, 0, 0, 1], &[vec![], vec![0.0, 1.0], vec![0.0], vec![]], &config(method, scaling, 0.9));
        let shape: Vec<usize> = map.advantages.iter().map(Vec::len).collect();
        assert_eq!((shape, map.no_signal.len(), map.no_signal[1]), (vec![0, 2, 1, 0], 2, true));
        assert!(map.advantages.concat().iter().all(|advantage| advantage.is_finite()), "{method:?}: {:?}", map.advantages);
    }
    assert!(assigned(&[], &[], &config(CreditMethod::Tree, ScaleRewards::Batch, 1.0)).no_signal.is_empty());
}

#[test]
fn t_17_every_reward_on_the_way_enters_the_returns() {
    let rewards = [0.1, 0.0, 0.1, 1.0];
    assert_close(&discounted_returns(&rewards, 0.9), &[0.91, 0.9, 1.0, 1.0], 1e-12);
    assert_close(&discounted_returns(&rewards, 1.0), &[1.2, 1.1, 1.1, 1.0], 1e-12);
    assert_eq!(discounted_returns(&rewards, 0.0), rewards);
    // No method forgets a reward on the way: taking it away changes the credit of the first turn.
    for &method in METHODS.iter().filter(|&&method| method != CreditMethod::Tree && method != CreditMethod::MonteCarlo) {
        let first = |reward: f64| {
            let rewards = [vec![0.0, reward, 0.0, 1.0], vec![0.0, 0.5, 0.0, 0.0], vec![0.25]];
            assigned(&[0, 0, 0], &rewards, &config(method, ScaleRewards::None, 0.9)).advantages[0].clone()
        };
        // MT-GRPO pays it at its own turn.
        let turn = usize::from(method == CreditMethod::MtGrpo);
        assert!((first(0.25)[turn] - first(0.0)[turn]).abs() > 0.02, "{method:?}: {:?} {:?}", first(0.25), first(0.0));
    }
}

#[test]
fn t_18_a_trajectory_counts_once_however_many_turns_it_has() {
    let rewards = [vec![0.0, 0.0, 1.0], vec![0.0]];
    let map = assign_rewards(&[0, 0], &rewards, &config(CreditMethod::Grpo, ScaleRewards::None, 1.0));
    assert_eq!(map.advantages, [vec![0.5; 3], vec![-0.5]]);
    assert_eq!(map.baselines[0][0], 0.5);
    for method in [CreditMethod::Gigpo, CreditMethod::MtGrpo] {
        let map = assign_rewards(&[0, 0], &rewards, &config(method, ScaleRewards::None, 1.0));
        assert_eq!((map.parts[0][0][0].baseline, map.parts[0][0][0].peers), (0.5, 2));
    }
    let map = assign_rewards(&[0, 0], &rewards, &config(CreditMethod::Rloo, ScaleRewards::None, 1.0));
    assert_eq!(map.advantages, [vec![1.0; 3], vec![-1.0]]);
}

#[test]
fn t_19_rewards_are_compared_within_their_group() {
    assert_eq!(outcome_advantages(&[0; 4], &[1.0, 0.0, 1.0, 0.0], UNSCALED), [0.5, -0.5, 0.5, -0.5]);
    assert_eq!(outcome_advantages(&[0, 1, 0, 1], &[1.0, 8.0, 0.0, 4.0], UNSCALED), [0.5, 2.0, -0.5, -2.0]);
    // Groups of one each teach nothing, whatever the rewards.
    for &method in METHODS.iter().filter(|&&method| !needs_values(method) && method != CreditMethod::ReinforcePp) {
        let rewards = [1.0, 0.0, 1.0, 0.0].map(|reward| vec![reward]);
        let map = assign_rewards(&[0, 1, 2, 3], &rewards, &config(method, ScaleRewards::Batch, 1.0));
        assert_eq!((map.advantages.concat(), map.no_signal), (vec![0.0; 4], vec![true; 4]), "{method:?}");
    }
}

#[test]
fn t_21_a_scaled_group_of_two_forgets_the_gap() {
    let [narrow, wide] = [[0.51, 0.5], [1.0, 0.0]].map(|returns| outcome_advantages(&[0; 2], &returns, SCALED));
    assert_close(&narrow, &[0.697246, -0.697246], 1e-6);
    assert_close(&narrow, &wide, 0.02 * wide[0]);
    let [narrow, wide] = [[0.51, 0.5], [1.0, 0.0]].map(|returns| outcome_advantages(&[0; 2], &returns, UNSCALED));
    assert_close(&[wide[0] / narrow[0]], &[100.0], 1e-9);
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
    let map = assign_rewards(&vec![0; rewards.len()], &rewards, &config(CreditMethod::ReturnToGo, ScaleRewards::None, 0.5));
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
    for (method, scaling) in WHOLE.into_iter().flat_map(|method| SCALINGS.map(|scaling| (method, scaling))) {
        let map = assign_rewards(&[0, 0], &rewards, &config(method, scaling, 1.0));
        assert_eq!(map.advantages, [vec![0.0; 2], vec![0.0; 6]]);
    }
    // Against the same turn of the others the sign follows what is still to come, first for neither, then for the longer one.
    let map = assign_rewards(&[0, 0], &rewards, &config(CreditMethod::ReturnToGo, ScaleRewards::None, 1.0));
    assert_eq!(map.advantages, [vec![0.0, -0.25], vec![0.0, 0.25, 0.0, 0.0, 0.0, 0.0]]);
    // Pooled process rewards do have the bias: mean 0.375, so that the many small steps sum to a large negative credit.
    let map = assign_rewards(&[0, 0], &rewards, &config(CreditMethod::Process, ScaleRewards::None, 1.0));
    assert_eq!((map.advantages[0][0], map.advantages[1][0]), (0.75, -0.75));
}

#[test]
fn t_30_a_discounted_outcome_sorts_turns_by_position_and_only_values_by_quality() {
    // A success in which turn 0 was good and turn 1 bad, and one the other way round; beside them a failure.
    let [good_first, bad_first] = [[0.25, 0.75, 0.5], [0.25, 0.0, 0.5]].map(|values| {
        let rewards = [vec![0.0, 0.0, 1.0], vec![0.0, 0.0, 0.0]];
        Evidence { values: Some(vec![values.to_vec(), vec![0.25; 3]]), ..Evidence::of_rewards(&[0, 0], &rewards) }
    });
    for method in [CreditMethod::Grpo, CreditMethod::Rloo, CreditMethod::ReturnToGo, CreditMethod::ReinforcePp] {
        let settings = config(method, ScaleRewards::Group, 0.9);
        assert_eq!(assign(&good_first, &settings), assign(&bad_first, &settings));
    }
    let positions = assign(&good_first, &config(CreditMethod::ReturnToGo, ScaleRewards::None, 0.9)).advantages;
    assert!(positions[0][0] < positions[0][1] && positions[0][1] < positions[0][2]);
    let by_value = |evidence| assign(evidence, &config(CreditMethod::MonteCarlo, ScaleRewards::None, 1.0)).advantages;
    let (first, second) = (by_value(&good_first), by_value(&bad_first));
    assert_eq!((&first[0][..2], &second[0][..2]), (&[0.5, -0.25][..], &[-0.25, 0.5][..]));
}

#[test]
fn t_31_one_gamma_for_every_number_of_the_map() {
    for (&method, gamma) in METHODS.iter().flat_map(|method| [(method, 0.3), (method, 0.95), (method, 1.0)]) {
        let settings = config(method, ScaleRewards::None, gamma);
        let map = assigned(&[0, 1, 0, 1], &worked_example(), &settings);
        for (index, rewards) in map.rewards.iter().enumerate() {
            let returns = discounted_returns(rewards, gamma);
            assert_eq!(map.returns_to_go[index], returns);
            for (turn, parts) in map.parts[index].iter().enumerate() {
                for part in parts {
                    let after = |value: f64| if part.turn + 1 < rewards.len() { value } else { 0.0 };
                    let expected = match part.kind {
                        PartKind::Episode => returns[0],
                        // All but the last reward are process rewards.
                        PartKind::Outcome => gamma.powi(rewards.len() as i32 - 1) * rewards[rewards.len() - 1],
                        PartKind::TurnReward | PartKind::ProcessReward => rewards[part.turn],
                        PartKind::ReturnToGo | PartKind::State => returns[part.turn],
                        PartKind::TemporalDifference if method == CreditMethod::Tree => returns[part.turn],
                        PartKind::TemporalDifference => rewards[part.turn] + gamma * after(0.25),
                    };
                    assert_close(&[part.value], &[expected], 1e-12);
                    let decay = match method {
                        CreditMethod::Process => gamma,
                        CreditMethod::Gae => gamma * settings.gae_lambda,
                        _ => 1.0,
                    };
                    if method == CreditMethod::Process || method == CreditMethod::Gae {
                        assert_close(&[part.weight], &[decay.powi((part.turn - turn) as i32)], 1e-12);
                    }
                }
            }
        }
    }
}

#[test]
fn a_lone_survivor_has_no_peer_and_no_advantage() {
    let settings = config(CreditMethod::ReturnToGo, ScaleRewards::Group, 1.0);
    let map = assign_rewards(&[0, 0], &[vec![0.0, 1.0], vec![0.0]], &settings);
    assert_eq!((map.peers[0][1], map.advantages[0][1]), (1, 0.0));
    assert!(map.advantages[0][0] > 0.7 && map.advantages[1][0] < -0.7, "{:?}", map.advantages);
    for &method in METHODS.iter().filter(|&&method| method != CreditMethod::ReinforcePp && !needs_values(method)) {
        // Process supervision compares all turns of the group, so that a lone turn stands for a lone trajectory.
        let alone = assign_rewards(&[0], &[vec![1.0]], &config(method, ScaleRewards::Group, 1.0));
        assert_eq!((alone.advantages, alone.no_signal), (vec![vec![0.0]], vec![true]), "a group of one: {method:?}");
        assert_eq!(alone.peers, [[1]], "{method:?}");
    }
}

#[test]
fn equal_returns_give_exactly_nothing_whatever_the_rounding() {
    // The mean of these is not 0.1 in floating point.
    assert_ne!([0.1; 3].iter().sum::<f64>() / 3.0, 0.1);
    for (&method, scaling) in METHODS.iter().flat_map(|method| SCALINGS.map(|scaling| (method, scaling))) {
        let rewards = vec![vec![0.1]; 3];
        let same = Evidence {
            histories: vec![vec![0, 1]; 3],
            values: Some(vec![vec![0.1]; 3]),
            ..Evidence::of_rewards(&[0; 3], &rewards)
        };
        let map = assign(&same, &config(method, scaling, 0.9));
        assert_eq!((map.advantages, map.no_signal), (vec![vec![0.0]; 3], vec![true]), "{method:?}");
    }
    // The same with a shared way there: three turns of rewards that do not add up exactly.
    let rewards = vec![vec![0.1, 0.2, 0.7]; 7];
    let histories = (0..7).map(|_| vec![0, 1, 2, 3]).collect();
    let shared = Evidence { histories, ..Evidence::of_rewards(&[0; 7], &rewards) };
    for &method in METHODS.iter().filter(|&&method| !matches!(method, CreditMethod::ReinforcePp | CreditMethod::Process)) {
        let map = assign(&shared, &config(method, ScaleRewards::Group, 0.9));
        assert_eq!((map.advantages, map.no_signal), (vec![vec![0.0; 3]; 7], vec![true]), "{method:?}");
    }
}
