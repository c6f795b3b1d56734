//! The map says how every advantage came about.

use super::*;

/// The formula that the map's documentation states, worked out on its own.
fn recomputed(map: &CreditMap, group: usize, (index, turn): (usize, usize)) -> f64 {
    let mut sum = 0.0;
    for Part { weight, value, baseline, scale, .. } in &map.parts[index][turn] {
        sum += weight * (value - baseline) / scale;
    }
    map.whitening[group].map_or(sum, |whitening| (sum - whitening.mean) / whitening.scale)
}

proptest! {
    #[test]
    fn the_parts_of_an_advantage_give_the_advantage(evidence in evidences(), config in configs()) {
        let map = assign(&evidence, &config);
        prop_assert!(!map.needs_values);
        for (group, whitening) in map.whitening.iter().enumerate() {
            let whitened = WHITENED.contains(&config.credit_method);
            let silent = config.credit_method == CreditMethod::ReinforcePpBaseline && map.no_signal[group];
            prop_assert_eq!(whitening.is_some(), whitened && !silent);
        }
        for (index, advantages) in map.advantages.iter().enumerate() {
            prop_assert_eq!(advantages.len(), evidence.rewards[index].len());
            for (turn, &advantage) in advantages.iter().enumerate() {
                let tolerance = 1e-9 * (1.0 + advantage.abs());
                prop_assert!(!map.parts[index][turn].is_empty());
                prop_assert!((recomputed(&map, evidence.groups[index], (index, turn)) - advantage).abs() <= tolerance);
                let [value, baseline, scale] = [&map.values, &map.baselines, &map.scales].map(|rows| rows[index][turn]);
                let once = (value - baseline) / scale;
                // Differences of large numbers over a tiny scale lose digits.
                let lost = 1e-14 * (value.abs() + baseline.abs()) / scale;
                prop_assert!((once - advantage).abs() <= tolerance + lost, "{once} is not {advantage}");
            }
        }
    }

    #[test]
    fn every_advantage_is_a_finite_number(evidence in evidences(), config in configs()) {
        let map = assign(&evidence, &config);
        let numbers = [&map.advantages, &map.values, &map.baselines, &map.scales, &map.returns_to_go];
        prop_assert!(numbers.into_iter().flatten().flatten().all(|number| number.is_finite()));
        prop_assert!(map.scales.concat().iter().all(|&scale| scale > 0.0));
        // Not even where deviations are 0: no advantage of a standardised value is far from it.
        if config.scale_rewards == ScaleRewards::Group && config.credit_method == CreditMethod::Grpo {
            prop_assert!(map.advantages.concat().iter().all(|advantage| advantage.abs() < 4.0));
        }
    }

    #[test]
    fn a_turn_without_a_peer_has_no_advantage(evidence in evidences(), config in configs()) {
        let map = assign(&evidence, &ExperimentConfig { turn_baseline: TurnBaseline::TurnIndex, ..config.clone() });
        if config.credit_method != CreditMethod::Process {
            for (peers, advantages) in map.peers.iter().zip(&map.advantages) {
                prop_assert!(peers.iter().zip(advantages).all(|(&peers, &advantage)| peers != 1 || advantage == 0.0));
            }
        }
        for part in map.parts.iter().flatten().flatten().filter(|part| part.peers == 1) {
            prop_assert_eq!(part.contribution(), 0.0);
        }
    }
}

#[test]
fn methods_that_need_values_say_so_and_give_nothing() {
    let needing: Vec<_> = METHODS.iter().copied().filter(|&method| needs_values(method)).collect();
    assert_eq!(needing, [CreditMethod::MonteCarlo, CreditMethod::Gae]);
    let zeros: Vec<Vec<f64>> = worked_example().iter().map(|turns| vec![0.0; turns.len()]).collect();
    let nan = vec![vec![0.5; 3], vec![0.5, f64::NAN], vec![0.5; 3], vec![0.5; 2]];
    for method in METHODS.iter().copied() {
        for values in [None, Some(vec![vec![0.5; 3]]), Some(vec![vec![0.5]; 4]), Some(nan.clone())] {
            let evidence = Evidence { values, ..Evidence::of_rewards(&[0; 4], &worked_example()) };
            let map = assign(&evidence, &config(method, ScaleRewards::Group, 0.9));
            assert_eq!(map.needs_values, needing.contains(&method));
            if map.needs_values {
                assert_eq!((map.advantages, map.no_signal), (zeros.clone(), vec![true]));
            }
        }
    }
}

#[test]
fn the_map_shows_what_an_advantage_was_made_of() {
    let map = assign_rewards(&[0; 4], &worked_example(), &config(CreditMethod::ReturnToGo, ScaleRewards::None, 0.9));
    assert_eq!(map.rewards, worked_example());
    assert_close(&map.returns_to_go.concat(), &[0.91, 0.9, 1.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0], 1e-12);
    assert_close(&map.baselines[0], &[0.5025, 0.475, 0.5], 1e-12);
    assert_eq!((&map.peers[0], &map.peers[3]), (&vec![4, 4, 2], &vec![4, 4]));
    assert_eq!((map.no_signal, map.whitening), (vec![false], vec![None]));
    let part = map.parts[0][2][0];
    assert_eq!((part.kind, part.turn, part.weight, part.value, part.peers), (PartKind::ReturnToGo, 2, 1.0, 1.0, 2));
}

#[test]
fn sums_list_their_summands() {
    let kinds = |method, scaling| {
        let values = worked_example().iter().map(|turns| vec![0.5; turns.len()]).collect();
        let evidence = Evidence { values: Some(values), ..Evidence::of_rewards(&[0; 4], &worked_example()) };
        let map = assign(&evidence, &config(method, scaling, 0.5));
        map.parts[0][0].iter().map(|part| (part.kind, part.turn, part.weight)).collect::<Vec<_>>()
    };
    let none = ScaleRewards::None;
    let to_come = |kind| vec![(kind, 0, 1.0), (kind, 1, 0.5), (kind, 2, 0.25)];
    assert_eq!(kinds(CreditMethod::Process, none), to_come(PartKind::TurnReward));
    assert_eq!(kinds(CreditMethod::MtGrpo, none), [(PartKind::Outcome, 0, 1.0), (PartKind::ProcessReward, 0, 1.0)]);
    assert_eq!(kinds(CreditMethod::Gigpo, none), [(PartKind::Episode, 0, 1.0), (PartKind::State, 0, 1.0)]);
    assert_eq!(kinds(CreditMethod::Tree, none), [(PartKind::TemporalDifference, 0, 1.0)]);
    let decayed: Vec<f64> = kinds(CreditMethod::Gae, none).iter().map(|part| part.2).collect();
    assert_close(&decayed, &[1.0, 0.475, 0.225_625], 1e-12);
}
