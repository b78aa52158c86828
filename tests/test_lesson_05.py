"""Lesson 05: its prose agrees with its cells, its checks with the engine's manager and beams."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from minipaged.beam_scores import BeamSearchParams
from minipaged.cache.table import BlockTable
from minipaged.components import Components
from minipaged.config import SamplingParams
from minipaged.course import plain
from minipaged.course.catalog import catalog
from minipaged.course.checks import lesson_05_answers, lesson_05_beams
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.script import run
from minipaged.course.verdict import judge

ROOT = Path(__file__).parents[1]
STEM = "05_copy_on_write"
EXERCISES = ("05.1", "05.2", "05.3", "05.4")


def prose(folder: str) -> str:
    """A source's text, line breaks and comment signs taken out."""
    text = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    return re.sub(r"\n# ?(?:> )?(?:  )?", " ", text)


def outputs(folder: str) -> list[str]:
    """What each code cell of a stored notebook printed or shows as text."""
    notebook = json.loads((ROOT / folder / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(map(_text, cell["outputs"])) for cell in cells]


def _text(output: dict) -> str:
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")))


@pytest.fixture(scope="module")
def solution() -> dict:
    """What the solved cells define."""
    notebook = json.loads((ROOT / "solutions" / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    defined: dict = {}
    for cell in notebook["cells"]:
        if cell["id"].startswith("ex-"):
            exec("".join(cell["source"]), defined)
    return defined


def test_the_lessons_prose_says_what_its_cells_print():
    text = prose("lessons")
    first, picture, late, border, play, branch, chance, by_hand, shared, saved = outputs("lessons")
    assert "all four tables read `[0, 1, 2]`" in text and "2 + 4 = 6 blocks" in text
    assert "step 1: copies [(2, 3), (2, 4), (2, 5)], 6 blocks held" in first
    assert "`A~3`, the last writer, keeps block 2" in text and "A~3  [0, 1, 2]" in first
    assert "+ + D A B C" in picture
    assert "The three that copied are wrong" in text
    assert [late.count("wrong"), late.count("the same")] == [3, 1]
    assert "sample 3" in late.splitlines()[-1] and "the same" in late.splitlines()[-1]
    assert re.findall(r"prompt (\d+): (\d) copies, (\d) blocks", border) == [
        ("46", "3", "6"),
        ("47", "3", "6"),
        ("48", "0", "7"),
        ("49", "3", "7"),
        ("50", "3", "7"),
    ]
    assert "3 copies of a block, 48 slots in all" in play
    assert 3 * 16 * 131_072 == 6 * 2**20 and 3 * 128 * 131_072 == 48 * 2**20
    assert "under 4 microseconds" in text and 3.5e-6 < 2 * 6 * 2**20 / 3_350e9 < 4e-6
    assert "One copy, by whoever writes first; none if the parent is gone" in text
    assert re.findall(r"copies: (\d)", branch) == ["1", "0"]
    goes_on = re.findall(r"B goes on with (.*)", branch)
    assert "B's answer is the same both times" in text and goes_on[0] == goes_on[1]
    assert re.match(r"[1-9]\d* preemptions, the same tokens: True\n", chance)
    assert "different answers: True" in chance
    for words, sums in (("ba (-1.25)", "'ba': -1.25"), ("ab (-1.75)", "'ab': -1.75")):
        assert words in text and sums in by_hand
    assert "bab (-1.75) and bac (-2.5)" in text
    assert "'bab': -1.75, 'bac': -2.5" in by_hand and "'aba': -2.75" in by_hand
    assert shared.count("4 held") == 3 and "Four blocks after each step" in text
    assert saved_in(saved) == [45.8, 49.5, 47.3, 58.2]
    assert re.findall(r"a prompt of (\d+) tokens", saved) == ["93", "89"]
    assert re.findall(r"(\d+) characters equal", saved) == ["60", "0", "60", "42"]
    assert "equal for 42 characters" in text and "equal for all 60" in text
    assert "49.5 and 58.2 % for beams, 45.8 and 47.3 % for samples" in text


def saved_in(printed: str) -> list[float]:
    return [float(number) for number in re.findall(r"saved (\d+\.\d)%", printed)]


def test_the_sums_in_the_prose():
    text = prose("lessons")
    slots = 38 + 60 - 1
    alone, full = 4 * math.ceil(slots / 16), 38 // 16
    held = full + 4 * (math.ceil(slots / 16) - full)
    assert (slots, alone, held) == (97, 28, 22) and round(100 * (alone - held) / alone) == 21
    assert "7 blocks each, 28 in all" in text and "saves 6 of 28, 21 %" in text


def test_the_steps_by_hand_are_what_the_check_finds():
    """The lesson's table of a, b and c, as beams and rows of exercise 05.3."""
    lines = re.findall(
        r'^    "([abc]*)": \((.*)\),$', (ROOT / "lessons" / f"{STEM}.py").read_text(), re.M
    )
    after = {
        text: dict(zip((1, 2, 3), map(float, row.split(", ")), strict=True)) for text, row in lines
    }
    names, beams, parents = {1: "a", 2: "b", 3: "c"}, [("", 0.0)], []
    for _ in range(3):
        rows = [after[text] for text, _ in beams]
        step = lesson_05_beams.best([([], total) for _, total in beams], rows, 2)
        parents.append([parent for parent, _, _ in step])
        beams = [(beams[p][0] + names[token], total) for p, token, total in step]
    assert all(sum(map(math.exp, row.values())) < 1 for row in after.values())
    assert parents == [[0, 0], [1, 0], [0, 0]]
    assert beams == [("bab", -1.75), ("bac", -2.5)]


def test_the_tutors_beams_are_as_the_lesson_says():
    from minipaged import LLM

    search = BeamSearchParams(beam_width=4, max_tokens=60, ignore_eos=True)
    llm = LLM("tutor", block_size=16, num_blocks=64)
    lengths, texts = [], []
    for question in ("What is a block table?", "Tell me about cats"):
        lengths.append(len(llm.engine.check_prompt(question, SamplingParams())))
        texts.append([beam.text for beam in llm.beam_search(question, search)[0]])
    assert lengths == [93, 89] and len({text[0] for text in texts[0]}) > 1
    assert len({text[:42] for text in texts[1]}) == 1 < len({text[:43] for text in texts[1]})


def test_the_solutions_prose_says_what_its_cells_print():
    text, printed = prose("solutions"), "".join(outputs("solutions"))
    assert printed.count("as the reference: True") == 5
    assert printed.count("misread by nobody") == 4
    assert "ForkingTable 3 copies, misread by samples []" in printed
    assert "Skips        0 copies, misread by samples [0, 1, 2]" in printed
    assert "the last one's first ten tokens" in text and 48 - 38 == 10
    assert re.findall(r"^prompt (\d\d): (\d) copies, the same", printed, re.M) == [
        ("38", "4"),
        ("44", "3"),
        ("48", "1"),
    ]
    wrong = "other tokens for ['A 0', 'A 1', 'A 2', 'branch 0']"
    assert printed.count(wrong) == 2 and "Sample 3, the last to write, is right" in text
    assert printed.count("double free") == 2 and printed.count("step 2: InvariantError") == 2
    table = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+)%$", printed, re.M)
    assert [int(row[0]) for row in table] == [1, 4, 16, 64]
    assert {int(forks) - int(drops) for _, forks, drops, *_ in table} == {3}
    copies, slots, saved = ([float(row[k]) for row in table] for k in (3, 4, 5))
    assert copies[0] == 0 and copies == sorted(copies) and slots == sorted(slots)
    assert saved == sorted(saved, reverse=True)


def test_prose_is_short_enough():
    source = (ROOT / "lessons" / f"{STEM}.py").read_text(encoding="utf-8")
    words = " ".join(line[1:] for line in source.splitlines() if line.startswith("# "))
    assert len(words.split()) <= 2500


# the solutions


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_solution_passes_every_case(solution, exercise_id):
    exercise = catalog().exercise(exercise_id)
    check, subject = check_of(exercise), solution[exercise.name]
    for cases in (check.visible(), *map(check.hidden, range(20))):
        seen = [run(case.operations, subject) for case in cases]
        assert [v.problem for v in judge(check, cases, seen, exercise.name) if not v.passed] == []


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_number_of_hidden_cases_is_true_for_every_seed(exercise_id):
    check = check_of(catalog().exercise(exercise_id))
    assert {len(check.hidden(seed)) for seed in range(20)} == {check.num_hidden}


def test_hidden_scripts_copy_and_are_refused_but_do_nothing_else_wrong():
    check = check_of(catalog().exercise("05.1"))
    copies, refused = 0, set()
    for case in check.hidden(0):
        asked = [o for o in case.operations if not o.keep]
        for operation, right in zip(asked, check.oracle(case), strict=True):
            copies += type(right) is tuple
            if type(right).__name__ == "Raises":
                refused.add((operation.method, right.kind))
    assert copies >= 12 and refused == {("write", "MemoryError")}


STRANGE = (None, -1, "no", [[1]], (), ((1,),), [1, 2, 3], [(0, 1)], {1: 2}, 1e308, plain.Other("T"))


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_whatever_comes_back_is_explained_without_an_error(exercise_id):
    check = check_of(catalog().exercise(exercise_id))
    for case in check.visible():
        expected = iter(check.oracle(case))
        for number, operation in enumerate(case.operations):
            right = None if operation.keep else next(expected)
            assert isinstance(check.picture(case, number), str)
            for got in STRANGE:
                assert isinstance(check.explain(Failure(case, number, right, got, "")), str)
            for fault in ("IndexError", "TypeError", "KeyError", "MemoryError"):
                assert isinstance(check.explain(Failure(case, number, right, None, fault)), str)


def test_cases_10_and_12_are_visible():
    cases = {case.name: case for case in check_of(catalog().exercise("05.1")).visible()}
    oracle = check_of(catalog().exercise("05.1")).oracle
    tail = [
        got for got in oracle(cases["a shared partial tail"]) if got is None or type(got) is tuple
    ]
    assert tail[-2:] == [(1, 2), None]  # one copy for two writes
    assert 2 in oracle(cases["a shared partial tail"])  # 5 blocks, 3 held
    border = oracle(cases["at a border"])
    assert not [got for got in border if type(got) is tuple] and [0, 1, 3] in border
    others = oracle(cases["not the first blocks"])
    assert (2, 3) in others and [3] in others  # a shared block whose number is not its entry's
    gone = oracle(cases["the parent is gone"])
    assert not [got for got in gone if type(got) is tuple]
    assert oracle(cases["freed after a copy"])[-4:] == [0, 0, 0, 4]


def test_what_the_copies_of_question_g_move(lab):
    moved = []
    for size in (4, 16, 32):
        one = lab(block_size=size, num_blocks=200)
        one.add("a", 101, max_tokens=3, n=4, temperature=1.0, seed=5)
        one.run()
        moved.append(one.engine.metrics.num_copied_blocks_total * size)
    (asked,) = [q for q in lesson_05_answers.QUESTIONS if q.letter == "g"]
    assert asked.answer == moved


def test_each_wrong_answer_differs_from_the_right_one_and_from_the_others():
    for question in lesson_05_answers.QUESTIONS:
        wrong = [repr(mistake.answer) for mistake in question.mistakes]
        assert len(set(wrong)) == len(wrong) and repr(question.answer) not in wrong


def test_the_solutions_table_serves_a_checked_engine(lab, solution):
    """Samples, preemption, reuse and growth with every invariant checked after each step."""
    runs = []
    for table in (BlockTable, solution["ForkingTable"]):
        one = lab(replace(Components(), block_table=table), block_size=4, num_blocks=9)
        for name, prompt, n in (("a", 6, 3), ("b", 9, 1), ("c", 5, 2)):
            one.add(name, prompt, max_tokens=9, n=n, temperature=1.0, seed=5)
        one.run()
        one.assert_clean()
        runs.append((one.outputs, one.engine.metrics.num_copied_blocks_total))
    assert runs[0] == runs[1] and runs[0][1] > 0


def test_the_checks_load_neither_torch_nor_numpy():
    code = (
        "import sys\n"
        "from minipaged.course.checks.lesson_05 import CHECKS\n"
        "for check in CHECKS.values():\n"
        "    for case in (*check.visible(), *check.hidden(0)):\n"
        "        check.oracle(case)\n"
        "print(sorted({'torch', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
