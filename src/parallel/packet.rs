//! Jobs and answers as plain data.

/// What a packet is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// A policy to be kept for later jobs. Not answered.
    Policy = 0,
    /// Episodes to be played.
    Episodes = 1,
    /// Log-probabilities of trajectories.
    LogProbs = 2,
    /// The gradient of one micro-batch.
    Gradient = 3,
    /// The gradient of some demonstrations.
    Imitation = 4,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Kind; 5] = [Kind::Policy, Kind::Episodes, Kind::LogProbs, Kind::Gradient, Kind::Imitation];

    /// The kind of a number, if there is one.
    pub fn of(number: u8) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A job or its answer as plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    pub kind: Kind,
    /// What to do, or what came of it, as [`spelled`].
    pub task: Vec<u8>,
    /// The bulk of it.
    pub numbers: Vec<f32>,
    /// What the job needs of what the worker was given to keep.
    pub needs: Vec<Held>,
}

/// A task or an answer as bytes, in the postcard format, where every number keeps its bits; nothing where it cannot be said.
pub fn spelled(task: &impl serde::Serialize) -> Option<Vec<u8>> {
    postcard::to_allocvec(task).ok()
}

/// What bytes of [`spelled`] say; nothing where they say something else.
pub fn spelling<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// The number of something that other workers keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Held(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    /// What travels between workers arrives to the last bit, numbers without a decimal form too.
    #[test]
    fn what_is_spelled_keeps_every_bit() {
        let numbers = [0.1, -0.0, f64::MIN_POSITIVE / 3.0, f64::NAN, f64::INFINITY, 1e300];
        let found: Vec<f64> = spelled(&numbers.as_slice()).and_then(|bytes| spelling(&bytes)).unwrap_or_default();
        assert_eq!(found.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), numbers.map(f64::to_bits));
        assert_eq!(spelling::<Vec<f64>>(&[9, 9, 9]), None);
    }
}
