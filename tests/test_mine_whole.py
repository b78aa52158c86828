"""`minipaged mine` for somebody who has solved everything: each own part drives the engine."""

from __future__ import annotations

import json
import subprocess
import sys

from minipaged.course import needs, shipped


def command(place, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "minipaged.cli", *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def fill_in(place, course, change=lambda exercise, source: source):
    """Every packaged solution that can be run here, into the workspace's notebooks."""
    for exercise in course.catalog.exercises:
        if needs.lacking(exercise.needs):
            continue
        path = place / course.notebook_of(exercise)
        notebook = json.loads(path.read_text(encoding="utf-8"))
        (cell,) = [c for c in notebook["cells"] if c["id"] == exercise.solution_cell]
        cell["source"] = change(exercise.id, course.solution(exercise))
        path.write_text(json.dumps(notebook), encoding="utf-8")


def test_all_own_parts_write_the_references_text(tmp_path):
    assert command(tmp_path, "init", "own").returncode == 0
    place, course = tmp_path / "own", shipped.course()
    fill_in(place, course)
    came = command(place, "mine")
    assert came.returncode == 0, came.stdout + came.stderr
    table = came.stdout.split("\n\n")[0].splitlines()
    for component in (
        "free_queue",
        "block_pool",
        "block_table",
        "attention",
        "scheduler",
        "victim",
        "preemption",
        "admission",
        "prefix_cache",
    ):
        (row,) = [line for line in table if line.startswith(component)]
        assert "yours" in row and "passes" in row
    for said in (
        "Now your 06.2 FCFSScheduler in its turn:",
        "Now the engine's own scheduler, which asks your 08.1 choose_victim, 08.2 "
        "swap_or_recompute, 08.3 WaterMarks, 10.2 RadixIndex:",
        "Now your 09.2 HashIndex in its turn:",
    ):
        assert said in came.stdout
    kernels = [
        exercise
        for exercise in course.catalog.exercises
        if exercise.component and exercise.needs and not needs.lacking(exercise.needs)
    ]
    for kernel in kernels:
        said = f"Now your {kernel.id} {kernel.name} in its turn, for a few words:"
        assert said in came.stdout
    assert came.stdout.count("every token is the reference's") == 4 + len(kernels)
    assert came.stdout.count("the same as with the reference") == 4 + len(kernels)


def test_a_cache_that_finds_what_is_not_there_fails_in_its_turn(tmp_path):
    assert command(tmp_path, "init", "own").returncode == 0
    place, course = tmp_path / "own", shipped.course()

    def forgets_nothing(exercise_id, source):
        if exercise_id == "10.2":
            return source
        if exercise_id != "09.2":
            return course.stub(course.catalog.exercise(exercise_id))
        return source + (
            "\n\nHashIndex.forget = lambda self, block_id: self.pool.set_hash(block_id, None)\n"
        )

    fill_in(place, course, forgets_nothing)
    came = command(place, "mine")
    assert came.returncode == 1
    assert "FAILED  09.2 HashIndex" in came.stdout.split("Now your 09.2 HashIndex")[1]
