"""mine("02.1") in a notebook, and `minipaged mine`: own parts in the engine."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from workspaces import (  # noqa: F401
    BLOCKS,
    OWN_POOL,
    OWN_QUEUE,
    call_fixture,
    course_fixture,
    fill_in,
    here_fixture,
)

from minipaged.cache.block import FreeQueue
from minipaged.cache.pool import BlockPool
from minipaged.cache.table import BlockTable
from minipaged.course.learner import blame, mine_run
from minipaged.course.learner.blame import PartFailure
from minipaged.course.learner.desk import sit_down
from minipaged.course.mine import OwnPartError, Part, mine

ROOT = Path(__file__).parents[1]
LOSES_A_BLOCK = OWN_QUEUE.replace("self.ids.append(block_id)", "pass").replace(
    "self.ids.appendleft(block_id)", "self.ids.appendleft(block_id) if block_id != 3 else None"
)
RAISES = OWN_QUEUE.replace("self.ids.appendleft(block_id)", "self.ids[block_id].nothing")
DUPLICATES = OWN_POOL.replace("block.refcount -= 1", "block.refcount -= 1 if block_id != 5 else 0")


@pytest.fixture
def no_tutor(monkeypatch):
    """Only the ledger is run: the tutor's turn takes seconds."""
    monkeypatch.setattr(mine_run, "over_the_tutor", lambda parts: [])


# in a notebook


def test_the_own_part_is_loaded_from_wherever_in_the_workspace(here, capsys):
    fill_in(here, "01.1", OWN_QUEUE)
    queue = mine("01.1")
    assert capsys.readouterr().out == "01.1 FreeQueue: yours (exercises/01_pool.ipynb)\n"
    assert queue is not FreeQueue and queue.__doc__ == "Slow, but right."
    assert not queue.__module__.startswith("minipaged")
    assert list(queue(3)) == [0, 1, 2]
    assert inspect.getsource(queue.pop_head).strip().startswith("def pop_head")


def test_given_cells_are_there_and_other_cells_are_not_run(here):
    fill_in(here, "01.2", OWN_POOL)  # uses HALVES, which a given cell defines
    fill_in(here, "01.1", "1 / 0")
    assert mine("01.2")(4, FreeQueue).num_blocks == 4


def test_a_dataclass_with_its_annotations_as_text_loads(here):
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "from typing import ClassVar\n\n@dataclass\nclass FreeQueue:\n    n: int\n"
        "    c: ClassVar[int] = 0\n"
    )
    fill_in(here, "01.1", source)
    assert mine("01.1")(3).n == 3


def test_an_unsolved_cell_gives_the_reference_and_says_so(here, capsys):
    assert mine("01.1") is FreeQueue
    assert capsys.readouterr().out == "01.1 FreeQueue: the reference\n"
    half = OWN_QUEUE.replace(
        "        self.ids.remove(block_id)", "        raise NotImplementedError()"
    )
    fill_in(here, "01.1", half)
    assert mine("01.1") is FreeQueue


def test_without_a_component_the_reference_is_the_packaged_solution(here, capsys):
    assert mine("00.1")(37, 16) == 3
    assert capsys.readouterr().out == "00.1 blocks_needed: the reference\n"
    fill_in(here, "00.1", BLOCKS + "\nblocks_needed.own = True\n")
    assert mine("00.1").own


def test_without_a_workspace_it_is_the_reference(tmp_path, course, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert mine("01.2") is BlockPool
    assert capsys.readouterr().out == "01.2 BlockPool: the reference\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\ny = x / 0\n", "line 2 of the cell: `y = x / 0`"),
        ("def FreeQueue(:\n    pass", "Line 1 of the cell cannot be read as Python"),
        ("x = 1", "defines no FreeQueue"),
        ("from minipaged.cache.block import FreeQueue", "minipaged's own"),
        ("raise SystemExit", "SystemExit"),
        (None, "is not in the notebook"),
    ],
)
def test_a_broken_cell_is_an_error_never_the_reference(here, capsys, source, words):
    fill_in(here, "01.1", source)
    with pytest.raises(OwnPartError) as told:
        mine("01.1")
    assert words in str(told.value)
    assert "01.1 FreeQueue" in str(told.value) and "exercises/01_pool.ipynb" in str(told.value)
    assert capsys.readouterr().out == ""


