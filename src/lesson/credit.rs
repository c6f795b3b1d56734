//! Which tokens are trained, and which step earned the reward.

use super::{Focus, Lesson, Topic, text};

pub(super) static LESSONS: &[Lesson] = &[
    Lesson {
        name: "loss-mask",
        title: text("What the loss mask is for", "损失掩码是做什么用的"),
        press: text("Press Train both: first with the mask off, then with it on.", "按“两个都训练”：先关掉掩码，再打开。"),
        watch: text(
            "Every document here ends in eight random tokens. Masked, they are hatched and without a line below them, and 90 % comes \
             within eight steps. With the mask off they get colour and a line: the policy is rewarded and punished for tokens it did not \
             write, and success falls first.",
            "这里每篇文档末尾都带八个随机词元。有掩码时它们带斜线、下面没有横线，八步之内就到 90%。关掉掩码，它们也有了颜色和横线：策略因为不是自己写的词元而受奖受罚，成功率先往下掉。",
        ),
        meaning: text(
            "Tokens of a tool are not decisions, so they have no credit to get. They are read, and not trained.",
            "工具的词元不是决定，也就谈不上功过。它们只供阅读，不参与训练。",
        ),
        evidence: text(
            "Mask on: 90 % at steps 7, 5, 5, 5, 7. Mask off: falls to .33 .34 .41 .36 .46, never 90 % in 40 steps, ends at .57 .73 .75 .76 .65. \
             With short clean documents it only slows learning (five seeds, CPU).",
            "开掩码：第 7、5、5、5、7 步达到 90%。关掩码：先跌到 .33 .34 .41 .36 .46，40 步内到不了 90%，最后为 .57 .73 .75 .76 .65。文档短而干净时只是学得慢一些（五个种子，CPU）。",
        ),
        environment: "search",
        settings: &[
            ("iterations", "40"),
            ("gamma", "1"),
            ("context_length", "60"),
            ("turn_limit", "4"),
            ("random_tokens", "8"),
            ("two_search_demonstrations", "0.2"),
        ],
        other: Some(&[
            ("iterations", "40"),
            ("gamma", "1"),
            ("context_length", "60"),
            ("turn_limit", "4"),
            ("loss_mask", "0"),
            ("random_tokens", "8"),
            ("two_search_demonstrations", "0.2"),
        ]),
        topics: &[Topic::LossMask],
        focus: Focus::Episodes,
        quantity: "advantage",
    },
    Lesson {
        name: "useful-error",
        title: text("The error that helps", "有用的报错"),
        press: text(
            "Press Step three times, then Measure. Afterwards press Train.",
            "按三次“单步”，再按“测量”。之后按“开始训练”。",
        ),
        watch: text(
            "Find a run that returns ERR and a digit: the digit is the right key. Coloured by true credit it is clearly better than nothing. In \
             training errors become more frequent, three in ten episodes at first and nine in the end, while success rises from 40 % to over 90 %.",
            "找一次返回 ERR 加数字的运行：那个数字就是正确的钥匙。按真实信用着色，它明显有功。训练中报错越来越多，起初十条轨迹三条，最后九条，而成功率从 40% 升到 90% 以上。",
        ),
        meaning: text(
            "What looks like a failure can be the step that carries the information. A reward that punishes errors would teach the policy \
             to stay ignorant.",
            "看起来失败的一步，可能正带来了信息。惩罚报错的奖励，等于教策略什么都别去打听。",
        ),
        evidence: text(
            "90 % at steps 7, 10, 11, 21, 19. True credit of a run that fails: at the start +.20 +.22 +.24 +.21 +.29 (each ± .03), after two steps +.06 \
             +.08 +.08 +.05 +.09 (± .02), when GRPO assigns −.15 −.05 .00 −.21 +.06 and tree +.31 +.27 +.36 +.20 +.36 (five seeds, CPU).",
            "第 7、10、11、21、19 步达到 90%。报错的那次运行的真实信用：起初 +.20 +.22 +.24 +.21 +.29（各 ± .03），两步之后 +.06 +.08 +.08 +.05 +.09（± .02），这时 GRPO 分给它 −.15 −.05 .00 −.21 +.06，树形 +.31 +.27 +.36 +.20 +.36（五个种子，CPU）。",
        ),
        environment: "code",
        settings: &[("iterations", "36")],
        other: None,
        topics: &[Topic::CreditAssignment, Topic::Capabilities],
        focus: Focus::CreditCheck,
        quantity: "true_credit",
    },
    Lesson {
        name: "smooth-step",
        title: text("The smooth step that dooms the episode", "顺利的一步毁了整条轨迹"),
        press: text("Press Train: the run ends after three steps. Press Measure.", "按“开始训练”：三步后运行结束。再按“测量”。"),
        watch: text(
            "Look for episodes that ask the cache and fail. The result looks clean, nothing complains, and yet the true credit of the call is \
             clearly below 0: seven caches in ten are out of date, and an answer from them is lost.",
            "找那些查了缓存又失败的轨迹。结果干干净净，没有报错，可这次调用的真实信用明显小于 0：十个缓存里七个已过期，照着它回答必错。",
        ),
        meaning: text(
            "Credit is the change in what can be expected, not how a step looks. Methods see the sign here; how close they come differs, \
             and the table says by how much.",
            "信用是期望的变化，不是这一步看上去怎样。这里各种方法都看得出正负，离得多近则各不相同，表里写着差多少。",
        ),
        evidence: text(
            "True credit of asking a stale cache after two steps: −.52 −.51 −.50 −.57 −.54, each ± .01 to .02; tree assigns −1.9 −1.9 −1.5 −2.1 −1.8, \
             GRPO −1.1 −1.2 −.9 −1.2 −1.1, in units of their scaling (five seeds, CPU).",
            "两步之后，查到过期缓存的真实信用为 −.52 −.51 −.50 −.57 −.54（各 ± .01 到 .02）；树形分给它 −1.9 −1.9 −1.5 −2.1 −1.8，GRPO −1.1 −1.2 −.9 −1.2 −1.1（各以自己的尺度为单位；五个种子，CPU）。",
        ),
        environment: "code",
        settings: &[("iterations", "3")],
        other: None,
        topics: &[Topic::CreditAssignment],
        focus: Focus::CreditCheck,
        quantity: "true_credit",
    },
    Lesson {
        name: "poisoned",
        title: text("A document that looks fine and is wrong", "看着没问题、其实是错的文档"),
        press: text("Press Train.", "按“开始训练”。"),
        watch: text(
            "Six documents in ten give a wrong digit, marked only by a minus. At first the policy believes them, and 40 % is right. Then \
             calls part: one where the mark is a dot, a second one, the check, where it is a minus.",
            "十篇文档里有六篇给的数字是错的，只有一个减号作标记。起初策略照单全收，答对 40%。随后调用次数分开：标记是句点的一次，是减号的再多一次核对。",
        ),
        meaning: text(
            "Verification is worth its turn only where it is needed, and the policy finds out where. The search that brought the bad document \
             is hardly to blame: believing it is.",
            "核对只在需要的地方才值那一轮，策略自己发现是哪里。错不在搜到坏文档的那次搜索，而在于信了它。",
        ),
        evidence: text(
            "90 % at steps 20, 27, 28, 25, 23 (five seeds, CPU); calls at the end 1.0 for clean and 2.0 for poisoned documents. True credit at \
             the warm start: search that met a poisoned document −.04 ± .01, the check after it +.48 ± .03.",
            "第 20、27、28、25、23 步达到 90%（五个种子，CPU）；最后干净文档调用 1.0 次，被投毒的 2.0 次。热启动时的真实信用：搜到投毒文档 −.04 ± .01，随后核对 +.48 ± .03。",
        ),
        environment: "poisoned",
        settings: &[],
        other: None,
        topics: &[Topic::Verification, Topic::EnvironmentInterface, Topic::Capabilities],
        focus: Focus::Curves,
        quantity: "advantage",
    },
    Lesson {
        name: "luck",
        title: text("Luck between decisions", "决定之间夹着运气"),
        press: text(
            "Press Train both: first one number for the whole episode, then one for each turn.",
            "按“两个都训练”：先是整条轨迹一个数，再是每轮一个数。",
        ),
        watch: text(
            "Three of six pages pay by luck, whatever the policy does. With credit per turn (return-to-go, γ 0) a right click is praised for \
             itself; with one number for the episode right clicks turn orange when the luck was bad. Per turn 60 % comes in half the steps.",
            "六页里有三页全凭运气付钱，策略怎么做都一样。逐轮分配信用（剩余回报，γ 为 0）时，点对就因点对而受奖；整条轨迹一个数时，运气一差，点对的也变成橙色。逐轮分配只用一半步数就到 60%。",
        ),
        meaning: text(
            "The longer an episode and the more luck in it, the less one number says about each decision. Where rewards come at the turn that \
             earned them, use that.",
            "轨迹越长、运气越多，一个总数对每个决定说明的就越少。奖励就在挣得它的那一轮给出时，应当利用这一点。",
        ),
        evidence: text(
            "60 % right clicks at steps 12, 12, 10, 7, 10 per turn and 28, 28, 23, 21, 31 per episode; ends .82 .87 .85 .87 .84 and .71 .69 .75 \
             .72 .69. Correlation with true credit .51 and .36 (five seeds, CPU).",
            "点对率达到 60%：逐轮为第 12、12、10、7、10 步，整条轨迹为第 28、28、23、21、31 步；最后为 .82 .87 .85 .87 .84 与 .71 .69 .75 .72 .69。与真实信用的相关为 .51 与 .36（五个种子，CPU）。",
        ),
        environment: "spin",
        settings: &[("gamma", "0"), ("credit_method", "return_to_go")],
        other: Some(&[]),
        topics: &[Topic::CreditAssignment],
        focus: Focus::Episodes,
        quantity: "advantage",
    },
    Lesson {
        name: "which-credit",
        title: text("Which method's credit is right?", "哪种方法的信用分得对？"),
        press: text(
            "Press Train: five steps. Press Measure, then choose rows of the table.",
            "按“开始训练”：只有五步。按“测量”，再逐行选择表中的方法。",
        ),
        watch: text(
            "The closest method stands below the table, with intervals. One number for the whole episode is right about the sign and poor \
                 on tool turns; comparing equal states comes much closer.",
            "表下写着哪种方法最接近，并给出区间。整条轨迹一个数，正负多半是对的，到了工具轮就差了；比较相同状态的方法近得多。",
        ),
        meaning: text(
            "GRPO gives every turn of an episode the same number. Comparing states that the group shares (tree) tells turns apart where \
             histories repeat, as in search; where they do not repeat it is no better. More accurate credit did not by itself learn \
             search faster.",
            "GRPO 给一条轨迹的每一轮同一个数。树形方法比较组内共有的状态，历史重复的地方（如搜索）就能把各轮分开；不重复的地方并不更好。信用更准，并没有让搜索学得更快。",
        ),
        evidence: text(
            "Pearson correlation with true credit over all turns: tree .85 .89 .78 .90 .84, GRPO .56 .60 .47 .51 .50; over tool turns .77 .80 .64 \
                 .89 .56 and .30 .30 .30 .44 .17 (five seeds, CPU, 32 re-rolls).",
            "与真实信用的 Pearson 相关，全部轮：树形 .85 .89 .78 .90 .84，GRPO .56 .60 .47 .51 .50；工具轮：.77 .80 .64 .89 .56 与 .30 .30 .30 .44 .17（五个种子，CPU，重新采样 32 次）。",
        ),
        environment: "search",
        settings: &[("iterations", "5"), ("gamma", "1"), ("groups", "12")],
        other: None,
        topics: &[Topic::CreditAssignment],
        focus: Focus::CreditCheck,
        quantity: "method:tree",
    },
];
