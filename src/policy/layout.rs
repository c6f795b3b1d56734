//! Where the parameters of a policy lie in one flat vector: `Tensor::cat(policy.tensors(), 0)`.

use super::{Activation, Policy};

/// One parameter in the flat vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As in [`crate::policy::NamedWeight`].
    pub name: String,
    /// Index of its first number.
    pub offset: usize,
    /// In row-major order; a linear layer's weight is `[in, out]`.
    pub shape: Vec<usize>,
}

/// The shape of a network and the places of its parameters, as constants of a kernel.
///
/// `blocks` are alike: parameter `p` of block `n` lies at `first_block + n * block_length + block.p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Number of symbols, V (outputs of the head).
    pub vocabulary: usize,
    /// Rows of the position embedding.
    pub context_length: usize,
    /// Width of the residual stream, d.
    pub d_model: usize,
    pub layers: usize,
    pub heads: usize,
    /// Width of the hidden layer of a block.
    pub hidden: usize,
    /// The hidden layer applies the exact GELU, else ReLU.
    pub gelu: bool,
    /// `[V, d]`.
    pub tokens: usize,
    /// `[context_length, d]`.
    pub positions: usize,
    pub first_block: usize,
    pub block_length: usize,
    pub block: BlockLayout,
    /// The last norm's gain and shift, `[d]` each.
    pub norm_gamma: usize,
    pub norm_beta: usize,
    /// `[d, V]`.
    pub head: usize,
    /// `[V]`.
    pub head_bias: Option<usize>,
    /// Length of the flat vector.
    pub length: usize,
}

/// Places of the parameters of a block, from its first number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockLayout {
    /// `[d]`.
    pub attention_norm_gamma: usize,
    pub attention_norm_beta: usize,
    /// `[d, 3 d]`: queries, keys, values, each by head.
    pub qkv: usize,
    /// `[3 d]`.
    pub qkv_bias: Option<usize>,
    /// `[d, d]`.
    pub out: usize,
    /// `[d]`.
    pub out_bias: Option<usize>,
    /// `[d]`.
    pub hidden_norm_gamma: usize,
    pub hidden_norm_beta: usize,
    /// `[d, hidden]`.
    pub up: usize,
    /// `[hidden]`.
    pub up_bias: usize,
    /// `[hidden, d]`.
    pub down: usize,
    /// `[d]`.
    pub down_bias: usize,
}

impl Layout {
    /// The layout of a policy; `None` where it is not as kernels expect it (no block, or other parameters).
    pub fn of(policy: &Policy) -> Option<Layout> {
        let places = places(policy);
        let place = |name: &str| places.iter().find(|place| place.name == name);
        let offset = |name: &str| place(name).map(|place| place.offset);
        let first_block = offset("blocks.0.attention_norm.gamma")?;
        let block = |name: &str| offset(&format!("blocks.0.{name}")).map(|offset| offset - first_block);
        let norm_gamma = offset("norm.gamma")?;
        let block_length = (norm_gamma - first_block) / policy.layers();
        let alike = (0..policy.layers())
            .all(|n| offset(&format!("blocks.{n}.attention_norm.gamma")) == Some(first_block + n * block_length));
        let layout = Layout {
            vocabulary: place("head.weight")?.shape[1],
            context_length: policy.context_length(),
            d_model: policy.d_model(),
            layers: policy.layers(),
            heads: policy.heads(),
            hidden: place("blocks.0.up.weight")?.shape[1],
            gelu: policy.activation() == Activation::Gelu,
            tokens: offset("tokens.weight")?,
            positions: offset("positions.weight")?,
            first_block,
            block_length,
            block: BlockLayout {
                attention_norm_gamma: block("attention_norm.gamma")?,
                attention_norm_beta: block("attention_norm.beta")?,
                qkv: block("qkv.weight")?,
                qkv_bias: block("qkv.bias"),
                out: block("out.weight")?,
                out_bias: block("out.bias"),
                hidden_norm_gamma: block("hidden_norm.gamma")?,
                hidden_norm_beta: block("hidden_norm.beta")?,
                up: block("up.weight")?,
                up_bias: block("up.bias")?,
                down: block("down.weight")?,
                down_bias: block("down.bias")?,
            },
            norm_gamma,
            norm_beta: offset("norm.beta")?,
            head: offset("head.weight")?,
            head_bias: offset("head.bias"),
            length: places.last().map(|place| place.offset + place.shape.iter().product::<usize>())?,
        };
        alike.then_some(layout)
    }
}

/// All parameters in their order.
pub fn places(policy: &Policy) -> Vec<Place> {
    let mut offset = 0;
    let place = |(name, shape): (String, Vec<usize>)| {
        let place = Place { name, offset, shape };
        offset += place.shape.iter().product::<usize>();
        place
    };
    policy.shapes().into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::super::PolicyConfig;
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn blocks_are_alike_and_nothing_overlaps() {
        for (bias, activation) in [(false, Activation::Relu), (true, Activation::Gelu)] {
            let config = PolicyConfig {
                vocabulary: 30,
                context_length: 20,
                d_model: 8,
                layers: 3,
                heads: 2,
                hidden: 24,
                activation,
                bias,
            };
            let policy = config.init(&Device::flex());
            let layout = Layout::of(&policy).expect("a policy of ours has this layout");
            let places = places(&policy);
            for pair in places.windows(2) {
                assert_eq!(pair[0].offset + pair[0].shape.iter().product::<usize>(), pair[1].offset);
            }
            let find = |name: &str| places.iter().find(|place| place.name == name).map(|place| place.offset);
            let third = layout.first_block + 2 * layout.block_length;
            assert_eq!(find("blocks.2.down.bias"), Some(third + layout.block.down_bias));
            assert_eq!(find("blocks.2.qkv.bias"), layout.block.qkv_bias.map(|offset| third + offset));
            assert_eq!((layout.vocabulary, layout.hidden, layout.gelu), (30, 24, bias));
            let weights = crate::policy::Weights::initial(&config, crate::seed::RootSeed(1));
            assert_eq!(layout.length, weights.count());
        }
    }
}
