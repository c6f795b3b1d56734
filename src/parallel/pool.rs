//! Other workers that take jobs as plain data.
//!
//! Who calls here owns the run and works on its jobs too. Every other worker gets one job and, while there are enough, more to go on
//! with, since the owner hears of an answer only between two jobs of its own, and messages take their time. A worker that is lost is
//! lost to the pool and not to the run: its jobs are done by the others.
//!
//! The owner has the optimizer, the credit and the checkpoint besides, so with two workers it is the one that is waited for: posting
//! the first jobs of the next step while this one is kept and told gained nothing there (`tests/README.md`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use web_time::Instant;

use super::Job;
use super::packet::{Held, Kind, Packet};

/// What comes from another worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// The answer to the packet with this number.
    Answer { worker: usize, number: u32, packet: Packet },
    /// The worker is gone.
    Lost { worker: usize },
}

/// The way to the other workers. They are numbered from 0 and answer packets in the order in which they got them.
pub trait Line {
    /// How many there are, those that were lost included.
    fn workers(&self) -> usize;

    /// Sends a packet with other `needs` than its own.
    fn post(&self, worker: usize, number: u32, packet: &Packet, needs: &[Held]);

    /// The next arrival, waited for up to `patience`. Even with none, what has arrived meanwhile is let in.
    fn arrival(&self, patience: Duration) -> Pin<Box<dyn Future<Output = Option<Arrival>> + '_>>;

    /// Gives a worker up: it is ended, and the person is told how many are left.
    fn give_up(&self, worker: usize);
}

