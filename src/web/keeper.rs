//! Checkpoints on their way out of the engine.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::engine::words;
use super::room::Room;
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
    room: Room,
}

impl Keeper {
    pub fn new(browser: BrowserKeeper) -> Self {
        Keeper { browser, room: Room::default() }
    }

    /// There is a new run.
    pub fn begin(&self) {
        self.room.begin();
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
        self.room.step();
        let iteration = run.trainer().iteration() as f64;
        JsFuture::from(self.browser.save(iteration, &bytes)).await?;
        Ok(())
    }
}
