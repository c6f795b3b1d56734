//! Preference pairs: the best and the worst trajectory of each group.

use std::collections::BTreeMap;

/// For each group the positions of its best and its worst trajectory, by return; the first of equals. Groups in which all returns
/// are the same (or there is one trajectory only) have no preference and are left out.
pub fn best_and_worst(groups: &[usize], returns: &[f64]) -> Vec<(usize, usize)> {
    let mut extremes: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (index, &group) in groups.iter().enumerate() {
        let (best, worst) = extremes.entry(group).or_insert((index, index));
        if returns[index] > returns[*best] {
            *best = index;
        }
        if returns[index] < returns[*worst] {
            *worst = index;
        }
    }
    extremes.into_values().filter(|&(best, worst)| returns[best] > returns[worst]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_the_extremes_of_groups_that_differ() {
        let (groups, returns) = ([0, 1, 0, 1, 0, 2], [0.5, 1.0, 0.9, 1.0, 0.1, 3.0]);
        assert_eq!(best_and_worst(&groups, &returns), [(2, 4)]);
        assert_eq!(best_and_worst(&[], &[]), []);
    }
}
