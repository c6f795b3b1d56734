//! The training worker's side: commands in, events out.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Function, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_time::Instant;

use super::keeper::{BrowserKeeper, Keeper};
#[cfg(feature = "cpu")]
use super::pool;
use super::protocol::{
    Command, Counterfactual, Event, MeasuredCredit, Phase, Stage, StopReason, WarmStartReport, WarmStartSource,
};
use super::turn::let_messages_in;
use super::{from_js, to_js};
use crate::config::{self, ExperimentConfig, WarmStart};
use crate::device::{Chosen, DeviceReport, open};
use crate::environment::{REGISTRY, warm_start_name};
use crate::policy::{Checkpoint, Policy, PolicyConfig, huggingface};
use crate::trainer::{
    Changed, PlayedOn, ResumeError, Run, TrainError, Trainer, TrueCreditRun, imitation, initial_policy, shipped_policy,
};
use crate::vocabulary::Token;
use burn::module::Module;

/// A training engine. One lives in the worker; it holds at most one run.
#[wasm_bindgen]
pub struct Engine {
    emit: Function,
    warm_start: Function,
    keeper: Keeper,
    #[cfg_attr(not(feature = "cpu"), expect(dead_code, reason = "nobody helps on a graphics device"))]
    helpers: Function,
    /// The checkpoint that the next run is to go on from.
    checkpoint: RefCell<Option<Vec<u8>>>,
    run: Rc<RefCell<Option<Run>>>,
    /// The measurement of true credit begun last, with the iteration of its episodes.
    measurement: RefCell<Option<(usize, TrueCreditRun)>>,
    device: RefCell<Option<Chosen>>,
    pause: Rc<Cell<bool>>,
    busy: Cell<bool>,
}

#[wasm_bindgen]
impl Engine {
    /// `emit` takes an `Event`. `warm_start` takes the name of a shipped checkpoint and gives a promise of its bytes,
    /// or of `null`. `keeper` takes a checkpoint after every step; its promise is waited for. `helpers` gives a promise of the `Pool`
    /// of workers that help a run on the CPU, or of `null`.
    #[wasm_bindgen(constructor)]
    pub fn new(emit: Function, warm_start: Function, keeper: BrowserKeeper, helpers: Function) -> Engine {
        console_error_panic_hook::set_once();
        Engine {
            emit,
            warm_start,
            keeper: Keeper::new(keeper),
            helpers,
            checkpoint: RefCell::default(),
            run: Rc::default(),
            measurement: RefCell::default(),
            device: RefCell::new(None),
            pause: Rc::default(),
            busy: Cell::new(false),
        }
    }

    /// Hands over the bytes of the checkpoint that a `configure` with `resume` goes on from.
    pub fn hand_over(&self, checkpoint: Uint8Array) {
        *self.checkpoint.borrow_mut() = Some(checkpoint.to_vec());
    }

