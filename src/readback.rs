//! The one place where numbers come back from the device.
//!
//! Reading is asynchronous (a synchronous read panics on WebGPU in a browser) and counted, so that a test can hold the code to
//! its budget: one awaited read per turn of a rollout and one per update.

use std::cell::Cell;

use burn::tensor::Tensor;

thread_local! {
    static READS: Cell<usize> = const { Cell::new(0) };
}

/// Reads that this thread has awaited so far.
pub fn reads() -> usize {
    READS.get()
}

/// The device gave no data: it was lost, or an earlier operation on it failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("reading from the device failed: {0}")]
pub struct ReadError(pub String);

/// Reads a vector.
///
/// # Errors
/// When the device is lost or an operation failed.
pub async fn read(tensor: Tensor<1>) -> Result<Vec<f32>, ReadError> {
    READS.set(READS.get() + 1);
    let data = tensor.into_data_async().await.map_err(|error| ReadError(format!("{error:?}")))?;
    data.try_into_vec_as::<f32>().map_err(|error| ReadError(format!("{error:?}")))
}

/// The numbers of a vector that lies in this program's memory already, on the CPU: nothing is awaited, and nothing counted.
///
/// # Errors
/// When the device cannot give them so.
pub fn look(tensor: Tensor<1>) -> Result<Vec<f32>, ReadError> {
    let data = tensor.try_into_data().map_err(|error| ReadError(format!("{error:?}")))?;
    data.try_into_vec_as::<f32>().map_err(|error| ReadError(format!("{error:?}")))
}
