//! REINFORCE++: the return-to-go of the turn, whitened over the batch, without groups.
//!
//! `G_k = r_k + gamma G_{k+1}`, `A_k = (G_k - mean(G)) / sqrt(var(G) + 1e-8)`, mean and sample variance over the trained tokens
//! of the whole batch (Hu, arXiv:2501.03262). The setting of scaling does not act. Frameworks differ in the discount: gamma acts
//! once per turn here, once per trained token in verl, once per position (tool tokens included) in OpenRLHF; older versions of
//! verl lost the credit of all turns before a tool result, because they multiplied the running return by the loss mask.

use super::map::Parts;
use super::{Comparison, Inputs, Method, Part, PartKind, Whitened, parts_of};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Always, needs_values: false };

fn parts(inputs: &Inputs) -> Parts {
    let nothing = Comparison { baseline: 0.0, scale: 1.0, peers: 0 };
    parts_of(inputs.returns_to_go, |index, turn| Part::of(PartKind::ReturnToGo, turn, inputs.returns_to_go[index][turn], nothing))
}
