"""Lesson 06: its prose agrees with its cells, its checks with the engine and with claims."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaged import SamplingParams
from minipaged.components import Components
from minipaged.course import cost, plain
from minipaged.course.catalog import catalog
from minipaged.course.checks import lesson_06_ideas, lesson_06_moves, lesson_06_steps
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.fixture_sched import SchedulerDesk
from minipaged.course.learner.mine_run import _serve
from minipaged.course.plain import Kept
from minipaged.course.script import Case, Operation, run
from minipaged.course.verdict import judge
from minipaged.request import _LEGAL, RequestStatus
from minipaged.sched.scheduler import Scheduler
from minipaged.simulate import simulate

ROOT = Path(__file__).parents[1]
STEM = "06_continuous_batching"
E2 = lesson_06_steps.E2


def prose(folder: str) -> str:
    """A source's text, line breaks and comment signs taken out."""
    text = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    return re.sub(r"\n# ?(?:  )?", " ", text)


def outputs(folder: str) -> list[str]:
    """What each code cell of a stored notebook printed or shows as text."""
    notebook = json.loads((ROOT / folder / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(map(_text, cell["outputs"])) for cell in cells]


def _text(output: dict) -> str:
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")))


def _solved() -> dict:
    """What the given and the solved cells define."""
    notebook = json.loads((ROOT / "solutions" / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    defined: dict = {"__name__": "solved_06"}
    for cell in notebook["cells"]:
        if cell["id"].startswith("ex-") or "-given-" in cell["id"]:
            exec("".join(cell["source"]), defined)
    return defined


SOLVED = _solved()
YOURS = replace(Components(), scheduler=SOLVED["FCFSScheduler"])


def test_the_lessons_prose_says_what_its_cells_print():
    text = prose("lessons")
    seats, step, e2, kinds, slider, times, refused, spin, tutor, holes = outputs("lessons")
    assert re.findall(r"(\w+): (\d+) steps", seats) == [("static", "17"), ("continuous", "15")]
    assert "AAAEEEEGG" in seats and "E sits down the moment A has ended" in text
    assert "0  E B C D" in step and "E's block is the one that A gave back" in text
    assert e2.split()[:16] == list(map(str, E2))
    assert "338 steps, 393 idle, 70.93% useful" in e2 and "279 steps" in e2
    assert "338 against 279: 59 steps saved, 1.21 times as fast" in text
    rows = {row[:12].strip(): row[12:].split() for row in kinds.splitlines()[1:]}
    assert [rows[kind][4] for kind in rows] == ["1.00", "1.53", "2.98", "2.03", "1.52"]
    assert "From 1.00 to 2.98" in text and "Why 2.98 and not 3.8?" in text
    assert rows["heavy tail"][1] == "2000" and "Continuous batching needs 2,367" in text
    assert rows["heavy tail"][3] == "2367"
    assert "2.98 times as fast" in slider
    gains = [float(gain) for gain in re.findall(r"([\d.]+) times as fast", times)]
    assert gains == sorted(gains, reverse=True) and gains[0] > 3 and gains[-1] < 1.2
    assert "cannot go from preempted to swapped" in refused
    assert "prompt of 12: done" in spin and "it would spin for ever" in spin
    assert re.findall(r"(\d+) steps, (\d+) at once", tutor) == [("251", "5"), ("144", "12")]
    assert "same texts: True" in tutor and "144 steps are the longest answer" in text
    found = [int(steps) for steps in re.findall(r"(\d+) steps", holes)]
    assert found == [1408, 1216, 665] and "665 steps against 1,408" in text


def test_what_the_sliders_show_of_the_two_point_lengths():
    draw = random.Random(6)
    lengths = [320 if draw.random() < 0.2 else 8 for _ in range(96)]

    def gain(slots):
        both = [lesson_06_steps.played(lengths, slots, refill)[0] for refill in (False, True)]
        return round(both[0] / both[1], 2)

    assert (gain(1), gain(8), gain(16)) == (1.0, 2.98, 3.0) and gain(32) < gain(8)
    assert "from 1.00 with one place to 3.00 with 16" in prose("lessons")


def test_the_sums_in_the_prose():
    text = prose("lessons")
    lengths = [50, 500, 100, 150]
    idle = 4 * max(lengths) - sum(lengths)
    assert (idle, idle / (4 * max(lengths))) == (1200, 0.6) and "60 per cent exactly" in text
    assert "It computes in 5 and idles in 195" in text and 200 - 5 == 195
    batches = [max(E2[i : i + 4]) for i in range(0, 16, 4)]
    assert " + ".join(map(str, batches)) + f" = {sum(batches)} steps" in text
    assert f"{sum(E2)} / 4, so {math.ceil(sum(E2) / 4)}" in text
    some_long, mean = 1 - 0.8**8, 0.2 * 320 + 0.8 * 8
    longest = 320 * some_long + 8 * (1 - some_long)
    assert round(100 * some_long) == 83 and round(mean, 1) == 70.4
    assert round(longest) == 268 and round(longest / mean, 1) == 3.8
    assert "268 / 70.4 is 3.8" in text
    assert round(500 / (300 + 200 / 4), 2) == 1.43 and "1.43 times" in text
    assert 87 + 300 - 1 == 386 and 2048 // 386 == 5 and "2,048 // 386 is 5" in text
    assert (87 + 53, math.ceil(140 / 16), 128 // 9) == (140, 9, 14) and "128 // 9 is 14" in text
    assert [gap // 4 for gap in (20, 10, 18)] == [5, 2, 4] and math.ceil(30 / 4) == 8


def test_claims_come_out_of_the_engine_and_of_the_solution():
    count = SOLVED["batch_steps"]
    for lengths, slots, static, continuous in (
        (E2, 4, (338, 393), (279, 157)),
        ([50, 500, 100, 150], 4, (500, 1200), (500, 1200)),
        ([200, 5, 50], 3, (200, 345), (200, 345)),
    ):
        work = [(1, length) for length in lengths]
        assert count(lengths, slots, False) == static
        assert count(lengths, slots, True) == continuous
        for scheduler, (steps, idle) in (("static", static), ("unified", continuous)):
            trace = simulate(work, scheduler=scheduler, max_num_seqs=slots)
            used = sum(len(record.work) for record in trace.steps)
            assert (len(trace.steps), slots * len(trace.steps) - used) == (steps, idle)


def test_the_hand_made_step_is_what_schedulers_plan():
    text = prose("lessons")
    assert "three places, a *budget* of 32 tokens" in text
    for make in (SOLVED["FCFSScheduler"], Scheduler):
        desk = SchedulerDesk(make, 7, 4, 3, 32)
        desk.add("A", 4, 20)
        assert desk.step() == [("A", 0, 4, True)]
        for name, prompt in (("B", 10), ("C", 9), ("D", 2)):
            desk.add(name, prompt, 5)
        assert desk.queues() == [["A"], ["B", "C", "D"], 6]
        assert desk.step() == [("A", 4, 1, True), ("B", 0, 10, True)]
        assert desk.queues() == [["A", "B"], ["C", "D"], 2]


def test_the_exercise_notebooks_prose_says_what_its_cells_print():
    text, printed = prose("solutions"), "\n".join(outputs("solutions"))
    assert "(338, 393) (279, 157)" in printed
    assert "the engine on your scheduler: 279 steps" in printed
    assert printed.count("same tokens: True") == 1
    assert "same texts as the reference: True" in printed
    ends = {row.split()[0]: row for row in printed.splitlines() if row.endswith(" True")}
    by_name = {
        name: ends[name].split()[2:-1] for name in ("FCFSScheduler", "BackOfTheLine", "Overtaking")
    }
    assert (by_name["FCFSScheduler"][1], by_name["BackOfTheLine"][1]) == ("26", "59")
    assert "ends in step 59 and not in step 26" in text
    assert (by_name["Overtaking"][2], by_name["FCFSScheduler"][2]) == ("58", "3")
    assert "ends in step 58 and not in step 3" in text
    totals = {name: int(ends[name].split()[1]) for name in by_name}
    assert "Two of the three finish *sooner*" in text
    assert sum(total < totals["FCFSScheduler"] for total in totals.values()) == 2


def test_the_states_are_the_engines():
    pairs = {old.value[0] + new.value[0] for old, legal in _LEGAL.items() for new in legal}
    assert {pair.upper() for pair in pairs} == lesson_06_moves.MOVES
    assert set(lesson_06_moves.STATES) == {status.name for status in RequestStatus}
    for old, legal in _LEGAL.items():
        made = SOLVED["RequestState"]("A")
        assert set(made.legal[old.name]) == {new.name for new in legal}


@pytest.mark.parametrize("exercise_id", ["06.1", "06.2", "06.3", "06.4"])
def test_the_solution_passes_many_seeds(exercise_id):
    exercise = catalog().exercise(exercise_id)
    check = check_of(exercise)
    for seed in range(12):
        cases = check.visible() + check.hidden(seed)
        seen = [run(case.operations, SOLVED[exercise.name]) for case in cases]
        assert [v.problem for v in judge(check, cases, seen, exercise.name) if v.problem] == []


REQUESTS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 15)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=40)
@given(REQUESTS, st.integers(12, 24), st.integers(1, 4), st.integers(4, 40))
def test_the_solutions_scheduler_gives_every_token_of_the_engines(work, blocks, seats, budget):
    options = {"block_size": 4, "num_blocks": blocks, "max_num_seqs": seats}

    def tokens(components):
        trace = simulate(work, components=components, max_num_batched_tokens=budget, **options)
        got: dict = {}
        for record in trace.steps:
            for one in record.work:
                got.setdefault(one.request_id, []).extend(one.sampled)
        return got

    assert tokens(YOURS) == tokens(Components())


def test_the_solutions_scheduler_runs_a_checked_engine():
    yours, expected = _serve(YOURS), _serve(Components())
    assert yours.tokens == expected.tokens and yours.preemptions > 0


def test_the_solutions_scheduler_serves_samples_and_forks(lab):
    def served(components):
        made = lab(components=components, block_size=4, num_blocks=14, max_num_seqs=3)
        engine, got = made.engine, {}
        params = SamplingParams(n=3, temperature=1.0, seed=5, max_tokens=6, ignore_eos=True)
        engine.add_request("a", [5, 6, 7, 8, 9], params)
        for number in range(60):
            if number == 3:
                engine.fork("a", "b")
            for output in engine.step():
                key = (output.request_id, output.sample_index)
                got.setdefault(key, []).extend(output.new_token_ids)
            engine.check()
            if not engine.has_unfinished_requests():
                made.assert_clean()
                return got
        raise AssertionError("still running")

    assert served(YOURS) == served(Components())


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), max_size=20), st.integers(1, 6), st.booleans())
def test_steps_are_counted_as_the_engine_counts(lengths, slots, refill):
    expected = lesson_06_steps.played(lengths, slots, refill)
    assert SOLVED["batch_steps"](lengths, slots, refill) == expected
    if lengths:
        scheduler = "unified" if refill else "static"
        work = [(1, length) for length in lengths]
        trace = simulate(work, scheduler=scheduler, max_num_seqs=slots)
        assert len(trace.steps) == expected[0]


