//! A policy whose weights are packed once for all the jobs that compute with it.

use std::sync::OnceLock;

use super::Network;
use crate::policy::Policy;

/// A policy, and its network once it was asked for.
pub struct Packed {
    policy: Policy,
    network: OnceLock<Option<Network>>,
}

impl Packed {
    /// Nothing is packed yet. The policy is not copied, only named once more.
    pub fn new(policy: &Policy) -> Self {
        Packed { policy: policy.clone(), network: OnceLock::new() }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Packed at the first call; `None` where the policy is not covered.
    pub fn network(&self) -> Option<&Network> {
        self.network.get_or_init(|| Network::of(&self.policy)).as_ref()
    }
}
