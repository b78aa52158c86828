"""Lesson 08: its prose says what its cells print, its oracles agree with the reference, and the
solution's three parts decide for a checked engine."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaged.components import Components
from minipaged.config import DeviceCosts, EngineConfig
from minipaged.course.catalog import catalog
from minipaged.course.checks import (
    lesson_08_answers,
    lesson_08_costs,
    lesson_08_marks,
    lesson_08_victim,
)
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.fixture_requests import PlainRequest, names, requests
from minipaged.course.learner import mine_run
from minipaged.course.script import run
from minipaged.course.verdict import judge
from minipaged.request import Request
from minipaged.sched.admission import Gates
from minipaged.sched.limits import max_output_tokens
from minipaged.sched.preemption import cheaper
from minipaged.sched.victim import fewest_computed
from minipaged.simulate import simulate

ROOT = Path(__file__).parents[1]
STEM = "08_memory_pressure"
EXERCISES = ("08.1", "08.2", "08.3", "08.4")
SMALL = {"block_size": 4, "num_blocks": 6, "max_num_batched_tokens": 6}
TWO = [(8, 12), (8, 12)]


def prose(folder: str) -> str:
    """A source's text, line breaks and comment signs taken out."""
    text = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    return " ".join(re.findall(r"^# ?(?:> ?)?(.*)$", text, re.MULTILINE))


