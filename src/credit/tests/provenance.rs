//! Each turn's chain leads from facts to its advantage.

use super::*;

proptest! {
    #[test]
    fn the_chain_of_a_turn_leads_from_facts_to_its_advantage(episodes in episodes(), config in configs()) {
        let episodes: Vec<Trajectory> = episodes.into_iter().map(with_tools).collect();
        let config = ExperimentConfig { reward_mode: RewardMode::Mixed, turn_weight: -0.125, ..config };
        let (rewards, map) = (score(&episodes, &weighted_terms(&config)), credited(&episodes, &config));
        for (index, episode) in episodes.iter().enumerate() {
            for turn in 0..episode.turns.len() + 1 {
                let chain = credit_chain((index, turn), &episodes, &rewards, &map, config.gamma);
                prop_assert_eq!(chain.is_some(), turn < episode.turns.len());
                let Some(chain) = chain else { continue };
                prop_assert_eq!((chain.trajectory, chain.turn, chain.advantage), (index, turn, map.advantages[index][turn]));
                let mut sum = 0.0;
                for PartProvenance { part, rewards, value_after, deviation } in &chain.parts {
                    for reward in rewards {
                        let amounts: f64 = reward.terms.iter().map(|term| term.weight).sum();
                        let discount = config.gamma.powi((reward.turn - part.turn) as i32);
                        prop_assert!((reward.discount * amounts - reward.amount).abs() < 1e-12 && reward.discount == discount);
                        prop_assert_eq!(reward.facts, episode.turns[reward.turn].facts);
                    }
                    let value = rewards.iter().map(|reward| reward.amount).sum::<f64>() + value_after.unwrap_or(0.0);
                    prop_assert!((value - part.value).abs() < 1e-9, "{:?} is made of {}", part, value);
                    let divided = config.scale_rewards != ScaleRewards::None;
                    prop_assert!(deviation.is_none_or(|deviation| divided && deviation > -1e-12), "{:?} of {:?}", deviation, part);
                    prop_assert!((deviation.map_or(1.0, |deviation| deviation + 1e-4) - part.scale).abs() < 1e-12);
                    sum += part.weight * (value - part.baseline) / part.scale;
                }
                if let Some(whitening) = chain.whitening {
                    sum = (sum - whitening.mean) / whitening.scale;
                }
                prop_assert!((sum - chain.advantage).abs() < 1e-6 * (1.0 + sum.abs()), "{} is not {}", sum, chain.advantage);
            }
        }
        prop_assert_eq!(credit_chain((episodes.len(), 0), &episodes, &rewards, &map, config.gamma), None);
    }
}
