//! The environment's grammar on the device.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::environment::Grammar;
use crate::vocabulary::{SIZE, Token, TokenSet};

/// The environment's grammar as tensors, so that a whole turn can be sampled under it without the host.
pub(super) struct Automaton {
    /// `[states, V]`, 1 for forbidden tokens.
    illegal: Tensor<2>,
    /// `[states * V]`, the next state.
    next: Tensor<1, Int>,
}

impl Automaton {
    pub fn new(grammar: Grammar, device: &Device) -> Self {
        let states = grammar.legal.len();
        let forbidden = |legal: &TokenSet| (0..SIZE as Token).map(|token| !legal.contains(token)).collect::<Vec<bool>>();
        let illegal: Vec<bool> = grammar.legal.iter().flat_map(forbidden).collect();
        let next: Vec<i32> = grammar.next.iter().flatten().map(|&state| i32::from(state)).collect();
        Automaton {
            illegal: Tensor::<2, Bool>::from_data(TensorData::new(illegal, [states, SIZE]), device).float(),
            next: Tensor::from_data(TensorData::new(next, [states * SIZE]), device),
        }
    }

    pub fn start(&self, batch: usize, device: &Device) -> Tensor<1, Int> {
        Tensor::zeros([batch], device)
    }

    pub fn illegal(&self, state: &Tensor<1, Int>) -> Tensor<2> {
        self.illegal.clone().select(0, state.clone())
    }

    pub fn advance(&self, state: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        self.next.clone().select(0, state.mul_scalar(SIZE as i64) + tokens)
    }
}
