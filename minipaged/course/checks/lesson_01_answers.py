"""01.4 answers(): what contiguous memory costs, in numbers."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

FRACTION = "Give per cent, not a fraction."
QUESTIONS = (
    Question(
        "a",
        "16 reservations",
        "GiB reserved for 16 requests of 8,192 tokens by a model with 512 KiB a token.",
        64,
        (
            Mistake(4, "That is one request. There are sixteen."),
            Mistake(32, "Half of it: keys and values are both kept."),
            Mistake(68.7, "That is in units of 10^9 bytes. One GiB is 2^30.", 0.1),
            Mistake(64 * 2**30, "That is in bytes. Divide by 2^30."),
            Mistake(65536, "That is in MiB. A GiB has 1,024 of them."),
        ),
        tolerance=0.0001,
    ),
    Question(
        "b",
        "over time",
        "Per cent of the reserved slots that hold a token, averaged over time.",
        7.41,
        (
            Mistake(
                6.1,
                "That gives every request the same weight. A long one is there for longer, so it "
                "has to count for more.",
                0.05,
            ),
            Mistake(
                12.2,
                "That is the share at the end of a request. While it grows it uses half of that "
                "on average.",
                0.05,
            ),
            Mistake(
                14.8,
                "The weight is right. But a request holds its final length only at its end, and "
                "half of it on average.",
                0.05,
            ),
            Mistake(0.0741, FRACTION, 0.0006),
        ),
        tolerance=0.06,
    ),
    Question(
        "c",
        "a mean of 400",
        "Per cent used at the end, 400 of 4,096 slots, to one decimal.",
        9.766,
        (
            Mistake(9.7, "The second decimal is above five: round up, do not cut off.", 0.01),
            Mistake(0.098, FRACTION, 0.001),
            Mistake(90.2, "That is the share that is wasted.", 0.1),
        ),
        tolerance=0.04,
    ),
    Question(
        "d",
        "sessions of a 13B",
        "Whole sessions of 2,048 tokens in 54 · 10^9 bytes, 40 layers, 40 KV heads.",
        32,
        (
            Mistake(160, "That is with 8 KV heads. Here each of the 40 heads keeps its own."),
            Mistake(161, "That is with 8 KV heads, and rounded up. This model has 40."),
            Mistake(
                168, "That is with 0.32 GB a session, which fits 8 KV heads. This model has 40."
            ),
            Mistake(33, "The last of them does not fit whole: round down."),
            Mistake(34, "The memory is given in units of 10^9 bytes, not in GiB."),
            Mistake(64, "Twice too many: keys and values are both kept."),
        ),
    ),
    Question(
        "e",
        "empty at the end",
        "Mean number of empty slots in the last block of 128, all fillings equally likely.",
        63.5,
        (
            Mistake(
                64,
                "Nearly. The last block holds at least one token, or it would not be there: the "
                "number of empty slots goes from none to all but one.",
            ),
            Mistake(63, "Nearly. The mean lies between two whole numbers here: do not round."),
            Mistake(64.5, "That is the mean number of filled slots in it."),
            Mistake(127, "That is the most there can be."),
        ),
        tolerance=1e-06,
    ),
    Question(
        "f",
        "from 42 to 280",
        "How many times as many, to two decimals.",
        6.667,
        (
            Mistake(
                6.6, "The decimals behind it were cut off. Work it out to three, then round.", 0.01
            ),
            Mistake(6.7, "To two decimals, please.", 0.001),
            Mistake(
                5.67, "That is how many times more were added. Asked for is the quotient.", 0.01
            ),
            Mistake(0.15, "Upside down: divide the later number by the earlier one.", 0.001),
        ),
        tolerance=0.0075,
    ),
    Question(
        "g",
        "three kinds of waste",
        "[internal, reservation, external] waste in slots: A has slots 0-15 of 40, B 20-31. A "
        "holds 3 tokens and ends with 7, B holds 5 and ends with 12. A piece of 10 is asked for.",
        [9, 11, 12],
        (
            Mistake([20, 0, 12], "What they will still use is not needed yet, but it is needed."),
            Mistake([0, 20, 12], "A will end with 7 of its slots. Who uses the others?"),
            Mistake([11, 9, 12], "The first two the other way round: never used, not used yet."),
            Mistake([9, 11, 0], "12 slots are free, and a piece of 10 is refused nevertheless."),
            Mistake([9, 11, 2], "None of the free pieces has 10 slots, so all of them are lost."),
            Mistake([9, 11, 8], "Both free pieces are too small, not only the larger one."),
            Mistake([9, 19, 12], "19 tokens they have at the end. Some of them are there already."),
        ),
        "Internal is never used, reservation is not used yet, external is free and too small. The "
        "first is the largest where nobody knows how long an answer gets.",
    ),
    Question(
        "h",
        "left for the KV cache",
        "10^9 bytes left for the KV cache: a card of 80 * 10^9, gpu_memory_utilization 0.9, 26 * "
        "10^9 for weights, 4 * 10^9 for intermediate results.",
        42,
        (
            Mistake(72, "That is for all three together: it is no share of the KV cache's alone."),
            Mistake(46, "The intermediate results of a step need memory as well.", 0.1),
            Mistake(50, "That is all of the card. The setting leaves some of it to others."),
            Mistake(45, "The share is one of the whole card, not of what is left on it.", 0.1),
            Mistake(48.6, "The share is one of the whole card, not of what is left on it.", 0.1),
            Mistake(68, "The weights are on the card as well.", 0.1),
            Mistake(42 * 10**9, "That is in bytes. Asked for are units of 10^9."),
        ),
        tolerance=0.01,
    ),
    Question(
        "i",
        "how high it may be set",
        "The highest gpu_memory_utilization, in two decimals, that leaves 2.5 of 80 * 10^9 bytes "
        "to others.",
        0.96,
        (
            Mistake(0.97, "That leaves 2.4. What has to fit in is rounded down.", 0.001),
            Mistake(0.98, "That leaves 1.6 to others, who then run out of memory.", 0.001),
            Mistake(0.969, "Two decimals, please.", 0.003),
            Mistake(0.95, "That leaves more than is needed. One step more will do.", 0.001),
            Mistake(0.9, "That is safe. Asked for is the highest.", 0.001),
            Mistake(96, "Give a share, not per cent."),
            Mistake(0.03, "That is the share of the others.", 0.002),
        ),
        tolerance=0.001,
    ),
)
CHECK = answers_check(QUESTIONS)
