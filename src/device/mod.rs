//! What a run computes on: WebGPU where there is a real adapter, else the CPU. The same code runs on both.
//!
//! The choice and its reasons are plain data; opening a device is behind the feature `engine`.

#[cfg(feature = "engine")]
mod open;
mod plan;
#[cfg(all(feature = "cpu", feature = "gpu"))]
pub use open::choose;
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub use open::native_adapter;
#[cfg(feature = "engine")]
pub use open::{Chosen, any, open};
pub use plan::{Adapter, plan};

/// Which device the person wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum DeviceChoice {
    /// WebGPU where the browser gives a real adapter, else the CPU.
    #[default]
    Auto,
    /// WebGPU, a software adapter included.
    Gpu,
    Cpu,
}

/// What a run computes on, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct DeviceReport {
    pub kind: DeviceKind,
    /// Adapter name, or the kind of processor code.
    pub name: String,
    pub reason: DeviceReason,
    /// The browser's or driver's own words, where there are some.
    pub detail: String,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    Webgpu,
    Cpu,
}

/// Why this device. The page says it in the person's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum DeviceReason {
    /// The browser offered a real adapter.
    AdapterFound,
    /// The person chose it.
    Chosen,
    /// `navigator.gpu` is missing.
    NoWebgpu,
    /// The page is not served securely, which hides WebGPU.
    InsecurePage,
    /// The browser has WebGPU but gave no adapter.
    NoAdapter,
    /// The only adapter is software.
    SoftwareAdapter,
    /// The adapter refused to open a device.
    DeviceRefused,
    /// The device was lost while training.
    DeviceLost,
}
