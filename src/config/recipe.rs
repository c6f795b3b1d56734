//! Published recipes: each sets the individual choices of credit and objective to those of its paper, and nothing else. The
//! task, the rewards, the discount, the sizes and the learning rate stay as they are.

use super::experiment::{ExperimentConfig, SETTINGS};
use super::setting::{DefaultValue, Registry, Text, text};
use super::value::Value;

/// A published recipe.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Recipe {
    /// The word on the command line.
    pub name: &'static str,
    /// What the page calls it.
    pub label: Text,
    /// The paper.
    pub cite: &'static str,
    /// What it is, in a sentence, and what of it has no place here.
    pub help: Text,
    /// Its choices. Settings of [`GOVERNED`] that it leaves out take their defaults.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub choices: &'static [(&'static str, DefaultValue)],
}

/// The settings that a recipe decides.
pub static GOVERNED: &[&str] = &[
    "credit_method",
    "scale_rewards",
    "turn_baseline",
    "credit_anchor",
    "step_weight",
    "turn_coefficient",
    "gae_lambda",
    "monte_carlo_samples",
    "policy_loss",
    "ratio_level",
    "epsilon",
    "epsilon_high",
    "dual_clip",
    "aggregation",
    "beta",
    "kl_estimator",
    "kl_placement",
    "kl_times_ratio",
    "truncated",
    "no_signal_groups",
    "dpo_beta",
    "inner_epochs",
    "value_clip",
];

const fn choice(name: &'static str, word: &'static str) -> (&'static str, DefaultValue) {
    (name, DefaultValue::Choice(word))
}

const fn number(name: &'static str, value: f64) -> (&'static str, DefaultValue) {
    (name, DefaultValue::Number(value))
}

/// Every recipe, in the order of the page.
pub static RECIPES: &[Recipe] = &[
    Recipe {
        name: "grpo",
        label: text("GRPO", "GRPO"),
        cite: "DeepSeekMath, arXiv:2402.03300",
        help: text(
            "Return of the whole episode, standardised within the group; mean over episodes of their token mean; KL to the start \
             in the loss (k3, 0.04).",
            "整条轨迹的回报在组内标准化；先在轨迹内平均、再对轨迹平均；与起点的 KL 放进损失（k3，0.04）。",
        ),
        choices: &[choice("aggregation", "sequence_mean"), number("beta", 0.04)],
    },
    Recipe {
        name: "dr_grpo",
        label: text("Dr. GRPO", "Dr. GRPO"),
        cite: "arXiv:2503.20783",
        help: text(
            "GRPO without its two biases: no division by the group's deviation, none by an episode's own length; no KL.",
            "去掉 GRPO 的两处偏差：不除以组内标准差，也不除以轨迹自身长度；不用 KL。",
        ),
        choices: &[choice("scale_rewards", "none"), choice("aggregation", "constant")],
    },
    Recipe {
        name: "dapo",
        label: text("DAPO", "DAPO"),
        cite: "arXiv:2503.14476",
        help: text(
            "Clip-higher (0.28), token mean, dynamic sampling of groups with signal, episodes cut by a limit left out; no KL. Its \
             soft punishment of length is left out.",
            "上裁剪放宽到 0.28、词元平均、动态采样有信号的组、被截断的轨迹不计入损失；不用 KL。未包含对长度的软惩罚。",
        ),
        choices: &[number("epsilon_high", 0.28), choice("no_signal_groups", "resample"), choice("truncated", "mask")],
    },
    Recipe {
        name: "rloo",
        label: text("RLOO", "RLOO"),
        cite: "arXiv:2402.14740",
        help: text(
            "Return less the mean of the others in the group, not standardised; the episode is one action, so its tokens are summed; \
             KL in the reward (0.05, TRL's value).",
            "回报减去组内其余轨迹的平均，不做标准化；整条轨迹视作一个动作，词元求和；KL 放进奖励（0.05，TRL 的取值）。",
        ),
        choices: &[
            choice("credit_method", "rloo"),
            choice("scale_rewards", "none"),
            choice("aggregation", "constant"),
            number("beta", 0.05),
            choice("kl_placement", "reward"),
        ],
    },
    Recipe {
        name: "gspo",
        label: text("GSPO", "GSPO"),
        cite: "arXiv:2507.18071",
        help: text(
            "GRPO's advantage with one probability ratio per episode, clipped very tightly (3e-4 below, 4e-4 above).",
            "沿用 GRPO 的优势，但每条轨迹只有一个概率比，裁剪极窄（下 3e-4，上 4e-4）。",
        ),
        choices: &[
            choice("ratio_level", "sequence"),
            number("epsilon", 3e-4),
            number("epsilon_high", 4e-4),
            choice("aggregation", "sequence_mean"),
        ],
    },
    Recipe {
        name: "gigpo",
        label: text("GiGPO", "GiGPO"),
        cite: "arXiv:2505.10978",
        help: text(
            "The episode's advantage plus, with equal weight, that of each turn among the group's turns which saw the same \
             observation; not divided by a deviation.",
            "轨迹优势加上（等权）每一轮在组内相同观测的各轮之间的优势；不除以标准差。",
        ),
        choices: &[choice("credit_method", "gigpo"), choice("credit_anchor", "observation"), choice("scale_rewards", "none")],
    },
    Recipe {
        name: "mt_grpo",
        label: text("MT-GRPO", "MT-GRPO"),
        cite: "arXiv:2505.11821",
        help: text(
            "The standardised outcome plus the standardised reward of the turn. It needs rewards on the way: choose process terms in \
             mixed mode, or it equals GRPO.",
            "标准化的结果优势加上标准化的本轮奖励。它需要过程奖励：请用混合模式并打开过程项，否则等同于 GRPO。",
        ),
        choices: &[choice("credit_method", "mt_grpo")],
    },
    Recipe {
        name: "vineppo",
        label: text("VinePPO", "VinePPO"),
        cite: "arXiv:2410.01679",
        help: text(
            "The value of every state is measured with nine continuations in place of a critic; a turn's advantage is the change of \
             value that it made.",
            "不用评论家，而用九条续写来测每个状态的价值；一轮的优势就是它带来的价值变化。",
        ),
        choices: &[choice("credit_method", "monte_carlo")],
    },
    Recipe {
        name: "ppo",
        label: text("PPO", "PPO"),
        cite: "arXiv:1707.06347; for language models arXiv:2203.02155",
        help: text(
            "A critic learns the value of every turn; generalised advantages, whitened over the batch; four passes per step; KL in \
             the reward (0.02).",
            "评论家学习每一轮的价值；广义优势估计并在整批内白化；每步训练四遍；KL 放进奖励（0.02）。",
        ),
        choices: &[
            choice("credit_method", "gae"),
            ("inner_epochs", DefaultValue::Integer(4)),
            number("beta", 0.02),
            choice("kl_placement", "reward"),
        ],
    },
    Recipe {
        name: "dpo",
        label: text("DPO", "DPO"),
        cite: "arXiv:2305.18290",
        help: text(
            "No advantage at all: the best episode of each group is preferred to the worst, relative to the start. On fresh episodes \
             in every step, where the paper has a fixed data set.",
            "完全不用优势：相对起点策略，让每组最好的轨迹胜过最差的。论文用固定数据集，这里每步都用新采的轨迹。",
        ),
        choices: &[choice("policy_loss", "dpo"), number("dpo_beta", 0.1)],
    },
];

