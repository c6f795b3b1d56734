//! Which jobs a pool hands to whom, and when.

use super::*;
use crate::parallel::wait;

/// To which worker a job of which size was sent.
type Sent = RefCell<Vec<(usize, usize)>>;

/// Other workers that note what they are sent and do it when somebody waits for it.
struct Noted {
    workers: usize,
    sent: Rc<Sent>,
    owed: RefCell<VecDeque<(usize, u32)>>,
}

impl Line for Noted {
    fn workers(&self) -> usize {
        self.workers
    }

    fn post(&self, worker: usize, number: u32, packet: &Packet, _needs: &[Held]) {
        self.sent.borrow_mut().push((worker, packet.numbers[0] as usize));
        self.owed.borrow_mut().push_back((worker, number));
    }

    fn arrival(&self, patience: Duration) -> Pin<Box<dyn Future<Output = Option<Arrival>> + '_>> {
        let next = if patience.is_zero() { None } else { self.owed.borrow_mut().pop_front() };
        let answer = |(worker, number)| Arrival::Answer { worker, number, packet: packet(0) };
        Box::pin(async move { next.map(answer) })
    }

    fn give_up(&self, _worker: usize) {}
}

fn packet(number: usize) -> Packet {
    Packet { kind: Kind::Episodes, task: Vec::new(), numbers: vec![number as f32], needs: Vec::new() }
}

/// A job of a size that takes as many hundreds of microseconds; `told` says whether it can be described.
struct Sized {
    size: usize,
    told: bool,
}

impl Job for Sized {
    const KIND: Kind = Kind::Episodes;
    type Result = bool;

    fn size(&self) -> usize {
        self.size
    }

    async fn here(self) -> bool {
        std::thread::sleep(Duration::from_micros(100 * self.size as u64));
        true
    }

    fn packet(&self) -> Option<Packet> {
        self.told.then(|| packet(self.size))
    }

    fn answered(&self, _answer: Packet) -> Option<bool> {
        Some(false)
    }
}

/// What each worker is sent in a round of jobs, and which jobs are done by the caller.
fn round(pool: &Pool, sent: &Sent, sizes: &[usize]) -> (Vec<(usize, usize)>, Vec<bool>) {
    let own = wait(pool.run(sizes.iter().map(|&size| Sized { size, told: true }).collect()));
    (sent.take(), own)
}

fn noted(workers: usize) -> (Pool, Rc<Sent>) {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let line = Noted { workers, sent: sent.clone(), owed: RefCell::default() };
    (Pool::new(Box::new(line)), sent)
}

#[test]
fn equal_jobs_are_shared_evenly_one_ahead() {
    let (pool, sent) = noted(1);
    assert_eq!(round(&pool, &sent, &[50; 4]).0, [(0, 50); 2]);
    let (pool, sent) = noted(3);
    let ahead: Vec<usize> = round(&pool, &sent, &[50; 8]).0.into_iter().map(|(worker, _)| worker).collect();
    assert_eq!(ahead, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn the_last_job_is_left_for_the_caller() {
    let (pool, sent) = noted(3);
    assert_eq!(round(&pool, &sent, &[50]), (vec![], vec![true]));
    assert_eq!(round(&pool, &sent, &[50; 3]), (vec![(0, 50), (1, 50)], vec![false, false, true]));
}

#[test]
fn the_longest_are_begun_first_and_whoever_has_one_gets_nothing_ahead() {
    let (pool, sent) = noted(3);
    let (sent, own) = round(&pool, &sent, &[120, 120, 30, 30, 30, 30]);
    assert_eq!(sent, [(0, 120), (1, 120), (2, 30), (2, 30)]);
    assert_eq!(own.iter().filter(|&&own| own).count(), 2);
}

#[test]
fn short_jobs_are_handed_out_further_ahead_once_it_is_known_that_they_are() {
    let (pool, sent) = noted(1);
    let first = |sent: Vec<(usize, usize)>| sent.len();
    // Nothing is answered while the caller has jobs of its own: what was sent is what was handed out ahead.
    assert_eq!(first(round(&pool, &sent, &[5; 20]).0), 2);
    assert!(first(round(&pool, &sent, &[5; 20]).0) >= 4);
}

#[test]
fn jobs_that_cannot_be_described_are_done_by_the_caller() {
    let (pool, sent) = noted(2);
    let own = wait(pool.run((0..3).map(|_| Sized { size: 1, told: false }).collect()));
    assert_eq!((own, sent.take()), (vec![true; 3], vec![]));
}

/// An errand is done by whoever waits, once, and not kept for other jobs.
#[test]
fn an_errand_is_done_while_waiting_and_never_later() {
    let done = Rc::new(RefCell::new(0));
    let errand = || {
        let done = done.clone();
        while_waiting(move || *done.borrow_mut() += 1);
    };
    errand();
    assert!(ERRAND.take().is_none(), "without a pool there is nobody to wait for");
    let (sent, owed) = (Rc::default(), RefCell::default());
    install(Some(Box::new(Noted { workers: 1, sent, owed })));
    let run = |count| pool().map(|pool| wait(pool.run((0..count).map(|_| Sized { size: 1, told: true }).collect())));
    errand();
    run(4);
    assert_eq!(*done.borrow(), 1);
    errand();
    run(1);
    run(4);
    assert_eq!(*done.borrow(), 1, "nobody waited in the jobs that it was for");
    install(None);
}
