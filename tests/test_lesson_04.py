"""Lesson 04: its prose agrees with its cells, its checks with the reference and with torch."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from minipaged.course import expect, plain
from minipaged.course.catalog import catalog
from minipaged.course.checks import (
    lesson_04_answers,
    lesson_04_attention,
    lesson_04_merge,
    lesson_04_plain,
    lesson_04_softmax,
    lesson_04_told,
)
from minipaged.course.checks.base import Close, Failure, check_of
from minipaged.course.fixtures import PlainMeta
from minipaged.course.plain import Array
from minipaged.course.script import run
from minipaged.course.verdict import judge
from minipaged.kernels import reference
from minipaged.kernels.meta import AttentionMeta

ROOT = Path(__file__).parents[1]
STEM = "04_paged_attention"
EXERCISES = ("04.1", "04.2", "04.3", "04.4")
INF = math.inf


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


def solution() -> dict:
    """What the solved cells and the given ones define."""
    notebook = json.loads((ROOT / "solutions" / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    defined: dict = {}
    for cell in notebook["cells"]:
        if cell["id"].startswith("ex-") or "-given-" in cell["id"]:
            exec("".join(cell["source"]), defined)
    return defined


def test_the_lessons_prose_says_what_its_cells_print():
    text = prose("lessons")
    four, high, blocks, play, halves, *later = outputs("lessons")
    picture, step, tail, thirds, bits, cost = later
    assert "exponentials are 1, 2, 4 and 1, their sum is 8" in text
    assert "(1 · 8 + 2 · 4 + 4 · 2 + 1 · 16) / 8 is 5" in text
    assert "[1.0, 2.0, 4.0, 1.0]  sum 8.0" in four and four.endswith(" 5.0\n")
    assert high.startswith("OverflowError") and "[0.125, 0.25, 0.5, 0.125]" in high
    assert "the sum is 1.5, the mixture 1/2 · 8 + 1 · 4 = 8" in text
    assert re.search(r"^ +0 .*\(ln 2\) +0.00 +1.50 +8.00 +5.333$", blocks, re.MULTILINE)
    assert "here 2/4. The sum is 1.5 · 1/2 + 1 + 1/4 = 2" in text
    assert "the mixture 8 · 1/2 + 1 · 2 + 1/4 · 16 = 10, and 10 / 2 = 5" in text
    assert re.search(r"^ +1 .*\(ln 4\) +0.50 +2.00 +10.00 +5.000$", blocks, re.MULTILINE)
    assert "12 blocks" in play and "at 8 and at 12 tokens the sum is lower than before" in text
    points = re.findall(r"^ +\d+ +([\d.]+) +([\d.]+) +[\d.]+$", play, re.MULTILINE)
    tops, sums = ([float(number) for number in column] for column in zip(*points, strict=True))
    assert len(sums) == 12 and tops[0] < tops[1] < tops[2] == tops[-1]
    assert sums[0] > sums[1] > sums[2] and sums[2:] == sorted(sums[2:])
    assert "8 / 1.5 = 5.333" in text and "(4 · 2 + 1 · 16) / 5 = 4.8" in text
    assert "plain mean of both is 5.067" in text and round((8 / 1.5 + 4.8) / 2, 3) == 5.067
    assert re.search(r"first +output 5.333 .*\(ln 3\)\nsecond +output 4.800 .*\(ln 5\)\n", halves)
    assert re.search(r"both +output 5.000 .*\(ln 8\)", halves)
    assert "B's query reads the keys of its 18 tokens" in text
    assert re.search(r"^B +18 tokens, +2 empty +\[2, 3, 4, 9, 12\]$", picture, re.MULTILINE)
    assert "E's queries are rows 2 to 8, and E has 7 keys" in text
    assert "[0, 1, 2, 9]" in step and "[18, 11, 7]" in step
    assert re.search(r"1 0 0 0: +nan\n.*: 5.0\n", tail)
    assert thirds == "0.6000000000000001 and 0.6\n"
    assert "here to six digits behind the point" in text
    assert bits.count("every bit equal: False") == bits.count("below 1e-06") == 5
    assert re.search(r"gathered +every bit equal: True\n", bits)
    assert re.search(r"blocks of 16, twice +every bit equal: True\n$", bits)
    assert "Half a GiB" in text and re.search(r"read once +512 MiB\n", cost)
    assert "1,536 MiB" in cost and "three times" in text
    assert "table of 1 KiB" in cost and 4096 // 16 * 4 == 2**10


def test_where_exponentials_end():
    text = prose("lessons")
    assert "A Python float ends at e to the 709, a float32 at e to the 88" in text
    assert math.exp(709) < INF
    with pytest.raises(OverflowError):
        math.exp(710)
    assert torch.tensor([88.0, 89.0]).exp().isinf().tolist() == [False, True]


def test_the_solutions_prose_says_what_its_cells_print():
    text, printed = prose("solutions"), "".join(outputs("solutions"))
    assert printed.count("same texts as the reference: True") == 2
    assert "every bit equal in most calls:    False" in printed
    assert "a difference above 0.0001 in any: False" in printed
    assert re.search(r"heads_in_turn +0 of 4.*\nunscaled +0 of 4.*\none_short +2 of 4", printed)
    assert "two answers are right, and a third is fluent and wrong" in text
    assert "one_short on preemption: 'I do not know that." in printed
    # what the model answer says of float32
    small = torch.tensor([-103.0, -104.0]).exp()
    assert small[0] > 0 and small[1] == 0
    one = torch.tensor(1.0)
    assert one + torch.tensor(-16.0).exp() > one and one + torch.tensor(-17.0).exp() == one
    assert torch.tensor([138 - 50.0, 139 - 50.0]).exp().isinf().tolist() == [False, True]
    assert (torch.tensor([-53 - 50.0, -54 - 50.0]).exp() > 0).tolist() == [True, False]


def test_prose_is_short_enough():
    source = (ROOT / "lessons" / f"{STEM}.py").read_text(encoding="utf-8")
    words = " ".join(line[1:] for line in source.splitlines() if line.startswith("# "))
    assert len(words.split()) <= 2500


scores_lists = st.lists(st.floats(-2000, 2000) | st.just(-INF), max_size=9)


@given(scores_lists)
def test_the_oracle_of_softmax_is_torchs(scores):
    got = lesson_04_softmax.weights_of(scores)
    if not scores or max(scores) == -INF:
        assert got == [0.0] * len(scores)
    else:
        wanted = torch.tensor(scores, dtype=torch.float64).softmax(dim=0).tolist()
        assert got == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@given(scores_lists, scores_lists, st.data())
def test_the_oracle_of_merge_is_attention_over_both_halves(first, second, data):
    values = [data.draw(st.floats(-9, 9)) for _ in (*first, *second)]
    halves = [_read(first, values[: len(first)]), _read(second, values[len(first) :])]
    (output,), lse = lesson_04_merge.merged(*halves)
    (wanted,), wanted_lse = _read([*first, *second], values)
    assert lse == pytest.approx(wanted_lse, rel=1e-12, abs=1e-9)
    assert output == pytest.approx(0.0 if lse == -INF else wanted, rel=1e-9, abs=1e-9)


def _read(scores, values):
    """Output and LSE by torch; NaN and -inf without keys."""
    row = torch.tensor(scores, dtype=torch.float64)
    lse = row.logsumexp(dim=0) if scores else torch.tensor(-INF)
    output = (row.softmax(dim=0) * torch.tensor(values, dtype=torch.float64)).sum()
    return [float(output) if lse > -INF else math.nan], float(lse)


def as_array(tensor: torch.Tensor) -> Array:
    return plain.decode(plain.encode(tensor))


@st.composite
def steps(draw):
    """A step as tensors: q, pools with NaN where nothing was written, and the meta's three."""
    size, kv_heads, group, dim = (draw(st.integers(1, 4)) for _ in range(4))
    rows = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=3))
    rows = [(keys, min(queries, max(keys, 1))) for keys, queries in rows]
    width = max(1, -(-max(keys for keys, _ in rows) // size))
    blocks = draw(st.permutations(range(len(rows) * width + 1)))
    tables = torch.tensor(blocks[: len(rows) * width]).view(len(rows), width)
    torch.manual_seed(draw(st.integers(0, 99)))
    pools = torch.full((2, len(blocks), size, kv_heads, dim), torch.nan)
    for row, (keys, _) in enumerate(rows):
        for p in range(keys):
            pools[:, tables[row, p // size], p % size] = torch.randn(2, kv_heads, dim)
    starts = torch.tensor([0, *(queries for _, queries in rows)]).cumsum(0)
    q = torch.randn(int(starts[-1]), kv_heads * group, dim) * draw(st.sampled_from((1, 20)))
    return (q, pools[0], pools[1]), (starts, torch.tensor([keys for keys, _ in rows]), tables)


@given(steps())
def test_the_plain_attention_is_torchs_and_the_references(step):
    (q, k_pool, v_pool), meta = step
    starts, seq_lens, tables = meta
    call = lesson_04_plain.Call(*map(as_array, (q, k_pool, v_pool, *meta)))
    got = plain.to_tensor(lesson_04_plain.attention(call))
    group = q.shape[1] // k_pool.shape[2]
    for row, context in lesson_04_plain.contexts(call):
        assert 0 <= context <= seq_lens[row]
    for row, keys in enumerate(seq_lens.tolist()):
        positions = torch.arange(keys)
        size = k_pool.shape[1]
        at = tables[row][positions // size], positions % size
        k, v = (pool[at].repeat_interleave(group, dim=1) for pool in (k_pool, v_pool))
        queries = q[starts[row] : starts[row + 1]].transpose(0, 1)
        own = torch.arange(keys - queries.shape[1], keys)[:, None]
        wanted = scaled_dot_product_attention(
            queries, k.transpose(0, 1), v.transpose(0, 1), attn_mask=positions <= own
        )
        wanted = wanted.transpose(0, 1) if keys else torch.zeros_like(queries.transpose(0, 1))
        assert torch.allclose(got[starts[row] : starts[row + 1]], wanted, rtol=1e-4, atol=1e-5)
    whole = reference.paged_attention(q, k_pool, v_pool, AttentionMeta(*meta))
    assert torch.allclose(got, whole, rtol=1e-4, atol=1e-5)


@given(steps())
def test_the_solution_is_the_reference(step):
    (q, k_pool, v_pool), meta = step
    got = SOLUTION["paged_attention"](q, k_pool, v_pool, AttentionMeta(*meta))
    wanted = reference.paged_attention(q, k_pool, v_pool, AttentionMeta(*meta))
    assert torch.allclose(got, wanted, rtol=1e-4, atol=1e-5)


@given(steps())
def test_where_the_blocks_lie_changes_no_bit(step):
    """Answer f of 04.4, and claim C18."""
    (q, k_pool, v_pool), (starts, seq_lens, tables) = step
    order = torch.randperm(len(k_pool))
    moved = order.argsort()[tables]
    one = SOLUTION["paged_attention"](q, k_pool, v_pool, AttentionMeta(starts, seq_lens, tables))
    other = SOLUTION["paged_attention"](
        q, k_pool[order], v_pool[order], AttentionMeta(starts, seq_lens, moved)
    )
    assert torch.equal(one, other)


SOLUTION = solution()


def test_the_lent_meta_has_the_fields_of_the_engines():
    assert PlainMeta._fields == tuple(AttentionMeta.__slots__)[:3]


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_solution_passes_every_case(exercise_id):
    exercise = catalog().exercise(exercise_id)
    check, subject = check_of(exercise), SOLUTION[exercise.name]
    for cases in (check.visible(), *map(check.hidden, range(20))):
        seen = [run(case.operations, subject) for case in cases]
        assert [v.problem for v in judge(check, cases, seen, exercise.name) if not v.passed] == []


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_number_of_hidden_cases_is_true_for_every_seed(exercise_id):
    check = check_of(catalog().exercise(exercise_id))
    assert {len(check.hidden(seed)) for seed in range(20)} == {check.num_hidden}


def test_hidden_steps_share_no_block():
    """A step in which two requests wrote to one slot would have no right answer."""
    for seed in range(20):
        for case in lesson_04_attention.hidden(seed):
            call = lesson_04_told.call_of(case)
            width, size = call.tables.shape[1], call.k_pool.shape[1]
            tables = list(call.tables.numbers())
            used = [
                block
                for row, keys in enumerate(call.seq_lens.numbers())
                for block in tables[row * width :][: -(-int(keys) // size)]
            ]
            assert len(set(used)) == len(used)


STRANGE = (None, -1, 0.5, math.nan, "no", "DCBA", [[1]], plain.Other("Thing"))
TENSORS = tuple(
    Array.of("float32", shape, [number] * n)
    for shape, n in (((0,), 0), ((1, 1, 1), 1), ((1, 6, 1), 6))
    for number in (1.0, math.nan)
)


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_whatever_comes_back_is_explained_without_an_error(exercise_id):
    check = check_of(catalog().exercise(exercise_id))
    for case in check.visible():
        expected = iter(check.oracle(case))
        for number, operation in enumerate(case.operations):
            right = None if operation.keep else next(expected)
            assert isinstance(check.picture(case, number), str)
            for got in (*STRANGE, *TENSORS):
                assert isinstance(check.explain(Failure(case, number, right, got, "")), str)
            for fault in ("IndexError", "TypeError", "KeyError", "OverflowError", "ValueError"):
                assert isinstance(check.explain(Failure(case, number, right, None, fault)), str)


def test_each_wrong_idea_differs_from_the_right_one_in_a_visible_case():
    for ways, sentence in lesson_04_told.MISTAKES:
        if ways == lesson_04_plain.RIGHT:
            continue
        differs = []
        for case in lesson_04_attention.visible():
            call = lesson_04_told.call_of(case)
            try:
                wrong = lesson_04_plain.attention(call, ways)
            except (IndexError, ZeroDivisionError):
                continue
            differs.append(not expect.matches(Close(lesson_04_plain.attention(call), 1e-4), wrong))
        assert any(differs), sentence


def named(exercise_id: str, name: str):
    """A visible case and what is expected of it."""
    check = check_of(catalog().exercise(exercise_id))
    case = next(case for case in check.visible() if case.name == name)
    return case, check.oracle(case)


def test_cases_32_to_36_are_visible_cases():
    _, (heads,) = named("04.3", "shared KV heads")
    assert list(heads.value.numbers()) == [0, 0, 0, 1, 1, 1]
    case, (begun,) = named("04.3", "a begun block")
    nans = [number != number for number in case.operations[1].args[2].numbers()]
    assert list(case.operations[0].args[1].numbers()) == [5] and sum(nans) == 3
    assert all(map(math.isfinite, begun.value.numbers()))
    case, (none,) = named("04.3", "no keys")
    assert list(case.operations[0].args[1].numbers()) == [5, 0, 3]
    rows = list(none.value.numbers())
    assert rows[2:4] == [0, 0] and all(map(math.isfinite, rows))
    case, (by_number,) = named("04.3", "by block number")
    assert list(case.operations[0].args[2].numbers()) == [3, 1]
    assert list(by_number.value.numbers()) == [2.0]
    case, (_, output, lse) = named("04.2", "an empty half")
    assert case.operations[0].args[0] == ([3.0], math.log(2))
    assert (output.value, lse.value) == (3.0, math.log(2))
    _, (_, *zeros, lse) = named("04.2", "both empty")
    assert [zero.value for zero in zeros] == [0.0, 0.0] and lse.value == -INF


def test_the_answers_are_right():
    right = {question.letter: question.answer for question in lesson_04_answers.QUESTIONS}
    exps = torch.tensor([2.0, 4, 8, 2])
    assert right["a"] == pytest.approx(float(exps.log().sub(exps.log().max()).exp().sum()))
    assert SOLUTION["merge"](([2.0], math.log(3)), ([6.0], 0.0))[0] == pytest.approx([right["b"]])
    suspect = SOLUTION["suspect"]
    assert suspect([0], [[1, 2, 3]], [[3, 5, 10]], sequence=0, threads=2) == right["c"]
    assert right["e"] * 2**20 == 131_072 * 2048
    blocks_read = copy_written = copy_read = right["e"]
    assert right["g"] == blocks_read + copy_written + copy_read
    entries = torch.zeros(32, 2048 // 16, dtype=torch.int32)
    assert right["h"] * 2**10 == entries.nbytes


CALLS = (
    ([1], [[1000]], [[5]], 0, 1),
    ([1], [[-math.log(2), -math.log(2)]], [[2, 4]], 0, 2),
    ([0, 1], [[3, 3], [math.log(1 / 4), math.log(3 / 4)]], [[7, 7], [4, 8]], 1, 1),
    ([1], [[0, 0]], [[2, 4]], 0, 1),
)


def test_each_call_of_question_d_shows_one_fault():
    """With only that fault mended the call is right, and with only another one it is not."""
    for call, letter in zip(CALLS, lesson_04_answers.FAULTS, strict=True):
        right = mended("ABCD")(*call)
        for one in "ABCD":
            try:
                came = mended(one)(*call)
            except OverflowError:
                came = None
            assert (came == pytest.approx(right)) == (one == letter), (call, one)


def mended(faults: str):
    """suspect with these faults mended."""

    def attention(queries, keys, values, sequence, threads):
        query = queries[sequence if "A" in faults else 0]
        scores = [query * key for key in keys[sequence]]
        top = max(scores) if "B" in faults else 0.0
        weights = [math.exp(score - top) for score in scores]
        products = [w * value for w, value in zip(weights, values[sequence], strict=True)]
        first = 0 if "C" in faults else threads - 1
        step = 1 if "C" in faults else threads
        total = sum(weights[first::step]) if "D" in faults else 1.0
        return sum(products[first::step]) / total

    return attention


@pytest.mark.parametrize("call", CALLS[1:])
def test_the_twin_with_no_fault_mended_is_suspect(call):
    assert mended("")(*call) == SOLUTION["suspect"](*call)


def test_suspect_overflows_in_the_first_call():
    with pytest.raises(OverflowError):
        SOLUTION["suspect"](*CALLS[0])


def test_each_wrong_answer_differs_from_the_right_one_and_from_the_others():
    for question in lesson_04_answers.QUESTIONS:
        known = [mistake.answer for mistake in question.mistakes]
        assert len({*known, question.answer}) == len(known) + 1


def test_the_checks_load_neither_torch_nor_numpy():
    code = (
        "import sys\n"
        "from minipaged.course.checks.lesson_04 import CHECKS\n"
        "for check in CHECKS.values():\n"
        "    for case in (*check.visible(), *check.hidden(0)):\n"
        "        check.oracle(case)\n"
        "print(sorted({'torch', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
