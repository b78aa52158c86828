"""Lesson 07: its prose says what its cells print, its oracles agree with the engine, and the
solution's scheduler plans what the reference plans."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaged import LLM, SamplingParams
from minipaged.components import Components
from minipaged.course.bookkeeping import Bookkeeping
from minipaged.course.catalog import catalog
from minipaged.course.checks import lesson_07_answers as answers
from minipaged.course.checks import lesson_07_budget as budgets
from minipaged.course.checks import lesson_07_chunks as chunks
from minipaged.course.checks import lesson_07_scheduler as desks
from minipaged.course.checks import lesson_07_steps as steps
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.checks.lesson_07_flaws import Unified
from minipaged.course.checks.lesson_07_words import COMPLAINTS, FLAWS
from minipaged.sched.scheduler import Scheduler
from minipaged.simulate import simulate
from minipaged.workload import Arrival

ROOT = Path(__file__).parents[1]
FAULTS = ("NameError", "AttributeError", "TypeError")
LESSON = (ROOT / "lessons/07_chunked_prefill.py").read_text(encoding="utf-8")
SOLUTION = (ROOT / "solutions/07_chunked_prefill.py").read_text(encoding="utf-8")
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
    """What the solution's cell of an exercise defines, behind the given cells."""
    namespace: dict[str, object] = {}
    for cell in re.findall(r"# %% given=true\n(.*?)\n# %%", SOLUTION, re.DOTALL):
        exec(cell, namespace)
    pattern = rf'# %% exercise="{re.escape(exercise_id)}"\n(.*?)\n# %% check'
    exec(re.search(pattern, SOLUTION, re.DOTALL)[1], namespace)
    return namespace[catalog().exercise(exercise_id).name]


def says(sentence: str) -> bool:
    """Whether the lesson's prose holds a sentence, however it is broken into lines."""
    return sentence in PROSE


def printed(cell: str) -> str:
    return outputs("lessons/07_chunked_prefill.ipynb")[cell]


# --- prose and cells -----------------------------------------------------------------------------


def test_the_sums_of_the_first_number_are_those_of_the_cost_model():
    ms = {tokens: 1000 * steps.seconds(tokens, tokens) for tokens in (8, 4000, 4008)}
    assert says("Reading the weights takes 16.06 / 3,350 = 4.8 ms, computing a token 16.2 micro")
    assert (round(16.06e3 / 3350, 1), round(16.06e9 / 989e12 * 1e6, 1)) == (4.8, 16.2)
    assert says("2 + 4.8 = 6.8 ms") and round(ms[8], 1) == 6.8
    assert says("4,000 tokens take 65 ms to compute") and round(ms[4000]) == 67
    assert says("Eight more make it 67.1") and round(ms[4008], 1) == 67.1
    assert says("in which ten tokens would have come") and round(ms[4008] / ms[8]) == 10
    crossing = steps.COST.weight_bytes / steps.COST.memory_bandwidth
    assert says("The 16.06 is in both times and cancels: 989,000 / 3,350 = 295 tokens")
    assert round(989_000 / 3_350) == 295
    assert int(crossing / (steps.COST.flop_per_token / steps.COST.peak_flops)) == 295


def test_the_stall_and_its_end_are_told_as_they_are_printed():
    whole, alone, shared = (printed(f"07-code-{number}") for number in (1, 2, 3))
    assert says("In step 10 P is alone: 67.0 ms") and "10:  67.0 ms, 1 requests,  4000" in whole
    assert says("lie 74 ms, eleven times the usual gap") and "others 73.9 ms" in whole
    assert round(73.9 / 6.8) == 11
    assert says("(Steps take 7.0 ms from now on and not 6.8") and "11:   7.0 ms" in whole
    assert says("It has become worse: 87.9 ms") and "others 87.9 ms" in alone
    assert says("512 - 8 = 504 a step: seven chunks of 504 and one of 472")
    assert shared.count("504 of them P's") == 7 and "472 of them P's" in shared
    assert says("The longest gap is 10.3 ms") and "others 10.3 ms" in shared
    assert says("after 82.0 ms instead of 67.0") and "token after 82.0 ms" in shared


