"""A small course of two lessons for the tests of `dev check`; its notebooks are never executed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from minipaged.course.catalog import Catalog, Exercise, Lesson
from minipaged.course.dev.lint import lint
from minipaged.course.dev.notebook import lesson_notebook, solved_notebook, strip, text_of
from minipaged.course.script import Case, Operation

HINTS = ("Count on your fingers.", "Divide.", "Divide and round up.")
LESSONS = (Lesson("00", "tour", "A tour", 20), Lesson("01", "meter", "A meter", 20))
EXERCISES = (
    Exercise("00.1", "blocks_needed", 1, "lesson_00", HINTS, claims=("E3",), cases=(11,)),
    Exercise("01.1", "Meter", 1, "lesson_00", HINTS),
)
SOURCES = {
    "lessons/00_tour.py": """
# %% [markdown]
# # A tour
# Blocks of 16. See claims E1, E2 and C24, and case 10.
""",
    "solutions/00_tour.py": '''
# %% [markdown]
# Write `blocks_needed`.

# %% exercise="00.1"
def blocks_needed(num_tokens: int, block_size: int = 16) -> int:
    """Blocks that hold so many tokens."""
    num_tokens = int(num_tokens)
    ### BEGIN SOLUTION
    num_tokens = int(num_tokens)
    full_blocks = num_tokens // block_size
    left_over = num_tokens - full_blocks * block_size
    return full_blocks + (1 if left_over else 0)
    ### END SOLUTION

# %% check="00.1"
check("00.1", blocks_needed)

# %%
print("run it")
''',
    "lessons/01_meter.py": """
# %% [markdown]
# # A meter
# It counts, and it says what it counted.

# %%
explore(show, size=[1, 2, 4])
""",
    "solutions/01_meter.py": '''
# %% [markdown]
# Write a class.

# %% given=true
UNIT = 1

# %% exercise="01.1"
class Meter:
    """Counts."""

    def __init__(self, start: int) -> None:
        ### BEGIN SOLUTION
        self.counted_so_far = start * UNIT
        ### END SOLUTION

    @property
    def unit(self) -> int:
        return UNIT

    def add(self, number: int) -> int:
        """Add a number; returns the sum."""
        ### BEGIN SOLUTION
        self.counted_so_far += number
        return self.counted_so_far
        ### END SOLUTION

# %% check="01.1"
check("01.1", Meter)

# %% [markdown]
# Why does a meter never go back?

# %% [markdown] open=true
# ### BEGIN SOLUTION
# Because nobody ever takes anything away from it.
# ### END SOLUTION
''',
}


def meter_case(start: int, *numbers: int, story: str = "It counts.") -> Case:
    adds = (Operation((n,), target="meter", method="add") for n in numbers)
    return Case("a meter", story, (Operation((start,), keep="meter"), *adds))


def hidden_meters(seed: int) -> list[Case]:
    return [meter_case(*far_numbers(seed), story="A meter far below zero.")]


def far_numbers(seed: int) -> tuple[int, int, int]:
    smallest = -1000 * seed
    largest = 1000 * seed
    middle = smallest + largest
    return smallest, largest, middle + 7


def sums(case: Case) -> list[int]:
    start, *numbers = (operation.args[0] for operation in case.operations)
    return [start + sum(numbers[: n + 1]) for n in range(len(numbers))]


@dataclasses.dataclass
class Course:
    """A small course on disk: change `sources` and `catalog`, then `lines()`."""

    root: Path
    sources: dict[str, str]
    catalog: Catalog
    tamper: Callable[[Path], None] = lambda root: None  # after the notebooks are made

    def edit(self, file: str, old: str, new: str) -> None:
        assert self.sources[file].count(old) == 1, f"{old!r} in {file}"
        self.sources[file] = self.sources[file].replace(old, new)

    def exercise(self, number: int, **changes) -> None:
        exercises = list(self.catalog.exercises)
        exercises[number] = dataclasses.replace(exercises[number], **changes)
        self.catalog = Catalog(self.catalog.lessons, tuple(exercises))

    def lines(self) -> list[str]:
        for folder in ("lessons", "solutions", "exercises"):
            (self.root / folder).mkdir()
        for name, source in self.sources.items():
            (self.root / name).write_text(source.lstrip(), encoding="utf-8")
        for lesson in self.catalog.lessons:
            self._pretend_built(lesson)
        self.tamper(self.root)
        return lint(self.root, self.catalog)

    def _pretend_built(self, lesson: Lesson) -> None:
        """Write the notebooks as if executed; what cannot be built is left out."""
        try:
            solved = solved_notebook(
                self.root / f"solutions/{lesson.stem}.py", lesson, self.catalog
            )
            read = lesson_notebook(self.root / f"lessons/{lesson.stem}.py", lesson)
        except (ValueError, OSError):
            return
        for folder, notebook in (
            ("exercises", strip(solved)),
            ("solutions", solved),
            ("lessons", read),
        ):
            for cell in notebook.cells:
                if cell.cell_type == "code" and folder != "exercises":
                    cell.execution_count = 1
            (self.root / f"{folder}/{lesson.stem}.ipynb").write_text(text_of(notebook))
