//! Properties that hold for every reward, by their number in the project's list.

use super::*;

/// Sum over the batch of what `of` gives for each turn that `counts`.
fn sum_where(map: &CreditMap, counts: impl Fn(usize, usize) -> bool, of: impl Fn(usize, usize) -> f64) -> f64 {
    let places = map.advantages.iter().enumerate().flat_map(|(index, turns)| (0..turns.len()).map(move |turn| (index, turn)));
    places.filter(|&(index, turn)| counts(index, turn)).fold(0.0, |sum, (index, turn)| sum + of(index, turn))
}

/// Evidence with other rewards. Outcome rewards change where the last reward does.
fn with_rewards(evidence: &Evidence, change: impl Fn(usize, usize, f64) -> f64) -> Evidence {
    let mut changed = evidence.clone();
    for (index, rewards) in changed.rewards.iter_mut().enumerate() {
        for (turn, reward) in rewards.iter_mut().enumerate() {
            let new = change(index, turn, *reward);
            if turn + 1 == evidence.rewards[index].len() {
                changed.outcome_rewards[index][turn] += new - *reward;
            }
            *reward = new;
        }
    }
    changed
}

fn change_values(evidence: &mut Evidence, change: impl Fn(f64) -> f64) {
    evidence.values.iter_mut().flatten().flatten().for_each(|value| *value = change(*value));
}

/// The trajectories in another order.
fn reordered(evidence: &Evidence, order: &[usize]) -> Evidence {
    fn pick<T: Clone>(rows: &[T], order: &[usize]) -> Vec<T> {
        order.iter().map(|&index| rows[index].clone()).collect()
    }
    Evidence {
        groups: pick(&evidence.groups, order),
        rewards: pick(&evidence.rewards, order),
        outcome_rewards: pick(&evidence.outcome_rewards, order),
        histories: pick(&evidence.histories, order),
        observations: pick(&evidence.observations, order),
        trained_tokens: pick(&evidence.trained_tokens, order),
        values: evidence.values.as_ref().map(|values| pick(values, order)),
    }
}

