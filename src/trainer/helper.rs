//! The other side of a pool: a worker that does the jobs of somebody else's run.

use burn::tensor::Device;

use crate::cpu::Packed;
use crate::learner::{gradient_packet, imitation_packet, log_probs_packet};
use crate::parallel::{Held, Kind, Packet};
use crate::policy::Policy;
use crate::rollout::play_packet;

/// Does jobs on the CPU. Holds the policies that it was given and nothing else.
#[derive(Default)]
pub struct Helper {
    policies: Vec<(Held, Packed)>,
    /// Whether a gradient was asked for since the last policy came.
    trains: bool,
}

impl Helper {
    /// Does what a packet says and gives the answer; a policy to be kept is not answered.
    ///
    /// # Errors
    /// When the packet cannot be understood or names a policy that is not here: then this helper is of no use.
    pub async fn handle(&mut self, packet: &Packet) -> Result<Option<Packet>, HelperError> {
        self.trains |= matches!(packet.kind, Kind::Gradient | Kind::Imitation);
        let found = packet.needs.first().and_then(|held| self.policies.iter().find(|(known, _)| known == held));
        let answer = match (packet.kind, found) {
            (Kind::Policy, _) => {
                let Some((new, kept)) = packet.needs.split_first() else { return Err(HelperError::Malformed) };
                // Whatever an earlier run called by the new number goes too.
                self.policies.retain(|(held, _)| kept.contains(held) && held != new);
                let policy = Policy::from_packet(packet, &Device::flex()).ok_or(HelperError::Malformed)?;
                let policy = Packed::new(&policy);
                // Now: whoever sent it is not waiting yet.
                if let (Some(network), true) = (policy.network(), std::mem::take(&mut self.trains)) {
                    network.pack_backward();
                }
                self.policies.push((*new, policy));
                return Ok(None);
            }
            (_, None) => return Err(HelperError::NoPolicy),
            (Kind::Episodes, Some((_, policy))) => play_packet(policy, packet).await,
            (Kind::LogProbs, Some((_, policy))) => log_probs_packet(policy, packet).await,
            (Kind::Gradient, Some((_, policy))) => gradient_packet(policy, packet).await,
            (Kind::Imitation, Some((_, policy))) => imitation_packet(policy, packet).await,
        };
        answer.map(Some).ok_or(HelperError::Malformed)
    }

    /// Policies that are held.
    pub fn held(&self) -> usize {
        self.policies.len()
    }
}

/// Why a helper cannot do a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelperError {
    #[error("a job names a policy that was not sent")]
    NoPolicy,
    #[error("a job cannot be understood")]
    Malformed,
}
