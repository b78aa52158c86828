"""10.4 answers(): pages, nodes, protected and evictable, the queue, duplicates, patience."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "a prompt that is known",
        "Pages of 16. The tree knows a prompt of 48 tokens; the same prompt comes again. Hits?",
        32,
        (
            Mistake(48, "Then nothing would be left to compute, and no next token to sample."),
            Mistake(47, "One token is left, but a hit is made of whole pages."),
            Mistake(2, "This is the number of pages. Asked for are tokens."),
            Mistake(3, "This is all pages of the prompt. Asked for are the tokens of a hit."),
            Mistake(0, "The tree has its pages, and all but the last can be used."),
        ),
        "A hit is whole pages, and leaves at least one token to compute.",
    ),
    Question(
        "b",
        "nodes",
        "Page 1: 1 2 3 4 5 6 7 8, then 1 2 3 9, then 1 2 3 4 5 0. Nodes without the root?",
        5,
        (
            Mistake(10, "This is a trie: one node a token. Runs without a branch are one node."),
            Mistake(3, "Each sequence splits a node as well: count what lies on both sides."),
            Mistake(4, "Draw it: how many nodes are there after the second sequence?"),
            Mistake(6, "Leave the root out."),
            Mistake(7, "Neighbours without a branch between them are one node."),
        ),
        "A sequence that leaves a node inside it makes two nodes more: a half and its own rest.",
    ),
    Question(
        "c",
        "protected, evictable",
        "Page 1. A request of 1 … 8 runs. Another of 1 2 3 9 9 9 9 has finished.",
        [8, 4],
        (
            Mistake([3, 9], "All eight tokens of the running request are in use, below too."),
            Mistake([5, 7], "The shared three are in use by the running request as well."),
            Mistake([8, 7], "The shared three are in the tree once, and they are protected."),
            Mistake([12, 0], "Nobody holds the other's four tokens of its own any more."),
            Mistake([8, 3], "All seven tokens of the other were computed, and three are shared."),
            Mistake([4, 8], "The right two numbers, the other way round."),
            Mistake([3, 4], "Below the split the running request's tokens are in use, too."),
        ),
        "Every block counts once: protected if a table holds it, else evictable.",
    ),
    Question(
        "d",
        "the queue",
        "Tables A [0, 1, 2] and B [0, 1, 3, 4], all blocks known, the queue empty. A, then B ends.",
        [2, 4, 3, 1, 0],
        (
            Mistake([2, 1, 0, 4, 3], "When A ends, B still holds 0 and 1: they are not free yet."),
            Mistake([0, 1, 2, 3, 4], "A table is freed from its end to its beginning."),
            Mistake([2, 0, 1, 3, 4], "A table is freed from its end to its beginning."),
            Mistake([0, 1, 3, 4, 2], "Blocks with a hash go to the queue's end, not to its front."),
            Mistake([4, 3, 2, 1, 0], "A ended first, so what only A held was queued first."),
        ),
        "Known blocks go to the end of the queue, a table's tail before its head.",
    ),
    Question(
        "e",
        "duplicates",
        "Two requests with the same prompt of 5 full pages compute it at once. Blocks held for it?",
        [10, 5],
        (
            Mistake([5, 10], "The right two numbers, the other way round."),
            Mistake([5, 5], "The hash index returns no swaps: each table keeps its own blocks."),
            Mistake(
                [10, 10], "The tree has one block a prefix, and the tables are made to use it."
            ),
            Mistake([10, 0], "The duplicates go, the tree's own blocks stay in both tables."),
        ),
        "With hashes both copies stay; the tree lets the second table use the first one's blocks.",
    ),
    Question(
        "f",
        "patience",
        "Order lpm, patience 8. The first in line matches nothing, all others match. How many of "
        "them can be admitted before it?",
        8,
        (
            Mistake(9, "After 8 it has been passed over 8 times, and then it is its turn."),
            Mistake(7, "It may be passed over 8 times, not 7."),
            Mistake(32, "This is how many are looked at, not how many may go first."),
            Mistake(0, "That is first come, first served."),
        ),
        "Each admission of somebody else passes the first in line over once.",
    ),
)
CHECK = answers_check(QUESTIONS)
