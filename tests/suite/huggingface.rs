//! The exported model, computed as OPT (Zhang et al., arXiv:2205.01068) computes it, gives the logits of the policy.
//! `tests/huggingface/check.py` compares with transformers itself.

use burn::tensor::{Int, Tensor, TensorData};
use safetensors::SafeTensors;
use turnwise::policy::{Checkpoint, PolicyConfig, huggingface};
use turnwise::vocabulary::{NAMES, SIZE};

use crate::support::{cpu, fresh, numbers, tiny, weights};

/// Matrices and vectors of the file by name, each with its last dimension.
struct Model<'a>(SafeTensors<'a>);

impl Model<'_> {
    fn get(&self, name: &str) -> (Vec<f64>, usize) {
        let tensor = self.0.tensor(name).unwrap_or_else(|_| panic!("{name} is there"));
        let values = tensor.data().chunks_exact(4).map(|bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap())));
        (values.collect(), *tensor.shape().last().unwrap())
    }

    fn row(&self, name: &str, row: usize) -> Vec<f64> {
        let (values, width) = self.get(name);
        values[row * width..(row + 1) * width].to_vec()
    }

    /// `x W^T + b`, `W` being `[out, in]`; without a bias where the file has none.
    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, width) = self.get(&format!("{name}.weight"));
        assert_eq!(width, x.len(), "{name}");
        let bias = self.0.tensor(&format!("{name}.bias")).is_ok().then(|| self.get(&format!("{name}.bias")).0);
        let row = |(index, row): (usize, &[f64])| {
            row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + bias.as_ref().map_or(0.0, |bias| bias[index])
        };
        weight.chunks(width).enumerate().map(row).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let (gain, shift) = (self.get(&format!("{name}.weight")).0, self.get(&format!("{name}.bias")).0);
        x.iter().zip(gain).zip(shift).map(|((x, gain), shift)| (x - mean) / (variance + 1e-5).sqrt() * gain + shift).collect()
    }
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Logits after every token.
fn opt(model: &Model, config: &serde_json::Value, tokens: &[usize]) -> Vec<Vec<f64>> {
    let number = |name: &str| config[name].as_u64().unwrap() as usize;
    let (layers, heads, width) = (number("num_hidden_layers"), number("num_attention_heads"), number("hidden_size"));
    let head = width / heads;
    let embed = |(position, &token): (usize, &usize)| {
        // OPT's positions begin at 2.
        add(
            &model.row("model.decoder.embed_tokens.weight", token),
            &model.row("model.decoder.embed_positions.weight", position + 2),
        )
    };
    let mut hidden: Vec<Vec<f64>> = tokens.iter().enumerate().map(embed).collect();
    for layer in 0..layers {
        let name = |part: &str| format!("model.decoder.layers.{layer}.{part}");
        let normed: Vec<Vec<f64>> = hidden.iter().map(|x| model.norm(&name("self_attn_layer_norm"), x)).collect();
        let project = |part: &str| -> Vec<Vec<f64>> {
            normed.iter().map(|x| model.linear(&name(&format!("self_attn.{part}_proj")), x)).collect()
        };
        let (query, key, value) = (project("q"), project("k"), project("v"));
        for t in 0..tokens.len() {
            let mut attended = Vec::new();
            for h in 0..heads {
                let part = h * head..(h + 1) * head;
                let dot = |s: usize| query[t][part.clone()].iter().zip(&key[s][part.clone()]).map(|(q, k)| q * k).sum::<f64>();
                let scores: Vec<f64> = (0..=t).map(|s| (dot(s) / (head as f64).sqrt()).exp()).collect();
                let total: f64 = scores.iter().sum();
                attended.extend(part.map(|d| (0..=t).map(|s| scores[s] / total * value[s][d]).sum::<f64>()));
            }
            hidden[t] = add(&hidden[t], &model.linear(&name("self_attn.out_proj"), &attended));
        }
        for x in &mut hidden {
            let up: Vec<f64> = model.linear(&name("fc1"), &model.norm(&name("final_layer_norm"), x));
            let up: Vec<f64> = up.into_iter().map(|x| x.max(0.0)).collect();
            *x = add(x, &model.linear(&name("fc2"), &up));
        }
    }
    hidden.iter().map(|x| model.linear("lm_head", &model.norm("model.decoder.final_layer_norm", x))).collect()
}

#[test]
fn the_exported_model_gives_the_logits_of_the_policy() {
    let config = turnwise::config::ExperimentConfig { layers: 2, ..tiny() };
    let policy = fresh(&config);
    let checkpoint =
        Checkpoint { policy: PolicyConfig::of(&config), experiment: String::new(), weights: weights(&policy), training: None };
    let files: std::collections::HashMap<String, Vec<u8>> = huggingface(&checkpoint).unwrap().into_iter().collect();
    let model = Model(SafeTensors::deserialize(&files["model.safetensors"]).unwrap());
    let declared: serde_json::Value = serde_json::from_slice(&files["config.json"]).unwrap();
    let tokens: Vec<usize> = (0..12).map(|index| (index * 7 + 3) % SIZE).collect();
    let found = opt(&model, &declared, &tokens).concat();
    let input: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
    let wanted = numbers(policy.forward(Tensor::<2, Int>::from_data(TensorData::new(input, [1, tokens.len()]), &cpu())));
    let largest = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert_eq!(found.len(), wanted.len());
    assert!(largest < 1e-4, "{largest}");

    let tokenizer: serde_json::Value = serde_json::from_slice(&files["tokenizer.json"]).unwrap();
    for (token, name) in NAMES.iter().enumerate() {
        assert_eq!(tokenizer["model"]["vocab"][*name], token);
    }
}
