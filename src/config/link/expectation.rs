//! What a link says its run should reproduce: `cpu.Zk3-...`, a kind of device and one character for each training step.

use crate::device::DeviceKind;

/// Most training steps that an expectation covers, so that links stay short.
pub const EXPECTED_STEPS: usize = 100;

/// The characters of base64url (RFC 4648, section 5): 6 bits each.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a run gave on one kind of device, step by step, as far as a link holds it. Made and compared in
/// `crate::metrics`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Expectation {
    /// What the run was computed on: another kind of device rounds differently, and the runs part sooner or later.
    pub backend: DeviceKind,
    /// One character of base64url for each of the first training steps, 1 to [`EXPECTED_STEPS`] of them: 6 bits of a hash over
    /// what was counted in that step.
    pub codes: String,
}

impl Expectation {
    /// The character for the lowest 6 bits of a hash.
    pub fn character(hash: u32) -> char {
        char::from(ALPHABET[(hash & 63) as usize])
    }

    /// As it stands in a link.
    pub(super) fn text(&self) -> String {
        let backend = match self.backend {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Webgpu => "webgpu",
        };
        format!("{backend}.{}", self.codes)
    }

    /// Reads what [`Expectation::text`] writes; `None` for anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (backend, codes) = text.split_once('.')?;
        let backend = match backend {
            "cpu" => DeviceKind::Cpu,
            "webgpu" => DeviceKind::Webgpu,
            _ => return None,
        };
        let sound = (1..=EXPECTED_STEPS).contains(&codes.len()) && codes.bytes().all(|byte| ALPHABET.contains(&byte));
        sound.then(|| Expectation { backend, codes: codes.to_owned() })
    }
}
