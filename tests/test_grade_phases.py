"""Grading in its course: hidden scripts come last, what is stopped is stopped, limits hold."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console
from submissions import RIGHT, ROOT, graded, minipaged, submitter, three_exercises

from minipaged.course import grade as grading
from minipaged.course import isolate
from minipaged.course.checks import lesson_00
from minipaged.course.checks.base import Check
from minipaged.course.grade import GradingStopped, grade
from minipaged.course.sandbox import Limits, NoAnswer, limits_for, observe
from minipaged.course.script import Case, Operation


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


def case(*numbers: int) -> Case:
    return Case("a case", "A story.", tuple(Operation((n,)) for n in numbers))


CELL = """\
import random

def found():
    sys = random._os.sys
    seen, frame = set(), sys._getframe()
    heap = [sys._getframe()]
    while frame is not None:
        for value in list(frame.f_locals.values()):
            seen.add(repr(value)[:100_000])
        frame = frame.f_back
    return any('123456' + '789' in text for text in seen)

in_cell = found()

def f(n):
    return [in_cell, found()]
"""


def test_hidden_scripts_come_when_the_cell_and_the_visible_ones_are_done():
    said = observe([("mine", CELL)], "f", [case(1), case(2)], Limits(), hidden=[case(123456789)])
    values = [[one.value for one in rows] for rows in said]
    none, hers = {"list": [False, False]}, {"list": [False, True]}
    assert values == [[none], [none], [hers]]


def test_what_is_on_stdin_in_a_cell_is_not_the_hidden_scripts():
    source = (
        "import random\nos = random._os\ntexts = []\nfor fd in range(3, 64):\n"
        "    try: texts.append(os.pread(fd, 10**6, 0))\n    except OSError: pass\n"
        "def f(n):\n    return b'123456' + b'789' in b''.join(texts)\n"
    )
    said = observe([("mine", source)], "f", [case(1)], Limits(), hidden=[case(123456789)])
    assert [[one.value for one in rows] for rows in said] == [[False], [False]]


@pytest.mark.parametrize("ending", ["os._exit(0)", "while True: pass"])
def test_who_ends_in_the_hidden_part_passes_nothing(ending):
    source = (
        f"import random\nos = random._os\ndef f(n):\n    if n == 9:\n        {ending}\n"
        "    return n\n"
    )
    with pytest.raises(NoAnswer) as told:
        observe([("mine", source)], "f", [case(1)], Limits(seconds=1.0), hidden=[case(9)])
    assert told.value.status == ("time limit" if "while" in ending else "ended early")


def test_a_first_answer_that_is_none_gets_no_hidden_scripts(tmp_path):
    """A cell that writes the answer itself, in the wrong form."""
    source = (
        "import random\nos = random._os\nfor fd in range(3, 64):\n"
        "    try: os.write(fd, b'[]\\n')\n    except OSError: pass\n"
        "def f(n):\n    return n\n"
    )
    with pytest.raises(NoAnswer) as told:
        observe([("mine", source)], "f", [case(1)], Limits(seconds=2.0), hidden=[case(9)])
    assert told.value.status in ("no answer", "ended early", "cell fails")


def test_the_time_limit_asks_for_memory_too(submit):
    source = "def blocks_needed(n, b):\n    while True: pass\n"
    assert graded(submit(source), seconds=1)[1].reason == (
        "No answer within 1 seconds: is there a loop that never ends, or does it take very much "
        "memory?"
    )


COUNTED = """
import codecs, ctypes, os, resource, sys  # all now: another user may read no files
sys.path.insert(0, {root!r})
from minipaged.course import isolate, worker
codecs.lookup("ascii")
if os.geteuid() == 0:  # root is not counted; whoever was root owns no /proc/self unless asked to
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1)
if not worker._enter_namespaces():
    sys.exit("not counted")
worker.limit({{"RLIMIT_NPROC": 20}})
for number in range(100):
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        import time
        time.sleep(60)
