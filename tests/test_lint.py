"""`minipaged dev check`: a clean course gives no line, every planted fault exactly one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_course import EXERCISES, HINTS, LESSONS, SOURCES, Course, hidden_meters, meter_case, sums

from minipaged.course.catalog import Catalog, Exercise
from minipaged.course.checks import lesson_00
from minipaged.course.checks.base import Check
from minipaged.course.dev.lint import lint
from minipaged.course.dev.lint_cells import skeleton_faults

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "minipaged/model/tutor/weights"


@pytest.fixture
def course(tmp_path, monkeypatch):
    check = Check(lambda: [meter_case(0, 1), meter_case(3, 4, 5)], hidden_meters, sums)
    monkeypatch.setitem(lesson_00.CHECKS, "01.1", check)
    for number in range(2, 6):
        monkeypatch.setitem(lesson_00.CHECKS, f"01.{number}", lesson_00.CHECKS["00.1"])
    return Course(tmp_path, dict(SOURCES), Catalog(LESSONS, EXERCISES))


def test_a_clean_course_gives_no_line(course):
    assert course.lines() == []


def replaced(file: str, old: str, new: str) -> Callable[[Course], None]:
    return lambda course: course.edit(file, old, new)


def appended(file: str, text: str) -> Callable[[Course], None]:
    def plant(course):
        course.sources[file] += text

    return plant


def tampered_now(file: str, old: str, new: str) -> Callable[[Path], None]:
    def tamper(root: Path) -> None:
        path = root / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    return tamper


def tampered(file: str, old: str, new: str) -> Callable[[Course], None]:
    """A change in a built notebook."""

    def plant(course):
        course.tamper = tampered_now(file, old, new)

    return plant


S0, S1, L0, L1 = (
    "solutions/00_tour.py",
    "solutions/01_meter.py",
    "lessons/00_tour.py",
    "lessons/01_meter.py",
)
E0, E1 = "exercises/00_tour.ipynb", "exercises/01_meter.ipynb"
LEAK = "left_over = num_tokens - full_blocks * block_size"
RUN = f"num_tokens = int(num_tokens)\nfull_blocks = num_tokens // block_size\n{LEAK}\n"
SECRET_RUN = "\n".join(
    (
        "smallest = -1000 * seed",
        "largest = 1000 * seed",
        "    middle = smallest + largest",
        "print(middle)",
    )
)


def out_of_step(course):
    def tamper(root):
        path = root / L0
        path.write_text(path.read_text().replace("Blocks of 16", "Blocks of 32"))

    course.tamper = tamper


def stray(course):
    course.tamper = lambda root: (root / "lessons/07_old.py").write_text("")


def no_source(course):
    del course.sources[L1]


def no_check(course):
    course.exercise(1, check="lesson_99")


def in_catalog(**changes) -> Callable[[Course], None]:
    return lambda course: course.exercise(0, **changes)


def unknown(course):
    del lesson_00.CHECKS["01.1"]


def no_tasks(course):
    course.catalog = Catalog(LESSONS, EXERCISES[:1])
    source = course.sources[S1]
    head, tail = source.split('# %% exercise="01.1"')
    course.sources[S1] = head + tail[tail.index("# %% [markdown]") :]


def five_tasks(course):
    more = tuple(Exercise(f"01.{n}", f"f{n}", 1, "lesson_00", HINTS) for n in range(2, 6))
    course.catalog = Catalog(LESSONS, EXERCISES + more)
    for n in range(2, 6):
        course.sources[S1] += (
            f'\n# %% exercise="01.{n}"\ndef f{n}(n, size):\n    ### BEGIN SOLUTION\n'
            f'    return -(-n // size)\n    ### END SOLUTION\n\n# %% check="01.{n}"\nNone\n'
        )


CELL = "\n\n# %%\n"
TOML = "minipaged/course/catalog.toml"
INT = "    num_tokens = int(num_tokens)\n    ### BEGIN SOLUTION\n"
RIGHT = "    return -(-num_tokens // block_size)\n    ### BEGIN SOLUTION\n"
HALF = "    if num_tokens:\n    ### BEGIN SOLUTION\n        num_tokens = int(num_tokens)\n"
RETURN = "        return self.counted_so_far\n"
DECORATOR = "    ### BEGIN SOLUTION\n    @property\n    ### END SOLUTION\n"
GAP = "        ### BEGIN SOLUTION\n"
ADD = '''    def add(self, number: int) -> int:
        """Add a number; returns the sum."""
'''
TOTAL = """        return self.total()

    def total(self) -> int:
        return self.counted_so_far
