"""The commands around the loop: init, no command, reset, lab; and standing elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from workspaces import BLOCKS, call_fixture, course_fixture, fill_in, here_fixture, source_of, state  # noqa: F401

from minipaged.commands import learn
from minipaged.course.learner import progress
from minipaged.course.learner.progress import NAME

ROOT = Path(__file__).parents[1]
SAME = "def {}(n, b):\n    return -(-n // b)\n"


# init


def test_init_tells_each_file_and_what_to_do_next(tmp_path, course, call):
    code, out, _ = call("init", str(tmp_path / "w"))
    assert code == 0
    assert "added      exercises/00_tour.ipynb" in out and str(tmp_path / "w") in out
    code, out, _ = call("init", str(tmp_path / "w"))
    assert code == 0 and out.count("unchanged") == 4


def test_init_refuses_in_one_line(tmp_path, course, call):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    code, out, err = call("init", str(tmp_path / "full"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is not empty" in err


# where am I


def test_no_argument_in_a_workspace_shows_where_you_are_and_the_next_step(here, call):
    code, out, err = call()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) < 24 and max(map(len, lines[1:])) <= 100  # the first names the folder
    [tour] = [line for line in lines if line.lstrip().startswith("00 ")]
    [pool] = [line for line in lines if line.lstrip().startswith("01 ")]
    assert "The tour" in tour and "20 min" in tour and "[.]" in tour and "0 of 1" in tour
    assert "[..]" in pool and "0 of 2" in pool
    assert "00.1 blocks_needed" in out
    assert "lessons/00_tour.ipynb" in out and "exercises/00_tour.ipynb" in out
    assert "minipaged check" in out and "Usage" not in out


def test_the_screen_counts_what_is_done_and_names_what_comes(here, call):
    progress.update(here / NAME, lambda p: p.done.update({"00.1", "01.1"}))
    progress.update(here / NAME, lambda p: setattr(p, "current", "01.2"))
    _, out, _ = call()
    assert "[#]" in out and "[#.]" in out and "1 of 2" in out and "2 of 3" in out
    assert "01.2 BlockPool" in out and "lessons/" not in out.split("01.2 BlockPool")[1]
    progress.update(here / NAME, lambda p: p.done.add("01.2"))
    assert "All 3 exercises are solved" in call()[1]


def test_what_was_left_open_is_named(here, call):
    assert "Left for later" not in call()[1]
    progress.update(here / NAME, lambda p: setattr(p, "current", "01.2"))
    assert "Left for later: 00.1, 01.1 (`minipaged check 00.1`)\n" in call()[1]
    progress.update(here / NAME, lambda p: p.done.add("00.1"))
    assert "Left for later: 01.1 (`minipaged check 01.1`)\n" in call()[1]
    progress.update(here / NAME, lambda p: p.done.update({"01.1", "01.2"}))
    assert "Left for later" not in call()[1]


def test_the_help_says_every_command_in_a_whole_line(here, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call("--help")
    commands = out.partition("Commands:\n")[2].splitlines()
    assert len(commands) > 10
    assert [line for line in commands if not line.endswith(".") or line.endswith("..")] == []
    assert "a lesson such as 02" in " ".join(call("solution", "--help")[1].split())


def test_a_solved_exercise_leads_to_next(here, call):
    progress.update(here / NAME, lambda p: p.done.add("00.1"))
    _, out, _ = call()
    assert "00.1 blocks_needed is solved" in out and "minipaged next" in out


def test_a_current_exercise_that_the_course_lost_is_no_end(here, call):
    progress.update(here / NAME, lambda p: setattr(p, "current", "09.9"))
    code, out, _ = call()
    assert code == 0 and "00.1 blocks_needed" in out
    assert state(here).current == "09.9"


def test_new_notebooks_are_announced(here, course, call):
    (here / "exercises/01_pool.ipynb").unlink()
    _, out, _ = call()
    assert "exercises/01_pool.ipynb" in out and "minipaged init" in out


def test_outside_a_workspace_no_argument_is_the_help_and_how_to_begin(
    tmp_path, course, call, monkeypatch
):
    for folder in (tmp_path, ROOT):
        monkeypatch.chdir(folder)
        code, out, err = call()
        assert (code, err) == (0, "")
        assert "Usage" in out and out.strip().splitlines()[-1].count("minipaged init DIR") == 1


@pytest.mark.parametrize("command", ["check", "hint", "solution", "next", "reset", "lab", "mine"])
def test_outside_a_workspace_every_command_says_how_to_get_one(
    tmp_path, course, call, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(command)
    assert (code, out) == (2, "")
    assert "minipaged init DIR" in err and err.count("\n") == 1


@pytest.mark.parametrize("command", ["", "check", "hint", "solution", "next"])
def test_a_damaged_state_file_stops_every_command_and_stays(here, call, command):
    (here / NAME).write_text("format 1\n???\n", encoding="utf-8")
    code, out, err = call(*command.split())
    assert (code, out) == (2, "")
    assert "line 2" in err and "minipaged init" in err and err.count("\n") == 1
    assert (here / NAME).read_text(encoding="utf-8") == "format 1\n???\n"


# reset


def test_reset_puts_back_this_cell_only_and_keeps_the_old_file(here, course, call):
    path = fill_in(here, "01.1", SAME.format("FreeQueue"))
    fill_in(here, "01.2", SAME.format("BlockPool"))
    progress.update(here / NAME, lambda p: p.done.update({"01.1", "01.2"}))
    progress.update(here / NAME, lambda p: p.hints.update({"01.1": 2}))
    before = path.read_bytes()
    code, out, _ = call("reset", "01.1")
    assert code == 0 and "backups" in out
    [backup] = (here / "backups").iterdir()
    assert backup.name in out and backup.read_bytes() == before
    released = course.root / "exercises/01_pool.ipynb"
    assert source_of(path, "ex-01-1") == source_of(released, "ex-01-1")
    assert source_of(path, "ex-01-2") == SAME.format("BlockPool")
    assert state(here).done == {"01.2"} and state(here).hints == {"01.1": 2}


def test_a_reset_of_the_only_change_gives_the_released_file(here, course, call):
    path, released = here / "exercises/00_tour.ipynb", course.root / "exercises/00_tour.ipynb"
    for source in (BLOCKS, None):
        fill_in(here, "00.1", source)
        assert call("reset")[0] == 0
        assert path.read_bytes() == released.read_bytes()
    code, out, _ = call("reset")
    assert code == 0 and "already" in out
    assert len(list((here / "backups").iterdir())) == 2


def test_reset_replaces_a_cell_that_is_no_code_cell_any_more(here, course, call):
    path = here / "exercises/00_tour.ipynb"
    data = json.loads(path.read_text(encoding="utf-8"))
    for cell in data["cells"]:
        cell["cell_type"] = "markdown"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert call("reset")[0] == 0
    assert "open" in call("check")[1]


def test_reset_of_a_notebook_that_is_none_says_what_to_do(here, call):
    path = here / "exercises/00_tour.ipynb"
    path.write_bytes(b"{")
    code, out, err = call("reset")
    assert (code, out) == (2, "") and "minipaged init" in err and err.count("\n") == 1
    assert path.read_bytes() == b"{"
    path.unlink()
    code, out, err = call("reset")
    assert (code, out) == (2, "") and "is missing" in err and "minipaged init" in err


def test_reset_all_puts_back_everything_and_keeps_every_old_file(here, course, call):
    fill_in(here, "00.1", BLOCKS)
    (here / "exercises/01_pool.ipynb").write_bytes(b"{")
    progress.update(here / NAME, lambda p: p.done.add("00.1"))
    progress.update(here / NAME, lambda p: p.hints.update({"00.1": 2}))
    progress.update(here / NAME, lambda p: setattr(p, "current", "01.1"))
    code, out, _ = call("reset", "--all")
    assert code == 0
    for name in ("00_tour.ipynb", "01_pool.ipynb"):
        assert (here / "exercises" / name).read_bytes() == (
            course.root / "exercises" / name
        ).read_bytes()
    kept = {p.name for p in (here / "backups").iterdir()}
    assert kept == {"00_tour.ipynb.backup-1", "01_pool.ipynb.backup-1", f"{NAME}.backup-1"}
    assert all(name in out for name in kept)
    now = state(here)
    assert (now.current, now.done, now.hints) == ("00.1", set(), {})
    assert set(now.files) == set(course.notebooks())
    code, out, _ = call("reset", "--all")
    assert code == 0 and "already" in out and len(list((here / "backups").iterdir())) == 3


def test_reset_wants_one_thing(here, call):
    code, out, err = call("reset", "00.1", "--all")
    assert (code, out) == (2, "") and "--all" in err


# lab


def test_lab_opens_jupyterlab_in_the_workspace(here, call, monkeypatch):
    started = []
    monkeypatch.setattr(learn.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(learn.subprocess, "call", lambda command: started.append(command) or 0)
    assert call("lab")[0] == 0
    assert started == [[sys.executable, "-m", "jupyterlab", str(here.resolve())]]


def test_without_jupyterlab_lab_names_the_extra(here, call, monkeypatch):
    monkeypatch.setattr(learn.importlib.util, "find_spec", lambda name: None)
    code, out, err = call("lab")
    assert (code, out) == (2, "")
    assert "pip install 'minipaged[notebooks]'" in err and err.count("\n") == 1


def test_a_current_exercise_that_the_course_lacks_is_told_and_put_right(here, call):
    progress.update(here / NAME, lambda p: setattr(p, "current", "99.9"))
    progress.update(here / NAME, lambda p: p.done.add("00.1"))
    code, out, err = call()
    assert (code, err) == (0, "")
    assert "You are at 01.1 FreeQueue" in out
    [line] = [line for line in out.splitlines() if "99.9" in line]
    assert line == "The course has no exercise 99.9, which minipaged.txt names as the current one."
    call("next", "--skip")
    assert state(here).current == "01.2" and "99.9" not in call()[1]
