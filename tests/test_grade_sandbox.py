"""The sandbox itself, with the import guard switched off: limits, children, surroundings."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from submissions import RIGHT, graded, submitter

from minipaged.course import isolate, sandbox
from minipaged.course.checks import lesson_00
from minipaged.course.checks.base import Check
from minipaged.course.sandbox import Limits, limits_for

needs_namespaces = pytest.mark.skipif(
    not isolate.available(), reason="no process namespaces on this system"
)
WAYS = [
    pytest.param(True, marks=needs_namespaces, id="isolated"),
    pytest.param(False, id="grouped"),
]


@pytest.fixture
def submit(tmp_path):
    """Writes a submission of lesson 00 and returns its path."""
    return submitter(tmp_path)


@pytest.fixture
def surround(monkeypatch):
    """Sets whether workers get namespaces of their own."""

    def surround(isolated: bool) -> None:
        monkeypatch.setattr(isolate, "available", lambda: isolated)

    return surround


def child(note: Path, detached: bool) -> str:
    """Code that leaves a child behind which writes into a file for a minute."""
    return (
        f"import os, time\nnote = {str(note)!r}\nif os.fork() == 0:\n"
        + ("    os.setsid()\n    if os.fork(): os._exit(0)\n" if detached else "")
        + "    for _ in range(1200):\n        open(note, 'a').write('.')\n"
        "        time.sleep(0.05)\n"
        "    os._exit(0)\nwhile not os.path.exists(note): pass\n"
    )


def is_still(note: Path) -> bool:
    """Whether nobody writes into the file any more."""
    time.sleep(0.2)
    before = note.stat().st_size
    time.sleep(0.5)
    return note.stat().st_size == before


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare to compare with")
def test_namespaces_are_used_where_the_system_has_them():
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "true"]
    if subprocess.run(command, capture_output=True).returncode == 0:
        assert isolate.available()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("isolated", WAYS)
def test_children_are_ended_and_cannot_hold_up_the_grader(submit, tmp_path, surround, isolated):
    surround(isolated)
    note = tmp_path / "note"
    began = time.monotonic()
    assert graded(submit(child(note, detached=False) + RIGHT), guarded=False)[0].passed
    assert time.monotonic() - began < 10
    assert is_still(note)


@needs_namespaces
@pytest.mark.parametrize("then", ["", "while True: pass\n", "os._exit(0)\n"])
def test_a_detached_child_ends_with_its_namespace(submit, tmp_path, then):
    note = tmp_path / "note"
    source = child(note, detached=True) + then + RIGHT
    assert graded(submit(source), guarded=False, seconds=2)[0].passed == (not then)
    assert is_still(note)


@needs_namespaces
def test_a_namespace_has_no_network(submit, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        note = tmp_path / "note"
        source = (
            f"import os, socket\nopen({str(note)!r}, 'w').write(os.readlink('/proc/self/ns/net'))\n"
            f"try: socket.create_connection(('127.0.0.1', {port}), 2)\nexcept OSError: pass\n"
            "else: raise ValueError('connected')\n"
        )
        report, result = graded(submit(source + RIGHT), guarded=False)
    if note.read_text() == str(Path("/proc/self/ns/net").readlink()):
        pytest.skip("this system gives no network namespace")
    assert report.passed, result.reason


@needs_namespaces
def test_in_its_namespace_a_worker_is_who_the_grader_is_and_sees_itself_only(submit, tmp_path):
    note = tmp_path / "note"
    source = (
        f"import os\nopen({str(note)!r}, 'w').close()\n"
        f"assert (os.geteuid(), os.getegid()) == {(os.geteuid(), os.getegid())}\n"
        f"assert os.getpid() == 2\n"
        f"try: os.kill({os.getpid()}, 0)\nexcept ProcessLookupError: pass\nelse: assert False\n"
    )
    report, result = graded(submit(source + RIGHT), guarded=False)
    assert report.passed, result.reason
    assert note.stat().st_uid == os.geteuid()


@needs_namespaces
def test_what_starts_the_namespace_passes_on_how_it_ended(tmp_path):
    for ending, code in (("sys.exit(3)", 3), ("os.abort()", 128 + 6), ("os._exit(0)", 0)):
        program = (
            f"import os, sys; sys.path.insert(0, {str(sandbox._PACKAGE_ROOT)!r})\n"
            f"from minipaged.course.isolate import enter; enter(); {ending}"
        )
        ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path)
        assert ended.returncode == code


def test_without_namespaces_grading_goes_on(submit, monkeypatch):
    isolate.available.cache_clear()
    monkeypatch.setattr(isolate, "__file__", "nowhere.py")
    try:
        assert not isolate.available()
        assert graded(submit())[0].passed
    finally:
        isolate.available.cache_clear()


@pytest.mark.skipif(os.name != "posix", reason="memory is limited on POSIX systems only")
def test_memory_is_limited(submit):
    _, result = graded(submit("def blocks_needed(n, b):\n    return len(bytearray(3 * 2**30))\n"))
    assert "Your code raised MemoryError" in result.reason


@pytest.mark.parametrize("isolated", WAYS)
def test_what_is_printed_past_python_does_not_reach_the_answer(submit, surround, isolated):
    surround(isolated)
    source = (
        "import os\ndef blocks_needed(n, b):\n    os.write(1, b'PASSED')\n"
        "    os.system('echo PASSED; echo FAILED >&2')\n    return -(-n // b)\n"
    )
    assert graded(submit(source), guarded=False)[0].passed


def test_the_graders_environment_and_folder_stay_its_own(submit, monkeypatch):
    monkeypatch.setenv("GRADER_TOKEN", "secret")
    source = (
        "import os, sys\nhome = os.path.expanduser('~')\nassert home == os.getcwd()\n"
        "assert os.listdir() == []\nassert 'GRADER_TOKEN' not in os.environ\n"
        "assert sys.argv == ['']\n"
    )
    assert graded(submit(source + RIGHT), guarded=False)[0].passed


@pytest.mark.skipif(sys.platform != "linux", reason="how much is held is told on Linux only")
def test_memory_is_counted_from_what_the_worker_itself_holds(submit):
    source = "def blocks_needed(n, b):\n    bytearray({} * 2**20)\n    return -(-n // b)\n"
    assert graded(submit(source.format(40)), memory_bytes=50 * 2**20)[0].passed
    _, result = graded(submit(source.format(60)), memory_bytes=50 * 2**20)
    assert "Your code raised MemoryError" in result.reason


def test_the_time_begins_when_torch_is_there(submit, monkeypatch):
    with_tensors = dataclasses.replace(lesson_00.CHECKS["00.1"], tensors=True)
    monkeypatch.setattr(lesson_00, "CHECKS", {"00.1": with_tensors})
    report, result = graded(submit(), seconds=0.9)  # loading it takes longer
    assert report.passed, result.reason


def check(tensors: bool) -> Check:
    """A check without cases."""
    return Check(list, lambda seed: [], lambda case: [], tensors=tensors)


def test_limits_are_what_the_check_needs():
    assert limits_for(check(False)) == Limits()
    assert limits_for(check(True)) == Limits(60.0, 4 * 2**30, tensors=True)
    own = Limits(seconds=1.5, memory_bytes=2**40)
    assert limits_for(check(False), own) is own
    assert limits_for(check(True), own) == Limits(1.5, 2**40, tensors=True)
