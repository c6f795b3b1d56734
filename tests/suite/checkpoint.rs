//! Checkpoints: what is written comes back, and damaged files are refused in words.

use turnwise::policy::{Activation, Checkpoint, CheckpointError, PolicyConfig, Precision, Weights};
use turnwise::seed::RootSeed;
use turnwise::trainer::{WarmStartError, shipped_policy};

use crate::support::{cpu, fresh, tiny, weights};

/// A policy so small that every cut of its file can be tried.
fn small() -> Checkpoint {
    let policy = PolicyConfig {
        vocabulary: 3,
        context_length: 2,
        d_model: 2,
        layers: 1,
        heads: 1,
        hidden: 2,
        activation: Activation::Relu,
        bias: false,
    };
    let weights = Weights::initial(&policy, RootSeed(3));
    Checkpoint { policy, experiment: "v=1&seed=3".to_string(), weights, training: None }
}

#[test]
fn a_checkpoint_comes_back() {
    let checkpoint = small();
    let mut back = Checkpoint::from_bytes(&checkpoint.to_bytes(Precision::Full).unwrap()).unwrap();
    let by_name = |weights: &mut Weights| weights.0.sort_by(|a, b| a.name.cmp(&b.name));
    let mut wanted = checkpoint.clone();
    by_name(&mut back.weights);
    by_name(&mut wanted.weights);
    assert_eq!(back, wanted);
    let policy = checkpoint.policy.init(&cpu()).with_weights(&back.weights).unwrap();
    assert_eq!(weights(&policy), checkpoint.weights);
}

#[test]
fn half_precision_is_half_the_size_and_close() {
    let config = tiny();
    let whole = weights(&fresh(&config));
    let checkpoint =
        Checkpoint { policy: PolicyConfig::of(&config), experiment: String::new(), weights: whole.clone(), training: None };
    let (full, half) = (checkpoint.to_bytes(Precision::Full).unwrap(), checkpoint.to_bytes(Precision::Half).unwrap());
    assert!(half.len() * 10 < full.len() * 6, "{} {}", half.len(), full.len());
    let policy = shipped_policy(&config, &half, &cpu()).unwrap();
    for (a, b) in whole.0.iter().zip(&weights(&policy).0) {
        assert!(a.values.iter().zip(&b.values).all(|(a, b)| (a - b).abs() <= 5e-4 * a.abs().max(1e-3)), "{}", a.name);
    }
}

#[test]
fn a_checkpoint_of_another_shape_names_the_field() {
    let config = tiny();
    let checkpoint = Checkpoint {
        policy: PolicyConfig::of(&config),
        experiment: String::new(),
        weights: weights(&fresh(&config)),
        training: None,
    };
    let file = checkpoint.to_bytes(Precision::Full).unwrap();
    let wider = turnwise::config::ExperimentConfig { d_model: 64, ..config };
    let error = shipped_policy(&wider, &file, &cpu()).expect_err("the shape differs");
    assert!(matches!(error, WarmStartError::OtherShape { field: "d_model", found: 32, wanted: 64 }), "{error}");
}

#[test]
fn missing_and_broken_weights_are_named() {
    let mut checkpoint = small();
    checkpoint.weights.0.retain(|weight| weight.name != "head.weight");
    let error = checkpoint.policy.init(&cpu()).with_weights(&checkpoint.weights).expect_err("a weight is missing");
    assert!(matches!(&error, CheckpointError::Missing { name } if name == "head.weight"), "{error}");
    let mut checkpoint = small();
    checkpoint.weights.0[0].values[0] = f32::INFINITY;
    let error = Checkpoint::from_bytes(&checkpoint.to_bytes(Precision::Full).unwrap()).expect_err("a value is not a number");
    assert!(matches!(&error, CheckpointError::NonFinite { name } if name == "tokens.weight"), "{error}");
}

/// Reads a file and, where it is accepted, loads it: neither may panic.
fn try_file(bytes: &[u8]) -> bool {
    let Ok(checkpoint) = Checkpoint::from_bytes(bytes) else { return false };
    let within = checkpoint.policy.d_model <= 64 && checkpoint.policy.hidden <= 256 && checkpoint.policy.context_length <= 256;
    !within || checkpoint.policy.init(&cpu()).with_weights(&checkpoint.weights).is_ok()
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let bytes = small().to_bytes(Precision::Full).unwrap();
    assert!(try_file(&bytes));
    for length in 0..bytes.len() {
        assert!(!try_file(&bytes[..length]), "cut after {length} of {} bytes", bytes.len());
    }
}

#[test]
fn changed_bytes_of_the_header_never_panic() {
    let bytes = small().to_bytes(Precision::Half).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    assert!(header > 100 && header < bytes.len());
    let (mut refused, mut tried) = (0, 0);
    for place in 0..header {
        for flip in [0x01, 0x04, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flip;
            tried += 1;
            refused += usize::from(!try_file(&damaged));
        }
    }
    assert!(refused * 2 > tried, "{refused} of {tried} were refused");
    assert!(!try_file(b"") && !try_file(&[0xff; 64]));
}
