"""Workspaces: laid out, found, and brought up to date without touching what a learner wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from workspaces import BLOCKS, fill_in, make_course

from minipaged.course import shipped
from minipaged.course.learner import progress, workspace
from minipaged.course.learner.progress import NAME
from minipaged.course.learner.workspace import NoWorkspace, find, init

ROOT = Path(__file__).parents[1]


@pytest.fixture
def course(tmp_path):
    return make_course(tmp_path / "course")


@pytest.fixture
def here(tmp_path, course):
    """A workspace in a folder with a space and letters beyond ASCII."""
    folder = tmp_path / "Mein Kurs 课"
    init(folder, course)
    return folder


def did(lines: list[str]) -> dict[str, str]:
    """What init says of each file."""
    return {line.split()[1]: line.split()[0] for line in lines if ".ipynb" in line}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_init_lays_out_lessons_exercises_and_a_state_file(tmp_path, course):
    lines = init(tmp_path / "a/b", course)
    laid_out = contents(tmp_path / "a/b")
    names = [f"{f}/{s}.ipynb" for f in ("exercises", "lessons") for s in ("00_tour", "01_pool")]
    assert sorted(laid_out) == sorted([*names, NAME])
    for name in names:
        assert laid_out[name] == (course.root / name).read_bytes()
    assert did(lines) == dict.fromkeys(names, "added")
    state = progress.load(tmp_path / "a/b" / NAME)
    assert (state.current, state.done, state.hints) == ("00.1", set(), {})
    assert set(state.files) == set(names)


def test_the_real_course_can_be_laid_out(tmp_path):
    course = shipped.course()
    init(tmp_path, course)
    for folder in ("lessons", "exercises"):
        assert (tmp_path / folder / "00_tour.ipynb").read_bytes() == (
            ROOT / folder / "00_tour.ipynb"
        ).read_bytes()


def test_an_update_without_news_changes_nothing(here, course):
    before = contents(here)
    assert set(did(init(here, course)).values()) == {"unchanged"}
    assert contents(here) == before


def test_an_update_adds_refreshes_and_never_touches_what_was_changed(here, course):
    mine = fill_in(here, "00.1", BLOCKS)
    written = mine.read_bytes()
    (here / "lessons/01_pool.ipynb").unlink()
    (here / "lessons/notes.ipynb").write_text("mine", encoding="utf-8")
    for name in ("lessons/00_tour", "exercises/00_tour", "exercises/01_pool"):
        path = course.root / f"{name}.ipynb"
        path.write_bytes(path.read_bytes().replace(b'"nbformat_minor": 5', b'"nbformat_minor":  5'))
    (course.root / "lessons/02_new.ipynb").write_bytes(b"{}")
    progress.update(here / NAME, lambda p: p.done.add("00.1"))
    lines = init(here, course)
    assert did(lines) == {
        "exercises/00_tour.ipynb": "kept",
        "exercises/01_pool.ipynb": "refreshed",
        "lessons/00_tour.ipynb": "refreshed",
        "lessons/01_pool.ipynb": "added",
        "lessons/02_new.ipynb": "added",
    }
    [kept] = [line for line in lines if line.startswith("kept")]
    assert "you changed it" in kept and "newer" in kept
    assert mine.read_bytes() == written
    assert (here / "lessons/notes.ipynb").read_text(encoding="utf-8") == "mine"
    assert (here / "lessons/00_tour.ipynb").read_bytes() == (
        course.root / "lessons/00_tour.ipynb"
    ).read_bytes()
    assert progress.load(here / NAME).done == {"00.1"}
    assert [kept] == [line for line in init(here, course) if line.startswith("kept")]
    assert mine.read_bytes() == written


def test_what_was_changed_is_kept_also_if_the_course_has_nothing_newer(here, course):
    fill_in(here, "00.1", BLOCKS)
    [kept] = [line for line in init(here, course) if line.startswith("kept")]
    assert "newer" not in kept


def test_an_interrupted_layout_can_be_finished(tmp_path, course, monkeypatch):
    folder, real, count = tmp_path / "w", workspace.write, []

    def fail_at_third(path, content):
        count.append(path)
        if len(count) == 3:
            raise KeyboardInterrupt
        real(path, content)

    monkeypatch.setattr(workspace, "write", fail_at_third)
    with pytest.raises(KeyboardInterrupt):
        init(folder, course)
    monkeypatch.setattr(workspace, "write", real)
    init(folder, course)
    assert set(did(init(folder, course)).values()) == {"unchanged"}


def test_without_its_state_file_a_workspace_keeps_every_notebook(here, course):
    mine = fill_in(here, "00.1", BLOCKS)
    written = mine.read_bytes()
    (here / "own.txt").write_text("x", encoding="utf-8")
    (here / NAME).rename(here / "minipaged-old.txt")
    assert did(init(here, course))["exercises/00_tour.ipynb"] == "kept"
    assert mine.read_bytes() == written
    assert progress.load(here / NAME).current == "00.1"


def test_a_damaged_state_file_stops_an_update(here, course):
    (here / NAME).write_text("what?", encoding="utf-8")
    before = contents(here)
    with pytest.raises(progress.ProgressError, match="minipaged init"):
        init(here, course)
    assert contents(here) == before


def test_init_refuses_what_is_no_place_for_a_workspace(tmp_path, course, here):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").write_text("x", encoding="utf-8")
    for folder, words in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "full", "is not empty"),
        (here / "again", "inside the workspace"),
        (ROOT, "repository"),
        (course.root, "course's own"),
    ):
        before = contents(tmp_path)
        with pytest.raises(ValueError, match=words) as told:
            init(folder, course)
        assert "\n" not in str(told.value) and "minipaged init" in str(told.value)
        assert contents(tmp_path) == before
    assert not (ROOT / NAME).exists()


def test_the_workspace_is_found_upwards(here, tmp_path):
    place = find(here / "exercises")
    assert place.root == here.resolve() and place.keeps_progress
    with pytest.raises(NoWorkspace, match="minipaged init DIR"):
        find(tmp_path)


def test_a_checkout_is_a_place_that_keeps_no_progress(tmp_path):
    place = find(ROOT / "minipaged" / "cache")
    assert place.root == ROOT and not place.keeps_progress
    nested = ROOT / "minipaged" / "course"
    assert find(nested).root == ROOT


def test_a_workspace_inside_a_checkout_is_found_first(tmp_path, course):
    checkout = tmp_path / "checkout"
    (checkout / "minipaged/course").mkdir(parents=True)
    (checkout / "solutions").mkdir()
    shutil.copy(ROOT / "minipaged/course/catalog.toml", checkout / "minipaged/course/catalog.toml")
    init(checkout / "work", course)
    assert find(checkout / "work/lessons").root == (checkout / "work").resolve()
    assert not find(checkout).keeps_progress


def test_a_backup_is_never_overwritten_and_never_graded(here):
    from minipaged.course.submission import expand

    place, path = find(here), here / "exercises/00_tour.ipynb"
    graded = expand([here])
    first, second = place.backup(path), place.backup(path)
    assert first != second and first.read_bytes() == second.read_bytes() == path.read_bytes()
    assert expand([here]) == graded
    assert json.loads(first.read_text(encoding="utf-8"))["nbformat"] == 4


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    workspace.write(path, b"old")
    monkeypatch.setattr(progress.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        workspace.write(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
