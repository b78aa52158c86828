"""The learner's state file: what it holds comes back, and damage is told, not mended silently."""

from __future__ import annotations

import os
import threading
import time

import pytest

from minipaged.course.learner import progress
from minipaged.course.learner.progress import NAME, Progress, ProgressError

FULL = Progress(
    current="02.1",
    done={"00.1", "01.1"},
    hints={"01.1": 3, "02.1": 1},
    files={"lessons/00_tour.ipynb": "a" * 64, "exercises/mit Leerzeichen ü.ipynb": "b" * 64},
)


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "Kurs 课程"
    folder.mkdir()
    return folder / NAME


def test_what_is_saved_comes_back(path):
    progress.save(path, FULL)
    assert progress.load(path) == FULL
    assert b"\r" not in path.read_bytes()


def test_the_file_says_at_its_top_what_it_is_and_reads_in_the_order_of_the_course(path):
    progress.save(path, FULL)
    text = path.read_text(encoding="utf-8")
    head, entries = text.split("\nformat 1\n")
    assert all(line.startswith("#") for line in head.splitlines())
    for word in ("current", "done", "hints", "file", "minipaged init"):
        assert word in head and word in progress.__doc__
    assert entries.index("done 00.1") < entries.index("done 01.1")


def test_line_ends_a_byte_order_mark_and_comments_of_other_editors_do_no_harm(path):
    progress.save(path, FULL)
    text = path.read_text(encoding="utf-8") + "\n# mine\n\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert progress.load(path) == FULL


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "has no line `format 1`"),
        (b"\x00\x00\x00", "line 1"),
        (b"\xff\xfe", "not text in UTF-8"),
        (b"done 00.1\n", "has no line `format 1`"),
        (b"format 1\ncurrent\n", "line 2"),
        (b"format 1\ncurrent 1.1\n", "line 2"),
        (b"format 1\ncurrent 00.1\ncurrent 00.1\n", "line 3"),
        (b"format 1\ndone 00.1 00.2\n", "line 2"),
        (b"format 1\nhints 00.1 4\n", "line 2"),
        (b"format 1\nhints 00.1 x\n", "line 2"),
        (b"format 1\nfile abc lessons/00_tour.ipynb\n", "line 2"),
        (b"format 1\nfile " + b"a" * 64 + b"\n", "line 2"),
        (b"format 1\nsolved 00.1\n", "line 2"),
        (b"format 1\nfile " + b"a" * 64 + b" lessons/00_to", "line 2"),
    ],
)
def test_a_damaged_file_is_told_in_one_line_and_left_as_it_is(path, content, where):
    path.write_bytes(content)
    with pytest.raises(ProgressError) as told:
        progress.update(path, lambda p: p.done.add("00.1"))
    said = str(told.value)
    assert where in said and str(path) in said and "\n" not in said
    assert "minipaged init" in said
    assert path.read_bytes() == content


def test_a_file_without_a_top_is_not_sent_there(path):
    for content in (b"", b"\x00\x01", b"\xff\xfe", b"format 1\nsolved 00.1\n"):
        path.write_bytes(content)
        with pytest.raises(ProgressError) as told:
            progress.load(path)
        assert "its top" not in str(told.value) and "rename it" in str(told.value)
    progress.save(path, FULL)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ProgressError, match="mend it .its top says how"):
        progress.load(path)


def test_a_file_of_a_later_version_is_not_read_wrongly(path):
    path.write_text("format 2\n", encoding="utf-8")
    with pytest.raises(ProgressError, match="pip install -U minipaged"):
        progress.load(path)


def test_an_update_begins_from_what_the_file_holds_now(path):
    progress.save(path, FULL)
    stale = progress.load(path)
    progress.update(path, lambda p: p.done.add("02.1"))
    progress.update(path, lambda p: p.hints.update({"02.1": 2}))
    now = progress.load(path)
    assert now.done == {*stale.done, "02.1"} and now.hints["02.1"] == 2


def test_an_interrupted_write_leaves_the_old_file_and_no_litter(path, monkeypatch):
    progress.save(path, FULL)

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(progress.os, "replace", fail)
    with pytest.raises(OSError, match="disk is full"):
        progress.update(path, lambda p: p.done.add("02.1"))
    assert progress.load(path) == FULL
    assert [p.name for p in path.parent.iterdir()] == [NAME]


def test_an_update_that_changes_nothing_writes_nothing(path):
    progress.save(path, FULL)
    before = path.stat().st_mtime_ns
    progress.update(path, lambda p: p.done.add("00.1"))
    assert path.stat().st_mtime_ns == before


def test_what_many_record_at_the_same_moment_is_all_kept(path):
    progress.save(path, Progress(current="00.1"))
    ids = [f"{lesson:02}.{number}" for lesson in range(10) for number in range(1, 5)]
    errors = []

    def record(one: str) -> None:
        try:
            progress.update(path, lambda p: p.done.add(one))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=record, args=(one,)) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert progress.load(path).done == set(ids)
    assert [p.name for p in path.parent.iterdir()] == [NAME]


def lock_of(path, seconds_ago: float):
    lock = path.with_name(f"{NAME}.lock")
    lock.touch()
    made = time.time() - seconds_ago
    os.utime(lock, (made, made))
    return lock


def test_a_lock_that_was_left_behind_is_taken_over(path):
    progress.save(path, FULL)
    lock = lock_of(path, 11)
    assert progress.update(path, lambda p: p.done.add("02.1")).done == {*FULL.done, "02.1"}
    assert progress.load(path).done == {*FULL.done, "02.1"} and not lock.exists()


def test_a_lock_that_somebody_holds_is_waited_for_and_then_told(path, monkeypatch):
    progress.save(path, FULL)
    monkeypatch.setattr(progress, "LOCK_SECONDS", 0.2)
    lock = lock_of(path, 0)
    with pytest.raises(ProgressError, match=r"another command has been writing.*\.lock"):
        progress.update(path, lambda p: p.done.add("02.1"))
    assert progress.load(path) == FULL and lock.exists()
    threading.Timer(0.05, lock.unlink).start()
    assert "02.1" in progress.update(path, lambda p: p.done.add("02.1")).done


def test_a_lock_that_has_just_gone_is_no_reason_to_give_up(path, monkeypatch):
    progress.save(path, FULL)
    lock = lock_of(path, 0)
    seen = []

    def gone(_):  # as if its holder removed it between our two looks
        if not seen:
            lock.unlink()
        seen.append(1)

    monkeypatch.setattr(progress, "_made", gone)
    assert "02.1" in progress.update(path, lambda p: p.done.add("02.1")).done
    assert seen == [1]


def test_reading_waits_for_nobody(path):
    progress.save(path, FULL)
    lock_of(path, 0)
    assert progress.update(path, lambda p: p.done.add("00.1")) == FULL