proptest! {
    #[test]
    fn property_1_advantages_of_a_group_sum_to_zero(evidence in evidences(), config in configs()) {
        let map = assign(&evidence, &config);
        let close = |sum: f64, what: &str| assert!(sum.abs() < 1e-8, "{what}: {sum} in {:?}", map.advantages);
        let advantage = |index: usize, turn: usize| map.advantages[index][turn];
        if WHITENED.contains(&config.credit_method) && map.whitening.iter().all(Option::is_some) {
            let tokens = |index: usize, turn: usize| evidence.trained_tokens[index][turn] as f64;
            close(sum_where(&map, |_, _| true, |i, k| tokens(i, k) * advantage(i, k)), "whitened, over tokens");
        }
        for group in 0..3 {
            let member = |index: usize| evidence.groups[index] == group;
            let part = |at: usize| { let map = &map; move |i: usize, k: usize| map.parts[i][k][at].contribution() };
            match config.credit_method {
                CreditMethod::Grpo | CreditMethod::Rloo => close(sum_where(&map, |i, k| member(i) && k == 0, advantage), "trajectories"),
                CreditMethod::ReturnToGo if config.turn_baseline == TurnBaseline::Pooled => {
                    close(sum_where(&map, |i, _| member(i), advantage), "turns");
                }
                CreditMethod::ReturnToGo | CreditMethod::Tree => {
                    for turn in 0..4 {
                        close(sum_where(&map, |i, k| member(i) && k == turn, advantage), "turns of the same index");
                    }
                }
                CreditMethod::Process => close(sum_where(&map, |i, _| member(i), part(0)), "normalised rewards"),
                CreditMethod::Gigpo => {
                    close(sum_where(&map, |i, k| member(i) && k == 0, part(0)), "episode part");
                    close(sum_where(&map, |i, _| member(i), part(1)), "step part");
                }
                CreditMethod::MtGrpo => {
                    close(sum_where(&map, |i, k| member(i) && k == 0, part(0)), "outcome part");
                    let inner = |i: usize, k: usize| member(i) && map.parts[i][k].len() == 2;
                    close(sum_where(&map, inner, part(1)), "turn part");
                }
                CreditMethod::ReinforcePpBaseline => close(sum_where(&map, |i, k| member(i) && k == 0, part(0)), "centred returns"),
                CreditMethod::ReinforcePp | CreditMethod::MonteCarlo | CreditMethod::Gae => {}
            }
        }
    }

    #[test]
    fn differences_of_values_sum_to_the_return_less_the_value_of_the_start(evidence in evidences(), gamma in 0.0_f64..=1.0) {
        for method in [CreditMethod::Tree, CreditMethod::MonteCarlo] {
            let map = assign(&evidence, &config(method, ScaleRewards::None, gamma));
            for (index, advantages) in map.advantages.iter().enumerate() {
                let sum: f64 = advantages.iter().enumerate().map(|(turn, advantage)| gamma.powi(turn as i32) * advantage).sum();
                assert_close(&[sum], &[map.returns_to_go[index][0] - map.parts[index][0][0].baseline], 1e-9);
            }
        }
        // The tree's start is where all members are, so that undiscounted and unscaled it shares out Dr. GRPO's advantage.
        let tree = assign(&evidence, &config(CreditMethod::Tree, ScaleRewards::None, 1.0));
        let grpo = assign(&evidence, &config(CreditMethod::Grpo, ScaleRewards::None, 1.0));
        for (tree, grpo) in tree.advantages.iter().zip(&grpo.advantages) {
            assert_close(&[tree.iter().sum()], &grpo[..1], 1e-9);
        }
    }

    #[test]
    fn gae_with_lambda_one_is_the_return_to_go_less_the_value(evidence in evidences(), gamma in 0.0_f64..=1.0) {
        let values = evidence.values.clone().unwrap_or_default();
        for (rewards, values) in evidence.rewards.iter().zip(&values) {
            let returns = discounted_returns(rewards, gamma);
            let expected: Vec<f64> = returns.iter().zip(values).map(|(g, v)| g - v).collect();
            assert_close(&generalised_advantages(rewards, values, gamma, 1.0), &expected, 1e-9);
            let one_step = generalised_advantages(rewards, values, gamma, 0.0);
            assert_close(&one_step, &temporal_differences(rewards, values, gamma), 1e-12);
        }
    }

    #[test]
    fn property_2_permuting_members_permutes_advantages(evidence in evidences(), config in configs(), shift in 0_usize..15) {
        let count = evidence.groups.len();
        let order: Vec<usize> = (0..count).map(|index| (index + shift) % count).rev().collect();
        let (straight, permuted) = (assign(&evidence, &config), assign(&reordered(&evidence, &order), &config));
        for (place, &index) in order.iter().enumerate() {
            assert_close(&permuted.advantages[place], &straight.advantages[index], 1e-7);
        }
        prop_assert_eq!(permuted.no_signal, straight.no_signal);
    }

    #[test]
    fn property_3_a_constant_added_to_all_returns_changes_nothing(
        evidence in evidences(), config in configs(), quarters in -40_i32..40,
    ) {
        let (constant, settings) = (f64::from(quarters) / 4.0, ExperimentConfig { gamma: 1.0, ..config });
        let process = settings.credit_method == CreditMethod::Process;
        let ends = |index: usize, turn: usize| process || turn + 1 == evidence.rewards[index].len();
        let mut moved = with_rewards(&evidence, |i, k, reward| if ends(i, k) { reward + constant } else { reward });
        change_values(&mut moved, |value| value + constant);
        assert_rows_close(&assign(&moved, &settings).advantages, &assign(&evidence, &settings).advantages, 1e-7);
    }

    #[test]
    fn property_4_scaled_advantages_do_not_depend_on_the_unit_of_reward(
        evidence in evidences(), config in configs(), factor in 0.1_f64..10.0,
    ) {
        let mut larger = evidence.clone();
        for rows in [&mut larger.rewards, &mut larger.outcome_rewards] {
            rows.iter_mut().flatten().for_each(|reward| *reward *= factor);
        }
        change_values(&mut larger, |value| value * factor);
        let (before, after) = (assign(&evidence, &config), assign(&larger, &config));
        let scaled = config.scale_rewards != ScaleRewards::None && config.credit_method != CreditMethod::Rloo;
        for (index, turn) in (0..before.parts.len()).flat_map(|i| (0..before.parts[i].len()).map(move |k| (i, k))) {
            let (old, new) = (before.advantages[index][turn], after.advantages[index][turn]);
            if WHITENED.contains(&config.credit_method) {
                // Variances of the draws are 0 or large against the 1e-8 beside them, but for rare small ones.
                let scale = before.whitening[evidence.groups[index]].map_or(1.0, |whitening| whitening.scale.min(whitening.scale * factor));
                prop_assert!((old - new).abs() <= 1e-8 * old.abs() / scale.powi(2) + 1e-9, "{} became {}", old, new);
            } else if scaled {
                // Exactly what the epsilon beside the standard deviation allows.
                let epsilon = Scaling::SAMPLE.epsilon;
                let allowed: f64 = before.parts[index][turn].iter().map(|part| {
                    let kept = factor * (part.scale - epsilon) + epsilon;
                    part.contribution().abs() * epsilon * (factor - 1.0).abs() / kept
                }).sum();
                prop_assert!((old - new).abs() <= allowed + 1e-7, "{} became {}", old, new);
            } else {
                prop_assert!((new - factor * old).abs() <= 1e-9 * (1.0 + new.abs()), "{} became {}", old, new);
            }
        }
    }

    #[test]
    fn property_5_process_terms_that_never_pay_leave_the_outcome_alone(outcomes in prop::collection::vec(any::<bool>(), 2..8)) {
        let ending = |right| Facts { answered: true, answer_right: right, ..Facts::default() };
        let silent: Vec<_> = outcomes.iter().map(|&right| trajectory(0, &[Facts::default(), ending(right)])).collect();
        for &method in METHODS {
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
    fn property_7_groups_are_credited_the_same_apart_together_and_twice(evidence in evidences(), config in configs()) {
        prop_assume!(!WHITENED.contains(&config.credit_method) && config.scale_rewards != ScaleRewards::Batch);
        let together = assign(&evidence, &config);
        for group in 0..3 {
            let members: Vec<usize> = (0..evidence.groups.len()).filter(|&index| evidence.groups[index] == group).collect();
            let apart = assign(&reordered(&evidence, &members), &config);
            for (place, &index) in members.iter().enumerate() {
                prop_assert_eq!(&apart.advantages[place], &together.advantages[index]);
            }
        }
        let order: Vec<usize> = (0..evidence.groups.len()).chain(0..evidence.groups.len()).collect();
        let mut twice = reordered(&evidence, &order);
        twice.groups[evidence.groups.len()..].iter_mut().for_each(|group| *group += 3);
        let twice = assign(&twice, &config).advantages;
        prop_assert_eq!(&twice[..evidence.groups.len()], &together.advantages[..]);
        prop_assert_eq!(&twice[evidence.groups.len()..], &together.advantages[..]);
    }

    #[test]
    fn property_8_gamma_one_sums_all_rewards_and_gamma_zero_none_to_come((_, rewards) in batches()) {
        for turns in &rewards {
            assert_close(&discounted_returns(turns, 1.0)[..1], &[turns.iter().sum()], 1e-12);
            prop_assert_eq!(&discounted_returns(turns, 0.0), turns);
        }
    }

    #[test]
    fn property_10_shaping_by_a_potential_telescopes(evidence in evidences(), gamma in 0.0_f64..=1.0, scaling in scalings()) {
        // A potential of the history: what the group's members share, they share in this too. It is 0 after the last turn.
        let potential = |index: usize, turn: usize| match turn < evidence.rewards[index].len() {
            true => (evidence.histories[index][turn] % 7) as f64 / 4.0,
            false => 0.0,
        };
        let shaped = with_rewards(&evidence, |i, k, reward| reward + gamma * potential(i, k + 1) - potential(i, k));
        for (index, rewards) in shaped.rewards.iter().enumerate() {
            let expected = discounted_returns(&evidence.rewards[index], gamma);
            let expected: Vec<f64> = expected.iter().enumerate().map(|(turn, g)| g - potential(index, turn)).collect();
            assert_close(&discounted_returns(rewards, gamma), &expected, 1e-9);
        }
        // All members start in the same state, so that no credit of whole trajectories changes, nor that of the tree.
        for method in [CreditMethod::Grpo, CreditMethod::Rloo, CreditMethod::ReinforcePpBaseline, CreditMethod::Tree] {
            let config = config(method, scaling, gamma);
            let batch = scaling == ScaleRewards::Batch && method == CreditMethod::Grpo;
            prop_assume!(!batch || evidence.histories.iter().all(|histories| histories[0] == evidence.histories[0][0]));
            assert_rows_close(&assign(&shaped, &config).advantages, &assign(&evidence, &config).advantages, 1e-7);
        }
    }
}
