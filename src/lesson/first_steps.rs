//! What a policy over several turns is: the loop, what it sees, why it needs turns, and where it begins.

use super::{Focus, Lesson, Topic, text};

pub(super) static LESSONS: &[Lesson] = &[
    Lesson {
        name: "search-again",
        title: text("A policy learns when to search again", "策略学会何时再搜一次"),
        press: text("Press Train.", "按“开始训练”。"),
        watch: text(
            "Success climbs from about 60 % to over 95 %, and the calls in the middle chart part: two searches where two are needed, one \
             where one is enough, and in most runs none where the note has the answer.",
            "成功率从约 60% 升到 95% 以上。中间的图里三种题分开：要搜两次的搜两次，要搜一次的搜一次；答案已写在备注里的，多数运行最后干脆不搜。",
        ),
        meaning: text(
            "Nobody showed it when to search: episodes that ended in a right answer got more credit than their peers, and what they did \
             became more likely. That is a policy gradient.",
            "没有人示范何时该搜：答对的轨迹比同组的得到更多信用，其中的动作就变得更可能发生。这就是策略梯度。",
        ),
        evidence: text(
            "Held-out success reaches 90 % at steps 18, 17, 9, 8, 16 and ends at .95 to .98; calls for 0, 1 and 2 hops end at 0 (one \
             seed: 1), 1 and 2 (five seeds, CPU).",
            "留出集成功率达到 90% 的步数为 18、17、9、8、16，最后为 .95 到 .98；0、1、2 跳题的调用次数最后为 0（一个种子为 1）、1、2（五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[],
        other: None,
        topics: &[Topic::SearchAgain],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "loop",
        title: text("The loop, one phase at a time", "一个阶段一个阶段地看循环"),
        press: text(
            "Press Step four times: sample, score, credit, update. Then again, or Train.",
            "按四次“单步”：采样、评分、分配、更新。然后再来一遍，或按“开始训练”。",
        ),
        watch: text(
            "After sample the conversations are there without colour: the policy writes a call, the tool's hatched answer follows, the \
             policy reads it and writes on. Score puts a reward pill at the turn that earned it, credit colours every token, update \
             moves the weights and adds a point to the curves.",
            "采样后出现没有颜色的对话：策略写出调用，后面跟着工具返回的带斜线的结果，策略读了再接着写。评分在挣得奖励的那一轮旁边放上奖励标记，分配给每个词元上色，更新改动权重并在曲线上添一个点。",
        ),
        meaning: text(
            "In supervised learning the data stand still. Here the policy makes its own data, in several turns with a tool in between, \
             and has to find out which of them were good.",
            "监督学习里数据不动。这里数据由策略自己产生，分好几轮，中间夹着工具，还得弄清哪一轮做得好。",
        ),
        evidence: text(
            "For looking, not for learning: 32 episodes a step are few. Held-out success after 8 steps is .74 .62 .64 .91 .57, from .51 .55 .53 \
             .62 .67 (five seeds, CPU); left to run, some seeds fall back to one search.",
            "这一课只为看清过程，不为学会：每步 32 条轨迹太少。8 步后留出集成功率为 .74 .62 .64 .91 .57，开始时为 .51 .55 .53 .62 .67（五个种子，CPU）；再跑下去，有的种子会退回只搜一次。",
        ),
        environment: "search",
        settings: &[("groups", "4"), ("num_generations", "8"), ("iterations", "8")],
        other: None,
        topics: &[Topic::Loop, Topic::ToolCalls],
        focus: Focus::Run,
        quantity: "advantage",
    },
    Lesson {
        name: "hidden",
        title: text("The policy sees only what the tool returns", "策略只看得到工具返回的东西"),
        press: text(
            "Press Train. When it ends, turn from group to group and read “Hidden from the policy”.",
            "按“开始训练”。结束后逐组翻看，读一读“策略看不到”后面的内容。",
        ),
        watch: text(
            "Prompts whose note is empty look all the same. The hidden text says which document points where; the policy learns it only \
             from its first tool result, and there episodes part: an answer after a digit, another search after a pointer (>).",
            "备注为空的提示看起来都一样。隐藏的内容写着哪篇文档指向哪篇；策略要到第一条工具结果才知道，轨迹也从那里分开：看到数字就回答，看到指向（>）就再搜。",
        ),
        meaning: text(
            "The task is partially observable: the state is in the world, the policy has a conversation. It must act to find out.",
            "任务是部分可观测的：状态在外面的世界里，策略手里只有对话。它必须先行动才能知道。",
        ),
        evidence: text(
            "Questions of 1 and of 2 hops get 1.0 and 2.0 searches after 50 steps in 5 of 5 seeds, though their prompts look alike (CPU).",
            "50 步之后，提示看不出差别的 1 跳题和 2 跳题分别搜索 1.0 次和 2.0 次，5 个种子全部如此（CPU）。",
        ),
        environment: "search",
        settings: &[("iterations", "50")],
        other: None,
        topics: &[Topic::PartialObservability],
        focus: Focus::Episodes,
        quantity: "advantage",
    },
    Lesson {
        name: "single-turn",
        title: text("One turn is not enough", "只有一轮不够"),
        press: text(
            "Press Train both: first up to five turns, then a single one.",
            "按“两个都训练”：先是最多五轮，再是只有一轮。",
        ),
        watch: text(
            "With a single turn a search leaves no turn to answer in, so the policy soon stops searching. Success stands still near \
             30 %: questions whose note has the answer, and one lucky guess in ten.",
            "只有一轮时，搜了就没有机会回答，策略很快就不搜了。成功率停在 30% 左右：答案写在备注里的题，加上其余题目里十分之一的侥幸。",
        ),
        meaning: text(
            "Single-turn training ends with the answer: its ceiling is what can be guessed from the prompt. No reward setting lifts it; \
             turns do.",
            "单轮训练到回答为止，上限就是凭提示能猜对多少。奖励怎么设都抬不高它，多几轮才行。",
        ),
        evidence: text(
            "Turn limit 1: .25 .32 .35 .27 .29 over steps 35 to 39 (25 % + a tenth of 75 % is .33). Turn limit 5: 90 % at steps 18, 17, \
             9, 8, 16 (five seeds, CPU).",
            "上限 1 轮：第 35 到 39 步为 .25 .32 .35 .27 .29（25% 加上 75% 的十分之一约为 .33）。上限 5 轮：在第 18、17、9、8、16 步达到 90%（五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[("turn_limit", "1"), ("iterations", "40")],
        other: Some(&[("iterations", "40")]),
        topics: &[Topic::Turns],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "imitation",
        title: text("Imitation copies, reinforcement learning corrects", "模仿只会照抄，强化学习来纠正"),
        press: text("Press Train.", "按“开始训练”。"),
        watch: text(
            "The run begins where imitation ended, at about 46 %: like the person it copied, the policy answers three questions in ten \
             without the calculator, with digits that it makes up, and starts half of the others from the wrong side. Then success \
             rises, and so do calls: two for a question with two operators, one for one.",
            "运行从模仿结束的地方开始，成功率约 46%：它像所模仿的人那样，十道题里有三道不用计算器就答，数字是编的；其余的有一半从错的一边算起。随后成功率上升，调用次数也上升：两个运算符调用两次，一个就一次。",
        ),
        meaning: text(
            "Imitation learns to write what the demonstrator wrote, not why. It gives the format, and trial and error finds out when a \
             call is worth making.",
            "模仿学的是示范者写了什么，而不是为什么写。它给出格式，至于何时值得调用，要靠试错来发现。",
        ),
        evidence: text(
            "Calculator from its warm start (46 %): held-out success reaches 90 % at steps 28, 20, 19, 21, 18 (five seeds, CPU).",
            "计算器，从热启动（46%）开始：留出集成功率在第 28、20、19、21、18 步达到 90%（五个种子，CPU）。",
        ),
        environment: "calculator",
        settings: &[("iterations", "46")],
        other: None,
        topics: &[Topic::Imitation, Topic::EnvironmentInterface, Topic::Capabilities],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "from-scratch",
        title: text("Without a warm start nothing happens", "没有热启动，什么也不会发生"),
        press: text(
            "Press Train both: first from imitation, then from random weights. Look at the episodes of the second.",
            "按“两个都训练”：先从模仿开始，再从随机权重开始。看看后者的轨迹。",
        ),
        watch: text(
            "Success stays at 0. Random weights write random tokens, no episode of any group is right, and “groups, no signal” stands \
             at 100 %: where all returns are equal there is nothing to compare.",
            "成功率一直是 0。随机权重写出随机词元，没有一组里有答对的轨迹，“无信号的组”停在 100%：回报全都相等，就没有可比较的。",
        ),
        meaning: text(
            "A policy gradient strengthens what already happens now and then; it does not invent. At this size reinforcement learning \
             needs imitation first. This lesson shows a failure, and no setting here repairs it.",
            "策略梯度只会加强偶尔已经出现的行为，不会凭空发明。在这个规模上，强化学习必须先有模仿。这一课展示的是失败，这里没有哪项设置能挽救它。",
        ),
        evidence: text(
            "No right answer in 10 steps on any of five seeds, 99 to 100 % of the groups without signal (CPU). From the warm start 51 to 67 % \
             at once.",
            "五个种子 10 步内没有一次答对，99% 到 100% 的组无信号（CPU）。从热启动开始，一上来就有 51% 到 67%。",
        ),
        environment: "search",
        settings: &[("iterations", "10"), ("warm_start", "none")],
        other: Some(&[("iterations", "10")]),
        topics: &[Topic::Imitation],
        focus: Focus::Curves,
        quantity: "advantage",
    },
];
