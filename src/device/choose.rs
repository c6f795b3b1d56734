//! Choosing and opening a device.

use burn::tensor::Device;

use super::{DeviceChoice, DeviceKind, DeviceReason, DeviceReport};

/// A device and how it came to be chosen.
pub struct Chosen {
    pub device: Device,
    pub report: DeviceReport,
}

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

/// Picks a device. Never fails: where WebGPU is missing, refuses or is software only, the CPU takes over and the report says
/// why.
///
/// `find` looks for an adapter: [`native_adapter`] in a program, the border's own search in a browser, which can tell apart every
/// way of not having WebGPU. It is not called when the CPU is asked for.
pub async fn choose(choice: DeviceChoice, find: impl AsyncFnOnce() -> Result<Adapter, (DeviceReason, String)>) -> Chosen {
    if choice == DeviceChoice::Cpu {
        return cpu(DeviceReason::Chosen, String::new());
    }
    let found = match find().await {
        Ok(found) => found,
        Err((reason, detail)) => return cpu(reason, detail),
    };
    if found.software && choice == DeviceChoice::Auto {
        return cpu(DeviceReason::SoftwareAdapter, found.name);
    }
    let reason = if choice == DeviceChoice::Gpu { DeviceReason::Chosen } else { DeviceReason::AdapterFound };
    match Device::wgpu_options().init_async().await {
        Ok(device) => {
            let report = DeviceReport { kind: DeviceKind::Webgpu, name: found.name, reason, detail: String::new() };
            Chosen { device, report }
        }
        Err(error) => cpu(DeviceReason::DeviceRefused, error.to_string()),
    }
}

/// The best adapter that the drivers of this machine offer.
///
/// # Errors
/// When there is none, with the driver layer's own words.
#[cfg(not(target_arch = "wasm32"))]
pub async fn native_adapter() -> Result<Adapter, (DeviceReason, String)> {
    use burn::tensor::wgpu::wgpu;
    let options = wgpu::RequestAdapterOptions { power_preference: wgpu::PowerPreference::HighPerformance, ..Default::default() };
    let adapter = wgpu::Instance::default().request_adapter(&options).await;
    let info = adapter.map_err(|error| (DeviceReason::NoAdapter, error.to_string()))?.get_info();
    Ok(Adapter::new(info.name, &[], info.device_type == wgpu::DeviceType::Cpu))
}

/// The CPU, with a reason.
fn cpu(reason: DeviceReason, detail: String) -> Chosen {
    let name = if cfg!(target_arch = "wasm32") { "WebAssembly SIMD" } else { "native" };
    Chosen { device: Device::flex(), report: DeviceReport { kind: DeviceKind::Cpu, name: name.to_string(), reason, detail } }
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
        let chosen = pollster::block_on(choose(DeviceChoice::Cpu, async || panic!("no search was asked for")));
        assert_eq!((chosen.report.kind, chosen.report.reason), (DeviceKind::Cpu, DeviceReason::Chosen));
    }

    #[test]
    fn without_a_real_adapter_the_cpu_takes_over_and_says_why() {
        let software = async || Ok(Adapter::new("SwiftShader".into(), &[], false));
        let report = pollster::block_on(choose(DeviceChoice::Auto, software)).report;
        assert_eq!((report.kind, report.reason), (DeviceKind::Cpu, DeviceReason::SoftwareAdapter));
        let none = async || Err((DeviceReason::InsecurePage, "words".to_string()));
        let report = pollster::block_on(choose(DeviceChoice::Gpu, none)).report;
        assert_eq!((report.kind, report.reason, report.detail.as_str()), (DeviceKind::Cpu, DeviceReason::InsecurePage, "words"));
    }
}
