//! A run that goes on from a checkpoint is the run that was never interrupted.

use pollster::block_on;
use turnwise::config::{CreditMethod, ExperimentConfig};
use turnwise::metrics::Report;
use turnwise::policy::{Checkpoint, Precision};
use turnwise::readback::reads;
use turnwise::trainer::{ResumeError, Trainer, initial_policy};

use crate::support::{cpu, devices, distance, fresh, paid, tiny};

fn config() -> ExperimentConfig {
    ExperimentConfig { iterations: 6, inner_epochs: 2, learning_rate: 0.01, ..paid(tiny()) }
}

/// What a step reports, without the times.
fn step(trainer: &mut Trainer) -> Report {
    let (.., report) = block_on(trainer.train_step()).unwrap();
    Report { seconds: 0.0, rollout_seconds: 0.0, tokens_per_second: 0.0, ..report }
}

fn through_a_file(trainer: &Trainer) -> Checkpoint {
    let checkpoint = block_on(trainer.checkpoint()).unwrap();
    Checkpoint::from_bytes(&checkpoint.to_bytes(Precision::Full).unwrap()).unwrap()
}

fn goes_on_alike(config: ExperimentConfig) {
    let mut whole = Trainer::new(config.clone(), &fresh(&config));
    whole.keep_checkpoints();
    (0..2).for_each(|_| _ = step(&mut whole));
    let mut resumed = Trainer::resume(config.clone(), &through_a_file(&whole), &cpu()).unwrap();
    assert_eq!(resumed.iteration(), 2);
    for _ in 0..3 {
        assert_eq!(step(&mut whole), step(&mut resumed));
    }
    assert_eq!(distance(&whole.policy(), &resumed.policy()), 0.0);
}

#[test]
fn a_resumed_run_is_the_same_run() {
    goes_on_alike(config());
}

/// With a reference that is not the policy of the checkpoint.
#[test]
fn a_resumed_run_keeps_its_reference() {
    goes_on_alike(ExperimentConfig { beta: 0.2, ..config() });
}

/// With a critic, which has moments of its own.
#[test]
fn a_resumed_run_keeps_its_critic() {
    goes_on_alike(ExperimentConfig { credit_method: CreditMethod::Gae, ..config() });
}

/// Before the first update there are no moments yet.
#[test]
fn a_run_can_be_resumed_before_its_first_step() {
    let config = config();
    let mut whole = Trainer::new(config.clone(), &fresh(&config));
    let mut resumed = Trainer::resume(config, &through_a_file(&whole), &cpu()).unwrap();
    assert_eq!(step(&mut whole), step(&mut resumed));
}

/// Weights and moments come with the figures of the update: a checkpoint costs no read of its own. On the CPU, where they lie in memory,
/// it never does.
#[test]
fn a_checkpoint_after_a_step_reads_nothing() {
    let config = config();
    for device in devices("a_checkpoint_after_a_step_reads_nothing") {
        let start = initial_policy(&config, &device).unwrap();
        let mut trainer = Trainer::new(config.clone(), &start);
        trainer.keep_checkpoints();
        _ = step(&mut trainer);
        let before = reads();
        let kept = block_on(trainer.checkpoint()).unwrap();
        assert_eq!(reads(), before);
        // It is what a read of its own gives.
        let mut other = Trainer::new(config.clone(), &start);
        _ = step(&mut other);
        let before = reads();
        assert_eq!(block_on(other.checkpoint()).unwrap(), kept);
        assert_eq!(reads(), before + usize::from(device != cpu()));
    }
}

#[test]
fn what_cannot_be_resumed_is_named() {
    let config = config();
    let mut trainer = Trainer::new(config.clone(), &fresh(&config));
    _ = step(&mut trainer);
    let checkpoint = through_a_file(&trainer);
    let resume = |config: ExperimentConfig, checkpoint: &Checkpoint| Trainer::resume(config, checkpoint, &cpu()).err().unwrap();

    let other = resume(ExperimentConfig { gamma: 0.5, groups: 4, ..config.clone() }, &checkpoint).to_string();
    assert!(other.contains("gamma") && other.contains("groups"), "{other}");
    let short = resume(ExperimentConfig { iterations: 0, ..config.clone() }, &checkpoint);
    assert!(matches!(short, ResumeError::Beyond { found: 1, bound: 0 }), "{short}");
    let bare = Checkpoint { training: None, ..checkpoint.clone() };
    assert!(matches!(resume(config.clone(), &bare), ResumeError::NoTrainingState));

    let mut damaged = checkpoint.clone();
    let training = damaged.training.as_mut().unwrap();
    let lost = training.moments.second.0.remove(3).name;
    let message = resume(config.clone(), &damaged).to_string();
    assert!(message.contains(&lost), "{message}");
    let mut damaged = checkpoint;
    let weight = &mut damaged.training.as_mut().unwrap().moments.first.0[0];
    weight.shape = vec![1];
    let name = weight.name.clone();
    let message = resume(config, &damaged).to_string();
    assert!(message.contains(&name) && message.contains("shape"), "{message}");
}

/// More steps and another title are no other experiment.
#[test]
fn a_finished_run_can_be_made_longer() {
    let config = ExperimentConfig { iterations: 1, ..config() };
    let mut trainer = Trainer::new(config.clone(), &fresh(&config));
    _ = step(&mut trainer);
    let longer = ExperimentConfig { iterations: 3, title: "longer".to_string(), ..config };
    let mut resumed = Trainer::resume(longer, &through_a_file(&trainer), &cpu()).unwrap();
    assert_eq!(step(&mut resumed).iteration, 1);
}
