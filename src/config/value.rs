//! Values of settings at run time, and the words that stand for them.

use std::collections::BTreeMap;

use super::setting::{ChoiceOption, DefaultValue, EnvironmentDeclaration, Kind, Setting};

/// The value of one setting. Whole numbers are numbers too: the declaration knows which is meant.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts", untagged))]
pub enum Value {
    Switch(bool),
    Number(f64),
    Choice(String),
}

impl std::fmt::Display for Value {
    /// The form of links and of the command line: `1` or `0` for a switch, the shortest digits that give the same number back.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Switch(on) => write!(f, "{}", u8::from(*on)),
            Value::Number(x) => f.write_str(&number_text(*x)),
            Value::Choice(word) => f.write_str(word),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl From<DefaultValue> for Value {
    fn from(value: DefaultValue) -> Self {
        match value {
            DefaultValue::Number(x) => Value::Number(x),
            DefaultValue::Integer(x) => Value::Number(f64::from(x)),
            DefaultValue::Switch(on) => Value::Switch(on),
            DefaultValue::Choice(word) => Value::Choice(word.to_owned()),
        }
    }
}

/// The shortest decimal form from which the same number is read back; whole numbers without a decimal point. Never depends on
/// a locale.
pub fn number_text(x: f64) -> String {
    let digits = format!("{x:?}");
    digits.strip_suffix(".0").map_or(digits.clone(), str::to_owned)
}

/// Numbers closer to 0 than this are 0: no setting tells them apart.
const SMALLEST: f64 = 1e-9;

/// The nearest number of [`super::DIGITS`] significant digits, or 0.
pub(super) fn rounded(x: f64) -> f64 {
    if x.abs() < SMALLEST {
        return 0.0;
    }
    // What is written in digits can be read again.
    format!("{x:.*e}", super::DIGITS - 1).parse().unwrap_or(x)
}

impl Setting {
    /// The default of the declaration itself.
    pub fn default_value(&self) -> Value {
        match self.kind {
            Kind::Number { default, .. } => Value::Number(default),
            Kind::Integer { default, .. } | Kind::IntegerChoice { default, .. } => Value::Number(f64::from(default)),
            Kind::Switch { default } => Value::Switch(default),
            Kind::Choice { default, .. } => Value::Choice(default.to_owned()),
        }
    }

    /// The default under an environment, which may replace the declaration's.
    pub fn default_in(&self, environment: &EnvironmentDeclaration) -> Value {
        let replaced = environment.defaults.iter().find(|(name, _)| *name == self.name);
        replaced.map_or_else(|| self.default_value(), |&(_, value)| value.into())
    }

    /// Whether a value is of the setting's kind, within its bounds, and no longer than links hold it.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self.kind, value) {
            (Kind::Number { min, max, .. }, Value::Number(x)) => (min..=max).contains(x) && rounded(*x) == *x,
            (Kind::Integer { min, max, .. }, Value::Number(x)) => {
                x.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(x)
            }
            (Kind::IntegerChoice { options, .. }, Value::Number(x)) => options.iter().any(|&option| f64::from(option) == *x),
            (Kind::Switch { .. }, Value::Switch(_)) => true,
            (Kind::Choice { options, .. }, Value::Choice(word)) => options.iter().any(|option| option.value == word),
            _ => false,
        }
    }
}

/// The environment's own values, by name. Checked configurations hold exactly the names that the environment declares.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// The defaults of an environment's own settings.
    pub fn defaults(environment: &EnvironmentDeclaration) -> Self {
        Parameters(environment.settings.iter().map(|setting| (setting.name.to_owned(), setting.default_value())).collect())
    }

    /// The value of a name, if it has one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Gives a name a value. Bounds are not checked here; see [`super::check`].
    pub fn insert(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A number; 0 when there is none of this name.
    pub fn number(&self, name: &str) -> f64 {
        if let Some(Value::Number(x)) = self.get(name) { *x } else { 0.0 }
    }

    /// A whole number; 0 when there is none of this name.
    pub fn integer(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// A switch; off when there is none of this name.
    pub fn switch(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Switch(true))
    }

    /// A choice; empty when there is none of this name.
    pub fn choice(&self, name: &str) -> &str {
        if let Some(Value::Choice(word)) = self.get(name) { word } else { "" }
    }
}

/// A type that a field of the configuration may have. Values arrive checked; one of another kind leaves the field as it is.
pub(super) trait Field {
    fn value(&self) -> Value;
    fn assign(&mut self, value: &Value);
}

