//! Several cores.
//!
//! On the CPU, work is cut into jobs whose number and content do not depend on the number of cores, and results come back in the
//! order of the jobs: what is computed is the same on one core and on many, and in a browser it is cut as it is natively. Natively
//! the jobs run on threads. A browser that shares no memory has none; there other workers, each with an instance of this crate of
//! its own, take jobs as plain data ([`Pool`]). On a graphics device there is one job at a time, and work that need not be cut is
//! not.

mod packet;
mod pool;

pub use packet::{Held, Kind, Packet, spelled, spelling};
pub use pool::{Arrival, Line, Pool, install, pool, while_waiting};

use burn::tensor::Device;

/// Whether work on a device is to be cut into jobs for several cores: on the CPU.
#[cfg(feature = "cpu")]
pub fn cuts(device: &Device) -> bool {
    device.clone().without_autodiff() == Device::flex()
}
/// Whether work on a device is to be cut into jobs for several cores: not on graphics devices, and there is nothing else here.
#[cfg(not(feature = "cpu"))]
pub fn cuts(_device: &Device) -> bool {
    false
}

/// How many threads a device's jobs may run on: the cores where work is cut and there are threads, 1 elsewhere.
pub fn workers(device: &Device) -> usize {
    let threads = cfg!(not(target_arch = "wasm32")) && cuts(device);
    if threads { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 }
}

/// What threads may hand to each other; anything where there are none.
#[cfg(not(target_arch = "wasm32"))]
pub trait Portable: Send {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send> Portable for T {}
/// What threads may hand to each other; anything where there are none.
#[cfg(target_arch = "wasm32")]
pub trait Portable {}
#[cfg(target_arch = "wasm32")]
impl<T> Portable for T {}

/// Work that can be done here or by another worker, with the same result to the last bit.
pub trait Job: Portable + Sized {
    /// What its packets are about.
    const KIND: Kind;

    /// What comes of it.
    type Result: Portable;

    /// About how long it takes, in a unit that all jobs of a round share: the longest are begun first, so that cores end together.
    fn size(&self) -> usize {
        1
    }

    /// Does it here.
    fn here(self) -> impl Future<Output = Self::Result>;

    /// What another worker has to know; nothing where this job can only be done here.
    fn packet(&self) -> Option<Packet>;

    /// What another worker's answer says; nothing where it does not fit the job.
    fn answered(&self, answer: Packet) -> Option<Self::Result>;
}

/// Does every job: on the pool's workers where one is installed and the device's work is cut, else on threads where there are
/// some. Results are in the order of `jobs`.
pub async fn all<J: Job>(device: &Device, jobs: Vec<J>) -> Vec<J::Result> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_cached_key(|&place| std::cmp::Reverse(jobs[place].size()));
    let mut places: Vec<Option<J>> = jobs.into_iter().map(Some).collect();
    let jobs = order.iter().filter_map(|&place| places[place].take()).collect();
    let results = in_turn(device, jobs).await;
    let mut results: Vec<(usize, J::Result)> = order.into_iter().zip(results).collect();
    results.sort_by_key(|&(place, _)| place);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Does every job, the first ones first.
async fn in_turn<J: Job>(device: &Device, jobs: Vec<J>) -> Vec<J::Result> {
    let pool = if cuts(device) { pool() } else { None };
    if let Some(pool) = pool {
        return pool.run(jobs).await;
    }
    let workers = workers(device);
    if workers > 1 {
        return map(workers, jobs, |job| wait(job.here()));
    }
    let mut results = Vec::with_capacity(jobs.len());
    for job in jobs {
        results.push(job.here().await);
    }
    results
}

/// Runs every job, on up to `workers` threads. Results are in the order of `jobs`.
#[cfg(not(target_arch = "wasm32"))]
pub fn map<T: Send, R: Send>(workers: usize, jobs: Vec<T>, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    use std::sync::Mutex;

    if workers < 2 || jobs.len() < 2 {
        return jobs.into_iter().map(run).collect();
    }
    let threads = workers.min(jobs.len());
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let work = || {
        let mut done = Vec::new();
        while let Some((index, job)) = next() {
            done.push((index, run(job)));
        }
        done
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().chain(own).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs every job, one after another.
#[cfg(target_arch = "wasm32")]
pub fn map<T, R>(_workers: usize, jobs: Vec<T>, run: impl Fn(T) -> R) -> Vec<R> {
    jobs.into_iter().map(run).collect()
}

/// Waits for work on the CPU, which never hands control back before it is done.
///
/// Only where work is cut: there is no other device then, and nothing to wait for.
pub fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        match work.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for workers in [1, 2, 7] {
            let squares = map(workers, (0..20).collect(), |x: u64| {
                std::thread::sleep(std::time::Duration::from_micros((20 - x) * 50));
                x * x
            });
            assert_eq!(squares, (0..20).map(|x| x * x).collect::<Vec<_>>());
        }
    }
}
