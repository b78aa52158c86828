"""`minipaged mine` beside the checks: whose a part is, whether its check passes, how it fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from workspaces import (  # noqa: F401
    OWN_POOL,
    OWN_QUEUE,
    call_fixture,
    course_fixture,
    fill_in,
    here_fixture,
)

from minipaged.cache.block import FreeQueue
from minipaged.cache.manager import InvariantError
from minipaged.course.catalog import catalog
from minipaged.course.checks import lesson_00
from minipaged.course.checks.base import Raises, check_of
from minipaged.course.learner import blame, mine_run, progress
from minipaged.course.learner.blame import PartFailure
from minipaged.course.learner.desk import sit_down
from minipaged.course.mine import mine


@pytest.fixture
def no_tutor(monkeypatch):
    """Only the ledger is run: the tutor's turn takes seconds."""
    monkeypatch.setattr(mine_run, "over_the_tutor", lambda parts: [])


WITH_STUBS = OWN_QUEUE + "\n    def _link(self, block_id):\n        raise NotImplementedError()\n"


def test_a_part_that_passes_its_check_is_own_though_stubs_are_left_in_it(
    here, call, no_tutor, monkeypatch
):
    fill_in(here, "01.1", WITH_STUBS)
    assert mine("01.1") is FreeQueue
    code, out, _ = call("mine")
    assert code == 0 and "01.1 (not solved)" in out
    use_real_check(monkeypatch)
    code, out, _ = call("mine")
    [line] = [line for line in out.splitlines() if line.startswith("free_queue")]
    assert code == 0 and line.split() == ["free_queue", "FreeQueue", "yours", "01.1", "passes"]
    assert call("check", "01.1")[0] == 0
    assert mine("01.1").__doc__ == "Slow, but right."


def use_real_check(monkeypatch) -> None:
    """FreeQueue is checked as a queue, but for what the test's queue does not look at: whether an
    id is queued already, and how many steps it takes."""
    real = check_of(catalog().exercise("02.1"))

    def is_kind(case) -> bool:
        refuses = any(isinstance(value, Raises) for value in real.oracle(case))
        return not refuses and all(operation.how != "cost" for operation in case.operations)

    cases = [case for case in real.visible() if is_kind(case)]
    assert len(cases) > 2
    check = replace(real, visible=lambda: cases, hidden=lambda seed: [])
    monkeypatch.setitem(lesson_00.CHECKS, "01.1", check)


def test_what_is_as_it_was_handed_out_is_nobodys_own(here, course, capsys):
    progress.update(here / progress.NAME, lambda state: state.done.add("01.1"))
    assert mine("01.1") is FreeQueue
    fill_in(here, "01.1", WITH_STUBS)
    assert mine("01.1") is not FreeQueue


def test_an_order_that_the_engine_forgives_is_told_by_the_check(here, call, no_tutor, monkeypatch):
    use_real_check(monkeypatch)
    wrong = OWN_QUEUE.replace("self.ids.append(block_id)", "self.ids.appendleft(block_id)")
    fill_in(here, "01.1", wrong)
    code, out, _ = call("mine")
    [line] = [line for line in out.splitlines() if line.startswith("free_queue")]
    assert code == 0 and line.split()[-1] == "FAILS"
    assert "01.1 fails its check" in out and "`minipaged check 01.1` says where" in out


def test_all_parts_left_out_is_said(here, call, no_tutor):
    fill_in(here, "01.1", OWN_QUEUE)
    fill_in(here, "01.2", OWN_POOL)
    code, out, _ = call("mine", "--without", "01.1", "--without", "01.2")
    assert code == 0 and "All of your parts are left out" in out.splitlines()[-1]
    assert "None of them" not in out
    fill_in(here, "01.2", "def BlockPool(n, q):\n    raise NotImplementedError()\n")
    assert "All of your parts are left out" in call("mine", "--without", "01.1")[1]


@pytest.mark.parametrize("raised", ["Stop('enough')", "SystemExit(3)", "KeyboardInterrupt()"])
def test_what_nobody_catches_fails_the_part_like_any_error(here, call, no_tutor, raised):
    stops = "class Stop(BaseException):\n    pass\n\n" + OWN_QUEUE.replace(
        "return self.ids.popleft()", f"raise {raised}"
    )
    fill_in(here, "01.1", stops)
    code, out, _ = call("mine")
    assert code == 1 and "FAILED  01.1 FreeQueue" in out
    assert f"own code raised {raised.partition('(')[0]}" in out
    assert "at step 1" in out and f"`raise {raised}`" in out


def test_of_what_the_ledger_finds_the_beginning_is_told(here):
    fill_in(here, "01.1", OWN_QUEUE)
    parts = mine_run.choose(sit_down(), ())
    for count, more in ((3, ""), (12, "; … and 9 more")):
        found = [f"block {k} is lost" for k in range(count)]

        def run(some, found=found):
            raise InvariantError("; ".join(found))

        with pytest.raises(PartFailure) as told:
            blame.attempt(run, parts, "here", 5.0)
        assert str(told.value).endswith(f"block 0 is lost; block 1 is lost; block 2 is lost{more}")


def test_an_endless_loop_is_blamed_on_the_cell_that_it_is_in(here, call, no_tutor, monkeypatch):
    import builtins
    import threading

    go_on = threading.Event()
    monkeypatch.setattr(builtins, "go_on", go_on, raising=False)
    monkeypatch.setattr(mine_run, "_LEDGER_SECONDS", 0.5)
    loop = "while not go_on.wait(0.01):\n            x = 1\n        return self.ids.popleft()"
    fill_in(here, "01.1", OWN_QUEUE.replace("return self.ids.popleft()", loop))
    fill_in(here, "01.2", OWN_POOL)
    try:
        code, out, _ = call("mine")
    finally:
        go_on.set()
    failure = out[out.index("FAILED") :]
    assert code == 1 and "01.1 FreeQueue" in failure and "BlockPool" not in failure
    assert "of the cell of 01.1: `while not go_on" in failure and "<cell" not in failure


def test_what_the_engine_does_not_ask_is_said_with_own_parts_only(here, call, no_tutor):
    words = "what else an exercise asks for is for `minipaged check`"
    assert words not in call("mine")[1]
    fill_in(here, "01.1", OWN_QUEUE)
    assert words in call("mine")[1]


def test_solved_exercises_without_a_part_are_told(here, call, no_tutor):
    assert "Used in the notebooks only" not in call("mine")[1]
    progress.update(here / progress.NAME, lambda state: state.done.update({"00.1", "01.1"}))
    assert "Used in the notebooks only: 00.1." in call("mine")[1].splitlines()


def test_a_deleted_cell_is_told_and_the_reference_used(here, call, no_tutor):
    fill_in(here, "01.1", None)
    fill_in(here, "01.2", OWN_POOL)
    code, out, _ = call("mine")
    assert code == 0, out
    [queue] = [line for line in out.splitlines() if line.startswith("free_queue")]
    assert "reference" in queue and "(no cell)" in queue
    assert "`minipaged reset 01.1` puts it back" in out
    out = call("check", "01.1")[1]
    assert "The cell ex-01-1 is not in the notebook: `minipaged reset 01.1` puts it back" in out