thread_local! {
    static POOL: RefCell<Option<Rc<Pool>>> = const { RefCell::new(None) };
    static ERRAND: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Something to do for whoever has to wait for other workers in the jobs that come next. Where nobody waits it is not done.
pub fn while_waiting(errand: impl FnOnce() + 'static) {
    if pool().is_some() {
        ERRAND.set(Some(Box::new(errand)));
    }
}

/// From now on the jobs of this thread are shared with these workers; with none they are done as without a pool.
pub fn install(line: Option<Box<dyn Line>>) {
    let pool = line.map(|line| Rc::new(Pool::new(line)));
    POOL.with(|installed| *installed.borrow_mut() = pool);
}

/// The pool of this thread.
pub fn pool() -> Option<Rc<Pool>> {
    POOL.with(|installed| installed.borrow().clone())
}

/// How many kept things a worker has at a time: the policy and the reference. A job needs one of them.
const HELD: usize = 2;

/// From a worker's answer to the arrival of its next job, measured with two workers and the page on two cores. Jobs that are no
/// longer than that are handed out further ahead.
const MESSAGES: Duration = Duration::from_millis(2);

/// A worker is waited for this many times as long as the longest job here took, and no less than [`LEAST_PATIENCE`].
const PATIENCE: u32 = 20;
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// The other workers and what they have.
pub struct Pool {
    line: Box<dyn Line>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    workers: Vec<Worker>,
    /// How long a job of a kind took here on average in the last round of such jobs.
    took: [Option<Duration>; Kind::ALL.len()],
    /// What was given to keep, the oldest first.
    held: VecDeque<(Held, Rc<Packet>)>,
    next: u32,
}

#[derive(Default)]
struct Worker {
    lost: bool,
    /// Whether it got a job since something was last sent ahead.
    worked: bool,
    has: Vec<Held>,
    /// Numbers of the packets that are not answered, and the jobs they are of.
    owes: VecDeque<(u32, usize)>,
}

/// The jobs of one call of [`Pool::run`].
struct Jobs<J: Job> {
    /// `None` once done.
    jobs: Vec<Option<J>>,
    results: Vec<Option<J::Result>>,
    /// Of each job, as it says itself.
    sizes: Vec<usize>,
    /// Not begun by anybody: the longest first, but for those that a lost worker left.
    queue: VecDeque<usize>,
    /// Whether they can be described to other workers.
    shared: bool,
    /// How long each of those took that were done here.
    times: Vec<Duration>,
}

impl Pool {
    fn new(line: Box<dyn Line>) -> Self {
        let workers = (0..line.workers()).map(|_| Worker::default()).collect();
        Pool { line, state: RefCell::new(State { workers, ..State::default() }) }
    }

    /// Workers that are there, the caller not counted.
    pub fn left(&self) -> usize {
        self.state.borrow().workers.iter().filter(|worker| !worker.lost).count()
    }

    /// Gives something to keep; jobs name it in [`Packet::needs`]. What is kept already is not sent again. Only the last
    /// few things are kept: those of the jobs at hand must be named before each round of jobs.
    pub fn hold(&self, task: Vec<u8>, numbers: Vec<f32>) -> Held {
        let mut state = self.state.borrow_mut();
        let bits: &[u32] = bytemuck::cast_slice(&numbers);
        let same = |packet: &Packet| packet.task == task && bytemuck::cast_slice::<f32, u32>(&packet.numbers) == bits;
        if let Some(place) = state.held.iter().position(|(_, packet)| same(packet)) {
            // Used again: the last to be dropped.
            if let Some(known) = state.held.remove(place) {
                let held = known.0;
                state.held.push_back(known);
                return held;
            }
        }
        state.next += 1;
        let held = Held(state.next);
        state.held.push_back((held, Rc::new(Packet { kind: Kind::Policy, task, numbers, needs: vec![held] })));
        if state.held.len() > HELD {
            state.held.pop_front();
        }
        held
    }

    /// Does every job, here and elsewhere. The longest are to stand first. Results are in the order of `jobs`.
    pub(super) async fn run<J: Job>(&self, jobs: Vec<J>) -> Vec<J::Result> {
        // What an earlier call that was broken off left behind is nobody's any more.
        self.state.borrow_mut().workers.iter_mut().for_each(|worker| worker.owes.clear());
        let mut work = Jobs {
            sizes: jobs.iter().map(Job::size).collect(),
            queue: (0..jobs.len()).collect(),
            shared: true,
            results: jobs.iter().map(|_| None).collect(),
            jobs: jobs.into_iter().map(Some).collect(),
            times: Vec::new(),
        };
        loop {
            self.share(&mut work);
            if let Some(index) = work.queue.pop_front() {
                let start = Instant::now();
                if let Some(job) = work.jobs[index].take() {
                    work.results[index] = Some(job.here().await);
                }
                work.times.push(start.elapsed());
                if !work.queue.is_empty() {
                    self.take_arrived(&mut work).await;
                }
                continue;
            }
            if self.owed()
                && let Some(errand) = ERRAND.take()
            {
                errand();
            }
            let longest = work.times.iter().max().copied().unwrap_or_default();
            if !self.await_one(&mut work, (longest * PATIENCE).max(LEAST_PATIENCE)).await {
                break;
            }
        }
        ERRAND.take();
        if !work.times.is_empty() {
            let average = work.times.iter().sum::<Duration>() / work.times.len() as u32;
            self.state.borrow_mut().took[J::KIND as usize] = Some(average);
        }
        work.results.into_iter().flatten().collect()
    }

    /// Hands out jobs; the last one that nobody has begun is left for the caller. What a worker gets besides its first comes from the
    /// back of the queue: the longest stand in front, and nobody is to have two of those.
    fn share<J: Job>(&self, work: &mut Jobs<J>) {
        let workers = self.state.borrow().workers.len();
        for depth in 0..self.depth(J::KIND) {
            for worker in 0..workers {
                if work.queue.len() < 2 || !work.shared {
                    return;
                }
                let next = if depth == 0 { work.queue.front() } else { work.queue.back() };
                let Some(&index) = next else { return };
                if !self.free(worker, depth) || (depth > 0 && !self.fair(worker, index, work)) {
                    continue;
                }
                let Some(packet) = work.jobs[index].as_ref().and_then(Job::packet) else {
                    // What cannot be said of one of them cannot be said of any.
                    work.shared = false;
                    return;
                };
                work.queue.retain(|&queued| queued != index);
                self.post(worker, index, &packet);
            }
        }
    }

    /// Whether a worker that has a job already may have this one too: not where it would have more than its share of all that is not
    /// done, by more than half of the job.
    fn fair<J: Job>(&self, worker: usize, job: usize, work: &Jobs<J>) -> bool {
        let state = self.state.borrow();
        let owed = |worker: &Worker| worker.owes.iter().map(|&(_, job)| work.sizes[job]).sum::<usize>();
        let left: usize = work.queue.iter().map(|&queued| work.sizes[queued]).sum();
        let all = left + state.workers.iter().map(owed).sum::<usize>();
        let workers = state.workers.iter().filter(|worker| !worker.lost).count() + 1;
        workers * (2 * owed(&state.workers[worker]) + work.sizes[job]) <= 2 * all
    }

    /// How many jobs of a kind one worker has at a time: one that it does and one to go on with, more where they are short.
    fn depth(&self, kind: Kind) -> usize {
        let took = self.state.borrow().took[kind as usize];
        let more = took.map_or(0.0, |took| MESSAGES.as_secs_f64() / took.as_secs_f64().max(1e-4));
        2 + more as usize
    }

    /// Whether a worker is there and has no more than `jobs` of them.
    fn free(&self, worker: usize, jobs: usize) -> bool {
        let worker = &self.state.borrow().workers[worker];
        !worker.lost && worker.owes.len() <= jobs
    }

    /// Sends a job, and before it what it needs and the worker does not have.
    fn post(&self, worker: usize, job: usize, packet: &Packet) {
        self.give(worker, &packet.needs);
        let number = {
            let mut state = self.state.borrow_mut();
            state.next += 1;
            let number = state.next;
            let worker = &mut state.workers[worker];
            worker.owes.push_back((number, job));
            worker.worked = true;
            number
        };
        self.line.post(worker, number, packet, &packet.needs);
    }

    /// Whether something is kept still; naming it in jobs makes it no younger.
    pub fn holds(&self, held: Held) -> bool {
        self.state.borrow().held.iter().any(|(known, _)| *known == held)
    }

    /// Sends what is kept, before there are jobs for it, to the workers that got some lately: they unpack it while the caller does
    /// something else.
    pub fn send_ahead(&self, held: Held) {
        let workers = self.state.borrow().workers.len();
        for worker in 0..workers {
            let worked = {
                let worker = &mut self.state.borrow_mut().workers[worker];
                std::mem::take(&mut worker.worked) && !worker.lost
            };
            if worked {
                self.give(worker, &[held]);
            }
        }
    }

    /// Sends those things of `needs` that a worker does not have.
    fn give(&self, worker: usize, needs: &[Held]) {
        let mut state = self.state.borrow_mut();
        let kept: Vec<(Held, Rc<Packet>)> = state.held.iter().cloned().collect();
        let has = &mut state.workers[worker].has;
        has.retain(|held| kept.iter().any(|(kept, _)| kept == held));
        let missing: Vec<&(Held, Rc<Packet>)> =
            kept.iter().filter(|(held, _)| needs.contains(held) && !has.contains(held)).collect();
        has.extend(missing.iter().map(|(held, _)| *held));
        // Told with what is new: which of the old things may go.
        let keep = has.clone();
        drop(state);
        for (held, thing) in missing {
            let needs: Vec<Held> = std::iter::once(*held).chain(keep.iter().copied().filter(|other| other != held)).collect();
            self.line.post(worker, held.0, thing, &needs);
        }
    }

    /// Takes in what has arrived.
    async fn take_arrived<J: Job>(&self, work: &mut Jobs<J>) {
        if self.owed() {
            while let Some(arrival) = self.line.arrival(Duration::ZERO).await {
                self.take(arrival, work);
            }
        }
    }

    /// Waits for one arrival, and gives up who does not answer. False where nobody owes anything.
    async fn await_one<J: Job>(&self, work: &mut Jobs<J>, patience: Duration) -> bool {
        if !self.owed() {
            return false;
        }
        match self.line.arrival(patience).await {
            Some(arrival) => self.take(arrival, work),
            None => {
                let late: Vec<usize> = {
                    let state = self.state.borrow();
                    (0..state.workers.len()).filter(|&worker| !state.workers[worker].owes.is_empty()).collect()
                };
                late.into_iter().for_each(|worker| self.lose(worker, work));
            }
        }
        true
    }

    fn owed(&self) -> bool {
        self.state.borrow().workers.iter().any(|worker| !worker.owes.is_empty())
    }

    fn take<J: Job>(&self, arrival: Arrival, work: &mut Jobs<J>) {
        let (worker, number, packet) = match arrival {
            Arrival::Lost { worker } => return self.lose(worker, work),
            Arrival::Answer { worker, number, packet } => (worker, number, packet),
        };
        let index = {
            let mut state = self.state.borrow_mut();
            let Some(owes) = state.workers.get_mut(worker).map(|worker| &mut worker.owes) else {
                return;
            };
            // An answer that nobody waits for any more is no matter.
            let Some(place) = owes.iter().position(|(owed, _)| *owed == number) else {
                return;
            };
            owes.remove(place).map(|(_, index)| index)
        };
        let Some(index) = index else { return };
        match work.jobs[index].as_ref().and_then(|job| job.answered(packet)) {
            Some(result) => {
                work.jobs[index] = None;
                work.results[index] = Some(result);
            }
            None => {
                work.queue.push_front(index);
                self.lose(worker, work);
            }
        }
    }

    /// Counts a worker as lost; the jobs that it has not answered are to be done again.
    fn lose<J: Job>(&self, worker: usize, work: &mut Jobs<J>) {
        let owed = {
            let mut state = self.state.borrow_mut();
            let Some(worker) = state.workers.get_mut(worker).filter(|worker| !worker.lost) else {
                return;
            };
            worker.lost = true;
            std::mem::take(&mut worker.owes)
        };
        owed.into_iter().rev().for_each(|(_, index)| work.queue.push_front(index));
        self.line.give_up(worker);
    }
}

#[cfg(test)]
mod tests;
