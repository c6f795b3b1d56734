//! Kernels of our own for graphics devices, written in CubeCL, and the way between burn's tensors and their buffers.
//!
//! A kernel is a function with the attribute `#[cube(launch)]` whose array arguments are buffers. [`Buffer`] is such an array: it
//! is made from a tensor that lives on a wgpu device (so that burn allocates, uploads, reads back and frees), handed to a kernel
//! with [`Buffer::arg`], and turned back with [`Buffer::into_tensor`]. Kernels keep every index in bounds by
//! themselves: the WGSL that CubeCL writes for slices does not clamp them (a browser does).

mod attention;
mod decode;
mod decoder;
mod extend;
mod prefill;
mod product;
mod shape;
pub use decoder::{Decoder, Edges, Home, Span, Start, Tile};

use burn::backend::wgpu::{CubeTensor, Wgpu};
use burn::tensor::{Device, Int, Tensor};
use cubecl::client::Client;
use cubecl::prelude::BufferArg;

/// A vector in the memory of a wgpu device. Clones share it.
#[derive(Clone, Debug)]
pub struct Buffer(CubeTensor);

impl Buffer {
    /// The buffer of a vector of numbers; `None` where the vector lives on another device than wgpu or is tracked for
    /// differentiation.
    ///
    /// A kernel may write to it; whoever else holds the tensor sees that.
    pub fn floats(tensor: Tensor<1>) -> Option<Buffer> {
        tensor.try_into_primitive::<Wgpu>().ok().map(Buffer)
    }

    /// The buffer of a vector of integers (32 bits each; a kernel may read them as `u32`); `None` as for [`Buffer::floats`].
    pub fn integers(tensor: Tensor<1, Int>) -> Option<Buffer> {
        tensor.try_into_primitive::<Wgpu>().ok().map(Buffer)
    }

    /// Room for `length` numbers, not initialised. No dispatch.
    pub fn room(length: usize, device: &Device) -> Option<Buffer> {
        Buffer::floats(Tensor::empty([length], device))
    }

    /// Launches kernels on the device of this buffer.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The argument for a kernel that takes a slice.
    pub fn arg(&self) -> BufferArg {
        self.0.clone().into_buffer_arg()
    }

    /// The vector of numbers again.
    ///
    /// # Panics
    /// When the buffer was made from integers.
    pub fn into_tensor(self) -> Tensor<1> {
        Tensor::from_primitive::<Wgpu>(self.0)
    }
}

/// Whether kernels run on a device: on wgpu, natively and in a browser.
pub fn runs_on(device: &Device) -> bool {
    Buffer::room(1, &device.clone().without_autodiff()).is_some()
}
