"""04.4 answers(): sums by hand, a function with four faults, bytes and bits."""

from __future__ import annotations

from itertools import permutations

from minipaged.course.checks.answers import Mistake, Question, answers_check

FAULTS = "BCAD"  # the fault that each of the four calls shows
CALLS = (
    "In the first call there is one sequence, one thread and one key. What is left to go wrong?",
    "In the second call all exponentials add up to 1, so no division is missing there. How many "
    "threads are there?",
    "In the third call the right exponentials are 1/4 and 3/4, and they add up to 1. Which ones "
    "does the function find, and from which query?",
    "In the fourth call there is one thread, and both scores are 0. How much do the exponentials "
    "add up to?",
)


def _orders() -> tuple[Mistake, ...]:
    """Every other order of the four letters, with a question on the first call that is wrong."""
    wrong = ["".join(order) for order in permutations("ABCD") if "".join(order) != FAULTS]
    first = [next(i for i in range(4) if order[i] != FAULTS[i]) for order in wrong]
    return tuple(Mistake(order, CALLS[i]) for order, i in zip(wrong, first, strict=True))


QUESTIONS = (
    Question(
        "a",
        "a running sum",
        "The running sum after blocks [ln 2, ln 4] and [ln 8, ln 2].",
        2.0,
        (
            Mistake(
                16,
                "Those are the exponentials without a maximum subtracted: each is to be divided "
                "by the largest of them.",
                1e-6,
            ),
            Mistake(
                2.75,
                "The sum of the first block still counts with the first block's maximum. What "
                "factor takes it to the new one?",
                1e-6,
            ),
            Mistake(1.25, "That is the second block alone.", 1e-6),
            Mistake(1.5, "That is the sum after the first block.", 1e-6),
        ),
        tolerance=1e-6,
    ),
    Question(
        "b",
        "two halves",
        "Outputs 2 and 6 with LSE ln 3 and 0, merged.",
        3.0,
        (
            Mistake(4, "That is the plain mean. The halves do not weigh the same.", 1e-6),
            Mistake(5, "The weights have changed places: the first half has the higher LSE.", 1e-6),
            Mistake(2, "An LSE of 0 is not an empty half: e to the 0 is 1. Empty is -inf.", 1e-6),
            Mistake(12, "Divide by the sum of both weights.", 1e-6),
        ),
        tolerance=1e-6,
    ),
    Question(
        "c",
        "what suspect returns",
        "What suspect returns for equal scores, values 3, 5 and 10, two threads.",
        5,
        (
            Mistake(6, "That is what it should return. Follow what it does do, thread by thread."),
            Mistake(18, "That is the sum of all values. What happens to the result of thread 0?"),
            Mistake(13, "That is what thread 0 has. Thread 1 comes after it."),
            Mistake(2.5, "Is there a line that divides?"),
        ),
        tolerance=1e-6,
    ),
    Question(
        "d",
        "four calls",
        "The one fault that each of the four calls shows.",
        FAULTS,
        _orders(),
        "Four capital letters, each of A to D once, in the order of the calls.",
    ),
    Question(
        "e",
        "bytes read",
        "MiB of keys and values in a context of 2,048 tokens, all layers: Llama-3-8B.",
        256,
        (
            Mistake(8, "That is one layer. Each of the 32 layers reads its own keys and values."),
            Mistake(128, "That is the keys or the values alone. Attention reads both."),
            Mistake(
                1024, "That counts the query heads. Four of them read the same keys and values."
            ),
            Mistake(268_435_456, "That is in bytes. Asked for are MiB, of 2 to the 20 bytes."),
            Mistake(
                0.125, "That is one token's keys and values. Which of them does attention read?"
            ),
            Mistake(268, "A MiB has 2 to the 20 bytes, not a million.", 1),
        ),
        tolerance=0.2,
    ),
    Question(
        "f",
        "every bit",
        "The change that leaves every bit of the result as it was.",
        "moved",
        (
            Mistake(
                "resized",
                "With larger blocks the numbers are added up in other groups, so the rounding is "
                "another one.",
            ),
            Mistake(
                "reversed",
                "The sums then begin at their other end, so the rounding is another one.",
            ),
            Mistake("split", "Two halves are added up apart, so the rounding is another one."),
        ),
        "The answer is one of the four words, as the question spells them.",
    ),
    Question(
        "g",
        "gathered first",
        "MiB read and written for the context of e if it is gathered first.",
        768,
        (
            Mistake(256, "That is the reading of the blocks alone. Who fills and reads the copy?"),
            Mistake(512, "The copy is written, and then attention has to read it."),
            Mistake(1024, "Blocks read, copy written, copy read: count the ways once more."),
            Mistake(24, "That is one layer. It happens in each of the 32."),
            Mistake(805_306_368, "That is in bytes. Asked for are MiB, of 2 to the 20 bytes."),
            Mistake(805, "A MiB has 2 to the 20 bytes, not a million.", 1),
        ),
        "A kernel that looks the table up reads each block where it lies, and copies nothing.",
        0.2,
    ),
    Question(
        "h",
        "the table is read, too",
        "KiB of block table that the query of e reads, in all 32 layers: block size 16, 4 bytes "
        "an entry.",
        16,
        (
            Mistake(0.5, "That is one layer. Each of the 32 reads the table again.", 0.01),
            Mistake(256, "That is an entry for each token. An entry serves a whole block."),
            Mistake(16_384, "That is in bytes. A KiB has 1,024 of them."),
            Mistake(4, "Each entry takes four bytes."),
            Mistake(128, "That is the number of entries in the table."),
            Mistake(4096, "That counts the entries that all layers read. Asked for are KiB."),
            Mistake(16.384, "A KiB has 1,024 bytes.", 0.01),
        ),
        "Paging costs a look-up a block. In bytes that is next to nothing; what it costs in time, "
        "before an address is known, has to be measured.",
        0.001,
    ),
)
CHECK = answers_check(QUESTIONS)
