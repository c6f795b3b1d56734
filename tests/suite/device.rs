//! One test body, every device: the same sampled tokens and the same losses as on the CPU.

use burn::tensor::Device;
use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::metrics::Report;
use turnwise::rollout::Trajectory;
use turnwise::trainer::{Trainer, initial_policy};

use crate::support::{cpu, gpu, paid, tiny};

/// The configuration that is compared across devices, here and in the browser.
fn config() -> ExperimentConfig {
    ExperimentConfig { groups: 2, num_generations: 4, turn_limit: 2, beta: 0.05, inner_epochs: 2, held_out: 4, ..paid(tiny()) }
}

/// Two training steps.
fn run(device: &Device) -> Vec<(Vec<Trajectory>, Report)> {
    let config = config();
    let mut trainer = Trainer::new(config.clone(), &initial_policy(&config, device).unwrap());
    let step = |_| {
        let (rollout, _, _, report) = block_on(trainer.train_step()).unwrap();
        (rollout.training, report)
    };
    (0..2).map(step).collect()
}

/// Compares a device's run with the CPU's.
fn same_as_the_cpu(device: &Device) {
    for (step, ((episodes, report), (wanted_episodes, wanted))) in run(device).iter().zip(run(&cpu())).enumerate() {
        for (episode, wanted) in episodes.iter().zip(&wanted_episodes) {
            assert_eq!(episode.tokens, wanted.tokens, "step {step}, group {}, member {}", wanted.group, wanted.member);
            assert!(episode.log_probs.iter().zip(&wanted.log_probs).all(|(a, b)| (a - b).abs() < 1e-3));
        }
        let (got, wanted) = (&report.update, &wanted.update);
        assert!(wanted.gradient_norm > 1e-3, "step {step}: there is something to compare");
        let pairs = [
            ("loss", got.loss, wanted.loss),
            ("entropy", got.entropy, wanted.entropy),
            ("reference KL", got.reference_kl, wanted.reference_kl),
            ("gradient norm", got.gradient_norm, wanted.gradient_norm),
        ];
        for (name, got, wanted) in pairs {
            assert!((got - wanted).abs() < 1e-3, "step {step}, {name}: {got}, on the CPU {wanted}");
        }
    }
}

#[test]
fn the_cpu_gives_the_same_run_twice() {
    same_as_the_cpu(&cpu());
}

#[test]
fn the_gpu_gives_the_run_of_the_cpu() {
    if let Some(device) = gpu("the_gpu_gives_the_run_of_the_cpu") {
        same_as_the_cpu(&device);
    }
}
