"""03.4 answers(): the graded self-check questions of lesson 03, a case a letter."""

from __future__ import annotations

from typing import Any

from minipaged.course.checks.base import Check, Close, Failure
from minipaged.course.script import Case, Operation

QUESTIONS: dict[str, tuple[Any, str]] = {
    "a": (
        88 * 32 + 6,
        "The slot of the token at position 70: block size 32, table [12, 5, 88, 3].",
    ),
    "b": (20, "Which position stands in slot 1460? Block size 16, table [7, 91, 142]."),
    "c": (
        1024,
        "Bytes of the table of a request of 4,096 tokens: block size 16, 4 bytes an entry.",
    ),
    "d": (
        [0, 1],
        "Entries that are new or change when a token comes at position 47, and then at 48: block "
        "size 16.",
    ),
    "e": ("TLB", "The word of an operating system's paging without a counterpart in this lesson."),
    "f": (65_536, "Bytes of keys and values in one block of one layer: Llama-3-8B, block size 16."),
}

# (letter, wrong answer) -> what is behind it
MISTAKES: tuple[tuple[str, Any, str], ...] = (
    ("a", 2 * 32 + 6, "The table was not asked: this is the position itself."),
    ("a", 88 + 6, "The offset was added to the number of the block, not to its first slot."),
    ("a", 88 * 32 + 70, "The whole position was added; only the offset inside the block counts."),
    ("a", 5 * 32 + 6, "Entries are counted from 0: logical block 2 is the third entry."),
    ("a", 3 * 32 + 6, "Entries are counted from 0: logical block 2 is the third entry."),
    ("a", 88 * 16 + 6, "The block size is another one here, not 16."),
    ("a", 88, "This is the physical block. The slot is a place in it."),
    ("b", 91 * 16 + 4, "This is the slot again. Which entry of the table names its block?"),
    ("b", 4, "This is the offset inside the block. Which logical block is it?"),
    ("b", 1, "This is the logical block. Asked for is the position of the token."),
    ("b", 91, "This is the physical block. Where in the table does it stand?"),
    ("b", 2 * 16 + 4, "Entries are counted from 0: the second entry is logical block 1."),
    ("c", 4096 * 4, "That is an entry for each token. An entry serves a whole block."),
    ("c", 256, "That is the number of entries. Each of them takes several bytes."),
    ("c", 4096, "That is the number of tokens. How many blocks hold them?"),
    ("c", 4096 * 16 * 4, "Divide the tokens by the block size; they were multiplied by it."),
    ("d", [1, 1], "Not every token needs a new entry: most of them find room in the last block."),
    ("d", [1, 0], "Positions are counted from 0. Which position is the first of a block?"),
    ("d", [0, 0], "Sooner or later the last block is full, and a token needs another one."),
    ("d", [3, 4], "That is how many entries the table has. Asked for is how many are new."),
    ("d", [2, 3], "Asked for is how many entries are new or change, not which."),
    ("e", "page", "A page is a logical block: as many tokens as fit in a block."),
    ("e", "frame", "A frame is a physical block: the place in memory that is handed out."),
    ("e", "page table", "That is the block table itself."),
    ("e", "page fault", "It has one: a further block is allocated when the last one is full."),
    ("e", "offset", "It is the same in both: what remains of the division by the size."),
    ("f", 32_768, "That is the keys alone, or the values alone. A block holds both."),
    ("f", 4_096, "That is one token. A block has several slots."),
    ("f", 65_536 * 32, "That is all layers. Asked for is one of them."),
    ("f", 65_536 * 4, "That counts the query heads. Only the KV heads are stored."),
    (
        "f",
        65_536 * 2,
        "That is twice as much. A number of 16 bits takes two bytes, not four. Or is it one token "
        "in all layers? Asked for is a whole block in one layer.",
    ),
    ("f", 65_536 // 2 // 2, "That counts one byte a number, and keys or values only."),
)


def visible() -> list[Case]:
    """A case a question."""
    return [_case(letter, story) for letter, (_, story) in QUESTIONS.items()]


def _case(letter: str, story: str) -> Case:
    call = Operation((), keep="answers")
    return Case(f"question {letter}", story, (call, Operation((letter,), "answers", how="item")))


def _oracle(case: Case) -> list[Any]:
    answer = QUESTIONS[case.operations[1].args[0]][0]
    return [Close(answer, 0.0, 0.0) if type(answer) is int else answer]


def explain(failure: Failure) -> str:
    """What is behind this wrong answer."""
    if failure.number == 0:
        return ""
    (asked,) = failure.operation.args
    if failure.fault == "KeyError":
        return "This letter is missing: give an answer for each of a to f."
    for letter, wrong, sentence in MISTAKES:
        if letter == asked and wrong == failure.got:
            return sentence
    return ""


CHECK = Check(visible, lambda seed: [], _oracle, explain=explain, secret=True)