def test_claim_e6_and_the_cost_of_chunks():
    assert chunks.handed_out(4000, 512, []) == [512] * 7 + [416]
    assert says("7 · 512 = 3,584, and 416 are left: eight chunks")
    assert says("18,336 tokens read, instead of 4,000") and "18,336" in printed("07-code-9")
    assert says("2.4 GB, beside 128 of weights") and "2.4 GB       128 GB" in printed("07-code-9")
    assert says("Seven further steps with 2 ms each, and 64 tokens of the eight, 1 ms")
    assert round(7 * 2 + 64 * 16.06e9 / 989e12 * 1000) == round(82.0 - 67.0)


def test_the_stories_are_told_as_they_are_printed():
    one, two, three, four = re.split(r"^a prompt", printed("07-code-5"), flags=re.MULTILINE)[1:]
    assert one.splitlines()[1:] == [f"  step {k}: P {'8' if k == 0 else '1*'}" for k in range(4)]
    assert re.findall(r"P (\d\*?)", two)[:4] == ["3", "3", "3", "3*"]
    assert two.count("D0 1*") == 5
    assert "P 6\n" in three and "P 4*" in three
    assert says("The third begins when they have ended, and P beside it")
    assert "step 5: D2 1*  P 1" in four
    for line in four.split("\n"):
        if "step" in line:
            assert 1 <= sum(map(int, re.findall(r"[DP]\d? (\d)", line))) <= 2


def test_the_sweep_has_the_two_sides_that_the_prose_tells_of():
    rows = re.findall(r"^ *([\d,]+) +([\d.]+) +([\d.]+)$", printed("07-code-8"), re.MULTILINE)
    ttft = {int(b.replace(",", "")): float(first) for b, first, _ in rows}
    gap = {int(b.replace(",", "")): float(longest) for b, _, longest in rows}
    for budget in (512, 1024, 2048):
        assert 1.75 < gap[2 * budget] / gap[budget] < 2
        assert 0 < ttft[budget] - ttft[2 * budget] < 10
    for budget in (64, 128):
        assert round(gap[budget]) == round(gap[256]) == 7
        assert round(ttft[budget] / ttft[2 * budget], 1) in (2.0, 2.1)
    assert says("with the figures here 2,048 means gaps of 35 ms") and round(gap[2048]) == 35


def test_only_the_last_that_runs_is_in_the_middle_of_its_prompt():
    """The lesson derives from it that decodes come first."""
    work = [(8, 12), (25, 20), (11, 7), (3, 16), (40, 9), (6, 14)]
    for budget in (7, 10, 16):
        trace = simulate(work, block_size=4, num_blocks=15, max_num_batched_tokens=budget)
        for record in trace.steps:
            assert all(w.sampled for w in record.work[:-1])


def test_the_solution_runs_as_its_prose_says():
    cells = outputs("solutions/07_chunked_prefill.ipynb")
    assert re.search(r"steps, [1-9]\d* preemptions, in chunks", cells["07-code-1"])
    assert "reference: True" in cells["07-code-1"] and "in a step: 10" in cells["07-code-1"]
    assert re.search(r"steps, [1-9]\d* preemptions", cells["07-code-2"])
    assert cells["07-code-2"].endswith("same texts as the reference: True\n")
    right = re.search(r"What is a slot\? - (.*)", cells["07-code-2"])[1]
    check_prompt = LLM("tutor").engine.check_prompt
    questions = re.findall(r"^(.*\?) - ", cells["07-code-2"], re.MULTILINE)
    lengths = [len(check_prompt(question, SamplingParams())) for question in questions]
    assert "Its prompts have 83 to 93 tokens" in SOLUTION
    assert (min(lengths), max(lengths)) == (83, 93)
    large, small = cells["07-code-3"].splitlines()
    assert right in large and right[:10] not in small
    assert "chosen: 1024" in cells["07-code-4"]
    rows = re.findall(r"budget +(\d+): longest step +([\d.]+) ms", cells["07-code-4"])
    assert max(int(b) for b, ms in rows if float(ms) <= 20) == 1024
    assert "instead of 67" in SOLUTION and "from 10 to 67 milliseconds" in SOLUTION


# --- oracles -------------------------------------------------------------------------------------


