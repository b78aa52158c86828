"""A small course of its own and workspaces of it, for the tests of the learner's loop."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pytest

from minipaged import cli
from minipaged.cache.pool import BlockPool
from minipaged.course.catalog import Catalog, Exercise, Lesson
from minipaged.course.checks import lesson_00
from minipaged.course.dev.notebook import lesson_notebook, solved_notebook, strip, text_of
from minipaged.course.learner import progress
from minipaged.course.learner.progress import NAME
from minipaged.course.learner.workspace import init
from minipaged.course.shipped import Course

BLOCKS = "def blocks_needed(num_tokens, block_size):\n    return -(-num_tokens // block_size)\n"
OWN_QUEUE = '''\
from collections import deque


class FreeQueue:
    """Slow, but right."""

    def __init__(self, num_blocks):
        self.ids = deque(range(num_blocks))

    def pop_head(self):
        return self.ids.popleft()

    def append(self, block_id):
        self.ids.append(block_id)

    def prepend(self, block_id):
        self.ids.appendleft(block_id)

    def remove(self, block_id):
        self.ids.remove(block_id)

    def __contains__(self, block_id):
        return block_id in self.ids

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids)
'''
OWN_POOL = (
    "from collections import Counter\n"
    + 'HALF = HALVES["x"]\n'
    + "class Block:\n    def __init__(self, block_id):\n        self.block_id = block_id\n"
    + "        self.refcount = 0\n        self.block_hash = None\n\n\n"
    + inspect.getsource(BlockPool)
    .replace("Sequence[int]", "list")
    .replace("Callable[[int], FreeQueueLike] = FreeQueue", "object")
)
_HEADS = {
    "00.1": "def blocks_needed(num_tokens, block_size):",
    "01.1": "class FreeQueue:",
    "01.2": "class BlockPool:",
}
_BODIES = {
    "00.1": "    return -(-num_tokens // block_size)",
    "01.1": OWN_QUEUE.partition("class FreeQueue:\n")[2].rstrip(),
    "01.2": "    pass",
}


def make_course(root: Path) -> Course:
    """Lesson 00 with blocks_needed, 01 with a free queue and a pool (given cell before it)."""
    exercises = (
        Exercise("00.1", "blocks_needed", 1, "lesson_00", ("first", "second", "third")),
        _exercise("01.1", "FreeQueue", "free_queue"),
        _exercise("01.2", "BlockPool", "block_pool"),
    )
    lessons = (Lesson("00", "tour", "The tour", 20), Lesson("01", "pool", "The pool", 40))
    course = Course(Catalog(lessons, exercises), root)
    for lesson in lessons:
        _build(course, lesson)
    return course


def _exercise(exercise_id: str, name: str, component: str) -> Exercise:
    hints = ("first", "second", "third")
    return Exercise(exercise_id, name, 1, "lesson_00", hints, component=component)


def _build(course: Course, lesson: Lesson) -> None:
    for folder in ("lessons", "exercises", "solutions"):
        (course.root / folder).mkdir(parents=True, exist_ok=True)
    source = course.root / f"solutions/{lesson.stem}.py"
    text = "# %% [markdown]\n# # Exercises\n\n"
    for exercise in course.catalog.exercises_of(lesson.id):
        if exercise.id == "01.2":
            text += '# %% given=true\nHALVES = {"x": "//"}\n\n'
        text += (
            f'# %% exercise="{exercise.id}"\n{_HEADS[exercise.id]}\n    ### BEGIN SOLUTION\n'
            f'{_BODIES[exercise.id]}\n    ### END SOLUTION\n\n# %% check="{exercise.id}"\n1\n\n'
        )
    source.write_text(text, encoding="utf-8", newline="\n")
    reading = course.root / f"lessons/{lesson.stem}.py"
    reading.write_text(f"# %% [markdown]\n# # {lesson.title}\n", encoding="utf-8", newline="\n")
    solved = solved_notebook(source, lesson, course.catalog)
    for folder, notebook in (
        ("lessons", lesson_notebook(reading, lesson)),
        ("exercises", strip(solved)),
        ("solutions", solved),
    ):
        path = course.root / folder / f"{lesson.stem}.ipynb"
        path.write_text(text_of(notebook), encoding="utf-8", newline="\n")


def use(monkeypatch, course: Course) -> None:
    """Make this the course that commands and `mine` work on; any exercise is checked as 00.1."""
    from minipaged.course import shipped

    monkeypatch.setattr(shipped, "course", lambda: course)
    checks = {e.id: lesson_00.CHECKS["00.1"] for e in course.catalog.exercises}
    monkeypatch.setattr(lesson_00, "CHECKS", checks)


def fill_in(root: Path, exercise_id: str, source: str | None) -> Path:
    """Write the learner's cell into a workspace's notebook; None takes the cell out."""
    grade_id = "ex-" + exercise_id.replace(".", "-")
    [path] = root.glob(f"exercises/{exercise_id[:2]}_*.ipynb")
    data = json.loads(path.read_text(encoding="utf-8"))
    if source is None:
        data["cells"] = [cell for cell in data["cells"] if cell["id"] != grade_id]
    for cell in data["cells"]:
        if cell["id"] == grade_id:
            cell["source"] = source.splitlines(keepends=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def state(folder: Path) -> progress.Progress:
    return progress.load(folder / NAME)


def source_of(path: Path, cell_id: str) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    [source] = [cell["source"] for cell in cells if cell["id"] == cell_id]
    return "".join(source)


@pytest.fixture(name="course")
def course_fixture(tmp_path, monkeypatch):
    """The small course, in use."""
    made = make_course(tmp_path / "course")
    use(monkeypatch, made)
    return made


@pytest.fixture(name="here")
def here_fixture(tmp_path, course, monkeypatch):
    """A fresh workspace of it, and the current folder in it."""
    folder = tmp_path / "Kurs ü"
    init(folder, course)
    monkeypatch.chdir(folder / "lessons")
    return folder


@pytest.fixture(name="call")
def call_fixture(monkeypatch, capsys):
    """Runs a command in this process: exit code, stdout, stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["minipaged", *arguments])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        return exit_.value.code, *capsys.readouterr()

    return call
