"""07.4 answers(): gaps, chunks, what a scheduler looks at, and what a budget has to leave room for.

Questions a to c and f have one cost model: 10 ms a step and 0.05 ms a token in it; 32 requests
decode when a prompt of 8,000 arrives.
"""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

STEP_MS, TOKEN_MS = 10.0, 0.05
DECODES, PROMPT, BUDGET = 32, 8000, 512
ROOM = BUDGET - DECODES
FULL_STEPS, LAST = divmod(PROMPT, ROOM)


def step_ms(num_tokens: int) -> float:
    """How long a step with so many tokens takes."""
    return STEP_MS + TOKEN_MS * num_tokens


WHOLE_MS = step_ms(DECODES + PROMPT)
FULL_MS = step_ms(BUDGET)
CHUNKED_MS = FULL_STEPS * FULL_MS + step_ms(DECODES + LAST)
NEAR = 0.06

QUESTIONS = (
    Question(
        "a",
        "a gap, in one step",
        "32 decodes, a prompt of 8,000, no limit: the longest gap in ms.",
        WHOLE_MS,
        (
            Mistake(step_ms(PROMPT), "The 32 decodes are in the step as well, a token each.", NEAR),
            Mistake(
                step_ms(PROMPT) + step_ms(DECODES + 1),
                "The 32 decodes take part in the prompt's own step, and get a token at its end.",
                NEAR,
            ),
            Mistake(
                TOKEN_MS * PROMPT,
                "Every step has its fixed part, and the decodes are in it as well.",
                NEAR,
            ),
            Mistake(
                step_ms(DECODES),
                "That is a step without the prompt. The gap in question is the one with it.",
                NEAR,
            ),
        ),
        "A decode gets its token at the end of the step, however much else is in it.",
        NEAR,
    ),
    Question(
        "b",
        "a gap, with a budget",
        "The same, and no step may have more than 512 tokens.",
        FULL_MS,
        (
            Mistake(
                step_ms(BUDGET + DECODES),
                "The decodes are in the budget, not beside it: 512 tokens in all.",
                NEAR,
            ),
            Mistake(
                step_ms(ROOM),
                "That is the step without its decodes. They take 32 of the 512.",
                NEAR,
            ),
            Mistake(WHOLE_MS, "With the budget no step has all of the prompt.", NEAR),
        ),
        "The budget is what a step may have in all, so it bounds how long a step takes.",
        NEAR,
    ),
    Question(
        "c",
        "how many chunks",
        "In how many steps is that prompt read with the budget of 512?",
        FULL_STEPS + 1,
        (
            Mistake(
                -(-PROMPT // BUDGET),
                "This cuts by 512. The decodes take their tokens first, and what the full chunks "
                "leave over needs a step too.",
            ),
            Mistake(
                PROMPT // BUDGET,
                "This cuts by 512, and forgets the rest. The decodes take their tokens first.",
            ),
        ),
        "A chunk is what the decodes leave of the budget; the last one is what is left over.",
    ),
    Question(
        "d",
        "one measure for all",
        "2,048 tokens for 40 decodes, 3 that verify, a prompt of 64, and a long one.",
        1929,
        (
            Mistake(
                1932, "Each of the three verifies 4 guesses and computes its own next token: 5."
            ),
            Mistake(2048, "All the others come before it, and they are in the same budget."),
            Mistake(1984, "Only the short prompt is taken off. Those that run come first."),
            Mistake(1993, "The short prompt came before the long one."),
            Mistake(1944, "Three requests verify, with 5 tokens each."),
            Mistake(512, "There is no fixed chunk: what is left of the budget is the chunk."),
        ),
        "Whatever a request does, it is so many tokens of the one budget.",
    ),
    Question(
        "e",
        "prefill or decode",
        "What tells the scheduler how much to give a request?",
        "difference",
        (
            Mistake("flag", "A flag would have to be kept right at each chunk and preemption."),
            Mistake("queue", "Both stand in `running`, one behind the other."),
            Mistake("outputs", "A preempted request has outputs, and all to compute again."),
        ),
        "Known tokens less computed ones: 1 is what others call decode.",
    ),
    Question(
        "f",
        "the price",
        "The same prompt in chunks: after how many ms is it read whole?",
        CHUNKED_MS,
        (
            Mistake(
                (FULL_STEPS + 1) * FULL_MS,
                "The last step is not a full one. How many tokens are left for it?",
                NEAR,
            ),
            Mistake(WHOLE_MS, "That is how long it takes in one step.", NEAR),
            Mistake(FULL_STEPS * FULL_MS, "The last chunk is missing.", NEAR),
            Mistake(
                CHUNKED_MS - TOKEN_MS * DECODES,
                "The last step has its 32 decodes as well.",
                NEAR,
            ),
        ),
        "Add up the steps. Chunks cost the fixed part of a step each, and the decodes' tokens.",
        NEAR,
    ),
    Question(
        "g",
        "never cut",
        "Without chunks: the least budget with which no allowed prompt waits for ever.",
        4095,
        (
            Mistake(4096, "A prompt of 4,096 is refused: there is no room for an output."),
            Mistake(2048, "A prompt of 2,049 would never fit into a step."),
            Mistake(4097, "The longest allowed prompt has to fit, and it is shorter than that."),
        ),
        "A prompt that is not cut needs a step for the whole of it.",
    ),
    Question(
        "h",
        "behind many decodes",
        "Budget 512, a prompt of 4,000: steps behind 256 decodes, and alone.",
        [16, 8],
        (
            Mistake([8, 16], "The two numbers have changed places."),
            Mistake([8, 8], "256 decodes take half of the budget in every step."),
            Mistake([15, 7], "The last chunk needs a step as well."),
            Mistake([16, 7], "The last chunk of 416 tokens needs a step as well."),
            Mistake([16, 16], "Alone it has the whole budget."),
        ),
        "4,000 divided by what is left of the budget, rounded up.",
    ),
)
CHECK = answers_check(QUESTIONS)
