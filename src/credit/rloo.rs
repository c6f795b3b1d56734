//! RLOO: the return against the mean of the other members of the group.
//!
//! `A_i = R_i - 1/(G-1) sum of R_j over j != i`, which is `G/(G-1) (R_i - mean(R))` (Ahmadian et al., arXiv:2402.14740, eq. 8;
//! Kool et al. 2019). `R_i` is the discounted return, every turn of the trajectory carries the same advantage, and nothing is
//! divided: the setting of scaling does not act. A group of one gives 0 (as in SkyRL and TRL; one of verl's two versions gives
//! the raw reward).

use super::map::Parts;
use super::{Comparison, Convention, Inputs, Lone, Method, Part, PartKind, Scaling, Whitened, compare, parts_of};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: false };

/// What each value is compared with: the mean of the others with the same group, `[trajectory]`.
pub fn leave_one_out(groups: &[usize], values: &[f64], lone: Lone) -> Vec<Comparison> {
    let means = compare(groups, values, Convention { scaling: Scaling::None, lone });
    let others = |(comparison, &value): (Comparison, &f64)| match comparison.peers {
        0 | 1 => comparison,
        // In this form equal values give exactly themselves.
        peers => {
            let baseline = comparison.baseline - (value - comparison.baseline) / (peers - 1) as f64;
            Comparison { baseline, ..comparison }
        }
    };
    means.into_iter().zip(values).map(others).collect()
}

fn parts(inputs: &Inputs) -> Parts {
    let comparisons = leave_one_out(&inputs.evidence.groups, inputs.returns, Lone::Zero);
    parts_of(inputs.returns_to_go, |index, _| Part::of(PartKind::Episode, 0, inputs.returns[index], comparisons[index]))
}
