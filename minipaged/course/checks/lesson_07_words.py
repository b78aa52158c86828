"""07.2: what a learner is told of a wrong step: the flaw that gives it, what the desk's complaint
comes from, or the rule.
"""

from __future__ import annotations

from typing import Any

from minipaged.course.checks import lesson_07_flaws as flaws

TOO_MANY_TOKENS = (
    "More was given than the budget has left. There is one for all together: a decode takes one "
    "token of it, a chunk its length, and those that wait share what those that run have left."
)
TOO_MANY_RUN = (
    "More run than max_num_seqs allows: it is the most that may run, the new one included."
)
FLAWS: tuple[tuple[type[flaws.Unified], str], ...] = (
    (
        flaws.AlwaysDraws,
        "A token was drawn behind a chunk that is not the last. What follows the prompt is known "
        "once all of it is computed; sample only where the last known token is computed.",
    ),
    (
        flaws.DrawsBehindThePrompt,
        "A request that comes back computes its outputs again as well, and they are known. The "
        "next token is drawn behind the last known token, not behind the prompt.",
    ),
    (
        flaws.DrawsDecodesOnly,
        "No token was drawn, though the last known token was computed. The length of a chunk says "
        "nothing, nor whether there are outputs: what counts is whether its end is the last known "
        "token.",
    ),
    (
        flaws.PromptsFirst,
        "Those that wait were served before those that run. The other way round: whoever decodes "
        "would stand still behind every new prompt.",
    ),
    (
        flaws.WholePrompts,
        "A prompt that does not fit into what is left of the budget is cut there: "
        "min(not computed, budget left). Waiting for a step with room for all of it may last for "
        "ever.",
    ),
    (flaws.BudgetForEach, TOO_MANY_TOKENS),
    (flaws.DecodesAreFree, TOO_MANY_TOKENS),
    (flaws.OwnBudgets, TOO_MANY_TOKENS),
    (flaws.NoSeats, TOO_MANY_RUN),
    (flaws.OneSeatMore, TOO_MANY_RUN),
    (
        flaws.WalksOverChanges,
        "Somebody was passed over. Preempting takes a request out of `running`, and those behind "
        "it move up: walk over a copy.",
    ),
    (
        flaws.PromptOnly,
        "A request that comes back has all its known tokens to compute: prompt and outputs. Ask "
        "for num_tokens, not num_prompt_tokens.",
    ),
    (
        flaws.DecodeIsOne,
        "A request with outputs was given one token. Preempted, it has none computed any more: "
        "the number is num_tokens - num_computed_tokens, whatever it did before.",
    ),
    (
        flaws.OwnVictim,
        "The last in line was preempted, though the rule for victims names another: ask "
        "choose_victim(running, request).",
    ),
    (
        flaws.PreemptsItself,
        "The request that found no block went itself. Whose blocks are taken choose_victim says.",
    ),
    (
        flaws.KeepsTheBudget,
        "The victim's tokens stood in the plan and were taken out. preempt returns how many: the "
        "budget has them back.",
    ),
    (
        flaws.SharesAgain,
        "The request that made room got more for it. How many tokens it gets is settled before; "
        "the budget that a victim gives back is for those behind it.",
    ),
    (
        flaws.Overtakes,
        "A request was admitted past one that came before it and does not fit. The first that "
        "cannot enter ends admission: else large ones would wait for ever.",
    ),
    (
        flaws.FirstChunkFits,
        "A request was admitted because its first chunk fits. All its known tokens have to: ask "
        "may_enter. Else it will be preempted in the middle of its prompt.",
    ),
    (
        flaws.OneAStep,
        "Only one request was admitted. While budget, places and memory last, the next one enters "
        "in the same step.",
    ),
    (
        flaws.NewestFirst,
        "Those that run were served from the last to the first. The order is that of admission.",
    ),
)
# flaws that few situations bring to light
BUDGET_KEPT, DRAWN_EARLY = flaws.KeepsTheBudget, flaws.DrawsBehindThePrompt
SHARED_AGAIN = flaws.SharesAgain
RULES = {
    "step": (
        "A step shares one budget. Those that run get min(tokens not computed, budget left), in "
        "the order of their admission; then those that wait, if nobody was preempted. A token is "
        "drawn where the last known token is computed, and nowhere else."
    ),
    "queues": (
        "Admitted requests stand in `running` in the order of their admission. A victim gives its "
        "blocks back and waits first in line."
    ),
}
FORM = "UnifiedScheduler is made with (config, manager, victim=…, admission=…, order=…)."
NONE = (
    "If a None is in the way: `grow` returns it where blocks are lacking, and a method of yours "
    "returns it without a `return`."
)
# words of the desk's complaint, and where such a plan comes from
COMPLAINTS = (
    (
        " times",
        "Nobody is planned twice in a step. A request that is let in has to leave the line before "
        "the next one is looked at: `admit` does that.",
    ),
    (
        "but it does not run",
        "Only those that run may be planned. `admit` moves one that waits to those that run; one "
        "that was preempted in this step is not served.",
    ),
    (
        "but its status is",
        "The lists were changed by hand. `admit` and `preempt` change them, and the request's "
        "state with them.",
    ),
    (
        "has no slot for token",
        "There is no room for all the tokens that were planned. Ask `grow` for exactly as many as "
        "`put` is told.",
    ),
    (
        "nothing is planned",
        "The plan is empty, though somebody could be served. It is `put` that brings a request "
        "into it.",
    ),
)


def of_fault(fault: str, rule: str) -> str:
    """What is said beside the exception's own words: "" where they say all."""
    if fault in ("NameError", "AttributeError"):
        return ""
    return NONE if fault == "TypeError" else rule


def of_complaint(got: Any) -> str:
    """Where the desk's complaint comes from; "" if it is none of those known."""
    if type(got) is list and len(got) == 1 and type(got[0]) is str:
        for words, sentence in COMPLAINTS:
            if words in got[0]:
                return sentence
    return ""
