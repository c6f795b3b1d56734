//! REINFORCE++ with a baseline: the return against the mean of the group, whitened over the batch.
//!
//! `x_i = R_i - mean(R)` over the group, then `A_i = (x_i - mean(x)) / sqrt(var(x) + 1e-8)`, mean and sample variance over the
//! trained tokens of the whole batch (Hu, arXiv:2501.03262, the variant REINFORCE++-baseline). `R_i` is the discounted return.
//! Every turn of a trajectory carries the same advantage; long trajectories weigh more in the whitening, so the advantages of a
//! group need not sum to 0. Groups of equal returns, and of one, count in the whitening but keep their 0, which the second
//! centring would move. Frameworks differ: verl uses the sample variance (ours), OpenRLHF the population variance with a
//! floor of 1e-8, rLLM divides by the deviation over trajectories and does not centre again.

use super::map::Parts;
use super::{Convention, Inputs, Lone, Method, Part, PartKind, Scaling, Whitened, compare, parts_of};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::GroupsWithSignal, needs_values: false };

fn parts(inputs: &Inputs) -> Parts {
    let centred = Convention { scaling: Scaling::None, lone: Lone::Zero };
    let comparisons = compare(&inputs.evidence.groups, inputs.returns, centred);
    parts_of(inputs.returns_to_go, |index, _| Part::of(PartKind::Episode, 0, inputs.returns[index], comparisons[index]))
}