macro_rules! number_field {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn value(&self) -> Value {
                Value::Number(*self as f64)
            }
            fn assign(&mut self, value: &Value) {
                if let Value::Number(x) = value {
                    *self = *x as $type;
                }
            }
        }
    )*};
}
number_field!(f64, usize, u32);

impl Field for bool {
    fn value(&self) -> Value {
        Value::Switch(*self)
    }
    fn assign(&mut self, value: &Value) {
        if let Value::Switch(on) = value {
            *self = *on;
        }
    }
}

/// Declares a choice: the enum, its words and its labels. The first option is the enum's default.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$option_doc:meta])* $option:ident $word:literal [$en:literal, $zh:literal],)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$option_doc])* $option),* }

        impl Default for $name {
            fn default() -> Self {
                [$($name::$option),*][0]
            }
        }

        impl $name {
            /// Words and labels, in order.
            pub const OPTIONS: &'static [ChoiceOption] =
                &[$(ChoiceOption { value: $word, label: super::setting::text($en, $zh) }),*];
        }

        impl Field for $name {
            fn value(&self) -> Value {
                Value::Choice(match self { $($name::$option => $word),* }.to_owned())
            }
            fn assign(&mut self, value: &Value) {
                match value {
                    $(Value::Choice(word) if word == $word => *self = $name::$option,)*
                    _ => {}
                }
            }
        }
    };
}

choice! {
    /// Which reward terms count.
    RewardMode {
        /// The right answer alone.
        Outcome "outcome" ["Outcome", "结果"],
        /// The process terms alone.
        Process "process" ["Process", "过程"],
        /// Both.
        Mixed "mixed" ["Mixed", "混合"],
    }
}

choice! {
    /// For which calls the terms on calls pay: well-formed call, clean result, error result.
    CallPayment {
        /// For every call.
        Every "every" ["Every call", "每次调用"],
        /// For the first of equal calls in an episode.
        Distinct "distinct" ["Each distinct call", "每个不同的调用"],
        /// For the first calls of an episode, each term on its own, up to a number.
        Capped "capped" ["The first calls", "前几次调用"],
    }
}

choice! {
    /// How rewards become advantages.
    CreditMethod {
        /// One advantage for the whole trajectory.
        Grpo "grpo" ["GRPO: whole episode", "GRPO：整条轨迹"],
        /// The same against the mean of the others.
        Rloo "rloo" ["RLOO: whole episode against the others", "RLOO：整条轨迹，与其余轨迹相比"],
        /// Return from the turn on, whitened over the batch.
        ReinforcePp "reinforce_pp" ["REINFORCE++", "REINFORCE++"],
        /// Return less the group's mean, whitened over the batch.
        ReinforcePpBaseline "reinforce_pp_baseline" ["REINFORCE++ with group baseline", "REINFORCE++（组内基线）"],
        /// Sum of the normalised rewards to come.
        Process "process" ["GRPO: process supervision", "GRPO：过程监督"],
        /// Discounted return from the turn on, against the group.
        ReturnToGo "return_to_go" ["Return-to-go per turn", "逐轮剩余回报"],
        /// Outcome plus the reward of the turn.
        MtGrpo "mt_grpo" ["MT-GRPO: outcome + turn", "MT-GRPO：结果 + 本轮"],
        /// Whole trajectory plus the turn among turns in the same state.
        Gigpo "gigpo" ["GiGPO: episode + same state", "GiGPO：整条轨迹 + 相同状态"],
        /// Change of the state's value, read off the group.
        Tree "tree" ["Tree: change of value within the group", "树：组内状态价值的变化"],
        /// Change of the state's value, measured by re-rolls.
        MonteCarlo "monte_carlo" ["Monte-Carlo values (VinePPO)", "蒙特卡洛价值（VinePPO）"],
        /// Change of a critic's value, summed over the turns to come.
        Gae "gae" ["GAE with a critic (PPO)", "GAE 加评论家（PPO）"],
    }
}

choice! {
    /// What advantages are divided by.
    ScaleRewards {
        /// The standard deviation of the group.
        Group "group" ["Group standard deviation", "组内标准差"],
        /// The standard deviation of all groups together.
        Batch "batch" ["Batch standard deviation", "整批标准差"],
        /// Nothing.
        None "none" ["None", "不缩放"],
    }
}

