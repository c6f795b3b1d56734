//! Policies that other workers keep.

use burn::tensor::{Device, Tensor};

use super::{Activation, Policy, PolicyConfig};
use crate::parallel::{self, Held, Packet, spelled, spelling};
use crate::readback::read;

/// What a policy is besides its weights.
#[derive(serde::Serialize, serde::Deserialize)]
struct Shape {
    policy: PolicyConfig,
    /// Numbers per position: the vocabulary's size, or 1 for a critic.
    outputs: usize,
}

impl Policy {
    /// Gives the policy to the pool's workers to keep, where there is a pool and it works for this device.
    pub fn hold(&self) -> Option<Held> {
        let pool = parallel::pool().filter(|_| parallel::cuts(&self.device()))?;
        let numbers = parallel::wait(read(Tensor::cat(self.tensors(), 0))).ok()?;
        let shape = Shape { policy: self.shape(), outputs: self.head.weight.lazy_shape()[1] };
        Some(pool.hold(spelled(&shape)?, numbers))
    }

    /// Gives the policy to the pool's workers, as [`Policy::hold`], before there are jobs for it.
    pub fn send_ahead(&self) -> Option<Held> {
        let (pool, held) = (parallel::pool()?, self.hold()?);
        pool.send_ahead(held);
        Some(held)
    }

    /// The policy of a packet of [`Policy::hold`], without gradients, on a device; nothing where the packet holds none.
    pub fn from_packet(packet: &Packet, device: &Device) -> Option<Policy> {
        let Shape { policy, outputs } = spelling(&packet.task)?;
        let fresh = policy.init(device);
        let fresh = if outputs == policy.vocabulary { fresh } else { fresh.with_outputs(outputs) };
        let mut numbers = packet.numbers.as_slice();
        let weights = fresh.named(&mut numbers);
        if numbers.is_empty() { fresh.with_weights(&weights).ok() } else { None }
    }

    /// The shape that a policy of these weights is made with.
    fn shape(&self) -> PolicyConfig {
        PolicyConfig {
            vocabulary: self.tokens.weight.lazy_shape()[0],
            context_length: self.context_length(),
            d_model: self.d_model(),
            layers: self.layers(),
            heads: self.heads(),
            hidden: self.blocks.first().map_or(0, |block| block.up.weight.lazy_shape()[1]),
            activation: if self.gelu { Activation::Gelu } else { Activation::Relu },
            bias: self.blocks.first().is_some_and(|block| block.out.bias.is_some()),
        }
    }
}