def served(prompt_len: int, budget: int, decodes_left: list[int]) -> list[int]:
    """What the engine gives a prompt behind others. One with a prompt of one token and so many
    outputs computes one token in each of as many steps."""
    lengths = [([number + 1], left) for number, left in enumerate(decodes_left)]
    lengths.append((list(range(prompt_len)), 1))
    work = [
        Arrival(str(number), prompt, SamplingParams(max_tokens=left, ignore_eos=True), 0)
        for number, (prompt, left) in enumerate(lengths)
    ]
    trace = simulate(work, block_size=4, max_num_batched_tokens=budget)
    last = str(len(decodes_left))
    got = [sum(w.num_tokens for w in r.work if w.request_id == last) for r in trace.steps]
    while got and not got[-1]:
        got.pop()
    return got


@settings(max_examples=80)
@given(st.integers(1, 60), st.lists(st.integers(1, 9), max_size=5), st.integers(1, 12))
def test_chunks_are_those_of_the_engine(prompt_len, decodes, budget):
    assert chunks.handed_out(prompt_len, budget, decodes) == served(prompt_len, budget, decodes)


def test_longest_steps_are_those_of_the_engine():
    """The oracle's sums equal what a simulated run takes, step by step."""
    long = SamplingParams(max_tokens=60, ignore_eos=True)
    work = [Arrival(f"D{k}", [k] * 40, long, 0) for k in range(6)]
    work.append(Arrival("P", list(range(700)), long, 14))
    for budget in (64, 200, 1024):
        trace = simulate(work, max_num_batched_tokens=budget)
        reading = [r for r in trace.steps[14:] if r.computed["P"] < 700]
        contexts = [reading[0].computed[f"D{k}"] for k in range(6)]
        expected = budgets.gaps_of(budget, 700, contexts)
        assert [record.elapsed for record in reading] == pytest.approx(expected, rel=1e-12)


def test_step_seconds_is_the_simulators_cost_model():
    namespace: dict[str, object] = {}
    exec(re.findall(r"# %% given=true\n(.*?)\n# %%", SOLUTION, re.DOTALL)[1], namespace)
    for tokens, read in ((1, 1), (8, 4_000), (512, 512), (4_008, 5_600), (30, 900_000)):
        assert namespace["step_seconds"](tokens, read) == steps.seconds(tokens, read)


def test_answers_are_computed_and_told():
    assert round(answers.WHOLE_MS, 9) == 10 + 0.05 * 8032
    assert (answers.FULL_STEPS, answers.LAST) == (16, 320)
    assert round(answers.CHUNKED_MS, 9) == round(16 * 35.6 + 27.6, 9)
    right = {question.letter: question.answer for question in answers.QUESTIONS}
    assert right["d"] == 2048 - 40 - 3 * 5 - 64
    assert right["c"] == len(chunks.handed_out(8000, 512, [10**6] * 32))
    behind = [len(chunks.handed_out(4000, 512, [10**6] * decodes)) for decodes in (256, 0)]
    assert right["h"] == behind
    with pytest.raises(ValueError, match="needs 4096 tokens and an output"):
        simulate([(4096, 1)], max_model_len=4096)


@pytest.mark.parametrize("scheduler", [Unified, solved("07.2")])
def test_right_schedulers_give_the_oracles_answers(scheduler):
    for case in [*desks.visible(), *desks.hidden(5)]:
        assert desks.answers_of(case, scheduler) == desks.answers_of(case, Scheduler), case.name


def test_every_flaw_fails_in_front_of_the_learner_and_at_grading():
    expected = [desks.answers_of(case, Scheduler) for case in desks.visible()]
    hidden = desks.hidden(7)
    behind = [desks.answers_of(case, Scheduler) for case in hidden]
    for flaw, sentence in FLAWS:
        assert sentence.endswith(".")
        assert [desks.answers_of(case, flaw) for case in desks.visible()] != expected, flaw
        assert [desks.answers_of(case, flaw) for case in hidden] != behind, flaw


def test_misconceptions_fail_in_front_of_the_learner_and_at_grading():
    for module in (chunks, budgets):
        for cases in (module.visible(), *(module.hidden(seed) for seed in range(5))):
            asked = [case.operations[0].args for case in cases]
            right = [value for case in cases for value in module.CHECK.oracle(case)]
            for idea, sentence in module.IDEAS:
                assert [idea(*args) for args in asked] != right, sentence


def test_every_failure_has_a_rule_and_a_step_has_a_picture():
    for case in desks.visible():
        for number, operation in enumerate(case.operations):
            for fault in ("", "KeyError"):
                told = desks.explain(Failure(case, number, None, None, fault))
                assert told and not re.search(r"\b[A-E]\d|\d{2}", told)
            drawn = desks.picture(case, number)
            assert bool(drawn) == (operation.method in ("step", "fail"))
            assert not drawn or "blocks of" in drawn