/// The configuration with a recipe's choices; `None` for an unknown name.
pub fn with_recipe(config: &ExperimentConfig, name: &str, registry: &Registry) -> Option<ExperimentConfig> {
    let recipe = RECIPES.iter().find(|recipe| recipe.name == name)?;
    let mut changed = config.clone();
    for (name, value) in governed(config, recipe, registry) {
        changed.assign(name, &value);
    }
    Some(changed)
}

/// The recipe whose choices a configuration has, if it has those of one.
pub fn recipe_of(config: &ExperimentConfig, registry: &Registry) -> Option<&'static str> {
    let has = |recipe: &&Recipe| {
        governed(config, recipe, registry).into_iter().all(|(name, value)| config.value(name).is_some_and(|own| own == value))
    };
    RECIPES.iter().find(has).map(|recipe| recipe.name)
}

/// What a recipe sets, by setting.
fn governed(config: &ExperimentConfig, recipe: &Recipe, registry: &Registry) -> Vec<(&'static str, Value)> {
    let defaults = ExperimentConfig::defaults(&config.environment, registry);
    let declared = SETTINGS.iter().filter(|setting| GOVERNED.contains(&setting.name));
    declared
        .filter_map(|setting| {
            let chosen = recipe.choices.iter().find(|(name, _)| *name == setting.name).map(|&(_, value)| Value::from(value));
            Some((setting.name, chosen.or_else(|| defaults.value(setting.name))?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::REGISTRY;

    #[test]
    fn recipes_set_declared_settings_within_their_bounds() {
        for name in GOVERNED {
            assert!(SETTINGS.iter().any(|setting| setting.name == *name), "{name}");
        }
        for recipe in RECIPES {
            for &(name, value) in recipe.choices {
                assert!(GOVERNED.contains(&name), "{}: {name} is not governed", recipe.name);
                let setting = SETTINGS.iter().find(|setting| setting.name == name).expect("declared");
                assert!(setting.accepts(&value.into()), "{}: {name}", recipe.name);
            }
        }
    }

    #[test]
    fn a_recipe_is_recognised_and_replaces_another() {
        for environment in REGISTRY {
            let base = ExperimentConfig { gamma: 0.5, seed: 9, ..ExperimentConfig::defaults(environment.name, REGISTRY) };
            assert_eq!(recipe_of(&base, REGISTRY), None, "the defaults are no recipe");
            for first in RECIPES {
                let one = with_recipe(&base, first.name, REGISTRY).expect("known");
                assert_eq!(recipe_of(&one, REGISTRY), Some(first.name));
                assert_eq!((one.gamma, one.seed, one.learning_rate), (0.5, 9, base.learning_rate));
                for second in RECIPES {
                    assert_eq!(with_recipe(&one, second.name, REGISTRY), with_recipe(&base, second.name, REGISTRY));
                }
            }
        }
        assert_eq!(with_recipe(&ExperimentConfig::default(), "none", REGISTRY), None);
    }
}
