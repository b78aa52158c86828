"""The verdict: script and oracle on one side, observations on the other, told in plain words.

It is formed where the learner's code does not run. What a verdict says about a visible case names
the call, what was expected and what came; `discreet_reason` alone is fit for a hidden case, since
code can put the arguments into whatever is quoted of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minipaged.course import expect, plain
from minipaged.course.checks.base import Check, Failure, Raises, Row
from minipaged.course.faults import say_fault
from minipaged.course.script import Case, Fault, Observation, Operation


@dataclass(frozen=True, slots=True)
class Problem:
    """What was wrong with one operation.

    kind: "unsolved", "fault", "changed", "type" or "value". reason: what is wrong and what to do.
    discreet_reason: the same without a word that the learner's code could have chosen.
    operation: its number in the script, from 0. rule: what the check says was broken, or "".
    """

    kind: str
    reason: str
    discreet_reason: str
    operation: int
    call: str
    expected: str
    got: str
    rule: str = ""


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
            if one.fault is None and expect.has_type(expected, got):
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
            return _problem(check, _Failed(case, number, expected, one), name, *found)
    return None


class _Failed(NamedTuple):
    """One operation that went wrong: which, what was expected of it, what came."""

    case: Case
    number: int
    expected: Any
    one: Observation


def _problem(check: Check, failed: _Failed, name: str, kind: str, reason: str) -> Problem:
    case, number, expected, one = failed
    operation = case.operations[number]
    discreet = _discreet_reason(operation, expected, one)
    call = show_call(operation, name)
    if kind == "changed":
        # whatever the check has to say is about the answer, which may be right
        return Problem(kind, reason, discreet, number, call, *_before_and_after(operation, one))
    answer = None if one.fault else plain.decode(one.value)
    fault = one.fault.kinds[0] if one.fault else ""
    rule = check.explain(Failure(case, number, expected, answer, fault))
    want = _show_wanted(check, operation, expected, one)
    return Problem(kind, reason, discreet, number, call, want, _show_got(one), rule)


def _show_wanted(check: Check, operation: Operation, expected: Any, one: Observation) -> str:
    if one.fault is not None and (operation.keep or (expected is None and not check.secret)):
        return "no exception"
    return "another answer" if check.secret else expect.show(expected)


def _changed_argument(operation: Operation, one: Observation) -> tuple[int, Any, Any] | None:
    """The first argument that the call changed: its number from 1 on, it before and after. None if
    that cannot be told. What was kept is there to be changed and does not count."""
    own = [(k, arg) for k, arg in enumerate(operation.args, 1) if type(arg) is not plain.Kept]
    after = plain.decode(one.args_after)
    if type(after) is not tuple or len(after) != len(own):
        return None
    pairs = ((k, before, now) for (k, before), now in zip(own, after, strict=True))
    return next((one for one in pairs if not plain.same(one[1], one[2])), None)


def _before_and_after(operation: Operation, one: Observation) -> tuple[str, str]:
    changed = _changed_argument(operation, one)
    if changed is None:
        return "arguments as they were", plain.show(plain.decode(one.args_after))
    _, before, after = changed
    return f"{plain.show(before)}, as it was", plain.show(after)


def _discreet_reason(operation: Operation, expected: Any, one: Observation) -> str:
    found = _kind_and_reason(operation, expected, one, quote=False)
    return found[1] if found else ""


def _kind_and_reason(
    operation: Operation, expected: Any, one: Observation, quote: bool = True
) -> tuple[str, str] | None:
    if one.fault is not None and "NotImplementedError" in one.fault.kinds:
        return "unsolved", _unsolved(one.fault)
    if isinstance(expected, Raises):
        return _judge_raise(expected, one.fault, quote)
    if one.fault is not None and operation.how == "item" and one.fault.line is None:
        return "fault", f"What was returned has no entry {operation.args[0]!r}."
    if one.fault is not None:
        return "fault", say_fault(one.fault, quote)
    if one.args_after is not None:
        changed = _changed_argument(operation, one) if quote else None
        what = f"its argument number {changed[0]}" if changed else "what it was given"
        return "changed", f"The call changed {what}. Work on a copy."
    got = plain.decode(one.value)
    if expect.matches(expected, got):
        return None
    if expect.has_type(expected, got):
        return "value", ""
    return "type", _wrong_type(got, expect.example(expected), one.printed, quote)


def _unsolved(fault: Fault) -> str:
    where = f" (line {fault.line} of the cell)" if fault.line else ""
    return f"Not solved yet: replace `raise NotImplementedError()`{where} with your own code."


def _judge_raise(expected: Raises, fault: Fault | None, quote: bool) -> tuple[str, str] | None:
    if fault is None:
        kind = plain.with_article(expected.kind)
        return "value", f"This call must be refused with {kind}, but it was accepted."
    if expected.kind not in fault.kinds:
        said = say_fault(fault, quote)
        return (
            "fault",
            f"This call must be refused with {plain.with_article(expected.kind)}. {said}",
        )
    return None


def _wrong_type(got: Any, expected: Any, printed: str, quote: bool) -> str:
    wanted = _kind(expected)
    if got is None and printed.strip():
        quoted = f" ({printed.strip()[:40]!r})" if quote else ""
        return (
            f"The result was printed{quoted}, but nothing was returned: write `return` where "
            "`print` stands."
        )
    if got is None:
        return f"Nothing was returned (None), but {wanted} is expected: is a `return` missing?"
    if type(got) is plain.Other:
        return _wrong_class(got.what, expected, wanted, quote)
    found = _kind(got)
    advice = _ADVICE.get((type(got), type(expected)), "")
    return f"The result is {found}, but {wanted} is expected.{advice}"


def _kind(value: Any) -> str:
    return _TYPES.get(type(value)) or plain.with_article(type(value).__name__)


def _wrong_class(name: str, expected: Any, wanted: str, quote: bool) -> str:
    """Advice on an object that is no plain value; its class is known by name only."""
    if type(expected) is plain.Array and name == "Tensor":
        return _STRANGE_TENSOR
    if type(expected) is plain.Array and name in _NEAR_TENSORS:
        found = plain.with_article(name).capitalize() if name.islower() else f"A {name}"
        return f"{found} was returned, but {wanted} is expected. {_NEAR_TENSORS[name]}"
    advice = _CLASS_ADVICE.get(name, "")
    if name in _NUMBERS and type(expected) in (int, float):
        advice = f"Wrap it in {type(expected).__name__}(...)."
    what = f"An object of class {name}" if quote or advice else "An object of some other class"
    advice = advice or "Only plain values count, whatever they claim to be equal to."
    return f"{what} was returned, but {wanted} is expected. {advice}"


# classes of numbers that look plain when they are printed
_NUMBERS = (
    *(f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64)),
    *("longdouble", "Fraction", "Decimal", "Tensor", "ndarray"),
)
_STRANGE_TENSOR = (
    "A tensor of a kind that is not compared was returned: a sparse or a quantized one, one of an "
    "unusual dtype such as complex64, or one without numbers (device meta). An ordinary tensor is "
    "expected."
)
_NEAR_TENSORS = {
    "Parameter": "`.detach()` gives one.",
    "ndarray": "torch.from_numpy(...) makes one of it.",
}
_CLASS_ADVICE = {
    "generator": "This is a generator: is there a `yield` in the function? Use `return`.",
    "async_generator": "This is a generator: is there a `yield` in the function? Use `return`.",
    "coroutine": "This is a coroutine: is there an `async` before `def`? Leave it out.",
    "function": "Return the result of the function: call it.",
    "builtin_function_or_method": "Return the result of the function: call it.",
    "method": "This is a method and not its result: keep the line `@property` above it.",
}
_TYPES: dict[type, str] = {
    bool: "a bool (True or False)",
    int: "an int (a whole number)",
    float: "a float (a number with a decimal point)",
    str: "a str (text)",
    type(None): "None",
    plain.Array: "a tensor",
}
_ADVICE: dict[tuple[type, type], str] = {
    (float, int): " `/` gives a float even where the division comes out even; `//` gives an int.",
    (bool, int): " A comparison gives True or False; here a number is asked for.",
    (str, int): " Return the number itself, not its text.",
}


def show_call(operation: Operation, name: str) -> str:
    """The operation as the learner would write it: blocks_needed(37, 16)."""
    target = ".".join(part for part in (operation.target or name, operation.method) if part)
    args = ", ".join(_show_argument(arg) or name for arg in operation.args)
    forms = {
        "get": target,
        "len": f"len({target})",
        "list": f"list({target})",
        "in": f"{args} in {target}",
        "item": f"{target}[{args}]",
        "give": args,
        "cost": f"fewest steps of {_show_each(target, operation)}",
    }
    call = forms.get(operation.how, f"{target}({args})")
    return f"{operation.keep} = {call}" if operation.keep else call


def _show_each(target: str, operation: Operation) -> str:
    """The calls of which the cheapest counts: queue.remove(5), queue.remove(7)."""
    calls = operation.args[0] if operation.how == "cost" else []
    return ", ".join(f"{target}({', '.join(map(_show_argument, args))})" for args in calls)


def _show_argument(arg: Any) -> str:
    return arg.name if type(arg) is plain.Kept else plain.show(arg)


def _show_got(one: Observation) -> str:
    return one.fault.kinds[0] if one.fault is not None else plain.show(plain.decode(one.value))
