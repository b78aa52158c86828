"""The learner's loop as the command line tells it, from `init` to `lab`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workspaces import BLOCKS, call_fixture, course_fixture, fill_in, here_fixture, state  # noqa: F401

from minipaged.commands import learn
from minipaged.course import shipped
from minipaged.course.catalog import catalog
from minipaged.course.learner import progress
from minipaged.course.learner.progress import NAME

ROOT = Path(__file__).parents[1]
WRONG = "def blocks_needed(num_tokens, block_size):\n    return num_tokens // block_size\n"
SAME = "def {}(n, b):\n    return -(-n // b)\n"


# check


def test_a_right_cell_passes_and_is_recorded(here, call):
    fill_in(here, "00.1", BLOCKS)
    code, out, err = call("check")
    assert (code, err) == (0, "")
    assert "9 of 9 passed" in out and "`minipaged next` goes on" in out
    assert (state(here).done, state(here).current) == ({"00.1"}, "00.1")


def test_a_wrong_cell_fails_with_its_story_and_is_no_longer_done(here, call):
    progress.update(here / NAME, lambda p: p.done.add("00.1"))
    fill_in(here, "00.1", WRONG)
    code, out, _ = call("check", "00.1")
    assert code == 1
    assert "The first failure" in out and "rounded down" in out
    assert "`minipaged hint 00.1`" in out
    assert state(here).done == set()


def test_an_untouched_cell_asks_whether_it_was_saved(here, call):
    code, out, _ = call("check")
    assert code == 1
    assert "Not solved yet" in out and "save the notebook" in out
    fill_in(here, "00.1", WRONG)
    assert "save the notebook" not in call("check")[1]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def blocks_needed(n, b)\n    return 1", "Line 1 of the cell cannot be read as Python"),
        (None, "The cell ex-00-1 is not in the notebook"),
        ("x = 1", "defines no blocks_needed"),
        ("while True: pass", "loop that never ends"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_cell_that_cannot_be_run_is_one_clear_line(here, call, monkeypatch, source, words):
    from minipaged.course import sandbox
    from minipaged.course.learner import loop

    monkeypatch.setattr(loop, "limits_for", lambda check: sandbox.Limits(seconds=1.0))
    fill_in(here, "00.1", source)
    code, out, err = call("check")
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert words in out and "exercises/00_tour.ipynb" in out and "00.1" in out


@pytest.mark.parametrize("content", [None, b"", b"[]"])
def test_a_missing_or_broken_notebook_is_one_clear_line(here, call, content):
    path = here / "exercises/00_tour.ipynb"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    code, out, err = call("check")
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert "exercises/00_tour.ipynb" in out and "minipaged init" in out


def test_the_given_cells_are_the_releases(here, call):
    fill_in(here, "01.2", "def BlockPool(n, b):\n    return -(-n // b) if HALVES else 0")
    path = here / "exercises/01_pool.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("HALVES =", "OTHER ="), "utf-8")
    code, out, _ = call("check", "01.2")
    assert code == 0, out
    assert state(here).done == {"01.2"} and state(here).current == "00.1"


def test_an_exercise_that_does_not_exist_is_an_error(here, call):
    for command in ("check", "hint", "solution", "reset"):
        code, out, err = call(command, "7.7")
        assert (code, out) == (2, "") and "there is no exercise '7.7'" in err


def test_standing_in_a_checkout_nothing_is_recorded(tmp_path, course, call, monkeypatch):
    monkeypatch.chdir(ROOT)
    before = (ROOT / "exercises/00_tour.ipynb").read_bytes()
    code, out, _ = call("check", "00.1")
    assert code == 1 and "0 of 9 passed" in out
    assert out.count("workspace does") == 1 and "keeps no progress" in out
    code, out, err = call("check")
    assert (code, out) == (2, "") and "name an exercise" in err
    for command in (["next"], ["reset", "00.1"]):
        code, out, err = call(*command)
        assert (code, out) == (2, "") and "minipaged init DIR" in err
    assert call("hint", "00.1", "--level", "2")[1].startswith("hint 2 of 3")
    assert "keeps no progress" in call("hint", "00.1")[1]
    assert call("solution", "00.1")[0] == 2
    assert "-(-num_tokens // block_size)" in call("solution", "00.1", "--force")[1]
    assert not (ROOT / NAME).exists()
    assert (ROOT / "exercises/00_tour.ipynb").read_bytes() == before


def test_a_check_answers_soon_and_loads_no_torch(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    base = [sys.executable, "-X", "importtime", "-m", "minipaged.cli"]
    subprocess.run([*base, "init", "w"], cwd=tmp_path, env=env, check=True, capture_output=True)
    fill_in(tmp_path / "w", "00.1", BLOCKS)
    begin = time.monotonic()
    done = subprocess.run(
        [*base, "check"],
        cwd=tmp_path / "w",
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    print(f"{time.monotonic() - begin:.2f} s")  # a figure to read, not to assert
    assert done.returncode == 0 and "9 of 9 passed" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "minipaged.course.sandbox" in loaded
    assert not loaded & {"torch", "numpy", "nbformat", "jupytext"}


def test_another_exercise_than_the_current_one_says_where_one_stands(here, call):
    fill_in(here, "01.1", SAME.format("FreeQueue"))
    code, out, _ = call("check", "01.1")
    assert code == 0 and "minipaged next" not in out
    assert out.splitlines()[-1].startswith("All done here: you are at 00.1 blocks_needed")


def test_in_a_checkout_nothing_comes_next(here, course, call, monkeypatch):
    from minipaged.course.learner import desk, loop
    from minipaged.course.learner.workspace import Place

    fill_in(here, "00.1", BLOCKS)
    checked = loop.check(
        desk.Desk(Place(here, keeps_progress=False), course), course.catalog.exercise("00.1")
    )
    assert checked.passed and checked.lines[-2:] == ("All done here.", desk.NO_PROGRESS)


@pytest.mark.parametrize("command", ["check", "hint", "solution", "reset"])
def test_an_id_that_is_almost_one_is_guessed(here, call, command):
    for wrong in ("1.1", "1-1", "01_1", "01,1"):
        code, out, err = call(command, wrong)
        assert (code, out) == (2, "") and f"exercise '{wrong}': did you mean 01.1?" in err
    code, out, err = call("check", "01")
    assert (code, out) == (2, "") and "01 is a lesson: name one of its exercises, 01.1, 01.2" in err


def test_open_is_explained_where_it_stands(here, call):
    _, out, _ = call("check")
    assert out.count("open: not written yet.") == 1
    fill_in(here, "00.1", WRONG)
    assert "not written yet" not in call("check")[1]


# hint and solution


def test_hints_come_one_by_one_and_are_remembered(here, call):
    assert call("hint")[1].startswith("hint 1 of 3: first")
    assert state(here).hints == {"00.1": 1}
    assert call("hint", "00.1")[1].startswith("hint 2 of 3: second")
    code, out, _ = call("hint")
    assert code == 0 and out.startswith("hint 3 of 3: third") and "minipaged solution" in out
    code, out, _ = call("hint")
    assert code == 0 and "third" not in out and "minipaged solution 00.1" in out
    assert call("hint", "--level", "1")[1].startswith("hint 1 of 3: first")
    assert state(here).hints == {"00.1": 3}


def test_a_hint_is_shown_again_only_once_it_was_shown(here, call):
    call("hint")
    code, out, err = call("hint", "--level", "3")
    assert (code, out) == (2, "") and "minipaged hint 00.1" in err
    for level in ("0", "4"):
        assert call("hint", "--level", level)[0] == 2
    assert state(here).hints == {"00.1": 1}


def test_the_solution_opens_after_three_hints_or_when_solved_or_by_force(here, call):
    code, out, err = call("solution")
    assert (code, out) == (2, "")
    assert "0 of 3" in err and "--force" in err
    forced = call("solution", "--force")
    for _ in range(3):
        call("hint")
    code, out, _ = call("solution")
    assert code == 0 and (code, out) == forced[:2]
    assert (
        out
        == "def blocks_needed(num_tokens, block_size):\n    return -(-num_tokens // block_size)\n"
    )
    assert call("solution", "01.1")[0] == 2
    progress.update(here / NAME, lambda p: p.done.add("01.1"))
    code, out, _ = call("solution", "01.1")
    assert code == 0 and "class FreeQueue" in out and "###" not in out


def test_the_model_answer_of_a_lesson_is_open_to_all(here, course, call, tmp_path, monkeypatch):
    code, out, err = call("solution", "01")
    assert (code, out) == (2, "") and "lesson 01 has no open question" in err
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shipped, "course", lambda: shipped.Course(catalog(), ROOT))
    for lesson in catalog().lessons:
        code, out, err = call("solution", lesson.id)
        assert (code, err) == (0, "")
        assert len(out) > 200 and "###" not in out and out == out.strip() + "\n"
        source = (ROOT / f"solutions/{lesson.stem}.py").read_text(encoding="utf-8")
        assert f"# {out.splitlines()[0]}\n" in source
        assert f"`minipaged solution {lesson.id}`" in source


def test_in_a_terminal_the_model_answer_is_laid_out():
    from rich.console import Console

    console = Console(force_terminal=True, width=60, color_system="standard")
    with console.capture() as said:
        learn.show_text("**One** word.", console)
    assert "**" not in said.get() and "One" in said.get()


def test_in_a_terminal_the_solution_is_coloured():
    from rich.console import Console

    console = Console(force_terminal=True, width=100, color_system="standard")
    with console.capture() as said:
        learn.show_code("def f():\n    return 1\n", console)
    assert "\x1b[" in said.get() and "def" in said.get()


# next


def test_next_goes_on_only_when_the_current_exercise_passes(here, call):
    code, out, _ = call("next")
    assert code == 1 and "not solved" in out and "--skip" in out
    assert state(here).current == "00.1"
    fill_in(here, "00.1", BLOCKS)
    code, out, _ = call("next")
    assert code == 0
    assert "00.1 blocks_needed: 9 of 9 passed" in out
    assert "lessons/01_pool.ipynb" in out and "FreeQueue" in out
    assert (state(here).current, state(here).done) == ("01.1", {"00.1"})


def test_next_skips_when_asked_and_comes_back_at_the_end(here, call):
    code, out, _ = call("next", "--skip")
    assert code == 0 and state(here).current == "01.1" and state(here).done == set()
    for exercise_id, name in (("01.1", "FreeQueue"), ("01.2", "BlockPool")):
        fill_in(here, exercise_id, SAME.format(name))
        code, out, _ = call("next")
    assert state(here).current == "00.1" and "blocks_needed" in out
    code, out, _ = call("next", "--skip")
    assert code == 0 and "only 00.1 is left" in out and state(here).current == "00.1"
    fill_in(here, "00.1", BLOCKS)
    code, out, _ = call("next")
    assert code == 0 and "end of the course so far" in out
    assert state(here).done == {"00.1", "01.1", "01.2"}
