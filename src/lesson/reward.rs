//! What is paid, when, and what a later reward is worth now.

use super::{Focus, Lesson, Topic, text};

pub(super) static LESSONS: &[Lesson] = &[
    Lesson {
        name: "gamma",
        title: text("What the discount γ does", "折扣 γ 的作用"),
        press: text(
            "Move γ, watch the colours of the frozen episodes, and put it back. Then press Train both: first γ .5, then γ 1.",
            "拖动 γ，看冻结轨迹的颜色怎样变，再拖回来。然后按“两个都训练”：先是 γ 为 .5，再是 γ 为 1。",
        ),
        watch: text(
            "At γ 1 a turn costs nothing: success is quick and every question gets two searches, needed or not. At .5 an answer one turn \
             later is worth half: most runs give up the second search and end near 55 %. At .95, the default, needless searches go and \
             needed ones stay.",
            "γ 为 1 时多一轮不花代价：成功来得快，但每道题都搜两次，不管要不要。γ 为 .5 时晚一轮答对只值一半：多数运行放弃第二次搜索，最后在 55% 上下。默认的 .95 下，多余的搜索消失，必要的留下。",
        ),
        meaning: text(
            "A reward k turns later counts γ to the power k. γ is not a detail of the mathematics, it is how much patience is paid.",
            "晚 k 轮的奖励要乘以 γ 的 k 次方。γ 不是数学上的细枝末节，它决定耐心值多少钱。",
        ),
        evidence: text(
            "90 % at steps 6, 6, 6, 5, 4 with γ 1 (calls 2.0 on every kind); with γ .5 at 50, never, never, 30, never (ends .94 .55 .55 .98 \
             .65); with .95 at 18, 17, 9, 8, 16 (five seeds, CPU).",
            "γ 为 1：第 6、6、6、5、4 步达到 90%（各种题都调用 2.0 次）；γ 为 .5：第 50 步、无、无、第 30 步、无（最后 .94 .55 .55 .98 .65）；γ 为 .95：第 18、17、9、8、16 步（五个种子，CPU）。",
        ),
        environment: "search",
        // Seed 0 is one of the two that learn the second search at .5 too.
        settings: &[("gamma", "1"), ("seed", "1")],
        other: Some(&[("gamma", "0.5"), ("seed", "1")]),
        topics: &[Topic::Discount],
        focus: Focus::Episodes,
        quantity: "return_to_go",
    },
    Lesson {
        name: "dense",
        title: text("Sparse, dense and mixed reward", "稀疏、密集与混合奖励"),
        press: text(
            "Press Train both: first the right answer alone is paid, then calls and form as well.",
            "按“两个都训练”：先只奖励答对，再加上调用和格式。",
        ),
        watch: text(
            "Look at the pills: a call earns +0.1, an answer in form +0.05, the right answer +1, each at its own turn. Success comes sooner, and calls \
             stay at two on every kind of question.",
            "看奖励标记：合法调用 +0.1，答案格式正确 +0.05，答对 +1，各在自己那一轮。成功来得更快，而每种题的调用次数都停在两次。",
        ),
        meaning: text(
            "Dense rewards come sooner and are easy to earn, but they are another goal: they pay for searches that nobody needs. Here +0.1 a call \
             outweighs what γ takes off for a turn, so the run goes as with γ 1: as fast and as wasteful.",
            "密集奖励来得早、好挣，但那是另一个目标：它为没人需要的搜索付了钱。这里每次调用的 +0.1 超过了 γ 为多一轮所扣的，所以结果和 γ 为 1 时一样：一样快，一样浪费。",
        ),
        evidence: text(
            "Mixed: 90 % at steps 6, 5, 8, 4, 4, with 2.0 calls on every kind after 40 steps. Outcome alone: 18, 17, 9, 8, 16, with 1.0 .2 .8 .8 1.0 calls \
             on 0-hop questions. γ 1: 6, 6, 6, 5, 4 (five seeds, CPU).",
            "混合：第 6、5、8、4、4 步达到 90%，40 步后各种题都调用 2.0 次。只看结果：第 18、17、9、8、16 步，0 跳题调用 1.0 .2 .8 .8 1.0 次。γ 为 1：第 6、6、6、5、4 步（五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[("iterations", "40"), ("reward_mode", "mixed")],
        other: Some(&[("iterations", "40")]),
        topics: &[Topic::RewardDensity],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "process",
        title: text("Where a process reward helps", "过程奖励在哪里有用"),
        press: text(
            "Press Train both: first the goal alone is paid, then every new page as well.",
            "按“两个都训练”：先只为到达目标付奖励，再加上每个新页面。",
        ),
        watch: text(
            "Five right clicks in a row lead to the goal, and hardly any episode gets there. Paid for the goal alone, almost every group has no \
                 signal and the policy gets no further; paid for every new page, the mean return rises and episodes go more than twice as far. \
                 Success stays near 0 in both.",
            "连续点对五次才到目标，几乎没有轨迹能走到。只为目标付奖励时，几乎每组都没有信号，策略毫无进展；为每个新页面付奖励时，平均回报上升，轨迹走到的页数增加一倍多。两种情况下成功率都接近 0。",
        ),
        meaning: text(
            "Where success is so rare that whole groups fail alike, the outcome says nothing; paying for the way gives the first steps a \
             signal. It is no guarantee of the last ones.",
            "成功罕见到整组一起失败时，结果什么也没说；为过程付奖励，前几步才有信号。但它保证不了最后几步。",
        ),
        evidence: text(
            "Pages reached in an episode, 1.0 at first: 2.2 2.2 2.3 2.2 2.1 after 25 steps with the process reward, .4 .7 .7 .4 1.0 without. Held-out \
             success at most 3 % with, 0 without (five seeds, CPU): the start is easier, the goal is not reached in this time.",
            "每条轨迹到达的页数起初为 1.0；25 步之后，有过程奖励为 2.2 2.2 2.3 2.2 2.1，没有为 .4 .7 .7 .4 1.0。留出集成功率有则最高 3%，无则为 0（五个种子，CPU）：起步容易了，目标在这段时间里仍到不了。",
        ),
        environment: "web",
        settings: &[
            ("iterations", "25"),
            ("held_out", "32"),
            ("reward_mode", "mixed"),
            ("entropy_coefficient", "0"),
            ("pages", "5"),
            ("right_clicks", "0.25"),
        ],
        other: Some(&[
            ("iterations", "25"),
            ("held_out", "32"),
            ("entropy_coefficient", "0"),
            ("pages", "5"),
            ("right_clicks", "0.25"),
        ]),
        topics: &[Topic::ProcessReward, Topic::Capabilities],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "hacked",
        title: text("A process reward is hacked", "过程奖励被钻了空子"),
        press: text(
            "Press Train both: first the right answer alone is paid, then clean results too, and errors are fined.",
            "按“两个都训练”：先只奖励答对，再加上奖励无报错、惩罚报错。",
        ),
        watch: text(
            "The mean return rises while success falls. A clean result earns +1 and an error −1, so the policy asks the cache, which never \
             fails and is usually out of date, and never runs the program again.",
            "平均回报上升，成功率却下降。无报错得 +1、报错得 −1，于是策略只查从不报错、却多半过期的缓存，再也不运行程序。",
        ),
        meaning: text(
            "The reward is what was written down, not what was meant. Watch success on held-out questions beside it; a curve of reward \
             alone would look like progress.",
            "奖励是写下来的那一条，不是心里想的那一条。要同时看留出集成功率；只看奖励曲线，会以为在进步。",
        ),
        evidence: text(
            "Hacked in 5 of 5 seeds: return .89 to 1.28 on average, held-out success .29 .24 .30 .32 .23 at the end, all of it questions \
             with a fresh cache. With the outcome alone 90 % at steps 7, 10, 11, 21, 19 (CPU).",
            "5 个种子全部被钻空子：回报平均从 .89 升到 1.28，留出集成功率最后为 .29 .24 .30 .32 .23，答对的全是缓存没过期的题。只奖励结果时，第 7、10、11、21、19 步达到 90%（CPU）。",
        ),
        environment: "code",
        settings: &[
            ("iterations", "36"),
            ("reward_mode", "mixed"),
            ("clean_result_weight", "1"),
            ("error_result_weight", "-1"),
            ("gamma", "1"),
        ],
        other: Some(&[("iterations", "36")]),
        topics: &[Topic::ProcessReward],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "calling",
        title: text("Paid for calling, it never answers", "只为调用付奖励，策略就不再回答"),
        press: text("Press Train.", "按“开始训练”。"),
        watch: text(
            "Only calls are paid here. Within ten steps nearly every episode calls five times, is cut at the turn limit and answers \
             nothing: return goes to .45, success to 0.",
            "这里只为调用付奖励。十步之内，几乎每条轨迹都调用五次，在轮数上限处被截断，什么也没回答：回报升到 .45，成功率降到 0。",
        ),
        meaning: text(
            "A judge of steps replaces the goal unless the outcome counts too. Choose Mixed, or pay each distinct call only once, and look \
             what changes.",
            "只评步骤、不算结果，步骤就取代了目标。试试“混合”，或让同一调用只付一次，看看有什么变化。",
        ),
        evidence: text(
            "Return .10 to .45 and held-out success .00 at the end in 5 of 5 seeds, 5.0 calls an episode (CPU). Success falls to 0 by design: \
             this run is meant to collapse.",
            "5 个种子全部如此：回报从 .10 到 .45，留出集成功率最后为 .00，每条轨迹调用 5.0 次（CPU）。成功率归零正是这一课要展示的崩溃。",
        ),
        environment: "search",
        settings: &[("iterations", "40"), ("reward_mode", "process"), ("format_weight", "0"), ("learning_rate", "0.002")],
        other: None,
        topics: &[Topic::ProcessReward, Topic::RewardDensity],
        focus: Focus::Curves,
        quantity: "advantage",
    },
];
