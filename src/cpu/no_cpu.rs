//! What this module is in a build that trains on graphics devices alone: nothing is packed.

use crate::policy::Policy;

/// A policy.
pub struct Packed(Policy);

impl Packed {
    pub fn new(policy: &Policy) -> Self {
        Packed(policy.clone())
    }

    pub fn policy(&self) -> &Policy {
        &self.0
    }
}
