"""08.1 choose_victim(running, needy): who gives its blocks when a running request finds none.

The oracle sorts everybody but the first in line and takes the front of that; requests are rows of
(name, computed, known, blocks).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure, Row
from minipaged.course.script import Case, Operation

Line = list[list[Any]]
COMPUTED, KNOWN, BLOCKS = 1, 2, 3  # places in a row


class Ask(NamedTuple):
    """One question: who runs, in order of admission, who found no block, and the answer."""

    running: Line
    needy: str
    got: Any = None


def victim(running: Line, needy: str) -> str:
    """The right answer: all but the first in line, the fewest computed first, the last of equals
    before the others."""
    places = sorted(range(1, len(running)), key=lambda place: (running[place][COMPUTED], -place))
    return str(running[places[0] if places else 0][0])


def _least(
    column: int, sign: int = 1, *, first_too: bool = False, last: bool = True
) -> Callable[[Line, str], Any]:
    """A rule on one column: the least of it (sign 1) or the most (-1)."""

    def choose(running: Line, needy: str) -> Any:
        rest = running if first_too or len(running) == 1 else running[1:]
        return min(reversed(rest) if last else rest, key=lambda row: sign * row[column])[0]

    return choose


def _but_not_needy(running: Line, needy: str) -> Any:
    others = [row for row in running[1:] if row[0] != needy]
    return min(reversed(others), key=lambda row: row[COMPUTED])[0] if others else running[0][0]


def _but_not_last(running: Line, needy: str) -> Any:
    others = running[1:-1] or running[1:] or running
    return min(reversed(others), key=lambda row: row[COMPUTED])[0]


IDEAS: tuple[tuple[Callable[[Line, str], Any], str], ...] = (
    (
        lambda running, needy: running[-1][0],
        "This takes the last admitted, whatever it has computed. It may have the most to lose.",
    ),
    (
        _least(COMPUTED, first_too=True),
        "The first in line was chosen while others run. It keeps its blocks, so that whatever "
        "happens somebody moves on; it goes only if it runs alone.",
    ),
    (
        _least(COMPUTED, last=False),
        "Of requests with equally many computed tokens the first was taken; the one admitted last "
        "goes. (min keeps the first of equals: in which order does it see them?)",
    ),
    *(
        (
            _least(COMPUTED, -1, last=last),
            "This drops the longest. It frees the most blocks and computes the most tokens again.",
        )
        for last in (True, False)
    ),
    *(
        (
            _least(BLOCKS, -1, last=last),
            "This drops the one with the most blocks, which has the most to compute again.",
        )
        for last in (True, False)
    ),
    (
        _least(BLOCKS),
        "Blocks were compared. Two requests with equally many blocks may differ in what they have "
        "computed, and one that has just got its blocks has computed nothing in them yet.",
    ),
    (
        _least(KNOWN),
        "Known tokens were compared. What is lost is what is computed: a long prompt that was "
        "only begun has little to lose.",
    ),
    (
        _but_not_needy,
        "The needy request was spared. If it is the one with the least to lose, it goes itself.",
    ),
    (
        _but_not_last,
        "The one admitted last was left out. Only the first in line is spared.",
    ),
    (
        lambda running, needy: needy,
        "This always takes the one that found no block. It may have much more to lose than others.",
    ),
    (
        lambda running, needy: running[0][0],
        "The first in line goes only if it runs alone, so that somebody always moves on.",
    ),
)
RETURN = (
    "choose_victim returns one of the requests in `running` itself: not its id, not its place. "
    "Without a `return` it gives back None."
)
KEEP = "The list is the scheduler's own: choose from it and leave it as it is, in order and length."


def asks(rows: Sequence[Row]) -> Iterator[Ask]:
    """The questions of scripts and what was answered, as far as it can be told."""
    running: Line = []
    needy, chosen = "", None
    for row in rows:
        first = row.args[0] if row.args else None
        if type(first) is list:
            running = [list(line) for line in first]
        elif type(first) is int and first < len(running):
            needy = running[first][0]
        elif not row.args:
            chosen = row.got
            yield Ask(running, needy, chosen)
        elif first == plain.Kept("victim"):
            running = [line for line in running if line[0] != chosen]


def diagnose(rows: Sequence[Row]) -> str:
    """The wrong idea that gives every answer, or what was returned in place of a request."""
    all_asks = [ask for ask in asks(rows) if ask.running]
    for idea, sentence in IDEAS:
        if all_asks and all(idea(ask.running, ask.needy) == ask.got for ask in all_asks):
            return sentence
    return ""


def explain(failure: Failure) -> str:
    """What the failed operation says about the answer."""
    operation = failure.operation
    if operation.target == "names":
        return KEEP
    return RETURN if operation.target == "victim" and failure.fault else ""


# name, story, (name, computed, known, blocks) of each, the place of the needy one
Situation = tuple[str, str, Line, int]
VISIBLE: tuple[Situation, ...] = (
    (
        "three that decode",
        "A, B and C run, admitted in this order. B finds no block.",
        [["A", 3000, 3001, 188], ["B", 1200, 1201, 75], ["C", 400, 401, 25]],
        1,
    ),
    (
        "the last has much to lose",
        "C was admitted last, with a prompt of 5,000 tokens that is computed by now.",
        [["A", 3000, 3001, 188], ["B", 400, 401, 25], ["C", 5000, 5001, 313]],
        0,
    ),
    (
        "equals",
        "B and C have computed equally many tokens.",
        [["A", 90, 91, 6], ["B", 40, 41, 3], ["C", 40, 41, 3]],
        0,
    ),
    (
        "the first in line has the least",
        "A's long prompt was only begun; it is the first in line all the same.",
        [["A", 10, 300, 1], ["B", 40, 41, 3], ["C", 60, 61, 4]],
        2,
    ),
    (
        "the needy has the least",
        "C finds no block, and nobody has less to lose.",
        [["A", 50, 51, 4], ["B", 60, 61, 4], ["C", 20, 21, 2]],
        2,
    ),
    (
        "a prompt that was only begun",
        "B knows 900 tokens, 64 of them computed. C knows 120 and has computed 119.",
        [["A", 200, 201, 13], ["B", 64, 900, 57], ["C", 119, 120, 8]],
        0,
    ),
    (
        "equally many blocks",
        "B and C hold 3 blocks each, B with fewer tokens in them.",
        [["A", 80, 81, 6], ["B", 33, 34, 3], ["C", 47, 48, 3]],
        1,
    ),
    ("alone", "Only A runs.", [["A", 64, 65, 4]], 0),
    (
        "two of a kind",
        "A and B have computed the same; A is the first in line.",
        [["A", 32, 33, 2], ["B", 32, 33, 2]],
        0,
    ),
)


def visible() -> list[Case]:
    """Each rule once; then one victim is not enough, and the question is asked again."""
    again = "A finds no block. The first victim's blocks do not suffice, so it is asked again."
    line = [["A", 500, 900, 32], ["B", 90, 91, 6], ["C", 70, 71, 5], ["D", 80, 81, 6]]
    return [*(_case(*one) for one in VISIBLE), _case("asked again", again, line, 0, 3)]


def hidden(seed: int) -> list[Case]:
    """For every wrong idea two lines that it gets wrong, and 8 more."""
    rng = random.Random(f"08.1/{seed}")
    lines = [_line_against(rng, idea) for idea, _ in IDEAS for _ in range(2)]
    lines += [_random_line(rng) for _ in range(8)]
    return [_case("hidden", "Another line.", *line, 1 + k % 2) for k, line in enumerate(lines)]


def _line_against(rng: random.Random, idea: Callable[[Line, str], Any]) -> tuple[Line, int]:
    while True:
        running, place = _random_line(rng)
        needy = running[place][0]
        if idea(running, needy) != victim(running, needy):
            return running, place


def _random_line(rng: random.Random) -> tuple[Line, int]:
    """Two to seven that run, with many equal counts; some have a prompt that was only begun."""
    names = rng.sample("ABCDEFGHIJ", rng.randrange(2, 8))
    running: Line = []
    for name in names:
        computed = 8 * rng.randrange(1, 8)
        known = computed + rng.choice((1, 1, 1, 40))
        running.append([name, computed, known, -(-known // 16)])
    return running, rng.randrange(len(running))


def _case(name: str, story: str, running: Line, place: int, rounds: int = 1) -> Case:
    """Ask, and take the victim off the list before asking again."""
    operations = [
        Operation((running,), "requests", keep="running"),
        Operation((place,), "running", how="item", keep="needy"),
    ]
    needy, left = running[place][0], list(running)
    for count in range(rounds):
        operations += [
            Operation((plain.Kept("running"), plain.Kept("needy")), keep="victim"),
            Operation((), "victim", "request_id", how="get"),
            Operation((plain.Kept("running"),), "names"),
        ]
        gone = victim(left, needy)
        left = [row for row in left if row[0] != gone]
        if gone == needy or not left or count == rounds - 1:
            break
        operations.append(Operation((plain.Kept("victim"),), "running", "remove"))
    return Case(name, story, tuple(operations))


def _oracle(case: Case) -> list[Any]:
    expected: list[Any] = []
    running, needy = list(case.operations[0].args[0]), ""
    for operation in case.operations[1:]:
        if operation.keep == "needy":
            needy = running[operation.args[0]][0]
        elif operation.target == "victim":
            expected.append(victim(running, needy))
        elif operation.target == "names":
            expected.append([row[0] for row in running])
        elif operation.method == "remove":
            gone = victim(running, needy)
            running = [row for row in running if row[0] != gone]
            expected.append(None)
    return expected


def picture(case: Case, number: int) -> str:
    """Who runs, as a table, before an operation."""
    if not number:
        return ""
    running, needy = list(case.operations[0].args[0]), ""
    for operation in case.operations[1 : number + 1]:
        if operation.keep == "needy":
            needy = running[operation.args[0]][0]
    for _ in (o for o in case.operations[:number] if o.method == "remove"):
        gone = victim(running, needy)
        running = [row for row in running if row[0] != gone]
    rows = [f"{row[0]:8}{row[1]:>8}{row[2]:>8}{row[3]:>8}" for row in running]
    head = f"{'running':8}{'computed':>8}{'known':>8}{'blocks':>8}"
    return "\n".join([head, *rows, f"no block for {needy}" if needy else ""]).rstrip()


CHECK = Check(visible, hidden, _oracle, diagnose, explain, picture)
