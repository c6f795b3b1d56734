//! What each warning says: what was measured, what it means, what to try. English and Chinese.

use super::{CLIPPED, HACKED, KL, NO_SIGNAL, WINDOW};

/// Both languages.
type Texts = (String, String);

/// A share in percent.
fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A number with about three digits.
fn short(x: f64) -> String {
    match x.abs() {
        size if size >= 100.0 => format!("{x:.0}"),
        size if size >= 1.0 => format!("{x:.2}"),
        size if size >= 0.01 || size == 0.0 => format!("{x:.3}"),
        _ => format!("{x:.1e}"),
    }
}

pub fn singleton_groups() -> Texts {
    (
        "Every group has one episode, so there is nothing to compare it with: its advantage is 0 and nothing is learned. Take at \
         least 4 episodes per group, or a credit method that needs no group (REINFORCE++, GAE with a critic)."
            .to_owned(),
        "每组只有一条轨迹，没有可比的对象：优势恒为 0，什么也学不到。请把每组轨迹数设为至少 4，或改用不需要组的信用分配方法（REINFORCE++、GAE 加评论家）。"
            .to_owned(),
    )
}

pub fn calling_pays(calling: f64, solving: f64) -> Texts {
    (
        format!(
            "Under these weights and this gamma an episode that only calls tools up to the turn limit earns {}, one that calls once and \
             answers right earns {}: the policy is paid to go on calling. Lower what a call earns, pay calls once (call payment: \
             distinct or capped), or raise the weight of the right answer.",
            short(calling),
            short(solving)
        ),
        format!(
            "按这些权重和折扣，一直调用工具到轮数上限的轨迹得 {}，调用一次就答对的轨迹得 {}：策略被鼓励不停调用。请降低每次调用的奖励、改为每种调用只付一次（或设上限），或提高答对的权重。",
            short(calling),
            short(solving)
        ),
    )
}

pub fn pairs_scaled() -> Texts {
    (
        "With two episodes per group and scaling by the group's standard deviation every advantage is +0.7071 or -0.7071, however \
         small the gap between the two returns: noise counts as much as success. Take more episodes per group, or turn the \
         scaling off."
            .to_owned(),
        "每组两条轨迹又除以组内标准差时，两者的回报不管相差多少，优势总是 ±0.7071：噪声和成功一样重。请增加每组轨迹数，或关掉优势缩放。".to_owned(),
    )
}

pub fn no_signal(share: f64, success: f64, group: usize, chance: f64) -> Texts {
    let [share, success, chance, bound] = [share, success, chance, NO_SIGNAL].map(percent);
    (
        format!(
            "{share} of the groups gave no signal over the last {WINDOW} steps (bound {bound}): all their episodes earned the \
             same, so nothing was learned from them. If every episode succeeded with the same chance of {success}, {chance} of \
             groups of {group} would be like that. Try more episodes per group, easier questions, or other questions in place \
             of such groups."
        ),
        format!(
            "最近 {WINDOW} 步有 {share} 的组没有信号（界限 {bound}）：组内各条轨迹所得相同，从中什么也学不到。假如每条轨迹都以 {success} \
             的概率成功，每组 {group} 条时会有 {chance} 的组如此。可以增加每组轨迹数、换容易些的题，或让这样的组另采新题。"
        ),
    )
}

pub fn entropy_collapse(entropy: f64, success: f64) -> Texts {
    let (entropy, success) = (short(entropy), percent(success));
    (
        format!(
            "The policy hardly varies any more (entropy {entropy} nats) but succeeds in only {success} of the episodes: it repeats \
             what does not work and will not find anything better. Start again with a lower learning rate or a larger entropy \
             bonus."
        ),
        format!(
            "策略几乎不再变化（熵 {entropy} 奈特），成功率却只有 {success}：它在重复行不通的做法，也找不到更好的了。请调低学习率或调高熵奖励系数，重新开始。"
        ),
    )
}

pub fn entropy_rising(entropy: f64, lowest: f64) -> Texts {
    let (entropy, lowest) = (short(entropy), short(lowest));
    (
        format!(
            "The entropy rose to {entropy} nats from {lowest}: the policy becomes more random and forgets what it could do. Try a \
             smaller entropy bonus, a lower learning rate, or check that the loss mask is on."
        ),
        format!(
            "熵从 {lowest} 升到了 {entropy} 奈特：策略越来越随机，正在忘掉已经会的。可以调低熵奖励系数或学习率，并检查损失掩码是否打开。"
        ),
    )
}

