"""12.4 answers(): a merge, pieces, bytes of merging, batch sizes, intensity, and bits."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "three pieces",
        "Outputs 2, 6 and 7 with the LSEs ln 3, 0 and -inf, merged.",
        3.0,
        (
            Mistake(5, "That is the plain mean of all three. The LSE says what each counts.", 1e-6),
            Mistake(4, "That is the plain mean of two. The LSE says what each counts.", 1e-6),
            Mistake(2, "An LSE of 0 is not an empty piece: e to the 0 is 1. Empty is -inf.", 1e-6),
            Mistake(3.8, "e to the -inf is 0: the third piece does not count at all.", 1e-6),
            Mistake(12, "Divide by the sum of the weights.", 1e-6),
            Mistake(3.25, "e to the -inf is 0: the third piece does not count at all.", 1e-6),
        ),
        tolerance=1e-6,
    ),
    Question(
        "b",
        "as many pieces",
        "The fewest pieces that give 132 multiprocessors two programs each: 4 sequences, 8 KV "
        "heads.",
        9,
        (
            Mistake(8, "8 pieces are 256 programs, and two for each of 132 are 264."),
            Mistake(8.25, "A piece is whole: round up."),
            Mistake(5, "That gives each multiprocessor one program; two were asked for."),
            Mistake(3, "That counts the query heads. Those of a group share a program."),
            Mistake(33, "That is for one KV head. Each sequence has 8 programs for each piece."),
            Mistake(66, "That is for the sequences alone. Each has 8 KV heads."),
            Mistake(264, "That is the number of programs in all."),
        ),
    ),
    Question(
        "c",
        "what merging moves",
        "KiB that pieces write and the merge reads: 8 pieces, 32 heads of 128, one token, one "
        "layer.",
        258,
        (
            Mistake(129, "That is written. The merge reads it again."),
            Mistake(256, "Each row comes with its LSE, one number more.", 0.01),
            Mistake(128, "Each row comes with its LSE, and the merge reads again what is written."),
            Mistake(64.5, "Pieces are kept in float32: a number is four bytes.", 0.01),
            Mistake(32.25, "That is one piece. There are 8, each with a row for each head.", 0.01),
            Mistake(264_192, "That is in bytes. A KiB has 1,024 of them."),
            Mistake(8.0625, "That is one head. Each piece has a row for each of the 32.", 0.01),
        ),
        tolerance=0.005,
    ),
    Question(
        "d",
        "enough to share",
        "The smallest batch at which the weights alone no longer bound an L40S by memory.",
        419,
        (
            Mistake(418, "At 418 there are 418 FLOP a byte, still below 362,000 / 864."),
            Mistake(418.98, "Sequences are whole: round up.", 0.1),
            Mistake(
                210,
                "A weight has two bytes and costs each sequence two FLOP: what is the quotient?",
            ),
            Mistake(
                838,
                "A weight has two bytes and costs each sequence two FLOP: what is the quotient?",
            ),
            Mistake(296, "That is an H100."),
            Mistake(1, "With one sequence there is 1 FLOP a byte, and the card offers hundreds."),
        ),
        "FLOP a byte of the weights are as many as the sequences that share them. The card's "
        "balance is its FLOP a second divided by its bytes a second.",
    ),
    Question(
        "e",
        "at most",
        "Per cent of an H100's peak FLOP that a decode of 64 sequences can reach.",
        21.7,
        (
            Mistake(43.4, "That is 128 sequences.", 0.1),
            Mistake(75, "That figure is claimed. What do 64 FLOP a byte leave of 295?", 10),
            Mistake(
                10.8,
                "A weight has two bytes and costs each sequence two FLOP: 64 FLOP a byte.",
                0.1,
            ),
            Mistake(0.217, "That is the share. Asked for are per cent.", 0.001),
            Mistake(461, "The other way round: 64 divided by the balance.", 1),
            Mistake(6.5, "64 / 989 mixes FLOP a byte with FLOP a second.", 0.1),
            Mistake(22, "With one decimal, please.", 0.1),
        ),
        "The share is the intensity divided by the card's balance.",
        tolerance=0.1,
    ),
    Question(
        "f",
        "attention by itself",
        "FLOP a byte of attention alone, Llama-3-8B: one sequence, then 64.",
        [4, 4],
        (
            Mistake(
                [4, 256],
                "Each sequence brings keys and values of its own. Nothing of them is shared.",
            ),
            Mistake([1, 1], "Four query heads share each KV head: four times the FLOP a byte."),
            Mistake(
                [1, 64],
                "Each sequence brings keys and values of its own, and four query heads share them.",
            ),
            Mistake([2, 2], "Two multiplications, and each with its addition; two bytes a number."),
            Mistake([8, 8], "Keys and values are both read."),
            Mistake([1 / 4, 1 / 4], "Query heads compute, KV heads are read: which are more?"),
        ),
        "A list of two ints: with one sequence, with 64.",
    ),
    Question(
        "g",
        "the same bits",
        "What leaves a row's bits as they are, whatever its neighbours.",
        "fixed size",
        (
            Mistake(
                "fixed number",
                "8 pieces of the longest sequence: a longer neighbour makes the pieces larger, and "
                "this row is cut elsewhere.",
            ),
            Mistake(
                "by the batch",
                "Other neighbours, other pieces: this row is cut elsewhere and rounded otherwise.",
            ),
            Mistake(
                "in float32",
                "float32 makes the rounding smaller. Other pieces are still rounded otherwise.",
            ),
        ),
        "The answer is one of the four, as the question spells them.",
    ),
    Question(
        "h",
        "nothing split",
        "By how much the LSE is too high if each of 4 pieces reads all keys.",
        1.386,
        (
            Mistake(
                4, "The sum of the exponentials is 4 times too large. The LSE is its logarithm."
            ),
            Mistake(0, "The output does not change. The LSE adds up what the pieces say."),
            Mistake(2, "That is the logarithm to the base 2. The LSE is a natural one."),
            Mistake(
                0.602, "That is the logarithm to the base 10. The LSE is a natural one.", 0.001
            ),
            Mistake(1.0986, "There are 4 pieces in place of 1, not 3.", 0.001),
        ),
        tolerance=0.001,
    ),
)
CHECK = answers_check(QUESTIONS)
