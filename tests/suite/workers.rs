//! A run whose jobs are shared with other workers is the run of one: to the last bit, with any number of them, whatever becomes
//! of them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use pollster::block_on;
use turnwise::config::{CreditMethod, ExperimentConfig, KlPlacement, PolicyLoss, Value};
use turnwise::environment::REGISTRY;
use turnwise::metrics::Report;
use turnwise::parallel::{Arrival, Held, Kind, Line, Packet, install, pool, spelled, spelling};
use turnwise::policy::Weights;
use turnwise::rollout::Trajectory;
use turnwise::seed::Purpose;
use turnwise::trainer::{Boundaries, Helper, Trainer, imitation};

use crate::support::{cpu, fresh, paid, tiny, weights};

/// How a worker ends.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Lives,
    /// Says so, in place of the answer with this number.
    Breaks(usize),
    /// Never answers again from this answer on.
    FallsSilent(usize),
    /// Answers nonsense from this answer on.
    Babbles(usize),
}

/// What the workers were asked, and what became of it.
#[derive(Default)]
struct Log {
    answered: Vec<usize>,
    kinds: Vec<Kind>,
    given_up: Vec<usize>,
    most_held: usize,
}

struct Worker {
    helper: Helper,
    fate: Fate,
}

/// Workers in this thread: whenever something arrives, one of them has done one job.
struct Local {
    workers: Rc<RefCell<Vec<Worker>>>,
    inbox: RefCell<VecDeque<(usize, u32, Packet)>>,
    log: Rc<RefCell<Log>>,
}

impl Line for Local {
    fn workers(&self) -> usize {
        self.workers.borrow().len()
    }

    fn post(&self, worker: usize, number: u32, packet: &Packet, needs: &[Held]) {
        let packet = Packet { needs: needs.to_vec(), ..packet.clone() };
        self.inbox.borrow_mut().push_back((worker, number, packet));
    }

    fn arrival(&self, _: Duration) -> Pin<Box<dyn Future<Output = Option<Arrival>> + '_>> {
        Box::pin(async {
            loop {
                // Who was asked last answers first; each one's answers come in the order in which it was asked.
                let (worker, number, packet) = {
                    let mut inbox = self.inbox.borrow_mut();
                    let last = inbox.back()?.0;
                    let place = inbox.iter().position(|(worker, ..)| *worker == last)?;
                    inbox.remove(place)?
                };
                let mut log = self.log.borrow_mut();
                let Worker { helper, fate } = &mut self.workers.borrow_mut()[worker];
                let Some(answer) = block_on(helper.handle(&packet)).expect("the job is understood") else {
                    continue;
                };
                log.most_held = log.most_held.max(helper.held());
                let count = log.answered[worker];
                match *fate {
                    Fate::Breaks(at) if count >= at => return Some(Arrival::Lost { worker }),
                    Fate::FallsSilent(at) if count >= at => continue,
                    Fate::Babbles(at) if count >= at => {
                        return Some(Arrival::Answer { worker, number, packet: Packet { numbers: vec![1.0; 5], ..answer } });
                    }
                    _ => {}
                }
                log.answered[worker] += 1;
                log.kinds.push(packet.kind);
                return Some(Arrival::Answer { worker, number, packet: answer });
            }
        })
    }

    fn give_up(&self, worker: usize) {
        self.log.borrow_mut().given_up.push(worker);
        self.inbox.borrow_mut().retain(|(other, ..)| *other != worker);
    }
}

fn workers(fates: &[Fate]) -> Rc<RefCell<Log>> {
    employ(&Rc::new(RefCell::new(fates.iter().map(|&fate| Worker { helper: Helper::default(), fate }).collect())))
}

fn employ(workers: &Rc<RefCell<Vec<Worker>>>) -> Rc<RefCell<Log>> {
    let log = Rc::new(RefCell::new(Log { answered: vec![0; workers.borrow().len()], ..Log::default() }));
    install(Some(Box::new(Local { workers: workers.clone(), inbox: RefCell::default(), log: log.clone() })));
    log
}

/// Enough episodes for several shards.
fn config() -> ExperimentConfig {
    ExperimentConfig { groups: 12, num_generations: 16, held_out: 70, ..paid(tiny()) }
}

type Step = (Vec<Trajectory>, Vec<Trajectory>, Report);

/// Two training steps: the episodes, the reports without their times, and the weights after them.
fn run(config: &ExperimentConfig) -> (Vec<Step>, Weights) {
    let mut trainer = Trainer::new(config.clone(), &fresh(config));
    let step = |_| {
        let (rollout, _, _, mut report) = block_on(trainer.train_step()).unwrap();
        (report.seconds, report.rollout_seconds, report.tokens_per_second) = (0.0, 0.0, 0.0);
        (rollout.training, rollout.held_out, report)
    };
    let steps = (0..2).map(step).collect();
    (steps, weights(&trainer.policy()))
}

/// Everything equal to the last bit.
fn same((steps, weights): &(Vec<Step>, Weights), (wanted, wanted_weights): &(Vec<Step>, Weights), what: &str) {
    for (step, (found, wanted)) in steps.iter().zip(wanted).enumerate() {
        assert_eq!(found.0, wanted.0, "{what}: episodes of step {step}");
        assert_eq!(found.1, wanted.1, "{what}: held-out episodes of step {step}");
        assert_eq!(found.2, wanted.2, "{what}: report of step {step}");
    }
    assert_eq!(weights, wanted_weights, "{what}: weights");
}

