//! How the work of a step is laid out on a workgroup.

use super::Tile;
use crate::policy::Layout;

/// Numbers of workgroup memory that every WebGPU device has: 16 KiB.
const WORKGROUP_NUMBERS: usize = 4096;

/// The constants of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub layout: Layout,
    /// Slots of a row of the cache: the longest trajectory.
    pub slots: usize,
    /// Tokens that a workgroup computes at a time.
    pub lanes: usize,
    /// Units (invocations) of a workgroup.
    pub units: usize,
}

impl Shape {
    /// The shape with at most the tile's lanes that fits into workgroup memory; `None` where not even one lane does.
    pub fn new(layout: Layout, slots: usize, tile: Tile) -> Option<Shape> {
        let lanes = std::iter::successors(Some(tile.lanes), |&lanes| (lanes > 1).then_some(lanes / 2));
        lanes.map(|lanes| Shape { layout, slots, lanes, units: tile.units }).find(|shape| shape.numbers() <= WORKGROUP_NUMBERS)
    }

    /// Numbers of a lane beside residual stream and input: see [`super::extend`].
    pub fn wide(&self) -> usize {
        let attention = self.layout.d_model + self.layout.heads * self.slots;
        attention.max(self.layout.hidden).max(self.layout.vocabulary)
    }

    /// Units that share a lane where lanes are few.
    pub(super) fn parts(&self) -> usize {
        (self.units / self.lanes).clamp(1, self.layout.d_model)
    }

    /// Groups of lanes that different units take where a product has fewer outputs than there are units: a power of two.
    pub(super) fn groups(&self, outputs: usize) -> usize {
        let mut groups = 1;
        while groups < self.lanes && outputs * groups < self.units {
            groups *= 2;
        }
        groups
    }

    /// Numbers of a row of the cache: keys `[d, slots]` and values `[slots, d]` of every layer.
    pub fn row(&self) -> usize {
        self.layout.layers * 2 * self.layout.d_model * self.slots
    }

    /// Workgroup memory that a kernel takes, in numbers of four bytes.
    pub fn numbers(&self) -> usize {
        self.lanes * (2 * self.layout.d_model + self.wide() + 8) + 1
    }
}
