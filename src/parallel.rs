//! Several cores, where there are threads.
//!
//! Natively on the CPU, work is cut into jobs whose number and content do not depend on the number of cores, and results come
//! back in the order of the jobs: what is computed is the same on one core and on many. In a browser and on a graphics device
//! there is one thread, and work that need not be cut is not.

use burn::tensor::Device;

/// Whether work on a device is to be cut into jobs for several cores.
pub fn cuts(device: &Device) -> bool {
    cfg!(not(target_arch = "wasm32")) && device.clone().without_autodiff() == Device::flex()
}

/// How many jobs may run at the same time on a device: the cores where work is cut, 1 elsewhere.
pub fn workers(device: &Device) -> usize {
    if cuts(device) { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 }
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
/// Only for jobs of [`map`] with more than one worker: there is no other device then, and nothing to wait for.
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
