//! Which device a run is to compute on, before any is opened: plain data.

use super::{DeviceChoice, DeviceKind, DeviceReason, DeviceReport};

/// What a GPU adapter says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    pub name: String,
    /// It computes on the CPU.
    pub software: bool,
}

impl Adapter {
    /// An adapter by its name and whatever other `words` it has for itself. `fallback` is what the platform says about it being
    /// software; some only show it in their words.
    pub fn new(name: String, words: &[&str], fallback: bool) -> Self {
        let software = fallback || is_software(words) || is_software(&[&name]);
        Adapter { name, software }
    }
}

/// Picks a device. Never fails: where WebGPU is missing or is software only, the CPU is to compute and the report says why.
///
/// `find` looks for an adapter: in a program [`super::native_adapter`], in a browser the border's own search, which can tell apart
/// every way of not having WebGPU. It is not called when the CPU is asked for.
pub async fn plan(choice: DeviceChoice, find: impl AsyncFnOnce() -> Result<Adapter, (DeviceReason, String)>) -> DeviceReport {
    if choice == DeviceChoice::Cpu {
        return DeviceReport::cpu(DeviceReason::Chosen, String::new());
    }
    let found = match find().await {
        Ok(found) => found,
        Err((reason, detail)) => return DeviceReport::cpu(reason, detail),
    };
    if found.software && choice == DeviceChoice::Auto {
        return DeviceReport::cpu(DeviceReason::SoftwareAdapter, found.name);
    }
    let reason = if choice == DeviceChoice::Gpu { DeviceReason::Chosen } else { DeviceReason::AdapterFound };
    DeviceReport { kind: DeviceKind::Webgpu, name: found.name, reason, detail: String::new() }
}

impl DeviceReport {
    /// The CPU, with a reason.
    pub(super) fn cpu(reason: DeviceReason, detail: String) -> DeviceReport {
        let name = if cfg!(target_arch = "wasm32") { "WebAssembly SIMD" } else { "native" };
        DeviceReport { kind: DeviceKind::Cpu, name: name.to_string(), reason, detail }
    }
}

/// Names of adapters that compute on the CPU.
fn is_software(names: &[&str]) -> bool {
    ["swiftshader", "llvmpipe", "lavapipe", "basic render", "software"]
        .iter()
        .any(|software| names.iter().any(|name| name.to_lowercase().contains(software)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_adapters_are_known_by_name() {
        assert!(Adapter::new("Google SwiftShader".into(), &[], false).software);
        assert!(Adapter::new("GPU".into(), &["mesa", "llvmpipe (LLVM 15)"], false).software);
        assert!(Adapter::new("GPU".into(), &[], true).software);
        assert!(!Adapter::new("Apple M2".into(), &["apple", "metal-3"], false).software);
    }

    #[test]
    fn the_cpu_can_be_chosen_without_a_search_and_says_so() {
        let report = pollster::block_on(plan(DeviceChoice::Cpu, async || panic!("no search was asked for")));
        assert_eq!((report.kind, report.reason), (DeviceKind::Cpu, DeviceReason::Chosen));
    }

    #[test]
    fn without_a_real_adapter_the_cpu_takes_over_and_says_why() {
        let software = async || Ok(Adapter::new("SwiftShader".into(), &[], false));
        let report = pollster::block_on(plan(DeviceChoice::Auto, software));
        assert_eq!((report.kind, report.reason), (DeviceKind::Cpu, DeviceReason::SoftwareAdapter));
        let none = async || Err((DeviceReason::InsecurePage, "words".to_string()));
        let report = pollster::block_on(plan(DeviceChoice::Gpu, none));
        assert_eq!((report.kind, report.reason, report.detail.as_str()), (DeviceKind::Cpu, DeviceReason::InsecurePage, "words"));
    }
}