def outputs(folder: str) -> list[str]:
    """What each code cell of a stored notebook printed or shows as text."""
    notebook = json.loads((ROOT / folder / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(map(_text, cell["outputs"])) for cell in cells]


def _text(output: dict) -> str:
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")))


def solution() -> dict:
    """What the given and the solved cells define."""
    notebook = json.loads((ROOT / "solutions" / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    defined: dict = {}
    for cell in notebook["cells"]:
        if cell["id"].startswith(("ex-", "08-given")):
            exec("".join(cell["source"]), defined)
    return defined


def lesson(*functions: str) -> dict:
    """Functions that the lesson defines, from its source."""
    source = (ROOT / "lessons" / f"{STEM}.py").read_text(encoding="utf-8")
    defined: dict = {"random": random}
    exec("from collections import Counter", defined)
    for name in functions:
        found = re.search(rf"^def {name}\(.*?(?=^\S)", source, re.MULTILINE | re.DOTALL)
        exec(found[0], defined)
    return defined


SOLVED = solution()
TEXT = prose("lessons")
TOLD = outputs("lessons")
FIGURES = lesson("figures")["figures"]


def numbers(line: str) -> list[float]:
    return [float(one.replace(",", "")) for one in re.findall(r"-?\d[\d,]*(?:\.\d+)?", line)]


def row(text: str, name: str) -> list[float]:
    """The numbers behind a name in a printed table."""
    line = next(line for line in text.splitlines() if line.strip().startswith(name))
    return numbers(line.replace(name, "", 1))


# --- prose and cells -----------------------------------------------------------------------------


def test_the_first_preemption_is_told_as_it_happens():
    story, short = TOLD[0], TOLD[1]
    assert "2 blocks each at the beginning, together 4 of 6" in TEXT
    assert "8 + 12 - 1 = 19 slots, so 5 blocks" in TEXT and -(-19 // 4) == 5
    assert "step  6: B preempted" in story and "In step 5 A has 12 computed tokens" in TEXT
    trace = simulate(TWO, **SMALL)
    assert trace.steps[6].computed["A"] == 12 and trace.steps[5].num_free == 0
    assert "the 4 outputs that it has" in TEXT
    written = [work for r in trace.steps[:6] for work in r.work if work.request_id == "B"]
    assert sum(len(work.sampled) for work in written) == 4
    assert "values of the 11 that were" in TEXT and sum(w.num_tokens for w in written) == 11
    assert "B returns in step 13, when A is done, and computes all 12 known tokens in two" in TEXT
    back = [work for r in trace.steps[13:15] for work in r.work]
    assert [(work.num_tokens, len(work.sampled)) for work in back] == [(6, 0), (6, 1)]
    assert "22 steps; with room for both it is 14. 11 tokens are computed twice" in TEXT
    assert "waits 9 steps for one" in TEXT
    assert "longest gap: (22, 1, 11, 0, 9)\n" in short and short.endswith("both: True\n")
    assert FIGURES(simulate(TWO, **SMALL | {"num_blocks": 10}))[:2] == (14, 0)
    assert "room for both:      (14, 0, 0, 0, 1)\n" in short


def test_the_victims_cost_what_the_table_says():
    table = TOLD[2]
    last, fewest, most = (
        row(table, name) for name in ("last-admitted", "fewest-computed", "most-blocks")
    )
    assert "400, 400 and 3,000" in TEXT
    assert "Most blocks: the fewest preemptions, the most work, the most steps" in TEXT
    assert most[0] > max(last[0], fewest[0]) and most[1] < min(last[1], fewest[1])
    assert most[2] > max(last[2], fewest[2])
    assert "Fewest computed gives up the least each time, and pays in number" in TEXT
    assert fewest[1] > last[1] and fewest[2] > last[2]
    assert fewest[2] / fewest[1] < last[2] / last[1] < most[2] / most[1]
    line = [["A", 3000, 3001, 188], ["B", 1200, 1201, 75], ["C", 5000, 5001, 313]]
    assert "The last admitted costs 5,000, the fewest computed 1,200" in TEXT
    assert lesson_08_victim._least(lesson_08_victim.COMPUTED, first_too=True)(line, "A") == "B"


def test_the_sums_are_those_of_claims_c4_to_c6():
    table = TOLD[3]
    for name, (swap, again) in {
        "Llama-2-7B": (32.8, 27.0),
        "Llama-2-13B": (51.2, 52.1),
        "Llama-3-8B": (8.2, 32.1),
        "Llama-3-70B": (20.5, 282.2),
        "Qwen2.5-0.5B": (0.8, 2.0),
    }.items():
        assert row(table, name)[:2] == [swap, again]
    assert "= 32.8 ms" in TEXT and "27.0 ms. It should be computed again" in TEXT
    assert "500·10¹² / 32·10⁹ = 15,625" in TEXT and 500e12 / 32e9 == 15_625
    ratios = {name: row(table, name)[2] for name in lesson_08_costs.MODELS if name in table}
    assert [name for name, ratio in ratios.items() if ratio < 15_625] == ["Llama-2-7B"]
    assert "Llama-3-70B: attention adds 1.9 %, 15.2 %, 121.7 %" in TOLD[4]
    assert "1.9 % on top at 2,048" in TEXT
    assert "Eight times 1.9 is 15 %, and eight times that is 122 %" in TEXT
    assert "5.37 GB, so 168 ms, and 336 ms out and in" in TEXT
    assert round(16_384 * 327_680 / 1e9, 2) == 5.37
    assert round(1e3 * 16_384 * 327_680 / 32e9) == 168
    assert round(2e3 * 16_384 * 327_680 / 32e9) == 336


def test_the_models_are_those_of_their_public_configurations():
    """2 * layers * KV heads * head_dim * 2 bytes."""
    shapes = {
        "Llama-2-7B": (32, 32, 128),
        "Llama-2-13B": (40, 40, 128),
        "Llama-3-8B": (32, 8, 128),
        "Llama-3-70B": (80, 8, 128),
        "Qwen2.5-0.5B": (24, 2, 64),
        "SmolLM2-135M": (30, 3, 64),
    }
    for name, (layers, heads, head_dim) in shapes.items():
        model = lesson_08_costs.MODELS[name]
        assert model["num_layers"] == layers
        assert model["kv_bytes_per_token"] == 4 * layers * heads * head_dim


def test_the_crossover_and_the_small_copies():
    def first_to_move(costs, lengths):
        choose = cheaper(costs)
        return next(n for n in lengths if choose(PlainRequest("A", n, n + 1, 1), 1) == "swap")

    seven = DeviceCosts(6.738e9, 32, 4096, 524_288)
    assert "The lines of the 7B cross near 11,000 tokens" in TEXT
    assert 11_000 < first_to_move(seven, range(10_000, 12_000)) < 11_200
    assert "From 8 GB/s down" in TEXT
    rates = {}
    for rate in (4, 8, 16):
        costs = DeviceCosts(host_bandwidth=1e9 * rate)
        rates[rate] = cheaper(costs)(PlainRequest("A", 1000, 1001, 63), 63)
    assert rates == {4: "recompute", 8: "recompute", 16: "swap"}
    assert "16 · 131,072 bytes = 2 MiB" in TEXT and 16 * 131_072 == 2 * 2**20
    assert "64 pieces of 32 KiB" in TEXT and 2 * 2**20 // 64 == 32 * 2**10
    microseconds = 32 * 2**10 / 32e9 * 1e6
    assert "A piece takes 1 µs" in TEXT and round(microseconds) == 1
    assert "One part in six, about 5" in TEXT
    assert round(32 * microseconds / (microseconds + 5)) == 5


def test_the_thrash_is_case_15():
    story, remedies, marks = TOLD[5:8]
    assert story.count("B preempted") == 3
    assert "longest gap: (22, 3, 21, 0, 9)" in story
    assert "5 tokens each, and 21 tokens are computed again in place of 11" in TEXT
    assert "B knows 12 tokens when it is preempted, and A leaves 5 of the budget" in TEXT
    table = {
        "first chunk": [22, 3, 21, 0],
        "all known tokens": [22, 1, 11, 0],
        "high mark": [3, 22, 1, 11, 0],
        "back-off 2": [22, 2, 16, 0],
        "back-off 4": [22, 1, 11, 0],
        "swap": [21, 1, 0, 3],
        "marks 1 and 2": [24, 2, 14, 0],
        "marks 1 and 3": [24, 2, 14, 0],
        "headroom 1": [22, 1, 11, 0],
    }
    assert {name: row(remedies, name) for name in table} == table
    assert "B's 3 blocks are moved out and in, nothing is computed again, and one step" in TEXT
    assert "step 4, although nobody needs one before step 6" in TEXT
    no_room, room = (numbers(line) for line in marks.splitlines() if "free:" in line)
    assert no_room[3] == 0 and no_room[6:9] == [2, 0, 2]
    assert 0 not in room[4:]
    assert "CarelessGates: 4 preemptions, 24 again" in marks
    assert "\nGates: 2 preemptions, 14 again" in marks


def test_with_back_off_b_comes_when_it_is_said_to():
    def admissions(steps):
        trace = simulate(TWO, **SMALL, admission="chunk", backoff_steps=steps)
        return [
            record.step
            for record in trace.steps
            for event in record.events
            if event.kind == "admitted" and event.request_id == "B"
        ]

    assert "With a back-off of 2 B comes too early once more; with 4 it does not return" in TEXT
    assert admissions(2) == [1, 9, 13] and admissions(4) == [1, 13]


def test_too_many_at_once_is_told_as_it_is_printed():
    sweep, reserve = TOLD[8:10]
    lines = [line for line in sweep.splitlines() if re.match(r" +(6|24)  [a-z]", line)]
    six, wide = ([numbers(line)[1:] for line in lines[i : i + 3]] for i in (0, 3))
    assert "Up to 6 all three are the same: nobody is preempted" in TEXT
    assert {tuple(one) for one in six} == {(0, 5736, 819)}
    assert "How many fit at the beginning, how many at the end? 9 and 6" in TEXT
    assert (90 // (160 // 16), 90 // -(-239 // 16)) == (9, 6)
    assert [one[1] for one in wide] == [6927, 10_583, 17_506]
    assert "a fifth more than is needed" in TEXT and 1.19 < 6927 / 5736 < 1.22
    assert "nearly twice as much, 10,583 tokens for 5,736" in TEXT
    assert "three times as much, and the speed falls by 13 %" in TEXT
    assert round(17_506 / 5736) == 3 and round(100 * (1 - wide[2][2] / 819)) == 13
    assert row(reserve, "headroom 20")[:3] == [0, 0, 1]
    assert "that costs 2 % of the speed" in TEXT and round(100 * (1 - 800 / 819)) == 2
    assert row(reserve, "headroom 20")[3] == 800 and row(reserve, "reference")[3] == 819
    assert "somebody waits 64 steps" in TEXT and row(reserve, "reference")[2] == 64


def test_a_request_too_long_for_the_pool_ends():
    assert "ends after 5 of them, because 12 + 5 - 1 = 16 slots" in TEXT
    trace = simulate([(12, 8)], block_size=4, num_blocks=4, max_model_len=20)
    assert sum(len(work.sampled) for record in trace.steps for work in record.work) == 5
    assert "The reason that the engine gives is `length`" in TEXT
    assert trace.steps[-1].events[-1].detail == "length"


@pytest.mark.parametrize(
    "options", [{}, {"admission": "chunk"}, {"preemption": "swap", "num_host_blocks": 6}]
)
def test_the_lessons_figures_are_the_engines_own_counters(lab, options):
    """figures() counts from the trace what the engine counts while it runs."""
    made = lab(**SMALL, **options)
    for name in "AB":
        made.add(name, 8, 12)
    made.run()
    metrics = made.engine.metrics
    _, preempted, again, moved, _ = FIGURES(simulate(TWO, **SMALL, **options))
    assert preempted == metrics.num_preemptions_total > 0
    assert again == metrics.num_recomputed_tokens_total
    assert moved == metrics.num_swapped_out_blocks_total


@pytest.mark.parametrize("folder", ["lessons", "solutions"])
def test_no_line_of_prose_turns_into_a_heading_by_accident(folder):
    """A line that begins with the number of an issue would."""
    source = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    assert not re.search(r"^# #+\d", source, re.MULTILINE)


def test_the_lesson_is_short_enough():
    assert len(TEXT.split()) <= 2500


def test_the_solution_runs_as_its_prose_says():
    over_ledger, tutor, fault = outputs("solutions")[-3:]
    assert over_ledger.count("same: True") == 7 and "False" not in over_ledger
    out = {
        name: int(re.search(rf"{name}.* (\d+) blocks out", over_ledger)[1])
        for name in ("the reference", "3-8B", "2-7B", "slow copies")
    }
    assert out["3-8B"] > 0 == out["the reference"] == out["2-7B"] == out["slow copies"]
    tokens = {
        name: int(re.search(rf"{name} .* (\d+) tokens computed", over_ledger)[1])
        for name in ("your gate", "the reference's gate")
    }
    assert tokens["your gate"] == tokens["the reference's gate"]
    moving, again = tutor.splitlines()[:2]
    assert re.search(
        r"[1-9]\d* preemptions, [1-9]\d* blocks moved out, 0 tokens .* texts: True", moving
    )
    assert re.search(
        r"[1-9]\d* preemptions, 0 blocks moved out, [1-9]\d* tokens .* texts: True", again
    )
    assert re.search(r"yours +22 steps +3 preempted", fault)
    assert re.search(r"from the first +40 steps +10 preempted", fault)
    said = prose("solutions")
    assert "With your rule it is 22" in said and "from each other ten times" in said


# --- oracles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_solution_passes_visible_and_hidden_cases(exercise_id):
    exercise = catalog().exercise(exercise_id)
    check = check_of(exercise)
    for cases in (check.visible(), *map(check.hidden, range(5))):
        seen = [run(case.operations, SOLVED[exercise.name]) for case in cases]
        assert all(v.passed for v in judge(check, cases, seen, exercise.name))


def test_no_wrong_idea_passes_and_each_is_told_by_itself():
    """Whoever follows an idea throughout fails the visible cases, and the hidden ones for any
    seed."""

    def choose(idea):
        def by_idea(running, needy):
            rows = [
                [r.request_id, r.num_computed_tokens, r.num_tokens, r.num_blocks] for r in running
            ]
            name = idea(rows, needy.request_id)
            return next(r for r in running if r.request_id == name)

        return by_idea

    def weigh(idea):
        def by_idea(request, num_blocks, costs):
            one = lesson_08_costs.Victim(
                request.num_computed_tokens, request.num_tokens, num_blocks, costs
            )
            return idea(one)

        return by_idea

    for exercise_id, module, made in (
        ("08.1", lesson_08_victim, choose),
        ("08.2", lesson_08_costs, weigh),
    ):
        check = check_of(catalog().exercise(exercise_id))
        for idea, words in module.IDEAS:
            for cases in (check.visible(), *map(check.hidden, range(3))):
                seen = [run(case.operations, made(idea)) for case in cases]
                assert not all(v.passed for v in judge(check, cases, seen, "it")), words


def gate_of(admit, shed):
    class Gate:
        def __init__(self, config):
            self.marks = lesson_08_marks.Marks(
                config.low_water_blocks, config.high_water_blocks, config.admission_headroom
            )

        def __call__(self, needed, free):
            return admit(self.marks, needed, free)

        def must_shed(self, free):
            return shed(self.marks, free)

    return Gate


def test_no_wrong_gate_passes():
    check = check_of(catalog().exercise("08.3"))
    right = lesson_08_marks._admit, lesson_08_marks._shed
    wrong = [(idea, right[1]) for idea, _ in lesson_08_marks.ADMITS]
    wrong += [(right[0], idea) for idea, _ in lesson_08_marks.SHEDS]
    for pair in (right, *wrong):
        for cases in (check.visible(), *map(check.hidden, range(3))):
            seen = [run(case.operations, gate_of(*pair)) for case in cases]
            passed = all(v.passed for v in judge(check, cases, seen, "it"))
            assert passed == (pair is right)


LINES = st.lists(st.integers(0, 5), min_size=1, max_size=7)


@given(LINES, st.integers(0, 6))
def test_the_victims_oracle_is_the_engines_rule_but_for_the_first(counts, place):
    rows = [[str(i), n, n + 1, 1] for i, n in enumerate(counts)]
    running = requests(rows)
    needy = running[place % len(running)]
    chosen = SOLVED["choose_victim"](running, needy)
    assert chosen.request_id == lesson_08_victim.victim(rows, needy.request_id)
    assert names(running) == [row[0] for row in rows]
    if len(running) > 1:
        assert chosen is fewest_computed(running[1:], needy)


@given(st.sampled_from(sorted(lesson_08_costs.MODELS)), st.integers(1, 60_000))
def test_the_costs_oracle_is_the_engines_sum(name, tokens):
    costs = lesson_08_costs.MODELS[name]
    names_of = {k: v for k, v in costs.items() if k != "seconds_per_block"}
    reference = cheaper(DeviceCosts(**names_of))(PlainRequest("A", tokens, tokens + 1, 1), 1)
    assert lesson_08_costs.answer(lesson_08_costs.Victim(tokens, tokens + 1, 1, costs)) == reference
    assert SOLVED["swap_or_recompute"](PlainRequest("A", tokens, tokens, 1), 1, costs) == reference


MARKS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))


@given(MARKS, st.integers(0, 20), st.integers(0, 20))
def test_the_gates_oracle_is_the_engines_gate_with_the_low_mark_as_headroom(marks, needed, free):
    low, gap, headroom = marks
    high = low + gap if gap else 0
    reserve = max(low, headroom)
    config = EngineConfig.of(
        low_water_blocks=low, high_water_blocks=high, admission_headroom=reserve
    ).scheduler
    model = lesson_08_marks.Gate(lesson_08_marks.Marks(low, high, headroom))
    assert model.ask("", needed, free) == Gates(config)(needed, free)
    assert model.ask("must_shed", free) == Gates(config).must_shed(free)


def test_the_questions_are_answered_by_the_engine():
    right = {question.letter: question.answer for question in lesson_08_answers.QUESTIONS}
    assert right["h"] == max_output_tokens(3000, 1000, 4096, 200 * 16)
    assert right["d"] == pytest.approx(2e3 * 6000 * 819_200 / 32e9, abs=0.05)
    assert right["e"] == [1000 // 10, 1000 // 40]
    models = ("Llama-2-7B", "Llama-2-13B", "Llama-3-8B")
    linear = [
        name
        for name in models
        if lesson_08_costs.say(*_linear(lesson_08_costs.MODELS[name])) == "recompute"
    ]
    assert right["c"] == linear
    gate = Gates(EngineConfig.of(low_water_blocks=40, high_water_blocks=150).scheduler)
    assert right["f"] == "hold" and not gate(1, 90) and not gate.must_shed(90)


def _linear(costs):
    return (
        2 * costs["kv_bytes_per_token"] / 16e9,
        2 * costs["num_parameters"] / costs["peak_flops"],
    )


def test_question_e_is_what_the_first_step_does():
    trace = simulate(
        [(16, 48)] * 30, block_size=4, num_blocks=100, max_num_seqs=64, max_num_batched_tokens=4096
    )  # the question's numbers over four: 4 blocks at first, 16 at the end
    assert len(trace.steps[0].work) == 25
    assert 100 // 16 == 6


def test_question_g_is_what_the_engine_does():
    """A limit of max_preemptions is kept with each request."""
    options = SMALL | {"preemption": "swap", "num_host_blocks": 6, "max_preemptions": 1}
    three = [(8, 12)] * 3
    trace = simulate(three, **options)
    swapped: dict[str, list[str]] = {}
    for record in trace.steps:
        for event in record.events:
            if event.kind == "preempted":
                swapped.setdefault(event.request_id, []).append(event.detail)
    assert all(details[0] == "swapped" for details in swapped.values())
    assert len(swapped) >= 2


# --- the learner's parts in the engine -----------------------------------------------------------


def parts(costs="LLAMA_3_8B") -> Components:
    how = partial(SOLVED["swap_or_recompute"], costs=SOLVED[costs])
    return Components(
        victim=SOLVED["choose_victim"], preemption=how, admission=SOLVED["WaterMarks"]
    )


WORK = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=2, max_size=8)


@settings(deadline=None, max_examples=40)
@given(WORK, st.sampled_from(["LLAMA_3_8B", "LLAMA_2_7B"]), st.integers(0, 2), st.integers(2, 5))
def test_the_solutions_parts_never_change_a_token(work, costs, low, gap):
    def tokens(trace):
        got: dict[str, list[int]] = {}
        for record in trace.steps:
            for one in record.work:
                got.setdefault(one.request_id, []).extend(one.sampled)
        return got

    options = {
        "block_size": 4,
        "num_blocks": 16,
        "num_host_blocks": 8,
        "low_water_blocks": low,
        "high_water_blocks": low + gap,
        "max_num_batched_tokens": 16,
    }
    assert tokens(simulate(work, components=parts(costs), **options)) == tokens(simulate(work))


def test_the_solutions_parts_run_a_checked_engine(lab):
    options = {"block_size": 4, "num_blocks": 12, "num_host_blocks": 8, "low_water_blocks": 1}
    made = lab(components=parts(), high_water_blocks=3, **options)
    alone = lab(block_size=4, num_blocks=200)
    for engine in (made, alone):
        for name, prompt, output in (("a", 8, 12), ("b", 5, 20), ("c", 11, 7), ("d", 3, 16)):
            engine.add(name, prompt, output)
        engine.run()
        engine.assert_clean()
    assert made.outputs == alone.outputs
    assert made.engine.metrics.num_swapped_out_blocks_total > 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("victim", lambda running, needy: "A"),
        ("preemption", lambda request, num_blocks: "move"),
        ("admission", lambda config: lambda needed, free: free["none"]),
    ],
)
def test_mine_asks_each_of_the_three_parts(field, value):
    """A broken part is called by the run that `minipaged mine` makes."""
    with pytest.raises((ValueError, TypeError)):
        mine_run._serve(replace(Components(), **{field: value}))


def test_mine_swaps_and_sheds_with_the_solutions_parts():
    calls = []

    class Marks(SOLVED["WaterMarks"]):
        def must_shed(self, num_free):
            calls.append(super().must_shed(num_free))
            return calls[-1]

    words = []

    def how(request, num_blocks):
        words.append(SOLVED["swap_or_recompute"](request, num_blocks))
        return words[-1]

    came = mine_run._serve(replace(parts(), preemption=how, admission=Marks))
    assert came.tokens == mine_run._serve(Components()).tokens
    assert True in calls and set(words) == {"swap"}


# --- fixtures and stories ------------------------------------------------------------------------


def test_a_plain_request_has_the_names_of_a_request():
    assert set(PlainRequest.__dataclass_fields__) <= set(dir(Request))
    one, other = requests([["A", 3, 4, 1], ["A", 3, 4, 1]])
    assert one != other  # as requests are: nobody finds one by its values


@pytest.mark.parametrize("exercise_id", ["08.1", "08.2", "08.3"])
def test_pictures_are_drawn_and_rules_quote_no_number_of_a_case(exercise_id):
    check = check_of(catalog().exercise(exercise_id))
    for case in check.visible():
        for number, operation in enumerate(case.operations):
            told = check.explain(Failure(case, number, True, None, "AttributeError"))
            assert not re.search(r"\d", told)
            assert bool(check.picture(case, number)) == (number >= 1 + (exercise_id == "08.2"))
            assert operation.how in ("call", "get", "item")
