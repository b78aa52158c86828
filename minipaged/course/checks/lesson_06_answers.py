"""06.4 answers(): states, idle slots, what fits into memory, and what batching cannot speed up."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "a move that is refused",
        "Five moves of a request. Which one is refused?",
        "WAITING to PREEMPTED",
        (
            Mistake("WAITING to RUNNING", "This is how a request enters."),
            Mistake("RUNNING to PREEMPTED", "This is how a request loses its blocks."),
            Mistake(
                "PREEMPTED to RUNNING",
                "This is how a victim comes back; it does not become WAITING first.",
            ),
            Mistake(
                "WAITING to FINISHED", "A user may go away before the turn of the request comes."
            ),
        ),
        "Only what a request has can be taken from it.",
    ),
    Question(
        "b",
        "idle in a static batch",
        "Four requests of 30, 200, 50 and 80 steps in one batch. Idle slot-steps, in per cent?",
        55,
        (
            Mistake(45, "This is the share that is used."),
            Mistake(440, "This is how many are idle. Asked for is their share, in per cent."),
            Mistake(0.55, "This is the share as a fraction. Asked for are per cent.", 0.001),
            Mistake(73, "The longest is never idle, but its slot counts among all.", 0.5),
            Mistake(80, "The one of 200 steps is never idle: count what all four use."),
        ),
        "The batch lasts as long as its longest request, and all slots are held for so long.",
        0.01,
    ),
    Question(
        "c",
        "one idle slot",
        "A, B and C have 120, 8 and 40 outputs, in one static batch. Idle steps of B's slot?",
        112,
        (
            Mistake(8, "In these 8 steps B computes."),
            Mistake(32, "B's slot is held until the longest of the batch has ended, not until C."),
            Mistake(192, "This is B's and C's slot together."),
            Mistake(93, "This is a share. Asked for is a number of steps.", 0.5),
            Mistake(111, "The batch lasts 120 steps, and B computes in 8 of them."),
        ),
        "From its end to the end of the longest request a slot idles.",
    ),
    Question(
        "d",
        "reserved, or in blocks",
        "16,384 slots; 250 tokens each, at most 2,048. How many at once, reserved and in blocks?",
        [8, 64],
        (
            Mistake([8, 65], "The last block of each is begun and not full: 16 blocks for 250."),
            Mistake([8, 8], "A request in blocks takes a block when it needs it, and not before."),
            Mistake([65, 65], "Reserved is what a request may need, not what it will need."),
            Mistake([65, 64], "Reserved is what a request may need, not what it will need."),
            Mistake([8, 68], "15 blocks have room for 240 tokens: the rest begins another one."),
            Mistake([8, 1024], "This is the blocks in all. How many does a request take?"),
            Mistake([64, 8], "The right two numbers, the other way round."),
        ),
        "A reservation counts with the longest possible end; blocks count with what is there.",
    ),
    Question(
        "e",
        "three gaps",
        "Gaps of 400, 1,600 and 1,000 slots; 2,000 are needed. In one piece? Blocks of 16 left?",
        [False, 62],
        (
            Mistake([False, 63], "1,000 slots are 62 whole blocks: each gap is cut by itself."),
            Mistake([False, 62.5], "Each gap is cut by itself, and only whole blocks count."),
            Mistake([True, 62], "No single gap has 2,000 slots in a row."),
            Mistake([True, 63], "No single gap has 2,000 slots in a row."),
            Mistake([False, 187], "These are the blocks before the request is in."),
            Mistake([False, 1000], "These are slots. Asked for are whole blocks."),
            Mistake([False, 992], "These are slots. Asked for are whole blocks."),
            Mistake([False, 0], "All three gaps serve, whatever their size."),
        ),
        "One piece needs one gap; blocks take what is free anywhere.",
    ),
    Question(
        "f",
        "the best possible",
        "400 ms for the prompt, 5 outputs, 20 ms a further step. All further steps for nothing?",
        1.2,
        (
            Mistake(1.25, "The prompt's step gives the first output: four steps are left.", 0.001),
            Mistake(
                4, "Where does the time of a request go here? Most of it is the prompt's step."
            ),
            Mistake(
                5, "Where does the time of a request go here? Most of it is the prompt's step."
            ),
            Mistake(0.2, "How many times as fast: the time before over the time after.", 0.001),
            Mistake(0.83, "How many times as fast: the time before over the time after.", 0.005),
            Mistake(20, "This is per cent of the time after. Asked for is how many times as fast."),
        ),
        "What a change does not touch sets the limit of what it can gain.",
        0.001,
    ),
    Question(
        "g",
        "three limits",
        "4 places, 64 tokens a step, 100 blocks of 16; ten prompts of 20. Who enters at once?",
        3,
        (
            Mistake(4, "Places would do for four, but their tokens do not fit into the budget."),
            Mistake(3.2, "Prompts are read whole."),
            Mistake(10, "Every one of the three limits counts."),
            Mistake(50, "This is what the blocks would do for. Every limit counts."),
            Mistake(5, "20 tokens take two blocks, but the blocks are not what is tight here."),
        ),
        "The tightest of the limits decides.",
    ),
)
CHECK = answers_check(QUESTIONS)
