"""Lesson 02: its prose says what its cells print, its oracles agree with the reference classes, and
the solution's classes run a checked engine."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.cache.block import FreeQueue
from minipaged.cache.pool import BlockPool
from minipaged.components import Components
from minipaged.course import plain
from minipaged.course.catalog import catalog
from minipaged.course.checks.base import AtMost, Failure, check_of
from minipaged.course.checks.lesson_02_pool import PoolModel
from minipaged.course.checks.lesson_02_queue import costs, replay
from minipaged.course.fixtures import PlainQueue
from minipaged.course.script import Case, Operation, run
from minipaged.course.verdict import judge
from minipaged.simulate import simulate

ROOT = Path(__file__).parents[1]
LESSON = (ROOT / "lessons/02_block_pool.py").read_text(encoding="utf-8")
SOLUTION = (ROOT / "solutions/02_block_pool.py").read_text(encoding="utf-8")
PROSE = " ".join(re.findall(r"^# ?(.*)$", LESSON, re.MULTILINE))


def outputs(path: str) -> dict[str, str]:
    """The text of what each code cell of a stored notebook put out, by cell id."""
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    said = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            texts = [
                o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell["outputs"]
            ]
            said[cell["id"]] = "".join("".join(text) for text in texts)
    return said


def solved(exercise_id: str):
    """What the solution's cell of an exercise defines."""
    pattern = rf'# %% exercise="{re.escape(exercise_id)}"\n(.*?)\n# %% check'
    namespace: dict[str, object] = {}
    exec(re.search(pattern, SOLUTION, re.DOTALL)[1], namespace)
    return namespace[catalog().exercise(exercise_id).name]


def says(sentence: str) -> bool:
    """Whether the lesson's prose holds a sentence, however it is broken into lines."""
    return sentence in PROSE


# --- prose and cells -----------------------------------------------------------------------------


def test_the_log_is_told_as_it_is_printed():
    log = outputs("lessons/02_block_pool.ipynb")["02-code-1"].splitlines()
    assert says("The first three lines are the prompts of A, B and C: 6, 5 and 7 tokens")
    assert [line[:11] for line in log[:3]] == ["allocate(2)"] * 3
    assert says("In the fourth C needs a third block. In the fifth A finishes")
    assert log[3].startswith("allocate(1) gives [6]")
    assert log[4].split() == "free([0, 1]) queue: 0 1 7 8 9".split()
    assert says("gets the same two")
    assert log[5].startswith("allocate(2) gives [0, 1]")


def test_the_order_of_reuse_is_told_as_it_is_printed():
    head, tail = outputs("lessons/02_block_pool.ipynb")["02-code-3"].splitlines()
    assert "0 1 2 3 4 5 6 7" in head
    assert head.endswith("allocation 1")
    assert says("The second line of the output shows why. 2 stands before 0")
    assert "7 2 1 0" in tail
    assert tail.endswith("allocation 6")


def test_elements_touched_are_those_that_the_cell_counts():
    table = outputs("lessons/02_block_pool.ipynb")["02-code-4"]
    assert says("it compares places 0 to 1,024: 1,025 elements. Then the 3,071 behind it move up")
    assert says("Together 4,096")
    assert re.search(r"^ +4,096 +4,096 +1,025 +11$", table, re.MULTILINE)
    assert says("11 steps, for 512 ids as for 4,096")
    assert re.search(r"^ +512 +512 +129 +11$", table, re.MULTILINE)
    assert says("a block of 16 takes 2 MiB, and 60 GB hold 28,610 of them")
    assert 16 * 131_072 == 2 * 2**20
    assert int(60e9) // (16 * 131_072) == 28_610


def test_links_drawn_in_the_lesson_are_those_of_the_queue():
    drawn = outputs("lessons/02_block_pool.ipynb")
    for cell, order in (("02-code-5", [2, 0, 5]), ("02-code-6", [2, 5]), ("02-code-6", [2, 5, 3])):
        queue = FreeQueue(6)
        for block_id in range(6):
            queue.remove(block_id)
        for block_id in order:
            queue.append(block_id)
        for name, row in (("prev", queue._prev), ("next", queue._next)):
            shown = "   ".join("-" if link == -1 else str(link) for link in row)
            assert f"{name} {shown}" in drawn[cell]


