"""08.4 answers(): victims, the two prices, admission, water marks, limits."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "who goes, and what it costs",
        "A has 2,400 computed tokens, B 700, C 900; admitted in this order. Tokens computed "
        "again if the longest goes; if the last admitted goes.",
        [2400, 900],
        (
            Mistake([900, 2400], "The right two numbers, the other way round."),
            Mistake([2400, 700], "B has the fewest, but C was admitted after B."),
            Mistake([1, 1], "A victim loses all its blocks, not only the one that is missing."),
            Mistake([16, 16], "A victim loses all its blocks, not only the one that is missing."),
            Mistake([1600, 3100], "What is lost is the victim's own work, not that of the others."),
        ),
        "A victim computes again all that it had computed.",
    ),
    Question(
        "b",
        "what comes back",
        "Prompt 5, three outputs, then preempted. Tokens computed when it comes back, and what "
        "became of its outputs.",
        [8, "kept"],
        (
            Mistake([8, "lost"], "The outputs are known tokens, and the user has read them."),
            Mistake([5, "kept"], "Outputs are kept as tokens; their keys and values are gone."),
            Mistake(
                [5, "lost"],
                "A victim is not started again: prompt and outputs are known tokens, and all of "
                "them are computed.",
            ),
            Mistake([3, "kept"], "The prompt's keys and values are gone as well."),
            Mistake(
                [7, "kept"], "Before it left, the last output was not computed yet. Now it is."
            ),
            Mistake([9, "kept"], "The fourth output is not known yet: this pass samples it."),
        ),
        "Known tokens stay known. All of them are computed in one pass, which samples the next.",
    ),
    Question(
        "c",
        "whom to compute again",
        "16 GB/s, 500 TFLOP/s, no attention. Llama-2-7B, Llama-2-13B and Llama-3-8B: for which "
        "does computing again take less time?",
        ["Llama-2-7B", "Llama-2-13B"],
        (
            Mistake(["Llama-2-13B", "Llama-2-7B"], "The right two names. Write them in order."),
            Mistake(
                ["Llama-2-7B", "Llama-3-8B"],
                "The size of a model does not decide. Compare the bytes of a token: 524,288 in the "
                "first, 131,072 in the second.",
            ),
            Mistake(
                ["Llama-2-7B"],
                "This is for a bus of 32 GB/s. Here moving takes twice as long, computing does "
                "not.",
            ),
            Mistake(
                ["Llama-3-8B"], "It has few bytes a token: moving 1,000 of them takes 16.4 ms."
            ),
            Mistake(
                ["Llama-2-7B", "Llama-2-13B", "Llama-3-8B"],
                "One of them has few bytes a token, and moves in less time than it computes.",
            ),
            Mistake([], "Do both sums for the 7B: computing takes 27.0 ms for 1,000 tokens."),
        ),
        "Computing takes less while parameters per byte of a token stay below FLOP/s per byte/s.",
    ),
    Question(
        "d",
        "a long context out and in",
        "Llama-2-13B, 819,200 bytes a token, 6,000 tokens, 32 GB/s: ms out and in.",
        307.2,
        (
            Mistake(153.6, "This is one way. It has to come back.", 1.0),
            Mistake(312.5, "This is for 5 GB. Multiply the tokens with the bytes first.", 0.9),
            Mistake(156.25, "This is one way, and for 5 GB: multiply tokens and bytes first.", 0.9),
            Mistake(314.6, "This is for 6,144 tokens.", 0.9),
            Mistake(0.3072, "Asked for are milliseconds.", 0.001),
        ),
        "2 * tokens * bytes a token / bytes a second.",
        0.6,
    ),
    Question(
        "e",
        "max_num_seqs wide open",
        "1,000 blocks of 16, max_num_seqs 256, budget enough, no reserve. Prompts of 160 tokens, "
        "each ends at 640. Admitted at once; at full length at once.",
        [100, 25],
        (
            Mistake(
                [256, 25], "max_num_seqs is a limit beside the memory, not a promise of memory."
            ),
            Mistake([100, 62], "A request at full length holds 640 / 16 blocks."),
            Mistake([25, 25], "At admission only the prompt's blocks are counted."),
            Mistake([100, 100], "Each of them grows: at 640 tokens it holds four times as much."),
            Mistake([100, 75], "This is how many have to go, not how many fit."),
        ),
        "Admission counts what a request needs now; growth asks for the rest later.",
    ),
    Question(
        "f",
        "water marks",
        "800 blocks; low mark 40, high mark 150, both of free blocks; 90 are free.",
        "hold",
        (
            Mistake("admit", "90 is below the high mark: nobody enters."),
            Mistake(
                "preempt",
                "90 is above the low mark: nobody has to leave. This reads the marks as blocks "
                "in use.",
            ),
        ),
        "Free below low: preempt. Free below high: admit nobody. Between them: neither.",
    ),
    Question(
        "g",
        "who counts",
        "Below 3 preemptions swap, from 3 on recompute. A was preempted three times, now B for "
        "the first time: with one count on the scheduler; with a count for each request.",
        ["recompute", "swap"],
        (
            Mistake(["swap", "recompute"], "The right two words, the other way round."),
            Mistake(
                ["recompute", "recompute"], "B's own count is 0. That A was unlucky is not B's."
            ),
            Mistake(["swap", "swap"], "A's three preemptions have used up the common count."),
        ),
        "A limit belongs to whom it protects: the count is kept with the request.",
    ),
    Question(
        "h",
        "the tighter limit",
        "200 blocks of 16, max_model_len 4,096. A request alone, prompt 3,000, max_tokens 1,000.",
        201,
        (
            Mistake(200, "The last output is never stored, so it needs no slot."),
            Mistake(1000, "The pool has 3,200 slots: it ends the request before max_tokens does."),
            Mistake(1096, "max_model_len is not the tightest limit. How many slots has the pool?"),
            Mistake(199, "The prompt fills 3,000 slots, and 200 more tokens can be stored."),
        ),
        "P + k - 1 slots for k outputs, and the tightest of pool, max_model_len and max_tokens.",
    ),
)
CHECK = answers_check(QUESTIONS)
