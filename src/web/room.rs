//! Memory to spare.
//!
//! A module's memory never shrinks, and what steps need differs a little: how long their episodes are, when other workers answer, and
//! where there is room between what is in use. Without any to spare it would grow in mid-run now and then.

use std::cell::Cell;

/// Takes some memory once a run has settled, and gives it back at once.
#[derive(Default)]
pub(super) struct Room {
    /// Steps since the run began.
    steps: Cell<u32>,
    /// The module's memory when some was taken last, with it.
    with: Cell<usize>,
}

impl Room {
    /// There is a new run.
    pub fn begin(&self) {
        self.steps.set(0);
    }

    /// There was a step.
    pub fn step(&self) {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() == SETTLED && self.with.get() < memory() {
            let mut room = Vec::<u8>::new();
            // Where there is none, there is none.
            let _ = room.try_reserve_exact((memory() / 4).min(MOST));
            std::hint::black_box(room);
            self.with.set(memory());
        }
    }
}

/// After as many steps all that one needs has been needed: weights and moments before an update, policies that other workers keep.
const SETTLED: u32 = 5;

/// That this module has, in bytes.
fn memory() -> usize {
    core::arch::wasm32::memory_size::<0>() * PAGE
}

/// In bytes.
const PAGE: usize = 65_536;
const MOST: usize = 16 << 20;
