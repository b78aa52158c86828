"""02.3 answers(): the queue, lists and reference counts."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

LENGTH = 8192  # ids in the queue of questions b and c
NO_SEARCH = "What does Python have to do with the other elements, to find this one or to close up?"
QUESTIONS = (
    Question(
        "a",
        "which blocks come next",
        "A is [0, 1], B is [2], C is [3, 4, 5], the queue 6 7. B finishes; then allocate(2).",
        [2, 6],
        (
            Mistake(
                [6, 7], "This hands out the freed block last. A block without a hash goes first."
            ),
            Mistake([6, 2], "The right two, but the freed block stands before the untouched ones."),
        ),
        "A freed block without a hash is the next to be handed out.",
    ),
    Question(
        "b",
        "list.pop(0)",
        "How many elements does pop(0) move in a list of 8,192?",
        LENGTH - 1,
        (
            Mistake(0, f"A list has no gap at its front. {NO_SEARCH}"),
            Mistake(1, f"One element is taken, but that is not what is asked. {NO_SEARCH}"),
            Mistake(LENGTH, "Nearly: the element that is taken out does not move up."),
            Mistake(
                LENGTH // 2,
                "Half the list moves on average from a place anywhere, not from the front.",
            ),
        ),
        "All elements behind a gap in a list move up by one place.",
    ),
    Question(
        "c",
        "list.remove(x)",
        "Elements compared or moved by remove(x) in a list of 8,192, together, on average.",
        LENGTH,
        (
            Mistake(LENGTH // 2, "This is the search alone, or the shift alone. Add both."),
            Mistake(
                LENGTH - 1,
                "Nearly: the search compares x itself as well, to know that it is there.",
            ),
            Mistake(1, f"The element is not found at once. {NO_SEARCH}"),
        ),
        "What stands before x is compared, what stands behind it moves: no element is spared.",
    ),
    Question(
        "d",
        "a refcount",
        "Block 5 is in three tables. One of them is forked; the two others finish.",
        2,
        (
            Mistake(1, "Was the fork counted? A table that takes the block in is a holder more."),
            Mistake(4, "Holders that finish have to be taken off."),
            Mistake(3, "Go through the three events one by one: two of them take a holder off."),
            Mistake(
                0, "Nobody frees the whole block: each holder takes off its own reference only."
            ),
        ),
        "refcount is the number of tables that hold the block at this moment.",
    ),
    Question(
        "e",
        "blocks left free",
        "A pool of 12. Two tables of 5 blocks each, 3 of which they share.",
        5,
        (
            Mistake(
                2,
                "The shared blocks are counted twice. They stand in two tables and in memory once.",
            ),
            Mistake(7, "This is the number of blocks that are held. How many are left?"),
            Mistake(8, "Blocks that only one of the two holds are in use as well."),
        ),
        "A block is held once, in however many tables it stands.",
    ),
    Question(
        "f",
        "a second free",
        "What must a pool do when somebody frees a block without a holder?",
        "raise",
        (
            Mistake(
                "ignore", "Then the fault that led to it goes on unseen until outputs are wrong."
            ),
            Mistake(
                "queue",
                "Then the block is on the queue twice, and two requests will write into it.",
            ),
            Mistake(
                "warn",
                "Whoever called it believes that it still owned the block; it must not go on.",
            ),
        ),
        "A double free raises an error and changes nothing.",
    ),
    Question(
        "g",
        "one link or two",
        "Each id knows only the id behind it; the queue knows its head and its tail. Which method "
        "has to walk along the queue?",
        "remove",
        (
            Mistake("pop_head", "The head knows who comes next, and that one is the new head."),
            Mistake("append", "The tail is known: it gets a link to the id that comes in."),
            Mistake("prepend", "The id that comes in gets a link to the old head. Both are known."),
        ),
        "Taking an id out links its two neighbours. Which of them is not known to it?",
    ),
)
CHECK = answers_check(QUESTIONS)
