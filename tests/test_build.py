"""Building notebooks: the same bytes each time, no solution in an exercise, nothing out of step."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest

from minipaged.course.catalog import Catalog, Exercise, Lesson, catalog
from minipaged.course.checks.base import check_of
from minipaged.course.dev.build import build, find_root, fresh_notebooks, strays
from minipaged.course.dev.lint_leaks import secret_lines
from minipaged.course.dev.notebook import (
    BEGIN,
    END,
    BuildError,
    lesson_notebook,
    solved_notebook,
    source_hash,
    strip,
    text_of,
)

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "minipaged/model/tutor/weights"
LESSON = Lesson("00", "tour", "A tour", 20)
EXERCISE = Exercise("00.1", "double", 2, "lesson_00", ("a", "b", "c"))
COURSE = Catalog((LESSON,), (EXERCISE,))

TEXT = "# %% [markdown]\n# Read this.\n"
SOLUTION = (
    TEXT
    + """
# %% given=true
FACTOR = 2

# %% exercise="00.1"
def double(number: int) -> int:
    \"\"\"Twice the number.\"\"\"
    if number == 0:
        ### BEGIN SOLUTION
        secret = FACTOR * number
        return secret
        ### END SOLUTION

# %% check="00.1"
assert double(0) == 0

# %%
print("run", double(0))
"""
)
TWO_METHODS = (
    TEXT
    + """
# %% exercise="00.1"
class double:
    \"\"\"Doubles.\"\"\"

    def __init__(self, number: int) -> None:
        ### BEGIN SOLUTION
        self.first_secret = number
        ### END SOLUTION

    def get(self) -> int:
        \"\"\"Twice the number.\"\"\"
        if self.first_secret:
            ### BEGIN SOLUTION
            second_secret = 2 * self.first_secret
            return second_secret
            ### END SOLUTION
        return 0

# %% check="00.1"
assert double(2).get() == 4

