"""The verdict: script and oracle on one side, observations on the other, told in plain words.

It is formed where the learner's code does not run. What a verdict says about a visible case names
the call, what was expected and what came; `reason` alone is fit for a hidden case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Raises, Row
from minipaged.course.script import Case, Fault, Observation, Operation


@dataclass(frozen=True, slots=True)
class Problem:
    """What was wrong with one operation.

    kind: "unsolved", "fault", "changed", "type" or "value". reason: what is wrong and what to do,
    without quoting the case. operation: its number in the script, from 0.
    """

    kind: str
    reason: str
    operation: int
    call: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case; problem is None if it passed."""

    case: Case
    problem: Problem | None

    @property
    def passed(self) -> bool:
        """Every operation did what the oracle says."""
        return self.problem is None


def judge(
    check: Check, cases: Sequence[Case], seen: Sequence[Sequence[Observation]], name: str
) -> list[Verdict]:
    """A verdict per case. `name` is what the learner defines.

    ValueError unless there is exactly one observation per operation: a missing one is no pass.
    """
    if [len(s) for s in seen] != [len(case.operations) for case in cases]:
        raise ValueError("the number of observations is not the number of operations")
    return [Verdict(c, _first_problem(check, c, s, name)) for c, s in zip(cases, seen, strict=True)]


def diagnosis(check: Check, cases: Sequence[Case], seen: Sequence[Sequence[Observation]]) -> str:
    """The misconception behind a failed check, or ""."""
    rows = []
    for case, observations in zip(cases, seen, strict=True):
        for operation, expected, one in _paired(check, case, observations):
            got = plain.decode(one.value)
            if one.fault is None and type(got) is type(expected):
                rows.append(Row(operation.args, expected, got))
    return check.diagnose(rows) if rows else ""


def _paired(
    check: Check, case: Case, observations: Sequence[Observation]
) -> Iterator[tuple[Operation, Any, Observation]]:
    """Operation, expected, observation; a kept result is expected to be reported as None."""
    expected = iter(check.oracle(case))
    for operation, one in zip(case.operations, observations, strict=True):
        yield operation, None if operation.keep else next(expected), one


def _first_problem(
    check: Check, case: Case, observations: Sequence[Observation], name: str
) -> Problem | None:
    for number, (operation, expected, one) in enumerate(_paired(check, case, observations)):
        found = _kind_and_reason(operation, expected, one)
        if found is not None:
            kind, reason = found
            call, want = show_call(operation, name), _show_expected(expected)
            got = _show_got(one)
            if kind == "changed":
                want = f"{plain.show(operation.args)}, as it was"
                got = plain.show(plain.decode(one.args_after))
            return Problem(kind, reason, number, call, want, got)
    return None


def _kind_and_reason(
    operation: Operation, expected: Any, one: Observation
) -> tuple[str, str] | None:
    if one.fault is not None and "NotImplementedError" in one.fault.kinds:
        return "unsolved", _unsolved(one.fault)
    if isinstance(expected, Raises):
        return _judge_raise(expected, one.fault)
    if one.fault is not None:
        return "fault", say_fault(one.fault)
    if one.args_after is not None:
        return "changed", "The call changed what it was given. Work on a copy."
    got = plain.decode(one.value)
    if plain.same(got, expected):
        return None
    if type(got) is type(expected):
        return "value", ""
    return "type", _wrong_type(got, expected, one.printed)


def _unsolved(fault: Fault) -> str:
    where = f" (line {fault.line} of the cell)" if fault.line else ""
    return f"Not solved yet: replace `raise NotImplementedError()`{where} with your own code."


def _judge_raise(expected: Raises, fault: Fault | None) -> tuple[str, str] | None:
    if fault is None:
        return "value", f"This call must be refused with a {expected.kind}, but it was accepted."
    if expected.kind not in fault.kinds:
        return "fault", f"This call must be refused with a {expected.kind}. {say_fault(fault)}"
    return None


def say_fault(fault: Fault) -> str:
    """An exception in words, with the learner's own line."""
    said = f"Your code raised {fault.kinds[0]}" + (f": {fault.message}" if fault.message else "")
    if fault.kinds[0] == "SystemExit":
        said = "Your code ended the program (SystemExit); it should return a value instead"
    if fault.line is None:
        return f"{said}. It happened at the call itself: compare name and parameters with the task."
    return f"{said}, in line {fault.line} of the cell: `{fault.source}`"


def _wrong_type(got: Any, expected: Any, printed: str) -> str:
    wanted = _TYPES.get(type(expected), type(expected).__name__)
    if got is None and printed.strip():
        return (
            f"The result was printed ({printed.strip()[:40]!r}), but nothing was returned: "
            "write `return` where `print` stands."
        )
    if got is None:
        return f"Nothing was returned (None), but {wanted} is expected: is a `return` missing?"
    if type(got) is plain.Other:
        return (
            f"An object of class {got.what} was returned, but {wanted} is expected. Only plain "
            "values count, whatever they claim to be equal to."
        )
    found = _TYPES.get(type(got), type(got).__name__)
    advice = _ADVICE.get((type(got), type(expected)), "")
    return f"The result is {found}, but {wanted} is expected.{advice}"


_TYPES: dict[type, str] = {
    bool: "a bool (True or False)",
    int: "an int (a whole number)",
    float: "a float (a number with a decimal point)",
    str: "a str (text)",
    type(None): "None",
}
_ADVICE: dict[tuple[type, type], str] = {
    (float, int): " `/` gives a float even where the division comes out even; `//` gives an int.",
    (bool, int): " A comparison gives True or False; here a number is asked for.",
    (str, int): " Return the number itself, not its text.",
}


def show_call(operation: Operation, name: str) -> str:
    """The operation as the learner would write it: blocks_needed(37, 16)."""
    target = ".".join(part for part in (operation.target or name, operation.method) if part)
    call = f"{target}({', '.join(map(plain.show, operation.args))})"
    return f"{operation.keep} = {call}" if operation.keep else call


def _show_expected(expected: Any) -> str:
    return f"a {expected.kind}" if isinstance(expected, Raises) else plain.show(expected)


def _show_got(one: Observation) -> str:
    return one.fault.kinds[0] if one.fault is not None else plain.show(plain.decode(one.value))
