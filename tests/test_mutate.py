"""A check that is too weak is found out by the mutants that it lets through; reasons are kept."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from minipaged.course import needs
from minipaged.course.catalog import catalog
from minipaged.course.checks.base import Check, Close, Raises, check_of
from minipaged.course.dev.mutate import Workers, chosen, mutate, run, solved_cells
from minipaged.course.dev.survivors import Explanation, explanations, render
from minipaged.course.dev.warm import WarmWorker
from minipaged.course.script import Case, Operation

ROOT = Path(__file__).parents[1]
EXERCISE = catalog().exercise("00.1")


@pytest.fixture(scope="module")
def workers():
    with Workers() as all_workers:
        yield all_workers


SOLUTION = [
    ("given", "EXTRA = 1"),
    (
        "ex-00-1",
        "def blocks_needed(n, size):\n"
        "    if size < 1:\n"
        '        raise ValueError("no size")\n'
        "    return (n + size - EXTRA) // size\n",
    ),
]


def _case(*args: int) -> Case:
    return Case(str(args), "", (Operation(args),))


def _oracle(case: Case):
    n, size = case.operations[0].args
    return [Raises("ValueError") if size < 1 else -(-n // size)]


STRONG = Check(
    visible=lambda: [_case(n, size) for n in range(9) for size in (0, 1, 2, 3, 4)],
    hidden=lambda seed: [],
    oracle=_oracle,
)
# nobody asks for a full block, nor for blocks of no tokens
WEAK = dataclasses.replace(STRONG, visible=lambda: [_case(1, 4), _case(6, 4), _case(7, 4)])


def printed(result) -> str:
    paper = io.StringIO()
    render(result, Console(file=paper, width=60))
    return paper.getvalue()


def test_a_good_check_kills_every_mutant(workers):
    result = mutate(EXERCISE, SOLUTION, workers, check=STRONG)
    assert result.made == result.tried == result.killed > 10
    assert printed(result) == (
        f"00.1 blocks_needed: {result.made} mutants, {result.made} killed (100.0 %), 0 explained, "
        "0 unexplained\n"
    )


def test_a_check_that_is_too_weak_leaves_survivors_which_are_shown(workers):
    result = mutate(EXERCISE, SOLUTION, workers, check=WEAK)
    assert result.killed == result.tried - len(result.unexplained) < result.tried
    assert ("if size < 1:", "if size <= 1:") in {(m.before, m.after) for m in result.unexplained}
    text = printed(result)
    assert "  survives   line 2, blocks_needed (comparison)\n" in text
    assert "    -    if size < 1:\n    +    if size <= 1:\n" in text


def test_a_survivor_may_be_explained_and_a_reason_for_nothing_is_stale(workers):
    survivors = mutate(EXERCISE, SOLUTION, workers, check=WEAK).unexplained
    known = [
        Explanation("00.1", one.where, one.before, one.after, "No such sizes.") for one in survivors
    ]
    stale = Explanation("00.1", "blocks_needed", "if size < 2:", "if size <= 2:", "Gone.")
    other = dataclasses.replace(stale, exercise="00.2")
    # an explanation holds wherever the line has moved to
    moved = [SOLUTION[0], ("ex-00-1", "# a comment\n\n" + SOLUTION[1][1])]
    result = mutate(EXERCISE, moved, workers, check=WEAK, known=[*known, stale, other])
    assert result.unexplained == ()
    assert [reason for _, reason in result.explained] == known
    assert result.stale == (stale,)
    text = printed(result)
    assert text.count("No such sizes.") == len(known)
    assert "stale" in text
    assert "take it out of survivors.toml" in text
    some = mutate(EXERCISE, moved, workers, check=WEAK, known=[stale], limit=3)
    assert (some.tried, some.stale) == (3, ())
    assert f"3 of {result.made} mutants" in printed(some)


def test_another_exception_is_a_mutant_only_where_one_is_asked_for(workers):
    strong, weak = (
        mutate(EXERCISE, SOLUTION, workers, check=check).made for check in (STRONG, WEAK)
    )
    assert strong == weak + 1


def test_a_tolerance_makes_the_mutants_coarse(workers):
    cells = [("ex-00-1", "def blocks_needed(n, size):\n    return 100 * n\n")]
    near = Check(lambda: [_case(2, 1)], lambda seed: [], lambda case: [Close(200, 0.02)])
    result = mutate(EXERCISE, cells, workers, check=near)
    assert result.made == result.killed


def test_a_mutant_that_loops_forever_is_noticed_and_counted_apart(workers):
    cells = [
        (
            "ex-00-1",
            "def blocks_needed(n, size):\n"
            "    blocks = 0\n"
            "    while n > 0:\n"
            "        n -= size\n"
            "        blocks += 1\n"
            "    return blocks\n",
        )
    ]
    plain = Check(lambda: [_case(5, 2), _case(4, 2)], lambda seed: [], _oracle)
    result = mutate(EXERCISE, cells, workers, check=plain)
    assert result.timed_out > 0 and result.killed > 0
    assert result.killed + result.timed_out == result.made
    assert f"{result.killed} killed and {result.timed_out} timed out (100.0 %)" in printed(result)


def test_a_solution_that_does_not_pass_is_refused(workers):
    wrong = [("ex-00-1", "def blocks_needed(n, size):\n    return n\n")]
    with pytest.raises(
        ValueError, match=r"^the solution of 00\.1 does not pass its own check \(37"
    ):
        mutate(EXERCISE, wrong, workers)


@pytest.mark.parametrize("exercise", catalog().exercises, ids=lambda exercise: exercise.id)
def test_a_check_has_no_hole_that_is_not_explained(workers, exercise):
    if why := needs.lacking(exercise.needs):
        pytest.skip(why)
    cells = solved_cells(ROOT, exercise)
    assert cells[-1][0] == exercise.solution_cell
    result = mutate(exercise, cells, workers, known=explanations())
    assert result.unexplained == result.stale == ()
    assert result.made > 5


def test_the_command_says_what_came_of_it():
    paper = io.StringIO()
    assert run(ROOT, ["00.1"], Console(file=paper, width=200), limit=4) == 0
    assert paper.getvalue().startswith("00.1 blocks_needed: 4 of ")
    assert paper.getvalue().count("\n") == 1


def test_a_terminal_is_shown_a_bar_that_goes_away():
    paper = io.StringIO()
    run(ROOT, ["00.1"], Console(file=paper, width=100, force_terminal=True), limit=4)
    assert "━" in paper.getvalue()
    assert "4 of " in paper.getvalue()


def test_an_interrupt_leaves_no_mutant_waiting(workers, monkeypatch):
    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    def observe(*args):
        calls.append(args)
        return plain_observe(*args)

    calls: list = []
    plain_observe = WarmWorker.observe
    monkeypatch.setattr(WarmWorker, "observe", observe)
    slow = [("given", "EXTRA = 1\nimport time\ntime.sleep(0.05)"), SOLUTION[1]]
    with pytest.raises(KeyboardInterrupt):
        mutate(EXERCISE, slow, workers, check=STRONG, advance=stop)
    stopped_after = len(calls)
    assert stopped_after < 1 + mutate(EXERCISE, SOLUTION, workers, check=STRONG).made


def test_an_unexplained_survivor_is_exit_code_1(monkeypatch):
    weak = dataclasses.replace(
        check_of(EXERCISE), visible=lambda: [_case(37, 16)], hidden=lambda seed: []
    )
    monkeypatch.setattr("minipaged.course.dev.mutate.check_of", lambda exercise: weak)
    assert run(ROOT, ["00"], Console(file=io.StringIO())) == 1


def test_ids_are_of_exercises_or_lessons():
    ids = [exercise.id for exercise in chosen(["02.1", "00", "02"])]
    assert ids[:2] == ["02.1", "00.1"]
    assert len(ids) == len(set(ids)) == 1 + len(catalog().exercises_of("02"))
    assert chosen([]) == list(catalog().exercises)
    with pytest.raises(ValueError, match="there is no exercise '77'"):
        chosen(["77"])


def test_every_reason_belongs_to_an_exercise():
    reasons = explanations()
    assert all(catalog().exercise(reason.exercise) for reason in reasons)
    keys = [dataclasses.replace(reason, why="") for reason in reasons]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[survivor", "is not valid TOML"),
        ('[[survivor]]\nexercise = "00.1"', "entry 1: give exercise, where, before, after, why"),
        (
            '[[survivor]]\nexercise = "00.1"\nwhere = ""\nbefore = "a"\nafter = "b"\nwhy = " "',
            "entry 1: why does it make no difference",
        ),
    ],
)
def test_a_malformed_file_of_reasons_is_refused(tmp_path, text, message):
    path = tmp_path / "survivors.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        explanations(path)