print(number)
"""


@pytest.mark.skipif(not isolate.available(), reason="no namespaces")
def test_many_processes_are_held_off_where_the_system_counts_them():
    ran = subprocess.run(
        [sys.executable, "-c", COUNTED.format(root=str(ROOT))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if ran.returncode and ran.stderr == "not counted\n":
        pytest.skip("this system does not count by namespace")
    assert ran.returncode == 0, ran.stderr
    assert 10 < int(ran.stdout) < 20


# --seconds


def test_seconds_are_those_of_exercises_without_tensors(submit):
    plain, tensors = (Check(list, lambda s: [], lambda c: [], tensors=t) for t in (False, True))
    assert limits_for(plain, seconds=2.5).seconds == 2.5
    assert limits_for(tensors, seconds=2.5).seconds == 60.0
    assert limits_for(plain, Limits(memory_bytes=5), seconds=2.5) == Limits(2.5, 5)
    slow = submit("def blocks_needed(n, b):\n    while True: pass\n")
    ended = minipaged("grade", slow, "--seconds", "0.6")
    assert ended.returncode == 1 and b"No answer within 0.6 seconds" in ended.stdout
    for wrong in ("0", "-1", "nan", "inf"):
        ended = minipaged("grade", slow, "--seconds", wrong)
        assert (ended.returncode, ended.stdout) == (2, b"") and b"seconds is" in ended.stderr


# stopping


def test_ctrl_c_ends_the_workers_and_leaves_what_is_graded(tmp_path, monkeypatch):
    three = three_exercises(tmp_path, monkeypatch)
    endless = "def two(n, b):\n    while True: pass"
    paths = [three.submit(name="a.ipynb"), *(three.submit(None, endless, name="b.ipynb"),)]

    def tell(report, number, total):
        assert (number, total, Path(report.path).name) == (1, 2, "a.ipynb")
        raise KeyboardInterrupt

    from minipaged.course.shipped import Course

    began = time.monotonic()
    with pytest.raises(GradingStopped) as stopped:
        grade(paths, 1, tell=tell, course=Course(three.course, tmp_path))
    assert time.monotonic() - began < 8
    assert [Path(report.path).name for report in stopped.value.reports] == ["a.ipynb"]
    assert (stopped.value.reports[0].points, stopped.value.total) == (3, 2)
    assert isinstance(stopped.value, KeyboardInterrupt)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals on this system")
def test_whoever_interrupts_twice_leaves_no_worker_either(submit, tmp_path, monkeypatch):
    note = tmp_path / "note"
    source = (
        f"import time\nwhile True:\n    open({str(note)!r}, 'a').write('.')\n    time.sleep(0.05)\n"
    )
    interrupts = []

    def interrupt():
        while not note.exists():
            time.sleep(0.02)
        for _ in range(3):
            interrupts.append(1)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(GradingStopped) as stopped:
        grade([submit(source)], 1, limits=Limits(guarded=False))
    assert (stopped.value.reports, stopped.value.total) == ([], 1)
    size = note.stat().st_size
    time.sleep(0.4)
    assert note.stat().st_size == size and len(interrupts) == 3


def test_a_stopped_worker_is_killed_at_once():
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with pytest.raises(NoAnswer, match="stopped"):
        observe([("mine", "while True: pass")], "f", [case(1)], Limits(), stop=stop)
    assert time.monotonic() - began < 5


def test_the_command_prints_what_is_graded_and_exits_130(submit, monkeypatch, capsys):
    from minipaged import cli

    [done] = grade([submit()], 1)

    def stopped(*_, **__):
        raise GradingStopped([done], 3)

    monkeypatch.setattr(grading, "grade", stopped)
    for more, words in ((), "1 of 1 points"), (("--json",), '"passed": true'):
        monkeypatch.setattr(sys, "argv", ["minipaged", "grade", "x.ipynb", *more])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert ended.value.code == 130
        assert words in out and "stopped: 1 of 3 notebooks are graded" in err


def test_progress_is_told_in_a_terminal_only(submit, capsys):
    from minipaged.commands.learn import telling_of

    with telling_of(Console(stderr=True, force_terminal=False)) as tell:
        assert tell is None
    [report] = grade([submit()], 1)
    console = Console(stderr=True, force_terminal=True, width=60)
    with telling_of(console) as tell:
        tell(report, 1, 4)
        time.sleep(0.3)  # it is drawn ten times a second
    said = capsys.readouterr()
    assert said.out == "" and "1/4" in said.err


def test_what_a_run_can_take_at_most_is_known_to_teachers():
    text = (ROOT / "docs/GRADING.md").read_text(encoding="utf-8")
    for status in (
        *("passed", "failed", "unsolved", "copied", "missing", "not Python", "cell fails"),
        *("undefined", "not your own", "time limit", "ended early", "no answer", "no verdict"),
        *("not readable", "not a notebook", "no exercise", "a lesson"),
    ):
        assert f"`{status}`" in text, status
    from dataclasses import fields

    for one in (*fields(grading.Report), *fields(grading.Result)):
        assert f"`{one.name}`" in text, one.name
    assert "`--seconds N`" in text and "| 130 |" in text
    assert lesson_00.CHECKS and RIGHT
