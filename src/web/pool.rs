//! Other workers of the browser: the way to them from the run's own worker, and what runs in them.

use std::cell::RefCell;
use std::pin::Pin;
use std::time::Duration;

use js_sys::{Array, Float32Array, Function, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::room::Room;
use crate::parallel::{self, Arrival, Held, Kind, Line, Packet};
use crate::trainer;

#[wasm_bindgen]
extern "C" {
    /// `Pool` of `www/src/pool.ts`.
    type BrowserPool;

    #[wasm_bindgen(method, getter)]
    fn size(this: &BrowserPool) -> usize;

    #[wasm_bindgen(method)]
    fn post(this: &BrowserPool, worker: usize, number: u32, kind: u8, task: Uint8Array, numbers: Float32Array, needs: Vec<u32>);

    /// An array of numbers, to be written over.
    #[wasm_bindgen(method)]
    fn room(this: &BrowserPool, length: usize) -> Float32Array;

    /// The numbers of an arrival were taken in.
    #[wasm_bindgen(method)]
    fn keep(this: &BrowserPool, numbers: Float32Array);

    /// A promise of a [`BrowserArrival`] or `null`.
    #[wasm_bindgen(method)]
    fn arrival(this: &BrowserPool, patience: f64) -> Promise;

    #[wasm_bindgen(method, js_name = giveUp)]
    fn give_up(this: &BrowserPool, worker: usize);

    type BrowserArrival;

    #[wasm_bindgen(method, getter)]
    fn worker(this: &BrowserArrival) -> usize;

    #[wasm_bindgen(method, getter)]
    fn number(this: &BrowserArrival) -> u32;

    #[wasm_bindgen(method, getter)]
    fn kind(this: &BrowserArrival) -> u8;

    #[wasm_bindgen(method, getter)]
    fn task(this: &BrowserArrival) -> Uint8Array;

    /// Missing where the worker is gone.
    #[wasm_bindgen(method, getter)]
    fn numbers(this: &BrowserArrival) -> Option<Float32Array>;
}

struct Others(BrowserPool);

/// From now on jobs are shared with the workers of a pool; with `null` they are done here.
pub(super) fn share(pool: JsValue) {
    let line = pool.is_object().then(|| Box::new(Others(pool.unchecked_into())) as Box<dyn Line>);
    parallel::install(line);
}

impl Line for Others {
    fn workers(&self) -> usize {
        self.0.size()
    }

    fn post(&self, worker: usize, number: u32, packet: &Packet, needs: &[Held]) {
        let needs = needs.iter().map(|held| held.0).collect();
        let task = Uint8Array::from(packet.task.as_slice());
        let numbers = self.0.room(packet.numbers.len());
        numbers.copy_from(&packet.numbers);
        self.0.post(worker, number, packet.kind as u8, task, numbers, needs);
    }

    fn arrival(&self, patience: Duration) -> Pin<Box<dyn Future<Output = Option<Arrival>> + '_>> {
        let promise = self.0.arrival(patience.as_secs_f64() * 1000.0);
        Box::pin(async move {
            let found = JsFuture::from(promise).await.ok().filter(JsValue::is_object)?;
            let found: BrowserArrival = found.unchecked_into();
            let worker = found.worker();
            let (Some(numbers), Some(kind)) = (found.numbers(), Kind::of(found.kind())) else {
                return Some(Arrival::Lost { worker });
            };
            let packet = Packet { kind, task: found.task().to_vec(), numbers: numbers.to_vec(), needs: Vec::new() };
            self.0.keep(numbers);
            Some(Arrival::Answer { worker, number: found.number(), packet })
        })
    }

    fn give_up(&self, worker: usize) {
        self.0.give_up(worker);
    }
}

/// Does jobs of a run that another worker owns.
#[wasm_bindgen]
pub struct Helper {
    helper: RefCell<trainer::Helper>,
    arrays: Function,
    room: Room,
}

#[wasm_bindgen]
impl Helper {
    /// Holds nothing yet. `arrays` gives a `Float32Array` of a length, to be written over.
    #[wasm_bindgen(constructor)]
    pub fn new(arrays: Function) -> Helper {
        console_error_panic_hook::set_once();
        Helper { helper: RefCell::default(), arrays, room: Room::default() }
    }

    /// Does a job, one at a time: a promise of `[Uint8Array, Float32Array]`, or of `null` where there is nothing to answer.
    pub async fn handle(&self, kind: u8, task: Vec<u8>, numbers: Vec<f32>, needs: Vec<u32>) -> Result<JsValue, JsValue> {
        let kind = Kind::of(kind).ok_or_else(|| JsValue::from_str("a job of no known kind"))?;
        let packet = Packet { kind, task, numbers, needs: needs.into_iter().map(Held).collect() };
        let mut helper = self.helper.take();
        let answer = helper.handle(&packet).await;
        self.helper.replace(helper);
        if kind == Kind::Policy {
            // A step's.
            self.room.step();
        }
        let answer = answer.map_err(|error| JsValue::from_str(&error.to_string()))?;
        let Some(Packet { task, numbers, .. }) = answer else { return Ok(JsValue::NULL) };
        let array: Float32Array = self.arrays.call1(&JsValue::NULL, &numbers.len().into())?.unchecked_into();
        array.copy_from(&numbers);
        Ok(Array::of2(&Uint8Array::from(task.as_slice()).into(), &array.into()).into())
    }
}