def test_a_missing_or_broken_notebook_is_an_error(here):
    path = here / "exercises/01_pool.ipynb"
    path.write_bytes(b"{")
    with pytest.raises(OwnPartError, match="not JSON"):
        mine("01.1")
    path.unlink()
    with pytest.raises(OwnPartError, match="minipaged init"):
        mine("01.1")


def test_an_unknown_exercise_is_an_error(here):
    with pytest.raises(ValueError, match="there is no exercise '09.1'"):
        mine("09.1")


# the command


def test_with_no_own_part_it_says_which_comes_first(here, call, no_tutor):
    code, out, _ = call("mine")
    assert code == 0
    assert "free_queue" in out and "block_pool" in out and out.count("reference") >= 2
    assert "01.1 FreeQueue" in out.splitlines()[-1]


def test_own_parts_run_and_are_told_from_the_reference(here, call, no_tutor):
    fill_in(here, "01.1", OWN_QUEUE)
    code, out, _ = call("mine")
    assert code == 0, out
    [queue] = [line for line in out.splitlines() if line.startswith("free_queue")]
    [pool] = [line for line in out.splitlines() if line.startswith("block_pool")]
    assert "FreeQueue" in queue and "yours" in queue and "01.1" in queue
    assert "reference" in pool and "yours" not in pool
    assert "preemptions" in out and "0 preemptions" not in out
    fill_in(here, "01.2", OWN_POOL)
    code, out, _ = call("mine")
    assert code == 0 and out.count("yours") >= 2


def test_the_own_part_is_what_runs(here, call, no_tutor):
    """A class that is counted: that the verdict came from it is not believed, but seen."""
    fill_in(
        here,
        "01.1",
        OWN_QUEUE
        + "\nimport builtins\nbuiltins.made = []\n"
        + (
            "_init = FreeQueue.__init__\ndef _count(self, n):\n    builtins.made.append(n)\n"
            "    _init(self, n)\nFreeQueue.__init__ = _count\n"
        ),
    )
    import builtins

    try:
        assert call("mine")[0] == 0
        assert len(builtins.made) >= 1
    finally:
        del builtins.made


@pytest.mark.parametrize(
    ("exercise_id", "source", "part", "words"),
    [
        ("01.1", LOSES_A_BLOCK, "01.1 FreeQueue", "off the free queue"),
        ("01.1", RAISES, "01.1 FreeQueue", "`self.ids[block_id].nothing`"),
        ("01.2", DUPLICATES, "01.2 BlockPool", "block 5 has refcount 1"),
        ("01.1", OWN_QUEUE.replace("def __len__", "def length"), "01.1 FreeQueue", "len()"),
        ("01.1", "x = 1", "01.1 FreeQueue", "defines no FreeQueue"),
    ],
)
def test_a_broken_own_part_fails_and_is_named(
    here, call, no_tutor, exercise_id, source, part, words
):
    other = {"01.1": ("01.2", OWN_POOL), "01.2": ("01.1", OWN_QUEUE)}[exercise_id]
    fill_in(here, *other)
    fill_in(here, exercise_id, source)
    code, out, err = call("mine")
    assert code == 1, out
    said = out + err
    assert part in said and words in said
    failure = said[said.index("FAILED") :]
    assert other[0] not in failure


class Shuffled(BlockTable):
    """New blocks come first: the table agrees with itself, but not with what was written."""

    def append_blocks(self, block_ids):
        self.block_ids[:0] = block_ids


