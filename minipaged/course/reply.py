"""What a worker answered, read with distrust; and the ways in which it gives no answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from minipaged.course.faults import MISSING, ONLY_THIS_CELL, say_fault
from minipaged.course.script import Case, Fault, Observation, read_fault, read_observation

TIME_OVER = "time limit"  # the status of what did not answer in time
_SEGMENTATION_FAULT = 11
STOPPED = "stopped"  # and of what nobody waited for


class NoAnswer(Exception):
    """The worker gave no observations. status: in two words. The message says more."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def read_answer(text: bytes, name: str, cases: Sequence[Case]) -> list[list[Observation]]:
    """The observations in a worker's answer; NoAnswer if there are none in it."""
    answer = _parse(text)
    if "fault" in answer:
        raise NoAnswer("cell fails", _say_cell_fault(answer))
    if "undefined" in answer:
        raise NoAnswer("undefined", f"The cell defines no {name}.")
    if "borrowed" in answer:
        raise NoAnswer("not your own", f"{name} is minipaged's own, not yours: define it yourself.")
    return _observations(answer, cases)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise unreadable() from None
    if type(answer) is not dict:
        raise unreadable()
    return answer


def _observations(answer: dict[str, Any], cases: Sequence[Case]) -> list[list[Observation]]:
    """One observation per operation, and no value of what a script keeps: a worker reports none."""
    try:
        seen = [[read_observation(row) for row in rows] for rows in answer["observations"]]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise unreadable() from None
    if [len(rows) for rows in seen] != [len(case.operations) for case in cases]:
        raise unreadable()
    for case, rows in zip(cases, seen, strict=True):
        pairs = zip(case.operations, rows, strict=True)
        if any(operation.keep and one.value is not None for operation, one in pairs):
            raise unreadable()
    return seen


def _say_cell_fault(answer: dict[str, Any]) -> str:
    try:
        fault: Fault = read_fault(answer["fault"])
    except (TypeError, ValueError, RecursionError):
        raise unreadable() from None
    advice = f" {ONLY_THIS_CELL}" if fault.kinds[0] in MISSING else ""
    return say_fault(fault) + advice


def time_over(seconds: float) -> NoAnswer:
    """The worker used up its time."""
    return NoAnswer(
        TIME_OVER,
        f"No answer within {seconds:g} seconds: is there a loop that never ends, or does it "
        "take very much memory?",
    )


def ended_early(how: str) -> NoAnswer:
    """The worker ended without a word; how: as say_exit says it."""
    return NoAnswer(
        "ended early",
        f"The process ended before it had answered ({how}). Nothing was checked, so nothing is "
        "passed.",
    )


def say_exit(code: int) -> str:
    """An exit code in words; a negative one, or one above 128, stands for a signal."""
    if 0 <= code <= 128:
        return f"exit code {code}"
    signal = -code if code < 0 else code - 128
    why = ": memory was read or written that is not there" if signal == _SEGMENTATION_FAULT else ""
    return f"killed by signal {signal}{why}"


def unreadable() -> NoAnswer:
    """The worker wrote something that is no answer."""
    return NoAnswer(
        "no answer",
        "The process wrote something else where its answer belongs. Nothing was checked, so "
        "nothing is passed.",
    )


def stopped() -> NoAnswer:
    """Nobody waits for the worker any more."""
    return NoAnswer(STOPPED, "Grading was stopped before this was checked.")