def test_answers_follow_from_their_sums():
    answers = SOLVED["answers"]()
    assert answers["b"] == 100 * (4 * 200 - 360) / (4 * 200) and 30 + 200 + 50 + 80 == 360
    assert answers["c"] == 120 - 8
    assert answers["d"] == [16_384 // 2048, 1024 // math.ceil(250 / 16)]
    assert answers["e"] == [False, sum(gap // 16 for gap in (400, 1600, 1000)) - 2000 // 16]
    assert answers["f"] == pytest.approx((400 + 4 * 20) / 400)
    desk = SchedulerDesk(SOLVED["FCFSScheduler"], 100, 16, 4, 64)
    for number in range(10):
        desk.add(str(number), 20, 5)
    assert len(desk.step()) == answers["g"] == 3


def test_a_desk_says_what_is_wrong_with_a_plan():
    def says(schedule):
        kind = type("Kind", (SOLVED["FCFSScheduler"],), {"schedule": schedule})
        desk = SchedulerDesk(kind, 8, 4, 2, 16)
        desk.add("A", 5, 3)
        return desk.step()

    base = SOLVED["FCFSScheduler"].schedule
    assert says(lambda self: None) == ["schedule returned nothing, not the plan"]
    assert "would go on for ever" in says(lambda self: self.new_plan())[0]

    def twice(self):
        plan = base(self)
        plan.items *= 2
        return plan

    def other_tokens(self):
        plan = base(self)
        plan.items[0] = plan.items[0]._replace(token_ids=[1, 2, 3, 4, 5])
        return plan

    def no_row(self):
        plan = base(self)
        plan.items[0] = plan.items[0]._replace(block_ids=[7])
        return plan

    def for_ever(self):
        while self.waiting:
            pass

    assert says(twice) == ["A is in the plan 2 times"]
    assert says(other_tokens) == ["the tokens planned for A are not its own tokens from 0 on"]
    assert says(no_row) == ["the executor is not told of every block of A"]
    with pytest.raises(cost.Endless, match="a loop in it does not end"):
        says(for_ever)


def test_a_desk_says_what_is_wrong_behind_a_commit():
    base = SOLVED["FCFSScheduler"]

    class Lazy(base):
        def take(self, request, num_computed, new_tokens):
            request.num_computed_tokens += num_computed

    class Leaky(base):
        def finish(self, request, reason):
            self.running.remove(request)

    for kind, says in ((Lazy, "was to get 1 new tokens"), (Leaky, "is in no queue, though live")):
        desk = SchedulerDesk(kind, 8, 4, 2, 16)
        desk.add("A", 5, 1)
        assert says in desk.step()[0]


def test_a_day_cannot_be_told_twice_differently():
    """Whatever a hostile process sends as an answer, explain and picture say something or "" ."""
    strange = (None, [], ["x"], [("A", 0)], {"a": 1}, plain.Other("X"), -1, "text", [[], [], 3])
    for name in ("06.1", "06.2", "06.3", "06.4"):
        check = check_of(catalog().exercise(name))
        for case in check.visible():
            for number in range(len(case.operations)):
                assert isinstance(check.picture(case, number), str)
            number = len(case.operations) - 1
            expected = check.oracle(case)[-1]
            for got in strange:
                for fault in ("", "Endless", "TypeError", "<script>"):
                    failure = Failure(case, number, expected, got, fault)
                    assert isinstance(check.explain(failure), str)


def test_the_oracle_of_the_scheduler_is_none():
    """The engine's own scheduler, with room for everything, plans what the oracle expects."""
    rng = random.Random(6)
    desk = Operation((Kept(""), 200, 4, 3, 400, True), "SchedulerDesk", keep="desk")
    adds = [
        Operation((name, rng.randrange(1, 20), rng.randrange(1, 9)), "desk", "add")
        for name in "ABCDEFG"
    ]
    steps = [Operation((), "desk", method) for _ in range(25) for method in ("step", "queues")]
    case = Case("day", "", (desk, *adds, *steps))
    seen = run(case.operations, Scheduler)
    assert [plain.decode(one.value) for one in seen[1:]] == lesson_06_ideas.play(case.operations)
