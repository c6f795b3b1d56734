//! A checkpoint on its way into a file of the safetensors format, one weight after the other.
//!
//! The format's library puts a file together in one block. A run writes one after every step, and in a module of WebAssembly, whose
//! memory never shrinks, a block as large as weights and moments together is more than all else that a step needs.

use std::borrow::Cow;
use std::collections::HashMap;

use half::f16;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::{CheckpointError, NamedWeight};

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32-bit: exact.
    Full,
    /// 16-bit: half the size, for checkpoints that ship with the page.
    Half,
}

impl Precision {
    /// Of one number.
    fn bytes(self) -> usize {
        if self == Precision::Full { 4 } else { 2 }
    }
}

/// A file that is known in all but the bytes of its weights, which are made when they are written.
pub struct CheckpointFile<'a> {
    /// Length of the header, the header, and spaces up to a multiple of 8 bytes.
    head: Vec<u8>,
    weights: Vec<&'a NamedWeight>,
    precision: Precision,
}

impl<'a> CheckpointFile<'a> {
    /// The weights are written in the order of their names.
    ///
    /// # Errors
    /// When the format's library refuses (a shape that does not fit its data).
    pub(super) fn new(
        mut weights: Vec<(String, &'a NamedWeight)>,
        precision: Precision,
        metadata: HashMap<String, String>,
    ) -> Result<Self, CheckpointError> {
        weights.sort_by(|(left, _), (right, _)| left.cmp(right));
        let dtype = if precision == Precision::Full { Dtype::F32 } else { Dtype::F16 };
        let (mut end, mut order) = (0, Vec::with_capacity(weights.len()));
        let infos = weights.into_iter().map(|(name, weight)| {
            let start = end;
            end += weight.values.len() * precision.bytes();
            order.push(weight);
            (name, TensorInfo { dtype, shape: weight.shape.clone(), data_offsets: (start, end) })
        });
        let format = |error: String| CheckpointError::Format(error);
        let header = Metadata::new(Some(metadata), infos.collect()).map_err(|error| format(error.to_string()))?;
        let mut header = serde_json::to_vec(&header).map_err(|error| format(error.to_string()))?;
        header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
        let head = [(header.len() as u64).to_le_bytes().as_slice(), &header].concat();
        Ok(CheckpointFile { head, weights: order, precision })
    }

    /// In bytes.
    pub fn length(&self) -> usize {
        self.head.len() + self.weights.iter().map(|weight| weight.values.len() * self.precision.bytes()).sum::<usize>()
    }

    /// The file in pieces, none made before it is asked for: the head, then every weight.
    pub fn pieces(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let weights = self.weights.iter().map(|weight| bytes(&weight.values, self.precision));
        std::iter::once(Cow::from(&self.head)).chain(weights)
    }
}

/// The data of a file begin on a multiple of this.
const ALIGNMENT: usize = 8;

/// Little-endian, as they lie in memory on most machines.
fn bytes(values: &[f32], precision: Precision) -> Cow<'_, [u8]> {
    match precision {
        Precision::Full if cfg!(target_endian = "little") => Cow::from(bytemuck::cast_slice(values)),
        Precision::Full => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Precision::Half => values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;
    use safetensors::tensor::{TensorView, serialize};

    use super::*;

    /// The format's library makes the same file.
    #[test]
    fn a_file_in_pieces_is_that_of_the_library() {
        let weight = |name: &str, shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            let values = (0..count).map(|index| index as f32 * 0.37 - 1.0).collect();
            NamedWeight { name: name.to_string(), shape: shape.to_vec(), values }
        };
        let weights = [weight("b", &[3, 5]), weight("a", &[1]), weight("c.gain", &[7])];
        let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
        for (precision, dtype) in [(Precision::Full, Dtype::F32), (Precision::Half, Dtype::F16)] {
            let named = weights.iter().map(|weight| (weight.name.clone(), weight)).collect();
            let file = CheckpointFile::new(named, precision, metadata.clone()).unwrap();
            let found: Vec<u8> = file.pieces().flat_map(|piece| piece.to_vec()).collect();
            assert_eq!(file.length(), found.len());
            assert_eq!(file.pieces().count(), 4);
            let data: Vec<_> = weights.iter().map(|weight| bytes(&weight.values, precision)).collect();
            let views = weights
                .iter()
                .zip(&data)
                .map(|(weight, data)| (weight.name.clone(), TensorView::new(dtype, weight.shape.clone(), data).unwrap()));
            assert_eq!(found, serialize(views, Some(metadata.clone())).unwrap());
            assert_eq!(SafeTensors::deserialize(&found).unwrap().len(), 3);
        }
    }
}
