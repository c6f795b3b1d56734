//! Counter-based randomness: every draw is a hash of where it happens, never the next item of a stream.
//!
//! The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Its key is
//! (root seed, purpose) and its counter is (iteration, group, member, position), all 32-bit, so the same number can be
//! drawn on a CPU or in a shader, in any order, and any trajectory can be rolled again from any turn on its own.

/// What a draw is for. Two purposes never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// Initial weights.
    Weights = 1,
    /// The question and the hidden state of a training group (`member` is 0: the group shares them).
    Question = 2,
    /// A token sampled by the policy (`position` is the token's index in the trajectory).
    SampleToken = 3,
    /// What a tool does at random (`position` is the turn).
    Tool = 4,
    /// The held-out questions: like [`Purpose::Question`], but apart from training.
    HeldOutQuestion = 5,
    /// Tokens sampled on the held-out questions.
    HeldOutSampleToken = 6,
    /// Tools used on the held-out questions.
    HeldOutTool = 7,
    /// Questions and choices of the demonstrator.
    Demonstration = 8,
    /// Which demonstrations make up an imitation batch.
    DemonstrationBatch = 9,
    /// Which groups make up a bootstrap sample (`iteration` is the sample).
    Bootstrap = 10,
    /// Continuations that estimate values for credit (`group` is the state, `member` the continuation).
    MonteCarlo = 11,
    /// Continuations that measure true credit, apart from those.
    TrueCredit = 12,
}

/// Ten rounds of Philox4x32.
fn philox(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let (mut key, mut c) = (key, counter);
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
        }
        let first = u64::from(c[0]) * 0xD251_1F53;
        let second = u64::from(c[2]) * 0xCD9E_8D57;
        c = [(second >> 32) as u32 ^ c[1] ^ key[0], second as u32, (first >> 32) as u32 ^ c[3] ^ key[1], first as u32];
    }
    c
}

/// The root of all draws of one experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootSeed(pub u32);

impl RootSeed {
    /// The draws of one trajectory (or one group, with `member` 0) for one purpose.
    pub fn draws(self, purpose: Purpose, iteration: u32, group: u32, member: u32) -> Draws {
        Draws { key: [self.0, purpose as u32], place: [iteration, group, member], position: 0, shift: 0 }
    }
}

/// Numbers for one place: read in order with the `next` methods, or at any position with [`Draws::at`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Draws {
    key: [u32; 2],
    place: [u32; 3],
    position: u32,
    /// Added to every position.
    shift: u32,
}

impl Draws {
    /// The same draws, starting at `position`.
    pub fn from(&self, position: u32) -> Draws {
        Draws { position, ..self.clone() }
    }

    /// The same draws, found `by` positions earlier: what would have been drawn at `position + by` is drawn at `position`.
    pub fn shifted(&self, by: i32) -> Draws {
        Draws { shift: self.shift.wrapping_add_signed(by), ..self.clone() }
    }

    /// 32 random bits at a position, whatever was drawn before.
    pub fn at(&self, position: u32) -> u32 {
        let [iteration, group, member] = self.place;
        philox(self.key, [iteration, group, member, position.wrapping_add(self.shift)])[0]
    }

    /// A number in `[0, 1)` with 24 random bits (exact in `f32`) at a position.
    pub fn unit_at(&self, position: u32) -> f32 {
        (self.at(position) >> 8) as f32 / (1 << 24) as f32
    }

    /// The next 32 random bits.
    pub fn bits(&mut self) -> u32 {
        let bits = self.at(self.position);
        self.position += 1;
        bits
    }

    /// The next number in `[0, 1)`.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / (1 << 24) as f32
    }

    /// The next integer in `0..bound`, by multiplication of the high bits (bias below `bound / 2^32`). `bound` 0 gives 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.bits()) * u64::from(bound)) >> 32) as u32
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        f64::from(self.unit()) < p
    }

    /// An index drawn in proportion to `weights` (non-negative, at least one positive).
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = f64::from(self.unit()) * weights.iter().sum::<f64>();
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0)
    }

    /// A uniformly random order of `0..N` (Fisher-Yates).
    pub fn permutation<const N: usize>(&mut self) -> [u8; N] {
        let mut order = std::array::from_fn(|index| index as u8);
        for last in (1..N).rev() {
            order.swap(last, self.below(last as u32 + 1) as usize);
        }
        order
    }

    /// A standard normal number (Box and Muller 1958), from two draws.
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - f64::from(self.unit())).ln()).sqrt();
        (radius * (2.0 * std::f64::consts::PI * f64::from(self.unit())).cos()) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_known_answers() {
        // Known-answer vectors of the Random123 distribution (kat_vectors, philox4x32 10).
        assert_eq!(philox([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 2], [u32::MAX; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn shifted_draws_are_the_same_elsewhere() {
        let draws = RootSeed(7).draws(Purpose::SampleToken, 3, 2, 1);
        assert_eq!(draws.shifted(5).at(2), draws.at(7));
        assert_eq!(draws.shifted(-2).at(7), draws.at(5));
        assert_eq!(draws.shifted(256).from(4).bits(), draws.at(260));
    }

    #[test]
    fn a_draw_depends_on_its_place_and_not_on_what_was_drawn_before() {
        let root = RootSeed(7);
        let mut in_order = root.draws(Purpose::SampleToken, 3, 2, 1);
        let third = (in_order.bits(), in_order.bits(), in_order.bits()).2;
        assert_eq!(third, root.draws(Purpose::SampleToken, 3, 2, 1).at(2));
        assert_ne!(third, root.draws(Purpose::Tool, 3, 2, 1).at(2));
        assert_ne!(third, root.draws(Purpose::SampleToken, 3, 2, 0).at(2));
    }

    #[test]
    fn frequencies_follow_the_weights() {
        let mut draws = RootSeed(1).draws(Purpose::Question, 0, 0, 0);
        let mut counts = [0; 3];
        (0..30_000).for_each(|_| counts[draws.weighted(&[0.25, 0.30, 0.45])] += 1);
        for (count, share) in counts.iter().zip([0.25, 0.30, 0.45]) {
            assert!((f64::from(*count) / 30_000.0 - share).abs() < 0.01, "{counts:?}");
        }
        let mean = (0..30_000).map(|_| f64::from(draws.normal())).sum::<f64>() / 30_000.0;
        assert!(mean.abs() < 0.02, "{mean}");
    }
}