choice! {
    /// What is made of the probability ratio and the advantage.
    PolicyLoss {
        /// The clipped ratio of PPO.
        Clip "clip" ["Clipped ratio (PPO)", "裁剪概率比（PPO）"],
        /// The clipped ratio as a constant weight.
        Cispo "cispo" ["Clipped weight (CISPO)", "裁剪权重（CISPO）"],
        /// A soft gate in place of the clip.
        Sapo "sapo" ["Soft gate (SAPO)", "软门控（SAPO）"],
        /// The geometric mean of clipped ratios.
        Gmpo "gmpo" ["Geometric mean (GMPO)", "几何平均（GMPO）"],
        /// Preference of the best of a group over the worst.
        Dpo "dpo" ["Best against worst (DPO)", "组内最好对最差（DPO）"],
    }
}

choice! {
    /// What a return-to-go is compared with.
    TurnBaseline {
        /// The group at the same turn.
        TurnIndex "turn_index" ["Same turn of the group", "组内同一轮"],
        /// All turns of the group.
        Pooled "pooled" ["All turns of the group", "组内所有轮"],
    }
}

choice! {
    /// What one probability ratio is about.
    RatioLevel {
        /// One token.
        Token "token" ["Token", "词元"],
        /// The whole trajectory.
        Sequence "sequence" ["Trajectory (GSPO)", "整条轨迹（GSPO）"],
        /// The value of the trajectory, the gradient of the token.
        SequenceToken "sequence_token" ["Trajectory, token gradient (GSPO-token)", "整条轨迹、逐词元梯度（GSPO-token）"],
    }
}

choice! {
    /// From token losses to one loss.
    Aggregation {
        /// Over all trained tokens.
        TokenMean "token_mean" ["Token mean", "词元平均"],
        /// Over trajectories, each by its own length.
        SequenceMean "sequence_mean" ["Trajectory mean", "轨迹平均"],
        /// Divided by a constant length.
        Constant "constant" ["Constant length (Dr. GRPO)", "固定长度（Dr. GRPO）"],
        /// Over groups, each by its own tokens.
        GroupMean "group_mean" ["Group mean", "组平均"],
    }
}

choice! {
    /// How the KL divergence to the warm start is estimated.
    KlEstimator {
        /// Low variance, never negative.
        K3 "k3" ["k3", "k3"],
        /// The plain log-ratio.
        K1 "k1" ["k1", "k1"],
        /// Half its square.
        K2 "k2" ["k2", "k2"],
        /// The value of k3, the gradient of k2.
        K3Plus "k3_plus" ["k3, gradient of k2", "k3 取值、k2 梯度"],
    }
}

choice! {
    /// Where the KL divergence acts.
    KlPlacement {
        /// A term of the loss.
        Loss "loss" ["In the loss", "放进损失"],
        /// A cost of every turn.
        Reward "reward" ["In the reward", "放进奖励"],
    }
}

choice! {
    /// What becomes of episodes that a limit cut.
    Truncated {
        /// Trained like any other: no answer, no reward.
        Failure "failure" ["Train as failure", "按失败训练"],
        /// Left out of the loss.
        Mask "mask" ["Leave out of the loss", "不计入损失"],
    }
}

choice! {
    /// What becomes of groups whose episodes all earned the same.
    NoSignalGroups {
        /// They stay in the batch.
        Keep "keep" ["Keep", "保留"],
        /// They are left out of the loss and of its denominator.
        Drop "drop" ["Leave out", "剔除"],
        /// Other questions are sampled in their place.
        Resample "resample" ["Sample others (DAPO)", "另采新题（DAPO）"],
    }
}

choice! {
    /// Which turns of a group count as being in the same state.
    CreditAnchor {
        /// Those with the same tokens before them.
        History "history" ["Same history", "历史完全相同"],
        /// Those that have just seen the same observation.
        Observation "observation" ["Same observation", "观测相同"],
    }
}

choice! {
    /// How the learning rate goes over the run.
    LearningRateSchedule {
        /// It stays.
        Constant "constant" ["Constant", "恒定"],
        /// In a straight line to 0 at the end of the run.
        Linear "linear" ["Linear to 0", "线性降到 0"],
        /// Along half a cosine to 0 at the end of the run.
        Cosine "cosine" ["Cosine to 0", "余弦降到 0"],
    }
}

choice! {
    /// Where the policy starts.
    WarmStart {
        /// From the checkpoint that ships with the page.
        Shipped "shipped" ["Shipped checkpoint", "自带检查点"],
        /// From imitation of the demonstrator, done at the start of the run.
        Live "live" ["Imitate now", "现场模仿"],
        /// From random weights.
        None "none" ["Random weights", "随机权重"],
    }
}