def test_a_part_that_breaks_no_invariant_but_the_tokens_fails(course):
    exercise = replace(course.catalog.exercise("01.1"), name="BlockTable", component="block_table")
    with pytest.raises(PartFailure, match="other tokens than with the reference"):
        mine_run.over_the_ledger([Part(exercise, Shuffled, is_own=True)])


def test_without_leaves_an_own_part_out(here, call, no_tutor):
    fill_in(here, "01.1", RAISES)
    code, out, _ = call("mine", "--without", "01.1")
    assert code == 0
    assert "left out" in out
    code, _, err = call("mine", "--without", "00.1")
    assert code == 2 and "01.1, 01.2" in err


def test_a_queue_that_goes_round_in_circles_fails(here, call, no_tutor):
    cycle = OWN_QUEUE.replace("return iter(self.ids)", "while True:\n            yield 0")
    fill_in(here, "01.1", cycle)
    code, out, _ = call("mine")
    assert code == 1 and "01.1 FreeQueue" in out and "more than once" in out


def test_a_loop_that_never_ends_is_given_up_and_its_line_is_named(
    here, call, no_tutor, monkeypatch
):
    """The loop waits for an event, so that the thread left behind can be ended here."""
    import builtins
    import threading

    go_on = threading.Event()
    monkeypatch.setattr(builtins, "go_on", go_on, raising=False)
    monkeypatch.setattr(mine_run, "_LEDGER_SECONDS", 0.5)
    loop = "while not go_on.wait(0.01):\n            x = 1\n        return self.ids.popleft()"
    fill_in(here, "01.1", OWN_QUEUE.replace("return self.ids.popleft()", loop))
    try:
        code, out, _ = call("mine")
    finally:
        go_on.set()
    assert code == 1 and "01.1 FreeQueue" in out
    assert "no end within 0.5 seconds" in out and "while not go_on.wait(0.01)" in out


def test_parts_that_fail_only_together_are_named_together(here):
    fill_in(here, "01.1", OWN_QUEUE)
    fill_in(here, "01.2", OWN_POOL)
    parts = mine_run.choose(sit_down(), ())

    def run(some):
        assert len(some) < 2, "they do not agree"

    with pytest.raises(PartFailure, match=r"(?s)01\.1 FreeQueue, 01\.2 BlockPool.*do not agree"):
        blame.attempt(run, parts, "here", 5.0)


def test_a_notebook_that_is_not_in_the_workspace_stops_no_other_part(here, call, no_tutor):
    (here / "exercises/01_pool.ipynb").unlink()
    code, out, _ = call("mine")
    assert code == 0 and out.count("(no notebook)") == 2


def test_the_tutor_writes_the_same_text_with_own_parts(here, call):
    fill_in(here, "01.1", OWN_QUEUE)
    fill_in(here, "01.2", OWN_POOL)
    code, out, _ = call("mine")
    assert code == 0, out
    assert "the tutor" in out and "block table" in out.lower()


def test_another_text_of_the_tutor_names_the_part(here, monkeypatch):
    fill_in(here, "01.1", OWN_QUEUE)
    parts = mine_run.choose(sit_down(), ())
    texts = {True: ["other"], False: ["right"]}
    monkeypatch.setattr(
        mine_run, "_answers", lambda parts, asked: texts[any(part.is_own for part in parts)]
    )
    with pytest.raises(PartFailure, match=r"01\.1 FreeQueue.*\n.*other"):
        mine_run.over_the_tutor(parts)


def test_what_a_notebook_and_the_command_load_is_without_torch():
    code = (
        "import sys\nfrom minipaged.course import mine\n"
        "from minipaged.course.learner import mine_run\n"
        "parts = [mine.reference(mine.shipped.course(), mine.shipped.course().catalog.exercise("
        "'02.1'))]\nprint(mine_run.over_the_ledger(parts)[0][:15])\n"
        "print({'torch', 'numpy'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "over the ledger\nset()\n"
