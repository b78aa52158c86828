"""10.3 pick_next(waiting, match_len, passed_over, patience): who is admitted next."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from minipaged.course.checks.base import Check, Row
from minipaged.course.script import Case, Operation


def _pick(waiting: list[str], match_len: dict[str, int], passed_over: int, patience: int) -> str:
    """The rule: the longest match first, the earliest of equals; but patience has an end."""
    if passed_over >= patience:
        return waiting[0]
    longest = max(match_len[name] for name in waiting)
    return next(name for name in waiting if match_len[name] == longest)


IDEAS: tuple[tuple[Callable[..., Any], str], ...] = (
    (
        lambda waiting, match_len, passed_over, patience: _pick(waiting, match_len, 0, 1),
        "The first in line can be passed over for ever. Once it was passed over `patience` times, "
        "it is its turn, whatever the others match.",
    ),
    (
        lambda waiting, match_len, passed_over, patience: _pick(
            waiting, match_len, passed_over, patience + 1
        ),
        "One too many: a request that was passed over `patience` times is not passed over again.",
    ),
    (
        lambda waiting, match_len, passed_over, patience: _pick(
            waiting, match_len, passed_over + 1, patience
        ),
        "One too few: the first in line may be passed over `patience` times.",
    ),
    (
        lambda waiting, match_len, passed_over, patience: waiting[0],
        "This is first come, first served. While there is patience, the longest match goes first.",
    ),
    (
        lambda waiting, match_len, passed_over, patience: (
            _pick(waiting[::-1], match_len, 0, 1) if passed_over < patience else waiting[0]
        ),
        "Of several that match as much, the one that came last was chosen. Among equals the order "
        "of arrival decides.",
    ),
    (
        lambda waiting, match_len, passed_over, patience: (
            min(waiting, key=match_len.__getitem__) if passed_over < patience else waiting[0]
        ),
        "Chosen was the shortest match. The longest saves most and is still there now.",
    ),
    (
        lambda waiting, match_len, passed_over, patience: (
            _pick(sorted(waiting), match_len, 0, 1) if passed_over < patience else waiting[0]
        ),
        "Names were compared. Only `waiting` says who came first.",
    ),
)


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea that gives every answer."""
    for idea, sentence in IDEAS:
        if all(_answer(idea, row.args) == row.got for row in rows):
            return sentence
    if any(row.got not in row.args[0] for row in rows):
        return "Return one of the names in `waiting`."
    return ""


def _answer(idea: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return idea(*args)
    except KeyError:
        return None


def visible() -> list[Case]:
    """Each rule once, and the ends of patience."""
    return [
        _case("longest first", "Three wait; the last to come matches most.", "CAB", (16, 0, 48)),
        _case(
            "equal matches",
            "Three match as much, and more than the first.",
            *("DCAB", (16, 32, 32, 32)),
        ),
        _case("nobody matches", "Nothing is cached: as they came.", "BCA", (0, 0, 0)),
        _case("one alone", "One waits.", "A", (0,)),
        _case("passed over once", "Patience 3, one of it used up.", "ABC", (0, 64, 32), 1, 3),
        _case("still patient", "Patience 3, two of it used up.", "ABC", (0, 64, 32), 2, 3),
        _case("patience is over", "Patience 3, all of it used up.", "BAC", (0, 64, 96), 3, 3),
        _case("no patience", "Patience 0: nobody is ever passed over.", "BA", (0, 64), 0, 0),
        _case("long past", "Patience was lowered meanwhile.", "BAC", (16, 64, 96), 5, 2),
        _case(
            "somebody left",
            "match_len still has one who is not waiting any more.",
            *("BA", (0, 16), 0, 8, {"Z": 99, "C": 64}),
        ),
    ]


def hidden(seed: int) -> list[Case]:
    """24 lines of other lengths."""
    rng = random.Random(f"10.3/{seed}")
    return [_hidden_case(rng, number) for number in range(24)]


def _hidden_case(rng: random.Random, number: int) -> Case:
    """Both ends of patience in turn; in every third, one who is gone had the longest match."""
    names = "".join(rng.sample("ABCDEFGH", rng.randrange(2, 8)))
    lengths = tuple(16 * rng.randrange(4) for _ in names)
    patience = rng.randrange(1, 5)
    passed = (0, patience - 1, patience, patience + 1)[number % 4]
    gone = {rng.choice("WXYZ"): 96} if number % 3 == 0 else {}
    return _case("hidden", "Another line.", names, lengths, passed, patience, gone)


def _case(
    name: str,
    story: str,
    waiting: str,
    lengths: tuple[int, ...],
    passed_over: int = 0,
    patience: int = 8,
    others: dict[str, int] | None = None,
) -> Case:
    match_len = (others or {}) | dict(zip(waiting, lengths, strict=True))
    return Case(name, story, (Operation((list(waiting), match_len, passed_over, patience)),))


def _oracle(case: Case) -> list[Any]:
    return [_pick(*operation.args) for operation in case.operations]


CHECK = Check(visible, hidden, _oracle, diagnose=diagnose)
