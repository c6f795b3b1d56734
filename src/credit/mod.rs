//! Credit assignment: from rewards per turn to one advantage per turn, with the numbers it was made of.
//!
//! Pure functions of plain data: no tensors, no policy, no hidden randomness. One file per method; a new method is that file, its word
//! in [`CreditMethod`] and one line in `registry!`.
//!
//! What holds for all of them: there is one discount, `gamma` per turn, in every return of the map (at `gamma = 1` the formulas
//! are those of papers that have no discount), and tool tokens never consume it. Peers are members of the same group. Where all
//! peers are equal the advantage is exactly 0, and where there is no peer it is 0 and the map says so.

mod accuracy;
mod baselines;
mod compare;
mod evidence;
mod gae;
mod gigpo;
mod grpo;
mod map;
mod monte_carlo;
mod mt_grpo;
mod pairs;
mod process;
mod provenance;
mod reinforce_plus_plus;
mod reinforce_plus_plus_baseline;
mod return_to_go;
mod rloo;
#[cfg(test)]
pub(crate) mod tests;
mod tokens;
mod tree;
mod truth;

use crate::config::{CreditMethod, ExperimentConfig};

pub use accuracy::{Accuracy, Agreement, Sampled, TurnSelection, accuracy, sampled};
pub use baselines::{
    best_of_group_advantages, centred_then_divided_advantages, decoupled_advantages, length_weighted_advantages,
    process_and_outcome_returns, relative_advantages,
};
pub use compare::{Comparison, Convention, EpsilonOn, Lone, Scaling, Spread, Whitening, compare, compare_weighted};
pub use evidence::Evidence;
pub use gae::generalised_advantages;
pub use gigpo::{GigpoAdvantages, gigpo_advantages};
pub use grpo::outcome_advantages;
pub use map::{CreditMap, Part, PartKind};
pub use monte_carlo::{fill_missing_values, temporal_differences};
pub use mt_grpo::{SingleTurn, mt_grpo_advantages};
pub use pairs::best_and_worst;
pub use process::{normalised_rewards, sums_to_come};
pub use provenance::{CreditChain, DiscountedReward, PartProvenance, credit_chain};
pub use return_to_go::{discounted_returns, pooled_advantages, turn_advantages};
pub use rloo::leave_one_out;
pub use tokens::{Untrained, bi_level_advantages, token_advantages, token_returns};
pub use truth::{Prefixes, ReRolls, TrueCredit};

use map::Parts;

/// One method: how it makes the parts of every advantage, and what it needs.
struct Method {
    parts: fn(&Inputs) -> Parts,
    whitened: Whitened,
    /// It compares values of states, which have to be given.
    needs_values: bool,
}

/// Whether advantages are centred and divided over the trained tokens of the batch at the end.
#[derive(Clone, Copy, PartialEq)]
enum Whitened {
    Never,
    /// All of them.
    Always,
    /// Those of groups in which the parts are not all 0: whitening moves the mean, and a group of equals must not be moved.
    GroupsWithSignal,
}

/// What a method works on.
struct Inputs<'a> {
    evidence: &'a Evidence,
    config: &'a ExperimentConfig,
    /// `[trajectory][turn]`, discounted.
    returns_to_go: &'a [Vec<f64>],
    /// The discounted return of each trajectory; 0 without turns.
    returns: &'a [f64],
    convention: Convention,
    /// One entry for each turn if [`Method::needs_values`], otherwise empty.
    values: &'a [Vec<f64>],
}

/// Makes the table of methods from one line per method.
macro_rules! registry {
    ($($method:ident => $module:ident),+ $(,)?) => {
        /// Every method, in the order in which the page lists them.
        pub const METHODS: &[CreditMethod] = &[$(CreditMethod::$method),+];

        fn method(of: CreditMethod) -> &'static Method {
            match of {
                $(CreditMethod::$method => &$module::METHOD,)+
            }
        }
    };
}

registry! {
    Grpo => grpo,
    Rloo => rloo,
    ReinforcePp => reinforce_plus_plus,
    ReinforcePpBaseline => reinforce_plus_plus_baseline,
    Process => process,
    ReturnToGo => return_to_go,
    MtGrpo => mt_grpo,
    Gigpo => gigpo,
    Tree => tree,
    MonteCarlo => monte_carlo,
    Gae => gae,
}

/// Whether a method compares values of states, which [`Evidence::values`] then has to hold.
pub fn needs_values(of: CreditMethod) -> bool {
    method(of).needs_values
}

/// Assigns credit to the turns of a batch. A method that needs state values and has none gives zeros and says so.
pub fn assign(evidence: &Evidence, config: &ExperimentConfig) -> CreditMap {
    let method = method(config.credit_method);
    let returns_to_go: Vec<Vec<f64>> = evidence.rewards.iter().map(|rewards| discounted_returns(rewards, config.gamma)).collect();
    let values = match evidence.complete_values() {
        Some(values) if method.needs_values => values,
        None if method.needs_values => return CreditMap::without_values(evidence, returns_to_go),
        _ => &[],
    };
    let returns: Vec<f64> = returns_to_go.iter().map(|returns| returns.first().copied().unwrap_or(0.0)).collect();
    let convention = Convention::of(config);
    let inputs = Inputs { evidence, config, returns_to_go: &returns_to_go, returns: &returns, convention, values };
    let parts = (method.parts)(&inputs);
    CreditMap::of(evidence, returns_to_go, parts, method.whitened)
}

/// How likely a group of `group` trajectories teaches nothing, when each succeeds with probability `p` on its own and success is
/// all that is rewarded: `p^G + (1 - p)^G`, the chance that all succeed or all fail. `p` is clamped to `0..=1`; a group of
/// one (or none) never teaches anything and gives 1.
pub fn uninformative_probability(p: f64, group: usize) -> f64 {
    let (p, group) = (p.clamp(0.0, 1.0), i32::try_from(group.max(1)).unwrap_or(i32::MAX));
    p.powi(group) + (1.0 - p).powi(group)
}

/// One number per turn, as one list, with a key for each: what [`compare`] takes. Turns come trajectory by trajectory.
fn per_turn<K>(rows: &[Vec<f64>], key: impl Fn(usize, usize) -> K) -> (Vec<K>, Vec<f64>) {
    let place = |(index, turns): (usize, &Vec<f64>)| (0..turns.len()).map(move |turn| (index, turn)).collect::<Vec<_>>();
    let keys = rows.iter().enumerate().flat_map(place).map(|(index, turn)| key(index, turn)).collect();
    (keys, rows.concat())
}

/// Takes a list of numbers per turn apart again, into rows as long as those of `like`.
fn rows_like<A, B: Clone>(like: &[Vec<A>], list: &[B]) -> Vec<Vec<B>> {
    let mut start = 0;
    let row = |turns: &Vec<A>| {
        start += turns.len();
        list[start - turns.len()..start].to_vec()
    };
    like.iter().map(row).collect()
}

/// One part for every turn, from rows of the same shape.
fn parts_of<A>(like: &[Vec<A>], part: impl Fn(usize, usize) -> Part) -> Parts {
    let row = |(index, turns): (usize, &Vec<A>)| (0..turns.len()).map(|turn| vec![part(index, turn)]).collect();
    like.iter().enumerate().map(row).collect()
}
