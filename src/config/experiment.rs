//! The one table of common settings. The configuration's fields, the form, links, the command line and the documentation all
//! come from it: a new setting is one entry here.
//!
//! An entry reads: field, type, key in links, section, place in the form (`main`, or `more` for the folded part), kind with
//! default and bounds, label, unit, help.

use super::setting::{ChoiceOption, EnvironmentDeclaration, Kind, Registry, Scale, Section, Setting, text};
use super::value::{
    Aggregation, CallPayment, CreditAnchor, CreditMethod, Field, KlEstimator, KlPlacement, LearningRateSchedule, NoSignalGroups,
    Parameters, PolicyLoss, RatioLevel, RewardMode, ScaleRewards, Truncated, TurnBaseline, Value, WarmStart,
};

const fn number(default: f64, min: f64, max: f64, step: f64) -> Kind {
    Kind::Number { default, min, max, step, scale: Scale::Linear }
}

/// A number on a logarithmic scale, twenty steps to a decade.
const fn logarithmic(default: f64, min: f64, max: f64) -> Kind {
    Kind::Number { default, min, max, step: 0.05, scale: Scale::Log }
}

const fn integer(default: u32, min: u32, max: u32) -> Kind {
    Kind::Integer { default, min, max }
}

const fn one_of(default: u32, options: &'static [u32]) -> Kind {
    Kind::IntegerChoice { default, options }
}

const fn switch(default: bool) -> Kind {
    Kind::Switch { default }
}

const fn choice(default: &'static str, options: &'static [ChoiceOption]) -> Kind {
    Kind::Choice { default, options }
}

macro_rules! experiment {
    ($($name:ident: $type:ty, $key:literal, $section:ident, $place:ident, $kind:expr,
        [$en:literal, $zh:literal], [$unit_en:literal, $unit_zh:literal],
        $help_en:literal, $help_zh:literal;)*) => {
        /// Everything that decides what a run does, apart from the device. Two equal configurations give the same episodes.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
        pub struct ExperimentConfig {
            /// What a person calls it: free text, see [`super::TITLE_LIMIT`]. Has no effect on the run.
            pub title: String,
            /// Name of the environment.
            pub environment: String,
            $(#[doc = $help_en] pub $name: $type,)*
            /// The environment's own settings.
            pub parameters: Parameters,
        }

        /// The common settings, in the order of the form.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            section: Section::$section,
            kind: $kind,
            label: text($en, $zh),
            unit: text($unit_en, $unit_zh),
            help: text($help_en, $help_zh),
            advanced: experiment!(@$place),
        },)*];

        /// What links call the common settings, in the same order. A key, once published, keeps its meaning.
        pub(super) static LINK_KEYS: &[&str] = &[$($key,)*];

        impl ExperimentConfig {
            /// The value of a common setting or of a parameter of the environment.
            pub fn value(&self, name: &str) -> Option<Value> {
                match name {
                    $(stringify!($name) => Some(self.$name.value()),)*
                    _ => self.parameters.get(name).cloned(),
                }
            }

            /// Gives a common setting, or else a parameter, a value of the right kind that has been checked.
            pub(super) fn assign(&mut self, name: &str, value: &Value) {
                match name {
                    $(stringify!($name) => self.$name.assign(value),)*
                    _ => self.parameters.insert(name, value.clone()),
                }
            }
        }

        impl Default for ExperimentConfig {
            /// The common defaults under the search environment, whose own parameters are left out: for code that has no
            /// registry at hand. See [`ExperimentConfig::defaults`].
            fn default() -> Self {
                let mut config = ExperimentConfig {
                    title: String::new(),
                    environment: "search".to_owned(),
                    $($name: Default::default(),)*
                    parameters: Parameters::default(),
                };
                SETTINGS.iter().for_each(|setting| config.assign(setting.name, &setting.default_value()));
                config
            }
        }
    };
    (@main) => { false };
    (@more) => { true };
}

impl ExperimentConfig {
    /// The defaults of an environment: its own parameters, and the common settings with its replacements. An unknown name
    /// falls back on the first entry of the registry.
    pub fn defaults(environment: &str, registry: &Registry) -> Self {
        let mut config = ExperimentConfig::default();
        let found = find_environment(environment, registry).or_else(|| registry.first().copied());
        if let Some(environment) = found {
            config.environment = environment.name.to_owned();
            config.parameters = Parameters::defaults(environment);
            SETTINGS.iter().for_each(|setting| config.assign(setting.name, &setting.default_in(environment)));
        }
        config
    }
}

