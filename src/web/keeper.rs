//! Checkpoints on their way out of the engine.

use std::cell::Cell;

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::engine::words;
use crate::policy::Precision;
use crate::trainer::Run;

#[wasm_bindgen]
extern "C" {
    /// `Keeper` of `www/src/keeper.ts`.
    pub type BrowserKeeper;

    /// An array of this length whose contents nobody needs.
    #[wasm_bindgen(method)]
    fn room(this: &BrowserKeeper, length: u32) -> Uint8Array;

    /// Takes the number of steps done and the bytes of a checkpoint, in an array of [`BrowserKeeper::room`].
    #[wasm_bindgen(method)]
    fn save(this: &BrowserKeeper, iteration: f64, bytes: &Uint8Array) -> Promise;
}

/// Hands out a checkpoint of every step of a run.
pub(super) struct Keeper {
    browser: BrowserKeeper,
    /// Checkpoints since the run began.
    saved: Cell<u32>,
    /// The module's memory with the room that was taken last.
    room: Cell<usize>,
}

impl Keeper {
    pub fn new(browser: BrowserKeeper) -> Self {
        Keeper { browser, saved: Cell::default(), room: Cell::default() }
    }

    /// There is a new run.
    pub fn begin(&self) {
        self.saved.set(0);
    }

    /// Hands out the checkpoint, which is at hand after an update, and waits until the one before is stored.
    ///
    /// # Errors
    /// When the device gave no data, or what the browser's side threw.
    pub async fn save(&self, run: &Run) -> Result<(), JsValue> {
        let checkpoint = run.trainer().checkpoint().await.map_err(words)?;
        let file = checkpoint.file(Precision::Full).map_err(words)?;
        // It is put together outside this module's memory.
        let bytes = self.browser.room(file.length() as u32);
        let mut end = 0;
        for piece in file.pieces() {
            let start = end;
            end += piece.len() as u32;
            bytes.subarray(start, end).copy_from(&piece);
        }
        self.saved.set(self.saved.get() + 1);
        if self.saved.get() == SETTLED && self.room.get() < memory() {
            take_room();
            self.room.set(memory());
        }
        let iteration = run.trainer().iteration() as f64;
        JsFuture::from(self.browser.save(iteration, &bytes)).await?;
        Ok(())
    }
}

/// With as many checkpoints all that a step needs has been needed: weights and moments before an update, policies that other workers
/// keep.
const SETTLED: u32 = 5;

/// Makes sure of some memory and gives it back at once. A module's memory never shrinks, and what steps need differs a little: how long
/// their episodes are, when other workers answer, and where there is room between what is in use. Without any to spare it would grow in
/// mid-run now and then.
fn take_room() {
    let mut room = Vec::<u8>::new();
    // Where there is none, there is none.
    let _ = room.try_reserve_exact((memory() / 4).min(MOST_ROOM));
    std::hint::black_box(room);
}

/// That this module has, in bytes.
fn memory() -> usize {
    core::arch::wasm32::memory_size::<0>() * PAGE
}

/// In bytes.
const PAGE: usize = 65_536;
const MOST_ROOM: usize = 16 << 20;
