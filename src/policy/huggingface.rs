//! A policy as files that Hugging Face transformers loads.
//!
//! The architecture is that of OPT (Zhang et al., arXiv:2205.01068) as transformers has it: pre-norm blocks, ReLU, learned positions,
//! an untied head. Three things differ in form only: a linear layer is `[out, in]` there, the three attention projections are
//! separate, and positions begin with two rows that are never used.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView, serialize};

use super::{Activation, Checkpoint, CheckpointError, NamedWeight};
use crate::vocabulary::{EOT, NAMES, PAD};

/// Rows of OPT's position table before the first position.
const POSITION_OFFSET: usize = 2;

/// The files of a model folder by name: weights, configuration, tokenizer (one token a word, words apart by spaces).
///
/// # Errors
/// When the policy is of a form that OPT has not (GELU, or a head with a bias), or a parameter is missing.
pub fn huggingface(checkpoint: &Checkpoint) -> Result<Vec<(String, Vec<u8>)>, CheckpointError> {
    let policy = &checkpoint.policy;
    if policy.activation != Activation::Relu || policy.bias {
        return Err(CheckpointError::Format(
            "only policies with ReLU and without a bias in the head can be exported".to_string(),
        ));
    }
    let json =
        |value: &serde_json::Value| serde_json::to_vec_pretty(value).map_err(|error| CheckpointError::Format(error.to_string()));
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        NAMES.iter().enumerate().map(|(token, name)| ((*name).to_string(), token.into())).collect();
    let special = |token: u8| NAMES.get(usize::from(token)).copied().unwrap_or_default();
    let config = serde_json::json!({
        "architectures": ["OPTForCausalLM"],
        "model_type": "opt",
        "vocab_size": policy.vocabulary,
        "max_position_embeddings": policy.context_length,
        "hidden_size": policy.d_model,
        "word_embed_proj_dim": policy.d_model,
        "num_hidden_layers": policy.layers,
        "num_attention_heads": policy.heads,
        "ffn_dim": policy.hidden,
        "activation_function": "relu",
        "do_layer_norm_before": true,
        "enable_bias": true,
        "layer_norm_elementwise_affine": true,
        "tie_word_embeddings": false,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "layerdrop": 0.0,
        "pad_token_id": PAD,
        "bos_token_id": null,
        "eos_token_id": EOT,
        "torch_dtype": "float32",
        "turnwise_experiment": checkpoint.experiment,
    });
    let tokenizer = serde_json::json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": { "type": "WhitespaceSplit" },
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": special(PAD) },
    });
    let tokenizer_config = serde_json::json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": policy.context_length,
        "pad_token": special(PAD),
        "eos_token": special(EOT),
    });
    Ok(vec![
        ("config.json".to_string(), json(&config)?),
        ("model.safetensors".to_string(), weights(checkpoint)?),
        ("tokenizer.json".to_string(), json(&tokenizer)?),
        ("tokenizer_config.json".to_string(), json(&tokenizer_config)?),
    ])
}

/// One tensor on its way out.
struct Out {
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
}

fn weights(checkpoint: &Checkpoint) -> Result<Vec<u8>, CheckpointError> {
    let find = |name: &str| checkpoint.weights.find(name);
    let mut all = Vec::new();
    let mut put = |name: String, shape: Vec<usize>, values: Vec<f32>| all.push(Out { name, shape, values });
    let width = checkpoint.policy.d_model;
    let tokens = find("tokens.weight")?;
    put("model.decoder.embed_tokens.weight".to_string(), tokens.shape.clone(), tokens.values.clone());
    let positions = find("positions.weight")?;
    let mut rows = vec![0.0; POSITION_OFFSET * width];
    rows.extend(&positions.values);
    put("model.decoder.embed_positions.weight".to_string(), vec![rows.len() / width, width], rows);
    for layer in 0..checkpoint.policy.layers {
        let to = |name: &str| format!("model.decoder.layers.{layer}.{name}");
        let from = |name: &str| find(&format!("blocks.{layer}.{name}"));
        for (ours, theirs) in [("attention_norm", "self_attn_layer_norm"), ("hidden_norm", "final_layer_norm")] {
            let (gain, shift) = (from(&format!("{ours}.gamma"))?, from(&format!("{ours}.beta"))?);
            put(to(&format!("{theirs}.weight")), vec![width], gain.values.clone());
            put(to(&format!("{theirs}.bias")), vec![width], shift.values.clone());
        }
        let qkv = from("qkv.weight")?;
        for (part, name) in ["q_proj", "k_proj", "v_proj"].into_iter().enumerate() {
            put(to(&format!("self_attn.{name}.weight")), vec![width, width], transposed(qkv, part * width..(part + 1) * width));
            put(to(&format!("self_attn.{name}.bias")), vec![width], vec![0.0; width]);
        }
        put(to("self_attn.out_proj.weight"), vec![width, width], transposed(from("out.weight")?, 0..width));
        put(to("self_attn.out_proj.bias"), vec![width], vec![0.0; width]);
        for (ours, theirs) in [("up", "fc1"), ("down", "fc2")] {
            let (weight, bias) = (from(&format!("{ours}.weight"))?, from(&format!("{ours}.bias"))?);
            let out = bias.values.len();
            put(to(&format!("{theirs}.weight")), vec![out, weight.values.len() / out.max(1)], transposed(weight, 0..out));
            put(to(&format!("{theirs}.bias")), vec![out], bias.values.clone());
        }
    }
    put("model.decoder.final_layer_norm.weight".to_string(), vec![width], find("norm.gamma")?.values.clone());
    put("model.decoder.final_layer_norm.bias".to_string(), vec![width], find("norm.beta")?.values.clone());
    let vocabulary = checkpoint.policy.vocabulary;
    put("lm_head.weight".to_string(), vec![vocabulary, width], transposed(find("head.weight")?, 0..vocabulary));
    let format = |error: safetensors::SafeTensorError| CheckpointError::Format(error.to_string());
    let bytes: Vec<Vec<u8>> = all.iter().map(|out| out.values.iter().flat_map(|value| value.to_le_bytes()).collect()).collect();
    let views: Result<Vec<_>, _> = all
        .iter()
        .zip(&bytes)
        .map(|(out, bytes)| Ok((out.name.as_str(), TensorView::new(Dtype::F32, out.shape.clone(), bytes).map_err(format)?)))
        .collect();
    serialize(views?, Some(HashMap::from([("format".to_string(), "pt".to_string())]))).map_err(format)
}

/// Some columns of a `[in, out]` matrix as rows, `[columns, in]`.
fn transposed(weight: &NamedWeight, columns: std::ops::Range<usize>) -> Vec<f32> {
    let out = weight.shape.get(1).copied().unwrap_or(1).max(1);
    let column = |column: usize| weight.values.iter().skip(column).step_by(out).copied();
    columns.flat_map(column).collect()
}