"""
GAP_IN_TEXT = '''    """Counts.
    ### BEGIN SOLUTION
    ### END SOLUTION
    """
'''
OPEN = SOURCES[S1][SOURCES[S1].index("# %% [markdown] open") :]
ANSWER = "Because nobody ever takes anything away from it."

# name, what is planted, the file that the line names, words that are in it
PLANTS = [
    ("stale lesson", out_of_step, "lessons/00_tour.ipynb", "from an older source"),
    ("stale exercise", tampered(E0, "run it", "run this"), E0, "differs from what its source"),
    ("stray file", stray, "lessons/07_old.py", "belongs to no lesson"),
    ("no source", no_source, L1, "is missing: write it"),
    ("no check", no_check, "minipaged/course/checks/lesson_99.py", "no such module"),
    ("unknown to its check", unknown, "minipaged/course/checks/lesson_00.py", "no check for 01.1"),
    # the catalog
    ("hints to do", in_catalog(hints=("a", "b", "TODO")), TOML, "hint 3 is 'TODO'"),
    ("no hints", in_catalog(hints=()), TOML, "00.1 has 0 hints"),
    ("equal hints", in_catalog(hints=("a", "b", "a ")), TOML, "hint 3 repeats"),
    ("claim", in_catalog(claims=("E8",)), TOML, "there is no claim 'E8'"),
    ("case", in_catalog(cases=(51,)), TOML, "there is no case 51"),
    ("no tasks", no_tasks, E1, "has 0 tasks"),
    ("five tasks", five_tasks, E1, "has 5 tasks"),
    # skeleton and solution
    ("solved skeleton", replaced(S0, INT, RIGHT), S0, "passes its check unsolved"),
    ("wrong solution", replaced(S0, "1 if left_over else 0", "1"), S0, "visible case"),
    ("wrong in hidden cases", replaced(S1, "start * UNIT", "max(-1, start)"), S1, "hidden case"),
    ("failing cell", replaced(S1, "UNIT = 1", "UNIT = 1 / 0"), S1, "ZeroDivisionError"),
    ("a method in a gap", replaced(S1, RETURN, TOTAL), S1, "Meter.total"),
    ("a signature in a gap", replaced(S1, ADD + GAP, "    " + GAP.lstrip() + ADD), S1, "Meter.add"),
    ("another signature", replaced(S1, "    @property\n", DECORATOR), S1, "`@property def unit"),
    ("half a statement", replaced(S0, INT, HALF), S0, "the skeleton is not Python"),
    ("pass", replaced(S1, "        return UNIT\n", "        pass\n"), S1, "Meter.unit"),
    ("only a docstring", replaced(S1, "        return UNIT\n", '        "U"\n'), S1, "Meter.unit"),
    ("dots", replaced(S1, "        return UNIT\n", '        "U"\n        ...\n'), S1, "Meter.unit"),
    ("gap in text", replaced(S1, '    """Counts."""\n', GAP_IN_TEXT), S1, "in 2 of 3 gaps"),
    # leaks
    ("leak in prose", replaced(S0, "Write `blocks", f"`{LEAK}` `blocks"), S0, "line of 00.1"),
    ("leak in a comment", appended(S1, f"{CELL}    # {LEAK}\n"), S1, "line of 00.1"),
    ("whole leak", appended(S1, CELL + RUN), S1, "line of 00.1"),
    ("leak on disk", tampered(E1, '"Write a', f'"{LEAK} Write a'), E1, "line of 00.1"),
    ("leaked answer", replaced(S1, "Write a class.", ANSWER), S1, "the model answer 01-open-1"),
    ("leak in a lesson", appended(L1, CELL + RUN), L1, "line of 00.1"),
    ("hidden story", replaced(S1, "Write a class.", "A meter far below zero."), S1, "hidden"),
    ("hidden script", appended(S1, CELL + SECRET_RUN), S1, "hidden"),
    # prose
    ("claim in prose", replaced(L0, "C24", "C25"), L0, "there is no claim 'C25'"),
    ("case in prose", replaced(L0, "case 10", "cases 10, 11 and 77"), L0, "there is no case 77"),
    ("claim in a solution", replaced(S1, "Why does", "Claim E9: why does"), S1, "no claim 'E9'"),
    ("long lesson", replaced(L1, "It counts,", "It counts, " + "and on " * 1250), L1, "words"),
    ("nothing to play with", replaced(L1, "explore(", "print("), L1, "step_through or explore"),
    ("only named", replaced(L1, "explore(", "# explore(\nprint("), L1, "step_through or explore"),
    ("no open question", replaced(S1, OPEN, ""), S1, "open question"),
]


@pytest.mark.parametrize(
    ("plant", "file", "text"), [p[1:] for p in PLANTS], ids=[p[0] for p in PLANTS]
)
def test_every_planted_fault_is_named_by_exactly_one_line(course, plant, file, text):
    plant(course)
    lines = course.lines()
    assert len(lines) == 1, lines
    [line] = lines
    assert file in line
    assert text in line
    assert "\n" not in line
    assert ": " in line  # what is wrong: what to do


def test_two_faults_are_two_lines(course):
    course.edit(S0, "Write `blocks", f"`{LEAK}`. Write `blocks")
    course.edit(L1, "explore(", "print(")
    assert len(course.lines()) == 2


@pytest.mark.parametrize(
    "harmless",
    [
        # a line outside the solution's region is no secret, a trivial one neither
        appended(S1, f"{CELL}num_tokens = int(num_tokens)\nraise NotImplementedError()\n"),
        # a lesson may show a line or two of what a solution uses
        appended(L1, f"\n# %%\n{LEAK}\n"),
        # part of a longer name is no line
        appended(S1, "\n# %%\nmy_" + LEAK + "_2\n"),
        # an ordinary word is no reference
        replaced(L1, "It counts,", "In this case, 10,000 claims. Exercise 12 and E99 are none."),
        # code in prose is not counted as words
        replaced(L1, "It counts,", "It counts,\n# ```\n# " + "a b " * 2500 + "\n# ```\n#"),
    ],
)  # fmt: skip
def test_what_is_harmless_is_let_be(course, harmless):
    harmless(course)
    assert course.lines() == []


def test_a_missing_tool_is_named_once(course, monkeypatch):
    assert course.lines() == []
    monkeypatch.setitem(sys.modules, "jupytext", None)
    [line] = lint(course.root, course.catalog)
    assert "needs jupytext, which is not installed: pip install" in line


def test_the_seed_makes_the_hidden_cases(course):
    course.edit(S1, "start * UNIT\n", "max(-1, start * UNIT)\n")
    [line] = course.lines()
    assert "seed 1" in line
    assert lint(course.root, course.catalog, seed=0) == []


def test_the_command_prints_the_lines_and_fails(course, monkeypatch, capsys):
    from minipaged import cli

    monkeypatch.setattr("minipaged.course.dev.build.find_root", lambda start: course.root)
    monkeypatch.setattr("minipaged.course.catalog.catalog", lambda: course.catalog)
    monkeypatch.setattr("sys.argv", ["minipaged", "dev", "check"])
    course.tamper = tampered_now(E0, "run it", "run this")
    [line] = course.lines()
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 1
    assert capsys.readouterr().out.splitlines() == [line, "1 problem"]
    tampered_now(E0, "run this", "run it")(course.root)
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 0
    assert "2 lessons and 2 exercises: nothing to mend" in capsys.readouterr().out


def test_a_check_that_lacks_a_package_is_not_called_missing(course, monkeypatch):
    import importlib

    real = importlib.import_module

    def without_scipy(name, *rest):
        if name == "minipaged.course.checks.lesson_00":
            raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without_scipy)
    lines = course.lines()
    assert len(lines) == 2 and all("no such module" not in line for line in lines)
    assert all("lesson_00.py: cannot be imported (No module named 'scipy')" in x for x in lines)


def test_what_a_skeleton_adds_is_told_in_one_order():
    names = ["zeta", "beta", "alpha", "gamma"]
    skeleton = "".join(f"def {name}():\n    return 1\n" for name in names)
    solution = "### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n"
    said = [fault for fault in skeleton_faults(solution, skeleton) if "take it out" in fault]
    assert [fault.split()[3].strip(",") for fault in said] == sorted(names)


@pytest.mark.skipif(not WEIGHTS.exists(), reason="the tutor's weights are not built yet")
def test_nothing_is_wrong_with_the_course():
    assert lint(ROOT) == []