/// The declaration of an environment.
pub(super) fn find_environment(name: &str, registry: &Registry) -> Option<&'static EnvironmentDeclaration> {
    registry.iter().copied().find(|environment| environment.name == name)
}

experiment! {
    seed: u32, "seed", Run, more, integer(0, 0, u32::MAX), ["Seed", "随机种子"], ["", ""],
        "Root of every random draw: the same seed and settings give the same episodes, another seed shows how much of a result \
         is luck.",
        "一切随机抽样的源头：种子和设置相同，轨迹就相同；换一个种子，就能看出结果里有多少是运气。";
    iterations: usize, "iters", Run, more, integer(60, 1, 100_000), ["Training steps", "训练步数"], ["steps", "步"],
        "How many training steps the run lasts; more steps mean more updates and a longer wait.",
        "整个运行持续多少个训练步；步数越多，更新越多，等待也越久。";
    held_out: usize, "held", Run, more, integer(128, 0, 1024), ["Held-out questions", "留出题数"], ["questions", "题"],
        "Questions kept apart from training and answered at every step to measure success; more of them give a steadier curve \
         and slower steps, 0 turns the measurement off.",
        "不参与训练、每一步都用来测成功率的题目；题越多曲线越稳，每步也越慢，设为 0 则不测。";

    reward_mode: RewardMode, "reward", Reward, main, choice("outcome", RewardMode::OPTIONS),
        ["Reward mode", "奖励模式"], ["", ""],
        "What is paid: the outcome alone (right answer, luck), the way there alone (process), or both (mixed).",
        "奖励什么：只看结果（答案正确、运气）、只看过程，或两者相加（混合）。";
    outcome_weight: f64, "w_out", Reward, main, number(1.0, -2.0, 2.0, 0.05),
        ["Right answer", "答案正确"], ["per right answer", "每次答对"],
        "Paid at the turn that gives the right answer (in some tasks: for every right click), in outcome and mixed mode; turned \
         up, success counts more against the process terms.",
        "给出正确答案的那一轮（有些任务是每次点对）所得的奖励，用于结果和混合模式；调高后，成功相对于过程奖励更重要。";
    luck_weight: f64, "w_luck", Reward, main, number(0.0, -2.0, 2.0, 0.05), ["Luck", "运气"], ["per win", "每次中奖"],
        "Paid at turns that the task pays by chance whatever the policy does, in outcome and mixed mode; turned up, luck drowns \
         what the decisions earned.",
        "任务全凭运气付奖励的那些轮所得的奖励，与策略的动作无关，用于结果和混合模式；调高后，决定本身的得失会被运气淹没。";
    valid_call_weight: f64, "w_call", Reward, main, number(0.1, -2.0, 2.0, 0.05),
        ["Well-formed call", "合法调用"], ["per call", "每次调用"],
        "Paid for every well-formed tool call, in process and mixed mode; turned up, it pays calling for its own sake, and the \
         policy may call without need.",
        "每次格式正确的工具调用所得的奖励，用于过程和混合模式；调高等于为调用而付钱，策略可能没必要也去调用。";
    format_weight: f64, "w_form", Reward, main, number(0.05, -2.0, 2.0, 0.05),
        ["Answer in form", "答案格式正确"], ["per episode", "每条轨迹"],
        "Paid for an answer of the right form, correct or not, in process and mixed mode; turned up, it teaches to answer in \
         form and in haste.",
        "答案格式正确就得的奖励，不论对错，用于过程和混合模式；调高会让策略急于交出一个合格式的答案。";
    malformed_weight: f64, "w_bad", Reward, main, number(0.0, -2.0, 2.0, 0.05),
        ["Malformed turn", "格式错误"], ["per turn", "每轮"],
        "Paid for every turn that is neither a well-formed call nor an answer, in process and mixed mode; negative values \
         punish, and the format is learned sooner.",
        "既不是合法调用也不是作答的轮所得的奖励，用于过程和混合模式；负值即惩罚，格式会学得更快。";
    repeated_call_weight: f64, "w_rep", Reward, main, number(0.0, -2.0, 2.0, 0.05),
        ["Repeated call", "重复调用"], ["per call", "每次调用"],
        "Paid for a call that the episode has made before, in process and mixed mode; negative values discourage asking the \
         same thing twice.",
        "同一条轨迹里重复做过的调用所得的奖励，用于过程和混合模式；负值会让策略少问重复的问题。";
    turn_weight: f64, "w_turn", Reward, main, number(0.0, -2.0, 2.0, 0.05), ["Every turn", "每一轮"], ["per turn", "每轮"],
        "Paid for every turn, in process and mixed mode; negative values are a cost of time, and with scaled advantages even a \
         small cost can teach the policy never to call.",
        "每一轮都得的奖励，用于过程和混合模式；负值是时间成本，而优势又做了缩放时，很小的成本也可能教策略干脆不调用。";

    step_right_weight: f64, "w_step", Reward, main, number(0.0, -2.0, 2.0, 0.05),
        ["Judged step", "步骤正确"], ["per step", "每步"],
        "Paid for every call that the task judges to be a step towards the solution, in process and mixed mode; turned up, the \
         way is taught as well as the goal, by a judge that a real task seldom has.",
        "任务判定为迈向解答的每次调用所得的奖励，用于过程和混合模式；调高后，除目标外还直接教路径，但真实任务里很少有这样的裁判。";
    clean_result_weight: f64, "w_clean", Reward, main, number(0.0, -2.0, 2.0, 0.05),
        ["Clean result", "结果无报错"], ["per call", "每次调用"],
        "Paid for every call that gave no error, in process and mixed mode; turned up, it pays what looks good, true or not, and \
         the policy may settle for it.",
        "没有报错的调用所得的奖励，用于过程和混合模式；调高等于奖励“看上去不错”，不论真假，策略可能就此止步。";
    error_result_weight: f64, "w_err", Reward, main, number(0.0, -2.0, 2.0, 0.05),
        ["Error result", "结果报错"], ["per call", "每次调用"],
        "Paid for every call that gave an error, in process and mixed mode; negative values punish, and the policy may shun \
         errors that would have told it what to do.",
        "报错的调用所得的奖励，用于过程和混合模式；负值即惩罚，策略可能因此回避那些本可指路的报错。";
    new_page_weight: f64, "w_page", Reward, main, number(0.0, -2.0, 2.0, 0.05), ["New page", "新页面"], ["per page", "每页"],
        "Paid for every page, or goal, that the episode reaches for the first time, in process and mixed mode; turned up, coming \
         closer counts even where the goal is never reached.",
        "轨迹首次到达的每个页面（含目标）所得的奖励，用于过程和混合模式；调高后，即使到不了目标，走近一些也算数。";
    call_payment: CallPayment, "pay", Reward, more, choice("every", CallPayment::OPTIONS),
        ["Calls that are paid", "哪些调用计奖励"], ["", ""],
        "For which calls the terms on calls (well-formed call, clean result, error result) pay: all of them, each distinct one \
         once, or only the first ones of an episode, which takes the point out of calling for its own sake.",
        "与调用有关的奖励项（合法调用、结果无报错、结果报错）对哪些调用生效：每一次、每个不同的调用只算一次，或只算一条轨迹的前几次；后两者让“为调用而调用”无利可图。";
    call_cap: usize, "cap", Reward, more, integer(2, 1, 8), ["Calls paid at most", "最多计奖励的调用数"], ["calls", "次"],
        "How many calls of an episode each of the terms on calls pays for when only the first ones are paid; turned up, more \
         calls are worth making.",
        "只算前几次调用时，与调用有关的每个奖励项在一条轨迹里最多计几次；调高后，多调用几次更划算。";

    gamma: f64, "gamma", Credit, main, number(0.95, 0.0, 1.0, 0.01), ["Discount γ", "折扣 γ"], ["per turn", "每轮"],
        "What a reward is still worth one turn earlier; lower values favour short episodes, and at 1 the length does not matter.",
        "往前一轮，奖励还剩多少价值；越低越偏爱短轨迹，设为 1 则与长短无关。";
    credit_method: CreditMethod, "credit", Credit, main, choice("grpo", CreditMethod::OPTIONS),
        ["Credit method", "信用分配方法"], ["", ""],
        "How rewards become the weight of a turn: one number for the whole episode (GRPO, RLOO), what came after the turn \
         (return-to-go, process supervision, REINFORCE++), or how the turn changed the prospects (GiGPO, tree, Monte-Carlo, GAE).",
        "奖励如何变成每一轮的权重：整条轨迹共用一个数（GRPO、RLOO），只看这一轮之后得到的（剩余回报、过程监督、REINFORCE++），或者看这一轮使前景\
         变好还是变坏（GiGPO、树、蒙特卡洛、GAE）。";
    scale_rewards: ScaleRewards, "std", Credit, more, choice("group", ScaleRewards::OPTIONS),
        ["Scaling of advantages", "优势缩放"], ["", ""],
        "What advantages are divided by: (x - mean) / (std + 1e-4) with the sample deviation of the group, where groups weigh about \
         the same, or of the batch, or nothing (Dr.GRPO); for tree and Monte-Carlo the root mean square stands for std, RLOO is \
         never divided, REINFORCE++ and GAE are whitened over all trained tokens.",
        "优势除以什么：(x − 均值) / (标准差 + 1e-4)，取组内样本标准差则各组分量相近，也可取整批的标准差，或者不除（Dr.GRPO）；树和蒙特卡洛以均方根代替\
         标准差，RLOO 从不除，REINFORCE++ 和 GAE 总是在整批受训词元上做白化。";
    turn_baseline: TurnBaseline, "tb", Credit, more, choice("turn_index", TurnBaseline::OPTIONS),
        ["Baseline of return-to-go", "剩余回报的基线"], ["", ""],
        "What a return-to-go is compared with: the mean over the group's episodes that reached the same turn, or over all turns of \
         the group, which with a discount favours late turns whatever they did.",
        "剩余回报与什么相比：组内走到同一轮的各条轨迹的均值，或者组内所有轮的均值；后者在有折扣时偏向靠后的轮，不管它们做了什么。";
    credit_anchor: CreditAnchor, "anc", Credit, more, choice("history", CreditAnchor::OPTIONS),
        ["Same state (GiGPO)", "相同状态（GiGPO）"], ["", ""],
        "Which turns of a group GiGPO compares with each other: those with exactly the same tokens before them, or those that have \
         just seen the same observation, which are more but may know different things.",
        "GiGPO 把组内哪些轮放在一起比较：之前词元完全相同的轮，或者刚看到同一观测的轮；后者更多，但各自知道的事可能不同。";
    step_weight: f64, "om", Credit, more, number(1.0, 0.0, 4.0, 0.05), ["Step weight ω (GiGPO)", "步权重 ω（GiGPO）"], ["", ""],
        "Weight of the comparison among turns in the same state, A = A_episode + ω A_step; at 0 GiGPO is GRPO.",
        "相同状态之间的比较占多大权重：A = A_轨迹 + ω A_步；设为 0 时 GiGPO 就是 GRPO。";
    turn_coefficient: f64, "mtc", Credit, more, number(1.0, 0.0, 4.0, 0.05),
        ["Turn coefficient λ (MT-GRPO)", "轮系数 λ（MT-GRPO）"], ["", ""],
        "Weight of the turn's own process reward, A = A_outcome + λ A_turn on all turns but the last; at 0 only the outcome counts.",
        "本轮过程奖励的权重：除最后一轮外 A = A_结果 + λ A_轮；设为 0 则只看结果。";
    gae_lambda: f64, "lam", Credit, more, number(0.95, 0.0, 1.0, 0.01), ["GAE λ", "GAE λ"], ["per turn", "每轮"],
        "How far GAE looks ahead before it trusts the critic, A = Σ (γλ)^j δ over the turns to come; at 0 one turn, at 1 to the end \
         of the episode.",
        "GAE 在相信评论家之前往后看多远：A = Σ (γλ)^j δ，对之后各轮求和；0 只看一轮，1 看到轨迹结束。";
    monte_carlo_samples: usize, "mc", Credit, more, integer(9, 1, 64), ["Re-rolls per state", "每个状态的续采次数"],
        ["episodes", "条"],
        "How many fresh episodes measure the value of a state for Monte-Carlo credit (9 in VinePPO); more of them are less noisy, and \
         every step takes longer.",
        "蒙特卡洛信用从一个状态续采多少条新轨迹来测它的价值（VinePPO 用 9 条）；越多噪声越小，每步也越慢。";

    turn_limit: usize, "turns", Rollout, more, integer(5, 1, 8), ["Turn limit", "轮数上限"], ["turns", "轮"],
        "An episode is cut after this many turns; more turns leave room for more tool calls, and at 1 the policy must answer at \
         once: the single-turn contrast.",
        "一条轨迹满这么多轮就截断；越多越有余地调用工具，设为 1 则必须立刻作答，即单轮对照。";
    turn_tokens: usize, "budget", Rollout, more, integer(4, 2, 12), ["Tokens per turn", "每轮词元上限"], ["tokens", "词元"],
        "Most tokens of one action, its end-of-turn token included; with too few the task's actions do not fit, with many a \
         confused policy rambles on.",
        "一次动作最多写多少个词元，含轮结束符；太少写不下合法的动作，太多则没学好的策略会东拉西扯。";
    context_length: usize, "ctx", Rollout, more, integer(40, 16, 128), ["Context length", "上下文长度"], ["tokens", "词元"],
        "Most tokens of one episode, prompt and tool results included; a longer context allows longer episodes and costs memory \
         and time.",
        "一条轨迹最多多少个词元，含提示和工具结果；越长容得下的轨迹越长，也越费内存和时间。";
    groups: usize, "groups", Rollout, more, integer(16, 1, 64), ["Groups", "组数"], ["groups per step", "组/步"],
        "Different questions in one training step; more of them make the update less noisy and the step slower.",
        "一个训练步里有多少道不同的题，每题一组；越多更新的噪声越小，每步也越慢。";
    num_generations: usize, "gen", Rollout, more, integer(16, 1, 64), ["Episodes per group", "每组轨迹数"], ["episodes", "条"],
        "Episodes sampled from the same start and compared with one another; more of them make the baseline steadier, and with \
         1 there is nothing to compare and nothing is learned.",
        "从同一起点采样、互相比较的轨迹数；越多基线越稳，只有 1 条则无从比较，也就学不到东西。";
    temperature: f64, "temp", Rollout, more, number(1.0, 0.1, 5.0, 0.05), ["Temperature", "采样温度"], ["", ""],
        "How random the sampling is; above 1 the policy tries unlikely tokens more often, below 1 it keeps to the likely ones.",
        "采样的随机程度；高于 1 更常尝试不太可能的词元，低于 1 更偏向最可能的词元。";
    legal_token_mask: bool, "legal", Rollout, more, switch(false), ["Legal-token mask", "合法词元掩码"], ["", ""],
        "Lets the policy sample only tokens that can continue a well-formed action, in training likewise; switched on, the \
         format need not be learned.",
        "只允许采样能接成合法动作的词元，训练时同样如此；打开后，策略就不必自己学格式。";

    loss_mask: bool, "mask", Objective, main, switch(true), ["Loss mask", "损失掩码"], ["", ""],
        "Trains only the tokens that the policy wrote; switched off, the tool's tokens are trained too, as if the policy had \
         chosen them, which slows learning or spoils it.",
        "只训练策略自己写的词元；关掉后，工具返回的词元也会被当作策略的选择来训练，学习会变慢甚至被带偏。";
    policy_loss: PolicyLoss, "loss", Objective, more, choice("clip", PolicyLoss::OPTIONS), ["Policy loss", "策略损失"], ["", ""],
        "What is made of ratio and advantage: PPO's clipped ratio, CISPO's clipped constant weight (no token loses its gradient), \
         SAPO's soft gate, GMPO's geometric mean, or DPO on the best and worst of each group.",
        "如何由概率比和优势得出损失：PPO 的裁剪概率比、CISPO 的裁剪常数权重（没有词元会失去梯度）、SAPO 的软门控、GMPO 的几何平均，\
         或对组内最好与最差的轨迹做 DPO。";
    ratio_level: RatioLevel, "rho", Objective, more, choice("token", RatioLevel::OPTIONS),
        ["Ratio of", "概率比的粒度"], ["", ""],
        "What one probability ratio is about: a token, or the geometric mean over the whole trajectory (GSPO), whose clip range is \
         far smaller (3e-4 in the paper).",
        "一个概率比对应什么：单个词元，或整条轨迹的几何平均（GSPO），后者的裁剪范围要小得多（论文取 3e-4）。";
    epsilon: f64, "eps", Objective, more, number(0.2, 0.0001, 1.0, 0.01), ["Clip below ε", "下裁剪 ε"], ["", ""],
        "How far the probability ratio may fall below 1 before a token stops pushing it down; larger values allow bigger \
         changes, and with one pass per step nothing is clipped.",
        "概率比最多能比 1 低多少，超过后词元不再继续压低它；越大容许的变化越大，每步只训练一遍时不会触发。";
    epsilon_high: f64, "eps_hi", Objective, more, number(0.2, 0.0001, 10.0, 0.01), ["Clip above ε", "上裁剪 ε"], ["", ""],
        "How far the probability ratio may rise above 1 before a token stops pushing it up; larger values let unlikely tokens \
         grow faster (clip-higher, DAPO: 0.28).",
        "概率比最多能比 1 高多少，超过后词元不再继续抬高它；越大，低概率词元长得越快（DAPO 的 clip-higher 取 0.28）。";
    dual_clip: f64, "dual", Objective, more, number(0.0, 0.0, 20.0, 0.5), ["Dual clip c", "双重裁剪 c"], ["", ""],
        "For negative advantages the loss is at most c times the advantage, so that one token whose ratio grew large cannot rule \
         the update (verl uses 3); 0 turns it off.",
        "优势为负时，损失最多为优势的 c 倍，免得某个概率比很大的词元左右整个更新（verl 取 3）；设为 0 则关闭。";
    aggregation: Aggregation, "agg", Objective, more, choice("token_mean", Aggregation::OPTIONS),
        ["Aggregation", "损失汇总"], ["", ""],
        "From token losses to one: mean over all trained tokens (DAPO), mean over trajectories of their own mean (GRPO), sum over a \
         constant length, turn limit times tokens per turn (Dr.GRPO), or mean within each group first.",
        "词元损失如何汇总：对全部受训词元平均（DAPO）、先在轨迹内平均再对轨迹平均（GRPO）、除以固定长度即轮数上限乘每轮词元上限（Dr.GRPO），或先在组内平均。";
    beta: f64, "beta", Objective, more, number(0.0, 0.0, 1.0, 0.005), ["KL weight β", "KL 权重 β"], ["", ""],
        "Weight of the KL divergence to the warm start; turned up, the policy stays closer to where it began and learns more \
         slowly, 0 turns it off.",
        "与热启动策略的 KL 散度的权重；越大策略越不敢偏离起点，学得也越慢，设为 0 则关闭。";
    kl_estimator: KlEstimator, "kl", Objective, more, choice("k3", KlEstimator::OPTIONS), ["KL estimate", "KL 估计量"], ["", ""],
        "With d = log p - log p_ref: k1 = d, k2 = d²/2, k3 = exp(-d) - 1 + d; as a loss k1 has no pull at all, k2 pulls as the \
         divergence does, k3 as the reversed one, and in the reward it is always k1.",
        "记 d = log p - log p_ref：k1 = d，k2 = d²/2，k3 = exp(-d) - 1 + d；放进损失时，k1 毫无拉力，k2 的梯度就是 KL 的梯度，k3 \
         的是反向 KL 的梯度，放进奖励时总用 k1。";
    kl_placement: KlPlacement, "kl_at", Objective, more, choice("loss", KlPlacement::OPTIONS), ["KL acts", "KL 的位置"], ["", ""],
        "Whether the divergence is a term of the loss (GRPO) or a cost taken from the reward of every turn, which then gets credit \
         like any reward (PPO of RLHF).",
        "KL 是作为损失的一项（GRPO），还是从每一轮的奖励里扣除、像其他奖励一样参与信用分配（RLHF 的 PPO）。";
    kl_times_ratio: bool, "kl_r", Objective, more, switch(false), ["KL times ratio", "KL 乘概率比"], ["", ""],
        "Multiplies the KL estimate by the probability ratio, which corrects it for episodes sampled before the update (TRL's \
         default since 1.16); with one pass per step it changes the gradient only.",
        "把 KL 估计乘上概率比，以修正轨迹采自更新前的策略（TRL 1.16 起的默认）；每步只训练一遍时只影响梯度。";
    truncated: Truncated, "cut", Objective, more, choice("failure", Truncated::OPTIONS), ["Truncated episodes", "被截断的轨迹"],
        ["", ""],
        "What becomes of episodes cut by a limit: trained as the failures they are, or left out of the loss (their rewards still \
         count in the group), which removes the pressure against endless tool calls.",
        "被上限截断的轨迹如何处理：按失败训练，或不计入损失（其奖励仍参与组内统计），后者会失去对无休止调用的抑制。";
    no_signal_groups: NoSignalGroups, "flat", Objective, more, choice("keep", NoSignalGroups::OPTIONS),
        ["Groups without signal", "无信号的组"], ["", ""],
        "What becomes of groups whose episodes all earned the same return: kept (most methods give them 0, but they dilute the mean), \
         left out, or replaced by other questions, sampled up to three more times (dynamic sampling, DAPO).",
        "组内各轨迹的回报全相同时如何处理：保留（多数方法给出 0，但会稀释平均）、剔除，或最多再采样三次换上别的题（DAPO 的动态采样）。";
    dpo_beta: f64, "dpo", Objective, more, number(0.1, 0.01, 5.0, 0.01), ["DPO β", "DPO β"], ["", ""],
        "How sharply DPO tells the best of a group from the worst, relative to the warm start; larger values keep the policy \
         closer to it.",
        "DPO 相对热启动策略区分组内最好与最差轨迹的力度；越大越不偏离热启动策略。";
    entropy_coefficient: f64, "ent", Objective, more, number(0.01, 0.0, 0.2, 0.001), ["Entropy bonus", "熵奖励系数"], ["", ""],
        "Weight of the policy's entropy in the loss; turned up, the policy goes on trying different actions, and where rewards \
         give no signal it unlearns the format.",
        "损失中策略熵的权重；越大策略越愿意尝试不同动作，但若奖励没有信号，连格式也会被冲掉。";

    learning_rate: f64, "lr", Learner, more, logarithmic(1e-3, 1e-6, 1.0), ["Learning rate", "学习率"], ["", ""],
        "Size of an update; larger values learn faster, until the policy collapses or the numbers diverge.",
        "每次更新的步长；越大学得越快，过大则策略崩溃甚至数值发散。";
    learning_rate_schedule: LearningRateSchedule, "sched", Learner, more, choice("constant", LearningRateSchedule::OPTIONS),
        ["Learning-rate schedule", "学习率调度"], ["", ""],
        "How the learning rate goes over the run: it stays, or it falls to 0 at the end, in a straight line or along half a \
         cosine.",
        "学习率随运行如何变化：保持不变，或到结束时按直线或半个余弦降到 0。";
    max_grad_norm: f64, "clip", Learner, more, number(1.0, 0.0, 100.0, 0.1), ["Gradient-norm limit", "梯度范数上限"], ["", ""],
        "A gradient longer than this is shortened to it; lower values tame rare large updates, 0 turns the limit off.",
        "梯度范数超过它就按比例缩短；越低越能压住偶发的大更新，设为 0 则不限制。";
    inner_epochs: usize, "epochs", Learner, more, integer(1, 1, 8), ["Passes per step", "每步训练遍数"], ["passes", "遍"],
        "How often the same episodes are trained on before new ones are sampled; more passes take more from each episode, but \
         its probabilities grow out of date.",
        "采样新轨迹之前，同一批轨迹训练几遍；遍数越多，每条轨迹利用得越充分，但其概率也越过时。";
    micro_batches: usize, "micro", Learner, more, integer(4, 1, 16), ["Micro-batches", "微批数"], ["pieces", "份"],
        "In how many pieces, at least, the gradient of one update is summed up; more pieces need less memory and give the same update.",
        "一次更新的梯度至少分几份累加；份数越多越省内存，更新结果不变。";
    adam_beta1: f64, "b1", Learner, more, number(0.9, 0.0, 0.9999, 0.01), ["Adam β₁", "Adam β₁"], ["", ""],
        "How much of the past Adam keeps in its mean of the gradient; higher values give smoother and more sluggish updates.",
        "Adam 求梯度均值时保留多少过去；越高更新越平滑，反应也越迟钝。";
    adam_beta2: f64, "b2", Learner, more, number(0.99, 0.0, 0.9999, 0.01), ["Adam β₂", "Adam β₂"], ["", ""],
        "How much of the past Adam keeps in its mean of the squared gradient; higher values give steadier step sizes that adapt \
         later.",
        "Adam 求梯度平方均值时保留多少过去；越高步长越稳，适应也越慢。";

    critic_learning_rate: f64, "c_lr", Learner, more, logarithmic(1e-3, 1e-6, 1.0), ["Critic learning rate", "评论家学习率"], ["", ""],
        "Size of an update of the critic, the network that learns the value of every turn; used by the credit method with a \
         critic alone.",
        "评论家（学习每一轮价值的网络）每次更新的步长；只用于带评论家的信用分配方法。";
    critic_epochs: usize, "c_ep", Learner, more, integer(4, 1, 16), ["Critic passes per step", "评论家每步遍数"], ["passes", "遍"],
        "How often the critic is fitted to the returns of a step; more passes make its values follow the policy faster.",
        "每个训练步里评论家对回报拟合几遍；越多，其价值估计越跟得上策略。";
    value_clip: f64, "vc", Learner, more, number(0.2, 0.0, 5.0, 0.05), ["Value clip", "价值裁剪"], ["", ""],
        "How far a value may move in one step before its loss stops pulling (PPO); 0 turns it off.",
        "一步之内价值最多移动多少，超过后其损失不再拉动（PPO）；设为 0 则关闭。";

    d_model: usize, "d", Policy, more, one_of(64, &[32, 64, 128]), ["Width", "模型宽度"], ["units", "维"],
        "Width of the transformer's hidden state; a wider policy needs fewer training steps, and each of them takes longer.",
        "Transformer 隐藏状态的宽度；越宽所需的训练步越少，但每一步更慢。";
    layers: usize, "layers", Policy, more, integer(2, 1, 4), ["Layers", "层数"], ["layers", "层"],
        "Number of transformer blocks; more of them can combine what was read in more ways, and every step takes longer.",
        "Transformer 的层数；层越多，对读到内容的组合方式越丰富，每一步也越慢。";
    heads: usize, "heads", Policy, more, one_of(4, &[1, 2, 4, 8]), ["Attention heads", "注意力头数"], ["heads", "头"],
        "Attention heads per layer; more heads look at more places at once, each with a share of the width.",
        "每层的注意力头数；头越多，能同时看的位置越多，但每个头分到的宽度越小。";

    warm_start: WarmStart, "warm", WarmStart, more, choice("shipped", WarmStart::OPTIONS), ["Warm start", "热启动"], ["", ""],
        "Where the policy begins: a checkpoint that ships with the page and fits the default sizes, imitation of the \
         demonstrator now, or random weights, from which reward alone hardly ever teaches it.",
        "策略从哪里开始：页面自带的检查点（只适用于默认尺寸）、现场模仿示范者，或随机权重；从随机权重出发，光靠奖励几乎学不会。";
    imitation_steps: usize, "im_steps", WarmStart, more, integer(300, 1, 2000),
        ["Imitation updates", "模仿更新次数"], ["updates", "次"],
        "Updates of a warm start made now; more of them copy the demonstrator more closely, its faults included.",
        "现场热启动的更新次数；越多越像示范者，连它的毛病也学去。";
    imitation_batch: usize, "im_batch", WarmStart, more, integer(128, 1, 512),
        ["Imitation batch", "模仿批大小"], ["episodes", "条"],
        "Demonstrations in one imitation update; more of them give a smoother and slower warm start.",
        "每次模仿更新用多少条示范；越多热启动越平稳，也越慢。";
    imitation_learning_rate: f64, "im_lr", WarmStart, more, logarithmic(3e-3, 1e-6, 0.1),
        ["Imitation learning rate", "模仿学习率"], ["", ""],
        "Size of an imitation update; larger values copy the demonstrator sooner, until the loss no longer falls.",
        "模仿更新的步长；越大越快学像示范者，过大则损失不再下降。";
    demonstrations: usize, "demos", WarmStart, more, integer(4096, 64, 16_384),
        ["Demonstrations", "示范条数"], ["episodes", "条"],
        "Different demonstrated episodes to imitate; more of them leave less to learn by heart and take longer to prepare.",
        "供模仿的不同示范轨迹数；越多越不容易死记硬背，准备也越久。";
}