def test_the_double_free_is_told_as_it_happens():
    cells = outputs("lessons/02_block_pool.ipynb")
    assert re.findall(r"^(\w) the same tokens$", cells["02-code-8"], re.MULTILINE) == [
        "A",
        "B",
        "C",
    ]
    assert says("Block 1 is B's and D's")
    assert "0  D + B B" in cells["02-code-9"]
    assert re.search(r"^B .*\[2, 3, 1\]$", cells["02-code-9"], re.MULTILINE)
    assert re.search(r"^D .*\[0, 1\]$", cells["02-code-9"], re.MULTILINE)
    assert "double free: block 1" in cells["02-code-10"]


def test_the_careless_pools_count_in_step_8():
    namespace: dict[str, object] = {}
    code = [
        c for c in re.split(r"^# %%.*$", LESSON, flags=re.MULTILINE) if "class FaultyTable" in c
    ]
    setup = "from dataclasses import replace\nfrom minipaged import Components\n"
    setup += "from minipaged.simulate import simulate\n"
    setup += "\n".join(re.findall(r"^(?:work|memory) = .*$", LESSON, re.MULTILINE))
    setup += "\ntrace = simulate(work, **memory)\n"
    exec(setup + code[0], namespace)
    record = namespace["spoilt"].steps[8]
    assert says("in step 8 this pool counts 5 where 4 are left")
    held = {block_id for table in record.tables.values() for block_id in table}
    assert (record.num_free, 10 - len(held)) == (5, 4)


def test_preemptions_are_those_of_the_run():
    def run_of(num_blocks):
        trace = simulate([(8, 12)] * 4, block_size=4, num_blocks=num_blocks)
        kinds = [event.kind for record in trace.steps for event in record.events]
        return len(trace.steps), kinds.count("preempted")

    assert says("Four times 5 are 20, and with 20 blocks there is none. With 12 there are two")
    assert says("the four need 19 steps instead of 12")
    assert run_of(20) == (12, 0)
    assert run_of(12) == (19, 2)
    assert run_of(19)[1] > 0
    assert outputs("lessons/02_block_pool.ipynb")["02-code-11"].startswith(
        "19 steps, 2 preemptions"
    )


def test_the_solution_runs_as_its_prose_says():
    cells = outputs("solutions/02_block_pool.ipynb")
    assert "As many ids come out of the queue as go back into it" in SOLUTION.replace("\n# ", " ")
    counted = re.search(r"'pop_head': (\d+), .*'prepend': (\d+)", cells["02-code-1"])
    assert counted[1] == counted[2] != "0"
    assert re.search(r"steps, [1-9]\d* preemptions", cells["02-code-1"])
    assert cells["02-code-1"].count("True") == 2
    assert cells["02-code-2"].endswith("same texts as the reference: True\n")
    assert cells["02-code-3"].startswith("InvariantError")


# --- oracles -------------------------------------------------------------------------------------

IDS = st.integers(0, 5)
QUEUE_CALLS = st.one_of(
    st.just(("pop_head",)),
    st.tuples(st.sampled_from(["append", "prepend"]), IDS),
    st.tuples(st.just("remove"), st.integers(-2, 7)),
)
POOL_CALLS = st.one_of(
    st.tuples(st.just("allocate"), st.integers(0, 4)),
    st.tuples(st.sampled_from(["share", "free"]), st.lists(IDS, max_size=4)),
    st.tuples(st.just("share"), st.lists(st.integers(-1, 6), max_size=3)),
)


def assert_same(exercise_id: str, case: Case, reference: type) -> None:
    """The oracle expects of a script exactly what the reference class does."""
    exercise = catalog().exercise(exercise_id)
    seen = run(case.operations, reference)
    (verdict,) = judge(check_of(exercise), [case], [seen], exercise.name)
    assert verdict.passed, verdict.problem


@given(st.lists(QUEUE_CALLS, max_size=20))
def test_the_queues_oracle_equals_the_reference(calls):
    operations = [Operation((6,), keep="queue")]
    for method, *args in calls:
        operations += [
            Operation(tuple(args), "queue", method),
            Operation((), "queue", how="list"),
            Operation((), "queue", how="len"),
        ]
    assert_same("02.1", Case("random", "", tuple(operations)), FreeQueue)