#[test]
fn any_number_of_workers_gives_the_same_run() {
    let config = config();
    install(None);
    let alone = run(&config);
    assert!(alone.0[0].2.update.gradient_norm > 1e-3, "there is something to learn from");
    for count in 0..4 {
        let log = workers(&vec![Fate::Lives; count]);
        same(&run(&config), &alone, &format!("{count} others"));
        let log = log.borrow();
        assert!(log.answered.iter().all(|&answered| answered > 1), "each had jobs: {:?}", log.answered);
        assert!(count == 0 || (log.kinds.contains(&Kind::Episodes) && log.kinds.contains(&Kind::Gradient)));
        assert!(log.most_held <= 2, "{} policies are held", log.most_held);
        assert_eq!(pool().map(|pool| pool.left()), Some(count));
    }
    install(None);
}

/// Objectives that compare with another policy, tool tokens without a log-probability of their own, pairs, several passes.
#[test]
fn every_kind_of_update_is_shared() {
    let plain = config();
    let cases = [
        ExperimentConfig { beta: 0.1, inner_epochs: 2, ..plain.clone() },
        ExperimentConfig { loss_mask: false, inner_epochs: 2, ..plain.clone() },
        ExperimentConfig { beta: 0.1, kl_placement: KlPlacement::Reward, ..plain.clone() },
        ExperimentConfig { policy_loss: PolicyLoss::Dpo, groups: 24, ..plain.clone() },
        ExperimentConfig { legal_token_mask: false, micro_batches: 7, temperature: 1.0 / 3.0, ..plain.clone() },
        ExperimentConfig { credit_method: CreditMethod::Gae, ..plain.clone() },
        ExperimentConfig { credit_method: CreditMethod::MonteCarlo, groups: 6, monte_carlo_samples: 2, ..plain },
    ];
    for (index, config) in cases.iter().enumerate() {
        install(None);
        let alone = run(config);
        let log = workers(&[Fate::Lives; 2]);
        same(&run(config), &alone, &format!("case {index}"));
        let compares = (config.beta > 0.0 || !config.loss_mask || config.policy_loss == PolicyLoss::Dpo, Kind::LogProbs);
        assert_eq!(log.borrow().kinds.contains(&compares.1), compares.0, "case {index}");
    }
    install(None);
}

#[test]
fn a_live_warm_start_is_shared() {
    let config = ExperimentConfig { imitation_steps: 12, imitation_batch: 100, demonstrations: 200, ..tiny() };
    let imitate = || {
        let mut imitation = imitation(&config, &cpu()).unwrap();
        let mut losses = Vec::new();
        while let Some(loss) = block_on(imitation.advance()).unwrap() {
            losses.extend(loss);
        }
        (losses, weights(&imitation.policy()))
    };
    install(None);
    let alone = imitate();
    assert!(alone.0.len() > 1);
    let log = workers(&[Fate::Lives; 2]);
    assert!(imitate() == alone, "the same losses and weights");
    assert!(log.borrow().kinds.contains(&Kind::Imitation));
    install(None);
}

/// The next run gives its policies numbers of its own.
#[test]
fn workers_serve_one_run_after_another() {
    let team = Rc::new(RefCell::new(vec![Worker { helper: Helper::default(), fate: Fate::Lives }]));
    for seed in [1, 2] {
        let config = ExperimentConfig { seed, ..config() };
        install(None);
        let alone = run(&config);
        employ(&team);
        same(&run(&config), &alone, &format!("seed {seed}"));
    }
    install(None);
}

/// Every task can be made again elsewhere, in the middle of its episodes too.
#[test]
fn every_task_is_played_on_elsewhere() {
    for declaration in REGISTRY {
        let small = tiny();
        let mut config = ExperimentConfig::defaults(declaration.name, REGISTRY);
        (config.d_model, config.layers, config.heads) = (small.d_model, small.layers, small.heads);
        (config.groups, config.num_generations, config.held_out, config.legal_token_mask) = (4, 8, 0, true);
        let policy = fresh(&config);
        install(None);
        let rollout = block_on(Trainer::new(config.clone(), &policy).sample()).unwrap();
        let boundaries = Boundaries::of(&rollout, &config);
        let roll = || block_on(boundaries.roll(&policy, &config, Purpose::TrueCredit, 0, 8)).unwrap();
        let alone = roll();
        let log = workers(&[Fate::Lives]);
        assert_eq!(roll(), alone, "{}", declaration.name);
        assert!(log.borrow().answered[0] > 0, "{}: there were jobs for it", declaration.name);
    }
    install(None);
}

#[test]
fn a_lost_worker_changes_nothing() {
    let config = config();
    install(None);
    let alone = run(&config);
    for at in [0, 1, 3] {
        for fate in [Fate::Breaks(at), Fate::FallsSilent(at), Fate::Babbles(at)] {
            let log = workers(&[Fate::Lives, fate]);
            same(&run(&config), &alone, &format!("lost at answer {at}"));
            assert_eq!(log.borrow().given_up.iter().filter(|&&worker| worker == 1).count(), 1, "the one is given up, once");
        }
    }
    install(None);
}

/// Values of settings travel with their kinds, where JSON has them as they are.
#[test]
fn values_of_settings_keep_their_kinds() {
    let values = [Value::Switch(true), Value::Number(3.0), Value::Number(0.1), Value::Choice("plus".to_string())];
    let found: Option<Vec<Value>> = spelled(&values.as_slice()).and_then(|bytes| spelling(&bytes));
    assert_eq!(found.as_deref(), Some(&values[..]));
    let json = serde_json::to_string(&values).unwrap();
    assert_eq!(json, r#"[true,3,0.1,"plus"]"#);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&json).unwrap(), values);
}
