"""A warm worker answers as the sandbox does, only sooner, and nothing of a request outlives it."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import pytest

from minipaged.course import plain, sandbox
from minipaged.course.dev.warm import WarmWorker
from minipaged.course.plain import Array
from minipaged.course.sandbox import Limits, NoAnswer
from minipaged.course.script import Case, Operation

CASES = [
    Case("seven", "", (Operation((7,)), Operation((8,)))),
    Case("nine", "", (Operation((9,)),)),
]
LIMITS = Limits(seconds=1.0, memory_bytes=2**28, answer_bytes=2**20, guarded=False)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture(scope="module")
def warm():
    with WarmWorker(limits=LIMITS) as worker:
        yield worker


def cell(body: str) -> list[tuple[str, str]]:
    return [("ex-00-1", f"def f(n):\n    {body}\n")]


ANSWERS = {
    "a value": "return n + 1",
    "a fault": "return n / 0",
    "a print": "print(n, flush=True)",
    "more than it may print": "print('x' * 10**6)",
    "a changed global": "global f\n    f = None\n    return 1",
    "an empty folder": "import os\n    return os.listdir()",
    "a file of its own": "open('note', 'w').write('x')\n    return open('note').read()",
}


@pytest.mark.parametrize("body", ANSWERS.values(), ids=ANSWERS)
def test_it_observes_what_the_sandbox_observes(warm, body):
    seen = warm.observe(cell(body), "f", CASES)
    assert seen == sandbox.observe(cell(body), "f", CASES, LIMITS)
    assert [len(rows) for rows in seen] == [2, 1]


NO_ANSWERS = {
    "a cell that fails": ([("a", "x = 1"), ("b", "oops")], "cell fails"),
    "a cell that is no Python": ([("a", "def f(:")], "cell fails"),
    "nothing defined": ([("a", "g = 1")], "undefined"),
    "ours": ([("a", "from minipaged.course.plain import encode as f")], "not your own"),
    "a loop": (cell("while True: pass"), "time limit"),
    "a sleep": (cell("import time; time.sleep(60)"), "time limit"),
    "an exit": (cell("import os; os._exit(3)"), "ended early"),
    "a signal": (cell("import os; os.kill(os.getpid(), 9)"), "ended early"),
}


@pytest.mark.parametrize(("cells", "status"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_it_gives_no_answer_in_the_words_of_the_sandbox(warm, cells, status):
    with pytest.raises(NoAnswer) as here:
        warm.observe(cells, "f", CASES)
    with pytest.raises(NoAnswer) as there:
        sandbox.observe(cells, "f", CASES, LIMITS)
    assert here.value.status == there.value.status == status
    assert str(here.value) == str(there.value)


def test_the_guard_stands_here_too(warm):
    guarded = dataclasses.replace(LIMITS, guarded=True)
    cells = [("given", "import os"), *cell("import os")]
    [[first, _], _] = warm.observe(cells, "f", CASES, guarded)
    assert first.fault.kinds[0] == "ImportError"
    assert [[first, first], [first]] == warm.observe(cells, "f", CASES, guarded)
    assert warm.observe(cells, "f", CASES)[0][0].fault is None


def test_memory_is_limited_and_the_worker_lives_on(warm):
    [[first, _], _] = warm.observe(cell("return len(bytearray(2**30))"), "f", CASES)
    assert first.fault.kinds[0] == "MemoryError"
    assert warm.observe(cell("return n"), "f", CASES)[1][0].value == 9


FLOOD = """import contextlib, os
    for number in range(3, 20):
        for _ in range(99):
            with contextlib.suppress(OSError):
                os.write(number, b"x" * 65536)"""


def test_a_flood_where_the_answer_belongs_is_no_answer(warm):
    with pytest.raises(NoAnswer) as caught:
        warm.observe(cell(FLOOD), "f", CASES)
    assert caught.value.status == "no answer"
    assert warm.observe(cell("return n"), "f", CASES)[1][0].value == 9


def test_one_request_leaves_nothing_for_the_next(warm):
    leave = "import sys, os\n    sys.left = 1\n    os.environ['LEFT'] = '1'\n    return 1"
    look = "import sys, os\n    return hasattr(sys, 'left') or 'LEFT' in os.environ"
    warm.observe(cell(leave), "f", CASES)
    assert warm.observe(cell(look), "f", CASES)[0][0].value is False


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait_until_gone(pid: int) -> None:
    for _ in range(200):
        if not _is_alive(pid):
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} is still alive")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look in")
@pytest.mark.parametrize("end", ["return 0", "os._exit(0)"])
def test_children_of_a_request_are_killed_with_it(warm, tmp_path, end):
    note = tmp_path / "pid"
    body = (
        "import os, time\n"
        "    pid = os.fork()\n"
        "    if pid == 0: time.sleep(60)\n"
        f"    open({str(note)!r}, 'w').write(str(pid))\n"
        f"    {end}"
    )
    if end == "return 0":  # and not "time limit", for all that our pipe is held open
        warm.observe(cell(body), "f", [CASES[1]])
    else:
        with pytest.raises(NoAnswer, match="ended before it had answered"):
            warm.observe(cell(body), "f", [CASES[1]])
    _wait_until_gone(int(note.read_text()))


def test_a_helper_that_was_killed_is_replaced():
    with WarmWorker(limits=LIMITS) as worker:
        with pytest.raises(NoAnswer) as caught:
            worker.observe(cell("import os; os.kill(os.getppid(), 9)"), "f", CASES)
        assert caught.value.status == "ended early"
        assert worker.observe(cell("return n"), "f", CASES)[0][0].value == 7


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look in")
def test_the_helper_ends_with_the_block():
    with WarmWorker() as worker:
        pid = worker._process.pid
        assert _is_alive(pid)
    assert not _is_alive(pid)


def test_without_fork_the_sandbox_answers(monkeypatch):
    monkeypatch.delattr(os, "fork")
    with WarmWorker(limits=LIMITS) as worker:
        assert worker._process is None
        assert worker.observe(cell("return n"), "f", CASES)[1][0].value == 9


def test_torch_is_there_before_the_learners_code_imports_it():
    source = (
        "import sys\nLOADED = 'torch' in sys.modules\nimport torch\n"
        "def f(x):\n    return LOADED, x.to(torch.float32) @ x.T * 2\n"
    )
    cases = [Case("two", "", (Operation((Array.of("float32", (2, 1), [1.0, 3.0]),)),))]
    with WarmWorker(tensors=True, limits=LIMITS) as worker:
        for _ in range(2):
            [[first]] = worker.observe([("a", source)], "f", cases)
            assert plain.decode(first.value) == (
                True,
                Array.of("float32", (2, 2), [2.0, 6.0, 6.0, 18.0]),
            )