@given(st.lists(POOL_CALLS, max_size=20))
def test_the_pools_oracle_equals_the_reference(calls):
    operations = [Operation((6, plain.Kept("PlainQueue")), keep="pool")]
    for method, argument in calls:
        operations += [
            Operation((argument,), "pool", method),
            Operation((), "pool", "free_queue", how="list"),
            Operation((), "pool", "num_free", how="get"),
            *(Operation((block_id,), "pool", "refcount") for block_id in range(6)),
        ]
    assert_same("02.2", Case("random", "", tuple(operations)), BlockPool)


@pytest.mark.parametrize(("exercise_id", "model"), [("02.1", PlainQueue), ("02.2", PoolModel)])
def test_every_failure_has_a_rule_and_most_a_picture(exercise_id, model):
    """Whichever operation fails first, a rule is named, and it quotes no number of the case."""
    check = check_of(catalog().exercise(exercise_id))
    for case in [*check.visible(), *check.hidden(3)]:
        expected = iter(replay(case, model)[0])
        for number, operation in enumerate(case.operations):
            want = None if operation.keep else next(expected)
            for fault in ("", "KeyError"):
                rule = check.explain(Failure(case, number, want, None, fault))
                assert rule
                known = re.sub(r"from 0 on|(id |and )-1|refcount [01]", "", rule)
                assert not re.search(r"\d", known)
            assert bool(check.picture(case, number)) == (number > 0)


def test_hidden_scripts_refuse_often_enough_to_test_refusals():
    for exercise_id, model in (("02.1", PlainQueue), ("02.2", PoolModel)):
        cases = check_of(catalog().exercise(exercise_id)).hidden(0)
        values = [value for case in cases for value in replay(case, model)[0]]
        assert sum(type(value).__name__ == "Raises" for value in values) >= 10


def test_a_call_that_raises_is_not_said_to_take_too_many_steps():
    case = costs(3000)
    check = check_of(catalog().exercise("02.1"))
    for number, operation in enumerate(case.operations[1:], 1):
        told = {
            fault: check.explain(Failure(case, number, AtMost(100), None, fault))
            for fault in ("", "TypeError")
        }
        assert "steps" in told[""]
        assert told["TypeError"] and "steps" not in told["TypeError"], operation


def test_the_queues_own_list_is_nobodys_business():
    assert not hasattr(PlainQueue(3), "ids")


def test_hidden_cases_hold_what_a_random_one_may_miss():
    queue, pool = (check_of(catalog().exercise(which)) for which in ("02.1", "02.2"))
    for seed in range(20):
        cases = queue.hidden(seed)
        assert {case.operations[0].args[0] for case in cases} >= set(range(1, 8))
        absent = [o for case in cases for o in case.operations if o.args[:1] == (-1,)]
        assert {o.method for o in absent if o.method} == {"remove"}
        assert {o.how for o in absent} == {"call", "in"}
        frees = [
            o.args for case in pool.hidden(seed) for o in case.operations if o.method == "free"
        ]
        assert ([-1],) in frees
        around = [ids for (ids,) in frees if len(ids) > 2 and ids[0] == ids[-1] != ids[1]]
        assert len(around) >= 2


# --- the learner's parts in the engine -----------------------------------------------------------


def test_the_solutions_classes_run_a_checked_engine(lab):
    def served(components):
        made = lab(components=components, block_size=4, num_blocks=9)
        for name, prompt, output in (("a", 8, 12), ("b", 5, 20), ("c", 11, 7), ("d", 3, 16)):
            made.add(name, prompt, output)
        made.run()
        made.assert_clean()
        return made.outputs, [plan.items for plan in made.executor.plans]

    parts = replace(Components(), free_queue=solved("02.1"), block_pool=solved("02.2"))
    assert served(parts) == served(Components())


def test_a_broken_pool_is_noticed_by_the_checked_engine(lab):
    class Leaky(solved("02.2")):
        def free(self, block_ids):
            super().free(block_ids[:-1])

    made = lab(components=replace(Components(), block_pool=Leaky), block_size=4, num_blocks=9)
    made.add("a", 8, 3)
    with pytest.raises(AssertionError, match="free"):
        made.run()
