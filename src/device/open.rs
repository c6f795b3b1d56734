//! Opening the device that was planned.

use burn::tensor::Device;

#[cfg(all(feature = "gpu", any(feature = "cpu", not(target_arch = "wasm32"))))]
use super::Adapter;
#[cfg(all(feature = "cpu", feature = "gpu"))]
use super::{DeviceChoice, plan};
use super::{DeviceKind, DeviceReason, DeviceReport};

/// A device and how it came to be chosen.
pub struct Chosen {
    pub device: Device,
    pub report: DeviceReport,
}

/// Plans a device and opens it; the CPU takes over where the graphics device is refused, and the report says why.
///
/// `find` is that of [`plan`].
#[cfg(all(feature = "cpu", feature = "gpu"))]
pub async fn choose(choice: DeviceChoice, find: impl AsyncFnOnce() -> Result<Adapter, (DeviceReason, String)>) -> Chosen {
    match open(plan(choice, find).await).await {
        Ok(chosen) => chosen,
        Err(report) => Chosen { device: Device::flex(), report },
    }
}

/// Opens what was planned.
///
/// # Errors
/// What the CPU, which is to take over, has to report: where the graphics device is refused; also where this build has no such device.
pub async fn open(report: DeviceReport) -> Result<Chosen, DeviceReport> {
    match report.kind {
        #[cfg(feature = "cpu")]
        DeviceKind::Cpu => Ok(Chosen { device: Device::flex(), report }),
        #[cfg(feature = "gpu")]
        DeviceKind::Webgpu => match Device::wgpu_options().init_async().await {
            Ok(device) => Ok(Chosen { device, report }),
            Err(error) => Err(DeviceReport::cpu(DeviceReason::DeviceRefused, error.to_string())),
        },
        #[cfg(not(feature = "cpu"))]
        DeviceKind::Cpu => Err(report),
        #[cfg(not(feature = "gpu"))]
        DeviceKind::Webgpu => Err(DeviceReport::cpu(DeviceReason::DeviceRefused, "this build has the CPU alone".to_string())),
    }
}

/// A device to make things on that are not computed with: nothing is opened for it.
pub fn any() -> Device {
    #[cfg(feature = "cpu")]
    return Device::flex();
    #[cfg(not(feature = "cpu"))]
    return Device::default();
}

/// The best adapter that the drivers of this machine offer.
///
/// # Errors
/// When there is none, with the driver layer's own words.
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub async fn native_adapter() -> Result<Adapter, (DeviceReason, String)> {
    use burn::tensor::wgpu::wgpu;
    let options = wgpu::RequestAdapterOptions { power_preference: wgpu::PowerPreference::HighPerformance, ..Default::default() };
    let adapter = wgpu::Instance::default().request_adapter(&options).await;
    let info = adapter.map_err(|error| (DeviceReason::NoAdapter, error.to_string()))?.get_info();
    Ok(Adapter::new(info.name, &[], info.device_type == wgpu::DeviceType::Cpu))
}
