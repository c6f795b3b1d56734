//! The training worker's side: commands in, events out.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Function, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::adapter::browser_adapter;
use super::protocol::{Command, Event, MeasuredCredit, Phase, Stage, StopReason, WarmStartReport, WarmStartSource};
use super::{from_js, to_js};
use crate::config::{self, ExperimentConfig, WarmStart};
use crate::device::{Chosen, DeviceChoice, choose};
use crate::environment::REGISTRY;
use crate::policy::Policy;
use crate::trainer::{Run, TrainError, TrueCreditRun, imitation, initial_policy, shipped_policy};
use burn::module::Module;

/// A training engine. One lives in the worker; it holds at most one run.
#[wasm_bindgen]
pub struct Engine {
    emit: Function,
    warm_start: Function,
    run: Rc<RefCell<Option<Run>>>,
    /// The measurement of true credit begun last, with the iteration of its episodes.
    measurement: RefCell<Option<(usize, TrueCreditRun)>>,
    /// The device is opened once for each choice.
    device: RefCell<Option<(DeviceChoice, Chosen)>>,
    pause: Rc<Cell<bool>>,
    busy: Cell<bool>,
}

#[wasm_bindgen]
impl Engine {
    /// `emit` takes an `Event`. `warm_start` takes the name of an environment and gives a promise of the bytes of its shipped
    /// checkpoint, or of `null`.
    #[wasm_bindgen(constructor)]
    pub fn new(emit: Function, warm_start: Function) -> Engine {
        console_error_panic_hook::set_once();
        Engine {
            emit,
            warm_start,
            run: Rc::default(),
            measurement: RefCell::default(),
            device: RefCell::new(None),
            pause: Rc::default(),
            busy: Cell::new(false),
        }
    }

    /// Carries out a `Command`. The promise of `train` resolves when the run stands still; `pause` may come meanwhile.
    pub async fn handle(&self, command: JsValue) -> Result<(), JsValue> {
        let command: Command = from_js(command)?;
        match command {
            Command::Pause => {
                self.pause.set(true);
                Ok(())
            }
            _ if self.busy.get() => Err(JsValue::from_str("the engine is busy: pause first")),
            command => {
                self.busy.set(true);
                self.pause.set(false);
                let result = match command {
                    Command::Configure { config, device } => self.configure(config, device).await,
                    Command::Train => self.train().await,
                    Command::MeasureCredit { rolls } => self.measure_credit(rolls).await,
                    _ => self.step().await,
                };
                self.busy.set(false);
                result
            }
        }
    }

    async fn configure(&self, config: ExperimentConfig, choice: DeviceChoice) -> Result<(), JsValue> {
        self.run.borrow_mut().take();
        self.measurement.borrow_mut().take();
        // The page has checked its settings; nothing out of bounds gets this far, whoever sends it.
        let config = config::check(&config, REGISTRY).config;
        let known = self.device.borrow_mut().take().filter(|(chosen, _)| *chosen == choice);
        let chosen = match known {
            Some((_, chosen)) => chosen,
            None => choose(choice, browser_adapter).await,
        };
        self.send(&Event::Device { device: chosen.report.clone() })?;
        let device = chosen.device.clone();
        *self.device.borrow_mut() = Some((choice, chosen));
        let (policy, source, note) = self.policy(&config, &device).await?;
        let warm_start = WarmStartReport { source, note, parameters: policy.num_params() };
        *self.run.borrow_mut() = Some(Run::new(config, &policy));
        self.send(&Event::Ready { warm_start })
    }

    /// The policy that the run starts from, where it came from, and why it is not the shipped one.
    async fn policy(
        &self,
        config: &ExperimentConfig,
        device: &burn::tensor::Device,
    ) -> Result<(Policy, WarmStartSource, String), JsValue> {
        let mut note = String::new();
        match config.warm_start {
            WarmStart::None => {
                let policy = initial_policy(config, device).map_err(words)?;
                return Ok((policy, WarmStartSource::None, note));
            }
            WarmStart::Shipped => match self.shipped(config, device).await {
                Ok(policy) => return Ok((policy, WarmStartSource::Shipped, note)),
                Err(reason) => note = reason,
            },
            WarmStart::Live => {}
        }
        let mut imitation = imitation(config, device).map_err(words)?;
        let total = config.imitation_steps as f64;
        while let Some(loss) = imitation.advance().await.map_err(words)? {
            if let Some(loss) = loss {
                self.send(&Event::Imitation { step: imitation.step(), loss })?;
                self.send(&Event::Progress { stage: Stage::Imitation, done: imitation.step() as f64, total })?;
                yield_to_events().await?;
                if self.pause.replace(false) {
                    return Err(JsValue::from_str("the warm start was interrupted"));
                }
            }
        }
        Ok((imitation.policy(), WarmStartSource::Live, note))
    }