pub fn reward_hacked(returns: [f64; 2], success: [f64; 2]) -> Texts {
    let ([before, now], [best, left], bound) = (returns.map(short), success.map(percent), percent(HACKED));
    (
        format!(
            "The return rose from {before} to {now} while success fell from {best} to {left} (bound {bound}): the policy earns by \
             something other than solving the task. Look at which reward terms grew, lower their weights, or pay the outcome alone."
        ),
        format!(
            "回报从 {before} 升到 {now}，成功率却从 {best} 降到 {left}（界限 {bound}）：策略在靠别的途径得奖励，而不是解题。请看看是哪些奖励项变大了，\
             调低其权重，或只奖励结果。"
        ),
    )
}

pub fn ratio_mismatch(deviation: f64) -> Texts {
    let deviation = short(deviation);
    (
        format!(
            "Probabilities of the same tokens differ by a factor of up to 1 + {deviation} between sampling and training, with the \
             same weights: the two passes do not compute the same policy. Try another device, and report it."
        ),
        format!(
            "同样的权重、同样的词元，采样和训练两遍算出的概率比与 1 最多相差 {deviation}：两遍算的不是同一个策略。请换一个计算设备，并反馈这个问题。"
        ),
    )
}

pub fn ratio_mean(mean: f64) -> Texts {
    let mean = short(mean);
    (
        format!(
            "The mean probability ratio is {mean}, where 1 is expected: the policy has moved so far from the one that sampled these \
             episodes that they say little about it. Take fewer passes per step or a lower learning rate."
        ),
        format!(
            "概率比的均值是 {mean}，本应接近 1：策略已经远离采样这些轨迹时的自己，它们不再有代表性。请减少每步训练遍数，或调低学习率。"
        ),
    )
}

pub fn clip_fraction_high(share: f64) -> Texts {
    let (share, usual) = (percent(share), percent(CLIPPED));
    (
        format!(
            "The ratio of {share} of the tokens was clipped (at most {usual} is usual for single tokens): the updates of a step go \
             further than the clip range trusts. Take fewer passes per step or a lower learning rate."
        ),
        format!(
            "有 {share} 的词元被裁剪（单个词元的概率比一般不超过 {usual}）：一步之内的更新超出了裁剪范围所信任的程度。请减少每步训练遍数，或调低学习率。"
        ),
    )
}

pub fn kl_high(kl: f64) -> Texts {
    let (kl, bound) = (short(kl), short(KL));
    (
        format!(
            "Within a step the policy moved by a KL divergence of {kl} nats per token (bound {bound}): updates of this size can \
             undo what was learned. Take fewer passes per step or a lower learning rate."
        ),
        format!(
            "一步之内策略移动的 KL 散度达到每词元 {kl} 奈特（界限 {bound}）：这么大的更新可能毁掉已学会的。请减少每步训练遍数，或调低学习率。"
        ),
    )
}

pub fn gradient_spike(norm: f64, median: f64) -> Texts {
    let (norm, median) = (short(norm), short(median));
    (
        format!(
            "The gradient norm jumped to {norm} from a median of {median}: one update of this size can throw the policy off. Lower \
             the gradient-norm limit or the learning rate."
        ),
        format!("梯度范数从中位数 {median} 猛增到 {norm}：一次这样的更新就可能让策略失常。请调低梯度范数上限或学习率。"),
    )
}

pub fn malformed_rising(share: f64, lowest: f64) -> Texts {
    let (share, lowest) = (percent(share), percent(lowest));
    (
        format!(
            "{share} of the turns are malformed, after {lowest} at best: the policy is losing the form of its actions, which as a \
             rule comes before a collapse. Try a lower learning rate, a smaller entropy bonus, a penalty on malformed turns, or the \
             legal-token mask."
        ),
        format!(
            "格式错误的轮占到 {share}，最低时只有 {lowest}：策略正在丢掉动作的格式，这往往是崩溃的前兆。可以调低学习率或熵奖励系数、惩罚格式错误，\
             或打开合法词元掩码。"
        ),
    )
}