def test_a_complaint_of_the_desk_is_told_by_what_it_comes_from():
    """Schedulers that do not call `admit`, `put` or `grow` as they have to."""

    class NoAdmit(Unified):
        def admit(self, request):
            pass

    class ByHand(Unified):
        def admit(self, request):
            self.running.append(self.waiting.popleft())

    class NoPut(Unified):
        def compute(self, plan, request, num_new, grown):
            self.left -= num_new

    class PutsMore(Unified):
        def compute(self, plan, request, num_new, grown):
            self.put(plan, request, num_new + 8, grown, False)

    class Served(Unified):
        def in_order(self):
            return [*self.running, *self.waiting]

        def let_in(self, plan):
            pass

    cases, words = desks.visible(), dict(COMPLAINTS)
    for scheduler, complaint in zip((NoAdmit, Served, ByHand, PutsMore, NoPut), words, strict=True):
        case = cases[0 if scheduler is NoAdmit else 2]
        answers = desks.answers_of(case, scheduler)
        number = next(n for n, one in enumerate(answers) if one and type(one[0]) is str)
        told = desks.explain(Failure(case, number, None, answers[number], ""))
        assert complaint in answers[number][0] and told == words[complaint]
    told_of = {fault: desks.explain(Failure(case, 2, None, None, fault)) for fault in FAULTS}
    assert told_of["NameError"] == told_of["AttributeError"] == ""
    assert "`grow` returns it" in told_of["TypeError"]


def test_no_case_reports_a_fault_of_the_desk():
    """A fault is a list with one sentence in place of a step's items or of the queues."""
    for case in [*desks.visible(), *desks.hidden(1), *desks.hidden(2)]:
        pairs = zip(case.operations, desks.answers_of(case, Scheduler), strict=True)
        for operation, answer in pairs:
            if operation.method in ("step", "fail"):
                assert all(type(item) is tuple for item in answer)


# --- the learner's scheduler in the engine -------------------------------------------------------


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 25), st.integers(1, 15)), min_size=1, max_size=7),
    st.sampled_from([1, 3, 4]),
    st.integers(1, 30),
    st.integers(1, 5),
)
def test_the_solutions_scheduler_plans_what_the_reference_plans(work, size, budget, seats):
    config = {"block_size": size, "max_num_batched_tokens": budget, "max_num_seqs": seats}
    config["num_blocks"] = -(-44 // size)
    yours = replace(Components(), scheduler=solved("07.2"))
    ours, theirs = simulate(work, components=yours, **config), simulate(work, **config)
    assert [(r.work, r.tables, r.events) for r in ours.steps] == [
        (r.work, r.tables, r.events) for r in theirs.steps
    ]


def test_the_solutions_scheduler_keeps_a_checked_engine_clean(lab):
    made = lab(
        components=replace(Components(), scheduler=solved("07.2")),
        **{"block_size": 4, "num_blocks": 9, "max_num_batched_tokens": 6},
    )
    for name, prompt, output in (("a", 8, 12), ("b", 5, 20), ("c", 11, 7), ("d", 3, 16)):
        made.add(name, prompt, output)
    made.run()
    made.assert_clean()


def test_bookkeeping_decides_nothing():
    work = [(5, 3)]
    with pytest.raises(NotImplementedError, match="yours to decide"):
        simulate(work, components=replace(Components(), scheduler=Bookkeeping))


def test_put_and_preempt_refuse_what_makes_no_sense():
    class Empty(solved("07.2")):
        def compute(self, plan, request, num_new, grown):
            self.put(plan, request, 0, grown, False)

    class Foreign(solved("07.2")):
        def serve_running(self, plan, budget):
            return budget + self.preempt(self.waiting[0], plan)

    for broken, words in ((Empty, "computes 1 or more"), (Foreign, "is not running")):
        with pytest.raises(ValueError, match=words):
            simulate([(5, 3)], components=replace(Components(), scheduler=broken))


def test_kinds_of_hidden_days():
    """Every seed has days with victims, with several victims' rules, and with one seat."""
    for seed in range(6):
        made = Counter(case.operations[0].args[-1] for case in desks.hidden(seed))
        assert made[0] >= 4 and made[-1] >= 8
        assert check_of(catalog().exercise("07.2")).num_hidden == 16