    async fn shipped(&self, config: &ExperimentConfig, device: &burn::tensor::Device) -> Result<Policy, String> {
        let missing = || "there is no shipped checkpoint for this environment".to_string();
        let promise = self.warm_start.call1(&JsValue::NULL, &config.environment.as_str().into()).map_err(|_| missing())?;
        let file = JsFuture::from(Promise::resolve(&promise)).await.map_err(|error| describe(&error))?;
        let file: Uint8Array = file.dyn_into().map_err(|_| missing())?;
        shipped_policy(config, &file.to_vec(), device).map_err(|error| error.to_string())
    }

    async fn train(&self) -> Result<(), JsValue> {
        let Some(mut run) = self.run.borrow_mut().take() else { return Err(JsValue::from_str("nothing is configured")) };
        let reason = loop {
            if run.finished() {
                break StopReason::Finished;
            }
            if self.pause.replace(false) {
                break StopReason::Paused;
            }
            let between_steps = run.next() != Phase::Credit;
            if let Err(reason) = self.advance(&mut run, between_steps).await? {
                break reason;
            }
            yield_to_events().await?;
        };
        self.rest(run, reason)
    }

    async fn step(&self) -> Result<(), JsValue> {
        let Some(mut run) = self.run.borrow_mut().take() else { return Err(JsValue::from_str("nothing is configured")) };
        let reason = if run.finished() {
            StopReason::Finished
        } else {
            match self.advance(&mut run, false).await? {
                Ok(()) => StopReason::Paused,
                Err(reason) => reason,
            }
        };
        self.rest(run, reason)
    }

    async fn measure_credit(&self, rolls: usize) -> Result<(), JsValue> {
        let begun = self.run.borrow().as_ref().and_then(|run| Some((run.last_iteration()?, run.trainer().iteration())));
        let Some((iteration, done)) = begun else {
            return Err(JsValue::from_str("there are no credited episodes yet"));
        };
        let known = self.measurement.borrow_mut().take().filter(|(of, _)| *of == iteration);
        let fresh = || Some((iteration, self.run.borrow().as_ref()?.true_credit()?));
        let Some((iteration, mut measurement)) = known.or_else(fresh) else {
            return Err(JsValue::from_str("there are no credited episodes yet"));
        };
        let rolls = rolls.clamp(1, MOST_ROLLS);
        let mut reason = StopReason::Paused;
        while measurement.rolls() < rolls && !self.pause.replace(false) {
            let more = ROLLS_AT_ONCE.min(rolls - measurement.rolls());
            match measurement.advance(more).await {
                Ok(()) => {}
                Err(error) => match stop_reason(&error) {
                    Some(stop) => {
                        reason = stop;
                        break;
                    }
                    None => return Err(words(error)),
                },
            }
            let credit = measurement.measured();
            let accuracy = measurement.accuracy(&credit);
            self.send(&Event::TrueCredit { wanted: rolls, measured: MeasuredCredit { iteration, credit, accuracy } })?;
            yield_to_events().await?;
        }
        *self.measurement.borrow_mut() = Some((iteration, measurement));
        self.send(&Event::Stopped { reason, iteration: done })
    }

    /// One phase. `Err` inside is a stop, not a failure of the engine.
    async fn advance(&self, run: &mut Run, without_batch: bool) -> Result<Result<(), StopReason>, JsValue> {
        match run.advance().await {
            Ok(mut result) => {
                if without_batch {
                    result.batch = None;
                }
                self.send(&Event::Phase {
                    iteration: result.iteration,
                    done: result.done,
                    next: result.next,
                    batch: result.batch,
                    report: result.report,
                })?;
                Ok(Ok(()))
            }
            Err(error) => match stop_reason(&error) {
                Some(reason) => Ok(Err(reason)),
                None => Err(words(error)),
            },
        }
    }

    fn rest(&self, run: Run, reason: StopReason) -> Result<(), JsValue> {
        let iteration = run.trainer().iteration();
        *self.run.borrow_mut() = Some(run);
        self.send(&Event::Stopped { reason, iteration })
    }

    fn send(&self, event: &Event) -> Result<(), JsValue> {
        self.emit.call1(&JsValue::NULL, &to_js(event)?)?;
        Ok(())
    }
}

/// Most continuations of each state.
const MOST_ROLLS: usize = 1024;

/// Continuations of each state between two answers to the page.
const ROLLS_AT_ONCE: usize = 4;

fn stop_reason(error: &TrainError) -> Option<StopReason> {
    error.non_finite().map(|quantity| StopReason::NonFinite { quantity })
}

/// Lets messages in: a promise that a timer resolves.
async fn yield_to_events() -> Result<(), JsValue> {
    let timer: Function = js_sys::Reflect::get(&js_sys::global(), &"setTimeout".into())?.dyn_into()?;
    let promise = Promise::new(&mut |resolve, reject| {
        if let Err(error) = timer.call2(&JsValue::UNDEFINED, &resolve, &0.into()) {
            let _ = reject.call1(&JsValue::UNDEFINED, &error);
        }
    });
    JsFuture::from(promise).await?;
    Ok(())
}

fn words(error: impl std::fmt::Display) -> JsValue {
    JsValue::from_str(&error.to_string())
}

fn describe(error: &JsValue) -> String {
    let message = js_sys::Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message.or_else(|| error.as_string()).unwrap_or_else(|| format!("{error:?}"))
}
