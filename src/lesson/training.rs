//! Settings of training that decide what can be learned: scaling, groups without signal, demonstrations, algorithms.

use super::{Focus, Lesson, Topic, text};

pub(super) static LESSONS: &[Lesson] = &[
    Lesson {
        name: "standardisation",
        title: text("Dividing by the deviation", "除以标准差"),
        press: text("Press Train both: first divided, then undivided (Dr. GRPO).", "按“两个都训练”：先除，再不除（Dr. GRPO）。"),
        watch: text(
            "Undivided, 90 % comes three times as fast, and then nothing more happens: every question keeps two searches. Divided, needless \
             searches go.",
            "不除的时候，到 90% 快了三倍，然后就不再变化：每道题都保持搜两次。除的时候，多余的搜索会消失。",
        ),
        meaning: text(
            "Where all of a group succeed, returns differ only by the discount, a few hundredths. Divided by an equally small deviation they \
             weigh as much as success and failure do elsewhere: good for pruning, and noise for everything else.",
            "全组都答对时，回报只差在折扣上，不过百分之几。除以同样小的标准差之后，它就和别处的成败一样重：适合剪掉多余步骤，对其余的学习却是噪声。",
        ),
        evidence: text(
            "90 % at steps 6, 6, 6, 5, 4 undivided and 18, 17, 9, 8, 16 divided. Calls on 0-hop questions after 40 steps: 2.0 on all seeds, \
             against 1.0 .2 .8 .8 1.0 (five seeds, CPU).",
            "达到 90%：不除为第 6、6、6、5、4 步，除为第 18、17、9、8、16 步。40 步后 0 跳题的调用次数：不除时各种子都是 2.0，除时为 1.0 .2 .8 .8 1.0（五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[("iterations", "40"), ("scale_rewards", "none"), ("aggregation", "constant")],
        other: Some(&[("iterations", "40")]),
        topics: &[Topic::Algorithms],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "no-signal",
        title: text("Groups that teach nothing", "什么也教不了的组"),
        press: text(
            "Press Train both: first such groups are kept, then sampled anew (DAPO).",
            "按“两个都训练”：先保留这样的组，再改为重新采样（DAPO）。",
        ),
        watch: text(
            "Watch “groups, no signal” under Other measures. Where all returns of a group are equal every advantage is 0. Kept, their share \
             grows with success to more than half; sampled anew, it stays near 0 until the task is nearly solved.",
            "看“其他指标”里的“无信号的组”。组内回报全都相等时，优势全是 0。保留时，它的占比随成功率升到一半以上；重新采样时，到任务快学完之前都接近 0。",
        ),
        meaning: text(
            "A success rate of all or nothing has nothing to compare. On this small task sampling anew did not make learning faster: the effect \
             on the curve of success is absent, and this lesson says so.",
            "全对或全错，就没有可比较的。在这个小任务上，重新采样并没有让学习更快：对成功率曲线没有效果，这里如实写出。",
        ),
        evidence: text(
            "90 % at steps 18, 18, 11, 7, 15 sampled anew and 18, 17, 9, 8, 16 kept. Share without signal at steps 10 to 19: .00 .00 .00 .01 .00 \
             against .11 .04 .04 .16 .05; at the end .21 .06 .16 .00 .26 against .68 .54 .65 .62 .55 (five seeds, CPU).",
            "达到 90%：重新采样为第 18、18、11、7、15 步，保留为第 18、17、9、8、16 步。无信号占比在第 10 到 19 步为 .00 .00 .00 .01 .00 与 .11 .04 .04 .16 .05，最后为 .21 .06 .16 .00 .26 与 .68 .54 .65 .62 .55（五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[("iterations", "40"), ("epsilon_high", "0.28"), ("truncated", "mask"), ("no_signal_groups", "resample")],
        other: Some(&[("iterations", "40")]),
        topics: &[Topic::Algorithms],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "demonstrations",
        title: text("A demonstrator that never searches twice", "从不搜两次的示范者"),
        press: text(
            "Press Train both: first one demonstration in twenty searches twice, then none does.",
            "按“两个都训练”：先是二十条示范里有一条搜两次，再是一条也没有。",
        ),
        watch: text(
            "Taught never to search twice, the policy stays near 55 %: of the questions with two hops it guesses one in ten. Taught by a few \
                 that do, it finds the second search: success stands still for some ten steps and then climbs.",
            "学的全是不搜两次的示范，策略停在 55% 上下：两跳题只靠猜，十题对一题。示范里有几条搜两次的，它就能找到第二次搜索：成功率先停十来步，然后往上走。",
        ),
        meaning: text(
            "Exploration must be in the data: a policy that never tries a thing cannot be paid for it. A few \
             examples are enough.",
            "探索要先在数据里：从没试过的事，就不可能因它得奖。几个例子就够。",
        ),
        evidence: text(
            "Never shown: at most .50 .56 .58 .58 .64, ends .44 .54 .58 .56 .59 after 40 steps. One in twenty: 90 % at steps 32, 35, 20, 11, 18 (five \
             seeds, CPU).",
            "从未示范：最高 .50 .56 .58 .58 .64，40 步后为 .44 .54 .58 .56 .59。二十条里有一条：第 32、35、20、11、18 步达到 90%（五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[("iterations", "40"), ("two_search_demonstrations", "0")],
        other: Some(&[("iterations", "40"), ("two_search_demonstrations", "0.05")]),
        topics: &[Topic::Imitation, Topic::SearchAgain],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "ppo-dpo-grpo",
        title: text("PPO, DPO and GRPO on the same task", "同一任务上的 PPO、DPO 和 GRPO"),
        press: text(
            "Press Train both: first DPO, then PPO. For GRPO choose it under Recipe.",
            "按“两个都训练”：先 DPO，再 PPO。想看 GRPO，在“方案”里选它。",
        ),
        watch: text(
            "PPO, with a critic and four passes over each batch, is quickest: over 90 % in about six steps. GRPO needs no critic and takes 12 to \
             33. DPO does not learn the task: it gives up needless searches and stays near 55 %.",
            "PPO 有评论家，每批训练四遍，最快：六步左右超过 90%。GRPO 不要评论家，要 12 到 33 步。DPO 学不会这个任务：它去掉了多余的搜索，停在 55% 上下。",
        ),
        meaning: text(
            "DPO uses one pair of each group of sixteen, the best against the worst, and here that says mostly “be short”. It was made for fixed \
             preference pairs over one turn.",
            "DPO 在每组十六条里只用一对，最好的对最差的，在这里这主要等于说“短一点”。它本是为单轮的固定偏好对设计的。",
        ),
        evidence: text(
            "90 % at steps 7, 6, 5, 5, 5 (PPO), 33, 25, 23, 12, 18 (GRPO), never in 40 steps (DPO, ends .49 .57 .57 .56 .58; five seeds, CPU).",
            "达到 90% 的步数：PPO 7、6、5、5、5，GRPO 33、25、23、12、18，DPO 40 步内没有（最后 .49 .57 .57 .56 .58；五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[
            ("iterations", "40"),
            ("credit_method", "gae"),
            ("beta", "0.02"),
            ("kl_placement", "reward"),
            ("inner_epochs", "4"),
        ],
        other: Some(&[("iterations", "40"), ("policy_loss", "dpo")]),
        topics: &[Topic::Algorithms],
        focus: Focus::Curves,
        quantity: "advantage",
    },
];