# %% [markdown] open=true
# ### BEGIN SOLUTION
# A third secret.
#
# In two paragraphs.
# ### END SOLUTION
"""
)
LESSON_SOURCE = TEXT + '\n# %% tags=["nbval-ignore-output"]\nprint("one")\nprint("two")\n2 + 2\n'


@pytest.fixture
def repo(tmp_path):
    """A repository with one small lesson; its notebooks are not built."""
    for folder in ("lessons", "solutions", "exercises"):
        (tmp_path / folder).mkdir()
    (tmp_path / "lessons/00_tour.py").write_text(LESSON_SOURCE)
    (tmp_path / "solutions/00_tour.py").write_text(SOLUTION)
    return tmp_path


def solved(repo, source: str = SOLUTION, course: Catalog = COURSE):
    path = repo / "solutions/00_tour.py"
    path.write_text(source)
    return solved_notebook(path, LESSON, course)


def pretend_built(repo) -> None:
    """Write all notebooks as if they had been executed (starting kernels takes seconds)."""
    nb = solved(repo)
    (repo / "exercises/00_tour.ipynb").write_text(text_of(strip(nb)))
    lesson = lesson_notebook(repo / "lessons/00_tour.py", LESSON)
    for folder, notebook in (("solutions", nb), ("lessons", lesson)):
        for count, cell in enumerate(notebook.cells, 1):
            if cell.cell_type == "code":
                cell.execution_count = count
        (repo / folder / "00_tour.ipynb").write_text(text_of(notebook))


def by_id(notebook) -> dict:
    return {cell.id: cell for cell in notebook.cells}


# the course as it is


@pytest.mark.parametrize("lesson", catalog().lessons, ids=lambda lesson: lesson.stem)
def test_exercises_hold_no_line_of_a_solution_and_no_script(lesson):
    source = (ROOT / f"solutions/{lesson.stem}.py").read_text(encoding="utf-8")
    release = (ROOT / f"exercises/{lesson.stem}.ipynb").read_text(encoding="utf-8")
    regions = re.findall(f"{BEGIN}\n(.*?){END}", source, re.DOTALL)
    solved = solved_notebook(ROOT / f"solutions/{lesson.stem}.py", lesson, catalog())
    cells = [cell.source for cell in solved.cells if BEGIN in cell.source]
    secrets = [line for cell in cells for line in secret_lines(cell)]
    assert len(regions) >= len(catalog().exercises_of(lesson.id))
    assert len(secrets) >= len(cells)
    shown = "\n".join(cell["source"] for cell in nbformat.reads(release, as_version=4).cells)
    assert not [line for line in secrets if line in shown]
    assert "SOLUTION" not in release
    for exercise in catalog().exercises_of(lesson.id):
        for case in check_of(exercise).visible() + check_of(exercise).hidden(0):
            assert case.story not in release


@pytest.mark.skipif(not WEIGHTS.exists(), reason="the tutor's weights are not built yet")
def test_all_notebooks_are_in_step_with_their_sources():
    assert stale(ROOT, catalog()) == []


def stale(root: Path, course: Catalog) -> list[str]:
    """A line for every notebook that is out of step with its source, as `dev check` says it."""
    fresh = [one for lesson in course.lessons for one in fresh_notebooks(root, lesson, course)]
    lines = [
        f"{one.target.relative_to(root).as_posix()} {one.problem}" for one in fresh if one.problem
    ]
    return lines + strays(root, course)


def test_an_exercise_is_made_of_the_same_bytes_each_time(repo):
    for lesson in catalog().lessons:
        path = ROOT / f"solutions/{lesson.stem}.py"
        once, again = (text_of(strip(solved_notebook(path, lesson, catalog()))) for _ in range(2))
        assert once == again
        assert once.encode() == (ROOT / f"exercises/{lesson.stem}.ipynb").read_bytes()


# metadata


def test_metadata_is_nbgraders_version_3(repo):
    cells = by_id(strip(solved(repo)))
    common = {"schema_version": 3, "task": False}
    marks = {
        "00-text-1": {"grade": False, "locked": True, "solution": False},
        "00-given-1": {"grade": False, "locked": True, "solution": False},
        "ex-00-1": {"grade": False, "locked": False, "solution": True},
        "check-00-1": {"grade": True, "locked": True, "solution": False, "points": 2},
    }
    assert list(cells) == [*marks, "00-code-1"]
    for grade_id, mark in marks.items():
        cell = cells[grade_id]
        found = dict(cell.metadata["nbgrader"])
        assert re.fullmatch("[0-9a-f]{32}", found.pop("checksum"))
        assert found.pop("cell_type") == cell.cell_type
        assert found == {**common, **mark, "grade_id": grade_id}
        assert cell.metadata["deletable"] is False
        assert cell.metadata.get("editable", True) is mark["solution"]
    assert cells["00-code-1"].metadata == {}


def test_an_exercise_has_no_outputs_and_asks_for_the_solution_in_one_place(repo):
    notebook = solved(repo)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = 3
            cell.outputs = [nbformat.v4.new_output("stream", text="secret")]
    stripped = strip(notebook)
    nbformat.validate(stripped)
    assert "secret" not in text_of(stripped)
    assert all(c.execution_count is None for c in stripped.cells if c.cell_type == "code")
    assert by_id(stripped)["ex-00-1"].source.splitlines()[2:] == [
        "    if number == 0:",
        "        # YOUR CODE HERE",
        "        raise NotImplementedError()",
    ]


def test_every_region_of_a_class_is_asked_for(repo):
    stripped = strip(solved(repo, TWO_METHODS))
    nbformat.validate(stripped)
    assert "secret" not in text_of(stripped).replace("if self.first_secret:", "")
    assert by_id(stripped)["ex-00-1"].source.splitlines()[3:] == [
        "    def __init__(self, number: int) -> None:",
        "        # YOUR CODE HERE",
        "        raise NotImplementedError()",
        "",
        "    def get(self) -> int:",
        '        """Twice the number."""',
        "        if self.first_secret:",
        "            # YOUR CODE HERE",
        "            raise NotImplementedError()",
        "        return 0",
    ]


def test_an_open_question_asks_for_an_own_answer_and_gives_no_points(repo):
    cell = by_id(strip(solved(repo, TWO_METHODS)))["00-open-1"]
    assert cell.source == "YOUR ANSWER HERE"
    mark = cell.metadata["nbgrader"]
    assert (mark["grade"], mark["solution"], mark["points"]) == (True, True, 0)


def test_a_region_that_is_not_closed_is_refused_also_behind_a_closed_one(repo):
    before, after = TWO_METHODS.split("return second_secret\n            ### END SOLUTION")
    with pytest.raises(BuildError, match="and each closed"):
        solved(repo, before + "return second_secret" + after)


def test_stripping_equals_what_nbgrader_does(repo):
    pytest.importorskip("nbgrader", reason="nbgrader is not installed")
    from nbgrader import preprocessors as p

    course = solved_notebook(ROOT / "solutions/00_tour.py", catalog().lesson("00"), catalog())
    for notebook in (solved(repo), solved(repo, TWO_METHODS), course):
        ours = strip(notebook)
        for step in (
            p.LockCells, p.ClearSolutions, p.ClearOutput, p.CheckCellMetadata, p.ComputeChecksums,
            p.ClearHiddenTests, p.ClearMarkScheme, p.ComputeChecksums, p.CheckCellMetadata,
        ):  # fmt: skip
            notebook, _ = step().preprocess(notebook, {})
        assert ours.cells == notebook.cells


# sources that cannot be built


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("### END SOLUTION", "", "an exercise needs at least one ### BEGIN SOLUTION"),
        ("        secret", "        ### END SOLUTION\n        secret", "and each closed"),
        ("### BEGIN SOLUTION", "### END SOLUTION", "and each closed"),
        ("        ### BEGIN", "        ### BEGIN SOLUTION\n        ### BEGIN", "and each closed"),
        ("        ### BEGIN SOLUTION\n", "", "at least one"),
        ("print(", "### BEGIN SOLUTION\nprint(", "a solution stands in a cell without exercise"),
        ("given=true", "gven=true", "unknown attribute 'gven': use"),
        ('exercise="00.1"', 'exercise="00.5"', "there is no exercise '00.5'"),
        ('exercise="00.1"', 'exercise="00.1" check="00.1"', "a cell is one of exercise, check"),
        ('# %% check="00.1"', "# %%", "but the catalog asks for ['ex-00-1', 'check-00-1']"),
        ('check="00.1"', 'exercise="00.1"', "at least one"),
        ("# %% [markdown]\n", "# %% [markdown] open=true\n", "at least one"),
    ],
)
def test_a_wrong_source_says_what_to_mend(repo, old, new, message):
    assert old in SOLUTION
    with pytest.raises(BuildError) as caught:
        solved(repo, SOLUTION.replace(old, new, 1))
    assert message in str(caught.value)
    assert "00_tour.py" in str(caught.value)


def test_a_lesson_holds_no_exercise(repo):
    (repo / "lessons/00_tour.py").write_text(SOLUTION)
    with pytest.raises(BuildError, match="exercises belong into solutions/"):
        lesson_notebook(repo / "lessons/00_tour.py", LESSON)


def test_the_repository_is_found_from_below_and_else_asked_for(tmp_path):
    assert find_root(ROOT / "minipaged/course") == ROOT
    with pytest.raises(BuildError, match="is not in a checkout of minipaged: go there"):
        find_root(tmp_path)


def test_a_missing_source_or_tool_is_named(repo, monkeypatch):
    (repo / "solutions/00_tour.py").unlink()
    with pytest.raises(BuildError, match=r"solutions/00_tour.py is missing: write it"):
        stale(repo, COURSE)
    monkeypatch.setitem(sys.modules, "jupytext", None)
    with pytest.raises(BuildError, match=r"jupytext, which is not installed: pip install"):
        lesson_notebook(repo / "lessons/00_tour.py", LESSON)


# out of step


def test_stale_names_what_does_not_exist_yet(repo):
    lines = stale(repo, COURSE)
    assert [line.split()[0] for line in lines] == [
        f"{folder}/00_tour.ipynb" for folder in ("exercises", "lessons", "solutions")
    ]
    assert all(line.endswith("does not exist: run `minipaged dev build`") for line in lines)


def test_stale_notices_every_kind_of_drift(repo):
    pretend_built(repo)
    assert stale(repo, COURSE) == []
    source = repo / "lessons/00_tour.py"
    source.write_text(LESSON_SOURCE.replace("two", "three"))
    assert stale(repo, COURSE) == [
        "lessons/00_tour.ipynb was made from an older source: run `minipaged dev build`"
    ]
    source.write_text(LESSON_SOURCE)
    exercise = repo / "exercises/00_tour.ipynb"
    exercise.write_text(exercise.read_text().replace("Read this.", "Read that."))
    assert "exercises/00_tour.ipynb differs from what its source gives" in stale(repo, COURSE)[0]
    pretend_built(repo)
    solution = repo / "solutions/00_tour.ipynb"
    solution.write_text(solution.read_text().replace("secret =", "public ="))
    assert "has cells that its source does not give; edit the .py" in stale(repo, COURSE)[0]
    solution.write_text("{")
    assert "is not a notebook any more" in stale(repo, COURSE)[0]
    pretend_built(repo)
    lesson = repo / "lessons/00_tour.ipynb"
    lesson.write_text(
        re.sub(r'"execution_count": \d+', '"execution_count": null', lesson.read_text())
    )
    assert "lessons/00_tour.ipynb was not executed" in stale(repo, COURSE)[0]
    pretend_built(repo)
    shutil.copy(lesson, repo / "lessons/07_old.ipynb")
    assert "lessons/07_old.ipynb belongs to no lesson of the catalog" in stale(repo, COURSE)[0]


@pytest.mark.parametrize("name", ["lessons/data.csv", "exercises/00_tour.py", "solutions/01_x.py"])
def test_stale_names_what_belongs_to_nothing(repo, name):
    pretend_built(repo)
    (repo / "lessons/README.md").write_text("The syllabus.\n")
    (repo / "lessons/.ipynb_checkpoints").mkdir()
    assert stale(repo, COURSE) == []
    (repo / name).write_text("")
    assert stale(repo, COURSE) == [
        f"{name} belongs to no lesson of the catalog: remove it, or add the lesson"
    ]


# executing


def test_build_executes_what_is_out_of_step_and_nothing_else(repo):
    told = []
    files = build(repo, course=COURSE, report=lambda *what: told.append(what))
    names = [f"{folder}/00_tour.ipynb" for folder in ("exercises", "lessons", "solutions")]
    assert [str(f.relative_to(repo)) for f in files] == names
    assert told == [(name, number, 3) for number, name in enumerate(names, 1)]
    assert stale(repo, COURSE) == []
    assert build(repo, course=COURSE) == []
    lesson = nbformat.read(repo / "lessons/00_tour.ipynb", as_version=4)
    assert lesson.metadata["minipaged"]["source_hash"] == source_hash(repo / "lessons/00_tour.py")
    assert lesson.metadata["language_info"] == {"name": "python"}
    [code] = [cell for cell in lesson.cells if cell.cell_type == "code"]
    assert code.metadata == {"tags": ["nbval-ignore-output"]}
    assert [output.output_type for output in code.outputs] == ["stream", "execute_result"]
    assert code.outputs[0].text == "one\ntwo\n"


def test_a_cell_that_fails_is_named(repo):
    (repo / "lessons/00_tour.py").write_text("# %%\n1 + 1\n\n# %%\n1 / 0\n")
    (repo / "exercises/00_tour.ipynb").write_text("")
    message = r"lessons/00_tour.ipynb: cell 00-code-2 fails with ZeroDivisionError: division by"
    with pytest.raises(BuildError, match=message):
        build(repo, course=COURSE)
    assert not (repo / "lessons/00_tour.ipynb").exists()
    assert nbformat.read(repo / "exercises/00_tour.ipynb", as_version=4)  # built before, it stays


def test_a_wrong_source_is_named_before_anything_is_built(repo):
    (repo / "lessons/00_tour.py").unlink()
    with pytest.raises(BuildError, match=r"lessons/00_tour.py is missing"):
        build(repo, course=COURSE)
    assert not list((repo / "exercises").iterdir())


def test_only_the_lessons_asked_for_are_built(repo):
    later = Lesson("01", "later", "Not written yet", 20)
    course = Catalog((LESSON, later), (EXERCISE,))
    pretend_built(repo)
    assert build(repo, course=course, lessons=["00"]) == []
    with pytest.raises(BuildError, match="01_later.py is missing"):
        build(repo, course=course, lessons=["01"])
    with pytest.raises(ValueError, match="there is no lesson '02'; there are: 00, 01"):
        build(repo, course=course, lessons=["02"])
