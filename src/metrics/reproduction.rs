//! Whether a run gives what a link says it should: by what was counted in each training step, not by rounded means.
//!
//! Counts (episodes, successes, calls, turns, tokens) come from sampled tokens alone: the same run on the same kind of device
//! gives the same ones, whatever the last digits of its losses. Another device, or another processor, can round a probability
//! differently; a token is then sampled differently sooner or later, and from there on the runs are different ones.

use super::report::Report;
use crate::config::{EXPECTED_STEPS, Expectation};
use crate::device::DeviceKind;

/// Success of an episode is a share of at most 8 judged turns (the bound of `turn_limit`), so that its 840-fold is a whole number.
const PARTS: f64 = 840.0;

/// How a run compares with what a link says.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reproduction {
    /// All the steps that the link knows are the same.
    Reproduced { iterations: usize },
    /// The first step (from 0) that is not the same.
    Differs { iteration: usize },
    /// The same in all of the run's `so_far` steps; the link knows more.
    Pending { so_far: usize },
    /// Computed on another kind of device, where it need not be the same.
    OtherBackend,
}

/// What a link can say of a run: `reports` are those of its steps in order from the first one. `None` without any.
pub fn expectation_of(reports: &[Report], backend: DeviceKind) -> Option<Expectation> {
    let codes: String = reports.iter().take(EXPECTED_STEPS).map(code).collect();
    (!codes.is_empty()).then_some(Expectation { backend, codes })
}

/// Compares the steps of a run so far, in order from the first one, with what a link says. A step that differs goes unnoticed
/// once in 64 times; those after it differ as well.
pub fn compare_expectation(expectation: &Expectation, reports: &[Report], backend: DeviceKind) -> Reproduction {
    if backend != expectation.backend {
        return Reproduction::OtherBackend;
    }
    let differs = expectation.codes.chars().zip(reports).position(|(expected, report)| expected != code(report));
    let iterations = expectation.codes.chars().count();
    match differs {
        Some(iteration) => Reproduction::Differs { iteration },
        None if reports.len() < iterations => Reproduction::Pending { so_far: reports.len() },
        None => Reproduction::Reproduced { iterations },
    }
}

/// 6 bits of the FNV-1a hash (Fowler, Noll and Vo) of what was counted in a step, its upper half folded onto its lower.
fn code(report: &Report) -> char {
    let episodes: usize = report.by_type.iter().map(|kind| kind.episodes).sum();
    let counted = |mean: f64, of: usize| (mean * of as f64).round() as i64;
    let counts = [
        report.iteration as i64,
        episodes as i64,
        counted(report.train_success * PARTS, episodes),
        report.held_out_episodes as i64,
        counted(report.held_out_success * PARTS, report.held_out_episodes),
        counted(report.calls, episodes),
        counted(report.turns, episodes),
        report.tokens as i64,
    ];
    let bytes = counts.iter().flat_map(|count| count.to_le_bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    Expectation::character(hash ^ (hash >> 15) ^ (hash >> 24))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::summarise_episodes;
    use crate::reward::tests::{answer, call, trajectory};

    /// A step in which `right` of 6 training episodes succeed.
    fn report(iteration: usize, right: usize) -> Report {
        let training: Vec<_> = (0..6).map(|index| trajectory(0, &[call(), answer(index < right)])).collect();
        summarise_episodes(iteration, &training, &training[..2], &[], 1)
    }

    #[test]
    fn a_run_reproduces_itself_whatever_its_losses_and_times() {
        let reports: Vec<Report> = (0..5).map(|iteration| report(iteration, iteration)).collect();
        let expectation = expectation_of(&reports, DeviceKind::Cpu).unwrap();
        assert_eq!(expectation.codes.len(), 5);
        let mut again = reports.clone();
        for report in &mut again {
            (report.seconds, report.update.loss, report.mean_return) = (9.0, 0.123, f64::NAN);
            report.train_success += 1e-12;
        }
        assert_eq!(compare_expectation(&expectation, &again, DeviceKind::Cpu), Reproduction::Reproduced { iterations: 5 });
        assert_eq!(compare_expectation(&expectation, &again[..3], DeviceKind::Cpu), Reproduction::Pending { so_far: 3 });
        assert_eq!(compare_expectation(&expectation, &again, DeviceKind::Webgpu), Reproduction::OtherBackend);
        again.push(report(5, 0));
        assert_eq!(compare_expectation(&expectation, &again, DeviceKind::Cpu), Reproduction::Reproduced { iterations: 5 });
    }

    #[test]
    fn a_difference_is_found_where_it_begins() {
        let reports: Vec<Report> = (0..6).map(|iteration| report(iteration, 2)).collect();
        let expectation = expectation_of(&reports, DeviceKind::Webgpu).unwrap();
        let mut other = reports.clone();
        other[3] = report(3, 4);
        assert_eq!(compare_expectation(&expectation, &other, DeviceKind::Webgpu), Reproduction::Differs { iteration: 3 });
        let found = |change: fn(&mut Report)| {
            let mut other = reports.clone();
            other[1..].iter_mut().for_each(change);
            compare_expectation(&expectation, &other, DeviceKind::Webgpu) == Reproduction::Differs { iteration: 1 }
        };
        assert!(found(|report| report.held_out_success = 0.0));
        assert!(found(|report| report.calls += 1.0 / 6.0));
        assert!(found(|report| report.turns += 1.0 / 6.0));
        assert!(found(|report| report.tokens += 1));
    }

    #[test]
    fn codes_are_spread_over_the_alphabet_and_cover_a_bounded_number_of_steps() {
        let reports: Vec<Report> = (0..2000).map(|iteration| report(iteration, iteration % 7)).collect();
        let codes: std::collections::BTreeSet<char> = reports.iter().map(code).collect();
        assert_eq!(codes.len(), 64);
        assert_eq!(expectation_of(&reports, DeviceKind::Cpu).unwrap().codes.len(), EXPECTED_STEPS);
        assert_eq!(expectation_of(&[], DeviceKind::Cpu), None);
    }
}