    /// The current policy as files that Hugging Face transformers loads: a list of `[name, Uint8Array]`.
    pub async fn export_policy(&self) -> Result<JsValue, JsValue> {
        // The run may go on meanwhile: weights never change in place, so the policy is a copy.
        let Some((config, policy)) =
            self.run.borrow().as_ref().map(|run| (run.trainer().config().clone(), run.trainer().policy()))
        else {
            return Err(JsValue::from_str("there is no policy, or it is being trained: pause first"));
        };
        let weights = policy.weights().await.map_err(words)?;
        let experiment = config::to_link(&config, REGISTRY);
        let checkpoint = Checkpoint { policy: PolicyConfig::of(&config), experiment, weights, training: None };
        let files = huggingface(&checkpoint).map_err(words)?;
        let pair =
            |(name, bytes): (String, Vec<u8>)| js_sys::Array::of2(&name.into(), &Uint8Array::from(bytes.as_slice()).into());
        Ok(files.into_iter().map(pair).collect::<js_sys::Array>().into())
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
                    Command::Configure { config, resume, .. } => self.configure(config, resume).await,
                    Command::Train { episodes_every } => self.train(episodes_every).await,
                    Command::Counterfactual { trajectory, turn, replacement, rolls } => {
                        self.counterfactual(Changed { trajectory, turn, replacement }, rolls).await
                    }
                    Command::MeasureCredit { rolls } => self.measure_credit(rolls).await,
                    _ => self.step().await,
                };
                self.busy.set(false);
                result
            }
        }
    }

    /// Opens the device of a `DeviceReport`, which the runs configured from then on compute on. Gives the `DeviceReport` of what is
    /// there: where the device was refused that of the CPU, which takes another engine. A device that is open stays so: there is one
    /// of each kind, and it cannot be opened twice.
    pub async fn open(&self, device: JsValue) -> Result<JsValue, JsValue> {
        let report: DeviceReport = from_js(device)?;
        let known = self.device.borrow_mut().take().filter(|chosen| chosen.report.kind == report.kind);
        let opened = match known {
            Some(Chosen { device, .. }) => Ok(Chosen { device, report }),
            None => open(report).await,
        };
        match opened {
            Ok(chosen) => {
                let report = to_js(&chosen.report);
                *self.device.borrow_mut() = Some(chosen);
                report
            }
            Err(report) => to_js(&report),
        }
    }

    /// Drops the run and what was measured of it: another engine takes over.
    pub fn leave(&self) {
        self.run.borrow_mut().take();
        self.measurement.borrow_mut().take();
        self.checkpoint.borrow_mut().take();
    }

    /// Asks for the workers that help, where there is a run on the CPU. Their number makes no difference to any result.
    #[cfg(feature = "cpu")]
    pub async fn share(&self) -> Result<(), JsValue> {
        if self.device.borrow().is_some() {
            let promise = self.helpers.call0(&JsValue::NULL)?;
            pool::share(JsFuture::from(Promise::resolve(&promise)).await?);
        }
        Ok(())
    }

    /// Nobody helps on a graphics device.
    #[cfg(not(feature = "cpu"))]
    pub async fn share(&self) -> Result<(), JsValue> {
        Ok(())
    }

    async fn configure(&self, config: ExperimentConfig, resume: bool) -> Result<(), JsValue> {
        self.run.borrow_mut().take();
        self.measurement.borrow_mut().take();
        self.keeper.begin();
        // The page has checked its settings; nothing out of bounds gets this far, whoever sends it.
        let config = config::check(&config, REGISTRY).config;
        let opened = self.device.borrow().as_ref().map(|chosen| (chosen.device.clone(), chosen.report.clone()));
        let Some((device, report)) = opened else { return Err(JsValue::from_str("no device is open")) };
        self.send(&Event::Device { device: report })?;
        self.share().await?;
        let file = self.checkpoint.borrow_mut().take().filter(|_| resume);
        let (mut run, source, note) = match file.map(|file| resumed(&config, &file, &device)) {
            Some(Ok(run)) => (run, WarmStartSource::Checkpoint, String::new()),
            other => {
                let refused = other.and_then(Result::err).map(|error| error.to_string());
                let (policy, source, note) = self.policy(&config, &device).await?;
                (Run::new(config, &policy), source, refused.unwrap_or(note))
            }
        };
        run.keep_checkpoints();
        let warm_start = WarmStartReport { source, note, parameters: run.trainer().policy().num_params() };
        let iteration = run.trainer().iteration();
        self.keeper.save(&run).await?;
        *self.run.borrow_mut() = Some(run);
        self.send(&Event::Ready { warm_start, iteration })
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
                let_messages_in().await?;
                if self.pause.replace(false) {
                    return Err(JsValue::from_str("the warm start was interrupted"));
                }
            }
        }
        Ok((imitation.policy(), WarmStartSource::Live, note))
    }

    async fn shipped(&self, config: &ExperimentConfig, device: &burn::tensor::Device) -> Result<Policy, String> {
        let missing = || "there is no shipped checkpoint for these settings".to_string();
        let promise = self.warm_start.call1(&JsValue::NULL, &warm_start_name(config).into()).map_err(|_| missing())?;
        let file = JsFuture::from(Promise::resolve(&promise)).await.map_err(|error| describe(&error))?;
        let file: Uint8Array = file.dyn_into().map_err(|_| missing())?;
        shipped_policy(config, &file.to_vec(), device).map_err(|error| error.to_string())
    }

    async fn train(&self, episodes_every: f64) -> Result<(), JsValue> {
        let Some(mut run) = self.run.borrow_mut().take() else { return Err(JsValue::from_str("nothing is configured")) };
        let (mut sent, mut unsent): (Option<Instant>, bool) = (None, false);
        let reason = loop {
            if run.finished() {
                break StopReason::Finished;
            }
            if self.pause.replace(false) {
                break StopReason::Paused;
            }
            let credits = run.next() == Phase::Credit;
            let due = sent.is_none_or(|sent| sent.elapsed().as_secs_f64() * 1000.0 >= episodes_every);
            if let Err(reason) = self.advance(&mut run, credits && due).await? {
                break reason;
            }
            if credits {
                unsent = !due;
                sent = if due { Some(Instant::now()) } else { sent };
            }
            // Storage needs such moments too: with fewer of them it takes longer than a step to write.
            let_messages_in().await?;
        };
        if let (true, Some(batch)) = (unsent, run.credited()) {
            self.send(&Event::Episodes { batch })?;
        }
        self.rest(run, reason)
    }

    async fn step(&self) -> Result<(), JsValue> {
        let Some(mut run) = self.run.borrow_mut().take() else { return Err(JsValue::from_str("nothing is configured")) };
        let reason = if run.finished() {
            StopReason::Finished
        } else {
            match self.advance(&mut run, true).await? {
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
            let_messages_in().await?;
        }
        *self.measurement.borrow_mut() = Some((iteration, measurement));
        self.send(&Event::Stopped { reason, iteration: done })
    }

    async fn counterfactual(&self, changed: Changed, rolls: usize) -> Result<(), JsValue> {
        // The run stands still meanwhile.
        let Some(run) = self.run.borrow_mut().take() else { return Err(JsValue::from_str("nothing is configured")) };
        let result = run.counterfactual(&changed, rolls.min(MOST_ROLLS)).await;
        let iteration = run.last_iteration();
        let reason = match result {
            Ok(Some((original, other))) => {
                let counterfactual = told(iteration.unwrap_or_default(), changed, original, other);
                self.send(&Event::Counterfactual { counterfactual })?;
                StopReason::Paused
            }
            Ok(None) => StopReason::Paused,
            Err(error) => match stop_reason(&error) {
                Some(reason) => reason,
                None => return Err(words(error)),
            },
        };
        self.rest(run, reason)
    }

    /// One phase, told with its episodes or without. `Err` inside is a stop, not a failure of the engine.
    async fn advance(&self, run: &mut Run, with_episodes: bool) -> Result<Result<(), StopReason>, JsValue> {
        match run.advance().await {
            Ok(result) => {
                // A report is only told once what it tells of can be gone on from.
                if result.report.is_some() {
                    self.keeper.save(run).await?;
                }
                self.send(&Event::Phase {
                    iteration: result.iteration,
                    done: result.done,
                    next: result.next,
                    batch: if with_episodes { run.episodes() } else { None },
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

/// The run of a checkpoint; of one that holds a policy only, a run that starts from it.
fn resumed(config: &ExperimentConfig, file: &[u8], device: &burn::tensor::Device) -> Result<Run, ResumeError> {
    let checkpoint = Checkpoint::from_bytes(file)?;
    match Trainer::resume(config.clone(), &checkpoint, device) {
        Err(ResumeError::NoTrainingState) => {
            let policy = PolicyConfig::of(config).init(device).with_weights(&checkpoint.weights)?;
            Ok(Run::new(config.clone(), &policy))
        }
        trainer => Ok(Run::on(trainer?)),
    }
}

/// What became of a change, for the page.
fn told(iteration: usize, changed: Changed, original: PlayedOn, other: PlayedOn) -> Counterfactual {
    let error = |played: &PlayedOn| played.continuations.error_variance().map(f64::sqrt);
    let rewards = |played: &PlayedOn| played.rewards.turns.first().cloned().unwrap_or_default();
    let replacement: Option<Vec<Token>> = changed.replacement;
    Counterfactual {
        iteration,
        trajectory: changed.trajectory,
        turn: changed.turn,
        replacement,
        original_rewards: rewards(&original),
        changed_rewards: rewards(&other),
        original_reward: original.reward,
        changed_reward: other.reward,
        original_value: original.continuations.value(),
        original_error: error(&original),
        changed_value: other.continuations.value(),
        changed_error: error(&other),
        rolls: original.continuations.count,
        original: original.trajectory,
        changed: other.trajectory,
    }
}

fn stop_reason(error: &TrainError) -> Option<StopReason> {
    error.non_finite().map(|quantity| StopReason::NonFinite { quantity })
}

pub(super) fn words(error: impl std::fmt::Display) -> JsValue {
    JsValue::from_str(&error.to_string())
}

fn describe(error: &JsValue) -> String {
    let message = js_sys::Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message.or_else(|| error.as_string()).unwrap_or_else(|| format!("{error:?}"))
}
