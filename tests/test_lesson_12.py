"""Lesson 12: its prose says what its cells print, its oracles agree with counting by hand and with
torch, and each fault of the suspect kernel shows in its own case.

Triton never comes into this process: kernels run in a process of their own, or in the notebooks.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from minipaged.course import expect
from minipaged.course.catalog import catalog
from minipaged.course.checks import (
    lesson_12_answers,
    lesson_12_cost,
    lesson_12_cost_told,
    lesson_12_count,
    lesson_12_merge,
    lesson_12_plain,
    lesson_12_suspect,
)
from minipaged.course.checks.base import check_of
from minipaged.kernels.splits import choose_split_size, num_splits

ROOT = Path(__file__).parents[1]
STEM = "12_split_kv"
INF = math.inf
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton has wheels for Linux only"
)


def prose(folder: str) -> str:
    """A source's text, line breaks and comment signs taken out."""
    text = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    return " ".join(re.findall(r"^# ?(?:> ?)?(.*)$", text, re.MULTILINE))


def outputs(folder: str) -> dict[str, str]:
    """What each code cell of a stored notebook printed or shows as text."""
    notebook = json.loads((ROOT / folder / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return {cell["id"]: "".join(map(_text, cell["outputs"])) for cell in cells}


def _text(output: dict) -> str:
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")))


TEXT, TASKS = prose("lessons"), prose("solutions")
TOLD = outputs("lessons")
LLAMA, H100 = lesson_12_cost.LLAMA_3_8B, lesson_12_cost.H100
CARDS = {
    "A100-80G": (312, 2039),
    "H100": (989, 3350),
    "H200": (989, 4800),
    "L40S": (362, 864),
    "A10": (125, 600),
    "RTX 4090": (165, 1008),
}


def row(cell: str, name: str) -> list[float]:
    """The numbers behind a name in a printed table."""
    line = next(line for line in TOLD[cell].splitlines() if line.strip().startswith(name))
    found = re.findall(r"-?\d[\d,]*(?:\.\d+)?", line.replace(name, "", 1))
    return [float(one.replace(",", "")) for one in found]


def says(text: str) -> bool:
    return text in TEXT


# --- prose and cells -----------------------------------------------------------------------------


def test_how_many_work():
    assert says("2 · 8 = 16 of 132, that is 12 %") and round(100 * 16 / 132) == 12
    assert says("while 116 stand by") and 132 - 16 == 116
    assert says("16 pieces of 1,024 keys, there are 256 programs") and 16_384 // 16 == 1024


def test_two_numbers_tell_what_three_do():
    first, second = (math.log(2), 1.5, 8.0), (math.log(4), 1.25, 6.0)
    for (top, total, mixture), output, lse in ((first, 5.333, 3), (second, 4.8, 5)):
        assert mixture / total == pytest.approx(output, abs=5e-4)
        assert top + math.log(total) == pytest.approx(math.log(lse))
    pieces = [(m / t, top + math.log(t)) for top, t, m in (first, second)]
    merged, lse = lesson_12_merge.joined(*(([out], lse) for out, lse in pieces))
    assert merged == pytest.approx([5.0]) and lse == pytest.approx(math.log(8))
    assert says("8 / 1.5 = 5.333, and ln 2 + ln 1.5 = ln 3. From the second: 6 / 1.25 = 4.8")


def test_three_pieces_with_an_empty_one():
    said = TOLD["12-code-2"]
    assert "all pieces:              nan" in said and "without the empty piece: 3.857" in said
    assert pytest.approx(3.857, abs=5e-4) == (2 * 6 + 5 * 3) / 7
    assert says("(2 · 6 + 5 · 3) / 7 = 3.857") and "1.946 = ln 7" in said
    assert math.log(7) == pytest.approx(1.946, abs=5e-4)


def test_what_merging_costs():
    moved = 16 * 32 * 129 * 4 * 2
    assert moved == 516 * 1024 and says("516 KiB for a sequence")
    long, short = 16_384 * 4096, 512 * 4096
    assert (long, short) == (64 * 2**20, 2 * 2**20)
    assert says("merging adds 0.8 %") and round(100 * moved / long, 1) == 0.8
    assert says("beside 2 MiB: 25 %") and round(100 * moved / short) == 25


def test_the_rule_as_it_is_told():
    size = choose_split_size(2, 8, 16_384, tile=64, num_sms=132)
    assert (size, num_splits(16_384, size)) == (16 * 64, 16)
    assert says("so 17 pieces. 256 tiles in 17 pieces are 16 tiles each, rounded up")
    assert (math.ceil(264 / 16), math.ceil(256 / 17)) == (17, 16)
    assert says("From 14 sequences on nothing is split: 112 programs")
    assert 13 * 8 < 0.8 * 132 <= 14 * 8
    assert row("12-code-3", "13 ")[0] == 3 and row("12-code-3", "14 ")[0] == 1
    assert row("12-code-3", "2 ") == [16, 100, 12.12]
    assert says("(85 and 97 % are busy)")
    assert [row("12-code-3", f"{n} ")[1] for n in (14, 16)] == [84.85, 96.97]
    assert says("With 256 keys nothing is ever split")
    for batch in range(1, 20):
        for sms in (72, 108, 132):
            size = choose_split_size(batch, 8, 256, tile=64, num_sms=sms)
            assert num_splits(256, size) == 1


def test_a_fixed_size_keeps_every_bit():
    by_batch, fixed = TOLD["12-code-4"].splitlines()
    assert "pieces [2, 1]  every bit equal: False" in by_batch
    assert "pieces [4, 4]  every bit equal: True   gap 0" in fixed
    assert says("How it is split changes the rounding, here in the seventh digit")
    assert "below 1e-06" in by_batch


def test_the_count_of_a_decode_is_the_oracles():
    for batch in (1, 8, 64, 128, 256):
        cost = lesson_12_count.cost(LLAMA, [(1, 2048)] * batch, H100)
        _, moved, computed, intensity = row("12-code-5", f"{batch:5}".strip() + " ")
        assert moved == round(cost["bytes"] / 1e9, 1)
        assert computed == round(cost["flops"] / 1e9)
        assert intensity == round(cost["flops"] / cost["bytes"], 1)
    assert says("from 128 to 256 it gains little")
    assert row("12-code-5", "weights") == [7.50, 15.0]


def test_the_weights_are_those_of_the_model():
    """8.030 billion parameters are the weights, the table of embeddings, and norms."""
    numbers = lesson_12_count.count_bytes(LLAMA, [(0, 0)]) // 2
    norms = 65 * 4096
    assert numbers + 128_256 * 4096 + norms == pytest.approx(8.030e9, rel=1e-4)
    assert says("half a billion numbers more") and round(128_256 * 4096 / 1e9, 1) == 0.5


def test_balances_of_the_cards_and_claim_c7():
    for name, (tera, giga) in CARDS.items():
        balance, *shares = row("12-code-6", f"{name} ")
        assert balance == round(1000 * tera / giga)
        for batch, share in zip((1, 8, 64, 128, 256), shares, strict=True):
            assert share == round(100 * min(1, batch * giga / 1000 / tera))
    balance = 989 / 3.35
    assert round(balance) == 295 and says("989 / 3.35 = 295 FLOP a byte")
    assert says("a batch of 64 brings 64, which is 22 %")
    assert says("it is 22 % at most with 64 sequences, and 128 / 295 = 43 % with 128")
    assert (round(12800 / balance), round(6400 / balance)) == (43, 22)
    assert says("the intensity of 128 is 41.7, and the limit 14 %")
    assert round(4170 / balance) == 14


def test_marks_move_left_with_the_context_and_with_kv_heads():
    marks = dict(re.findall(r"(batch \d+) at ([\d.]+)", TOLD["12-code-7"]))
    assert {name: float(at) for name, at in marks.items()} == {
        f"batch {batch}": pytest.approx(_intensity([(1, 512)] * batch), rel=1e-3)
        for batch in (1, 8, 64, 256)
    }
    for batch in (8, 64, 256):
        assert _intensity([(1, 8192)] * batch) < _intensity([(1, 512)] * batch)
        many = LLAMA | {"kv_heads": 32}
        assert _intensity([(1, 512)] * batch, many) < _intensity([(1, 512)] * batch)


def _intensity(work: list[tuple[int, int]], model: dict | None = None) -> float:
    cost = lesson_12_count.cost(model or LLAMA, work, H100)
    return cost["flops"] / cost["bytes"]


def test_attention_alone_and_prefill():
    key_flops, key_bytes = 32 * 4 * 128, 2 * 8 * 128 * 2
    assert (key_flops, key_bytes, key_flops / key_bytes) == (16_384, 4096, 4)
    assert says("16,384 FLOP a layer and are 4,096 bytes. That is 4")
    assert _intensity([(1, 10**9)] * 64) == pytest.approx(4, rel=1e-3)
    assert says("Its intensity is above 1,900: on every card of the table")
    assert _intensity([(2048, 2048)]) > 1900 > max(1000 * t / g for t, g in CARDS.values())
    spare = 295 / _intensity([(1, 2048)] * 8)
    assert says("at batch 8 an H100 could compute some forty times as much") and 37 < spare < 43


def test_a_run_is_counted_step_by_step():
    from minipaged.simulate import simulate

    work = [(700, 40), (300, 30), (1200, 20), (150, 60), (500, 50), (900, 10), (60, 60), (400, 30)]
    trace = simulate(work, max_num_batched_tokens=512, block_size=64)
    costs = [
        lesson_12_count.cost(
            LLAMA,
            [(one.num_tokens, one.start_position + one.num_tokens) for one in record.work],
            H100,
        )
        for record in trace.steps
    ]
    chunks = [one.num_tokens for one in trace.steps[8].work if one.num_tokens > 1]
    assert len(chunks) == 1 and len(trace.steps[8].work) == 8 and says("The picture shows step 8")
    full = [sum(one.num_tokens for one in record.work) == 512 for record in trace.steps]
    assert [cost["bound"] == "compute" for cost in costs] == full
    assert says("Full budgets are bound by computing, steps of decodes by memory")
    total = 1e3 * sum(cost["seconds"] for cost in costs)
    weights = 1e3 * len(costs) * lesson_12_count.count_bytes(LLAMA, [(0, 0)]) / 3350e9
    said = f"{len(costs)} steps, at least {total:.0f} ms; weights alone {weights:.0f} ms"
    assert said in TOLD["12-code-9"]
    assert says(f"would by itself take {weights:.0f} ms, where all takes {total:.0f}")
    few = sum(sum(one.num_tokens for one in record.work) <= 8 for record in trace.steps)
    assert says(f"Reading the weights {len(costs)} times") and says(f"{few} times they are read")
    [prompt] = chunks
    assert says(f"So is step 8: the {prompt} tokens of a prompt")
    assert costs[8]["seconds"] / costs[9]["seconds"] == pytest.approx(1, abs=2e-3)


def test_the_model_answer_of_the_open_question_adds_up():
    weights, context = 15.0, 2048 * 131_072 / 1e9
    assert "1.88 GB for each token with 8, 0.47 GB with 32" in TASKS
    assert (round(weights / 8, 2), round(weights / 32, 2)) == (1.88, 0.47)
    assert "0.27 GB a token in both" in TASKS and round(context, 2) == 0.27
    assert "costs 2.15 GB before and 0.74 GB after" in TASKS
    before, after = 1.88 + 0.27, 0.47 + 0.27
    assert (round(before, 2), round(after, 2)) == (2.15, 0.74)
    assert round(after + context / 4, 2) == 0.81 and "0.81 GB in place of" in TASKS
    assert "some six times slower" in TASKS
    assert (before - 0.47) / context == pytest.approx(6.3, abs=0.1)
    assert "16 · 4,096 = 65,536 bytes" in TASKS and 65_536 / 8 == 8192 and 65_536 / 4 == 16_384
    assert "less than one byte in 1,000" in TASKS and 8 * 8 < 65_536 / 1000
    assert "8 of 2,048 tokens, 0.4 %" in TASKS and round(100 * 8 / 2048, 1) == 0.4


def test_limits_of_the_cards_are_the_oracles():
    said = outputs("solutions")["12-code-3"]
    for name, (tera, giga) in CARDS.items():
        card = {"flops": tera * 1e12, "bandwidth": giga * 1e9}
        cost = lesson_12_count.cost(LLAMA, [(1, 2048)] * 64, card)
        assert f"{name:9}{64 / cost['seconds']:8,.0f} tokens/s at most, bound by memory" in said
    assert "All six are bound by memory" in TASKS and "32 GB do not fit into 24" in TASKS


def test_the_tutor_writes_through_the_learners_merge():
    said = outputs("solutions")["12-code-2"]
    assert "same text as the reference: True" in said and "[1, 3, 4]" in said


# --- oracles -------------------------------------------------------------------------------------


def test_the_merge_oracle_agrees_with_torch():
    torch.manual_seed(0)
    parts, lse = torch.randn(2, 5, 3, 4).double(), 4 * torch.randn(2, 5, 3).double()
    lse[0, 1:4, 0], lse[1, :, 2] = -INF, -INF
    parts[lse == -INF] = torch.nan
    case = lesson_12_merge._case(
        "",
        "",
        lesson_12_merge.Shape(*parts.shape),
        [(parts[at].tolist(), float(lse[at])) for at in itertools.product(*map(range, lse.shape))],
    )
    out, whole = CHECKS["12.1"].oracle(case)
    shares = torch.nan_to_num(lse.softmax(1))[..., None]
    right = torch.where(shares > 0, shares * parts, 0).sum(1)
    assert list(out.value.numbers()) == pytest.approx(right.flatten().tolist(), abs=1e-5)
    assert list(whole.value.numbers()) == pytest.approx(lse.logsumexp(1).flatten().tolist())


CHECKS = {f"12.{n}": check_of(catalog().exercise(f"12.{n}")) for n in range(1, 5)}


def case_of(exercise: str, name: str):
    case = next(case for case in CHECKS[exercise].visible() if case.name == name)
    return case, CHECKS[exercise].oracle(case)


def test_case_36_is_a_visible_case():
    case, (out, lse) = case_of("12.1", "an empty piece")
    parts, part_lse = case.operations[0].args
    first, second = parts.numbers()
    assert first == 3 and second != second
    assert list(part_lse.numbers()) == [pytest.approx(math.log(2)), -INF]
    assert list(out.value.numbers()) == [3] and next(lse.value.numbers()) > 0
    _, (out, lse) = case_of("12.1", "all are empty")
    assert list(out.value.numbers()) == [0] and list(lse.value.numbers()) == [-INF]


def multiplications(model: dict[str, int], work: list[tuple[int, int]]) -> int:
    """One at a time: every product that a step computes, in plain loops."""
    count = 0
    heads, kv, dim = model["heads"] * model["head_dim"], model["kv_heads"], model["head_dim"]
    shapes = [heads, kv * dim, kv * dim, heads, model["mlp"], model["mlp"], model["mlp"]]
    for queries, context in work:
        for position in range(context - queries, context):
            for _ in range(model["layers"]):
                for columns in shapes:
                    count += len([None for _ in range(columns) for _ in range(model["hidden"])])
                for _, key in itertools.product(range(model["heads"]), range(context)):
                    if key <= position:
                        count += len([None for _ in range(dim)]) + len([None for _ in range(dim)])
        count += len([None for _ in range(model["vocab"]) for _ in range(model["hidden"])])
    return count


@pytest.mark.parametrize("name", ["one decode", "a chunk", "three layers, odd heads"])
def test_flops_are_counted_as_a_loop_would(name):
    case, (flops, *_) = case_of("12.2", name)
    model, work, _ = case.operations[0].args
    assert flops.value == 2 * multiplications(model, work)


def test_bytes_are_those_of_tensors():
    """The same step as tensors that are read and written."""
    case, (_, moved, *_) = case_of("12.2", "three layers, odd heads")
    m, work, _ = case.operations[0].args
    wide, narrow = m["heads"] * m["head_dim"], m["kv_heads"] * m["head_dim"]
    columns = [wide, narrow, narrow, wide, m["mlp"], m["mlp"], m["mlp"]]
    read = [torch.empty(m["hidden"], n, dtype=torch.half) for n in columns * m["layers"]]
    read.append(torch.empty(m["hidden"], m["vocab"], dtype=torch.half))
    for queries, context in work:
        shape = m["layers"], 2, m["kv_heads"], m["head_dim"]
        read += [torch.empty(n, *shape, dtype=torch.half) for n in (context, queries)]
    assert moved.value == sum(tensor.nbytes for tensor in read)


@pytest.mark.parametrize("name", ["one decode", "three layers, odd heads"])
def test_no_two_wrong_ideas_give_one_number(name):
    case, _ = case_of("12.2", name)
    model, work, _ = case.operations[0].args
    for count, ideas in (
        (lesson_12_count.count_flops, lesson_12_cost_told.FLOPS),
        (lesson_12_count.count_bytes, lesson_12_cost_told.BYTES),
    ):
        told: dict[int, set[str]] = {}
        for ways, said in ideas:
            if ways.weights_read != "token":  # in a step of decodes as many as sequences
                told.setdefault(count(model, work, ways), set()).add(said)
        told.pop(count(model, work), None)
        assert all(len(some) == 1 for some in told.values())


def test_every_wrong_count_shows_in_a_visible_case():
    cases = [case.operations[0].args for case in CHECKS["12.2"].visible()]
    for count, ideas in (
        (lesson_12_count.count_flops, lesson_12_cost_told.FLOPS),
        (lesson_12_count.count_bytes, lesson_12_cost_told.BYTES),
    ):
        for ways, said in ideas:
            assert any(count(m, w, ways) != count(m, w) for m, w, _ in cases), said


# --- the suspect kernel --------------------------------------------------------------------------

OWN = {  # the case that is named after each fault
    "Q": "the query",
    "P": "one place for all",
    "M": "no maximum",
    "D": "not divided",
    "S": "nothing split",
}


def failing(faults: str) -> set[str]:
    """The visible cases that fail if these faults are left, by the plain model."""
    failed = set()
    for case in CHECKS["12.3"].visible():
        call = lesson_12_suspect.Call(*case.operations[0].args)
        for expected, operation in zip(
            CHECKS["12.3"].oracle(case), case.operations[1:], strict=True
        ):
            came = lesson_12_suspect._expected(call, operation.args[0], faults)
            if not expect.matches(expected, came.value):
                failed.add(case.name)
    return failed


def test_each_fault_alone_fails_its_own_case():
    assert not failing("")
    for fault, own in OWN.items():
        among = failing(fault) & set(OWN.values())
        # what is stored in one place is missing wherever there are two pieces
        assert among == ({own, OWN["S"]} if fault == "P" else {own})


def test_with_one_fault_mended_its_case_passes():
    """So that whoever mends one sees it; where the LSE is asked, two faults stand in the way."""
    for fault, own in OWN.items():
        left = lesson_12_plain.FAULTS.replace(fault, "")
        assert (own in failing(left)) == (fault == "S")


def test_the_oracle_agrees_with_torch():
    case, (out, lse) = case_of("12.3", "shared KV heads")
    q, k_pool, v_pool, tables, lens, _ = (_tensor(arg) for arg in case.operations[0].args)
    for seq, (table, length) in enumerate(zip(tables, lens.tolist(), strict=True)):
        blocks = table[: -(-length // 2)].long()
        k, v = (
            pool[blocks].flatten(0, 1)[:length].repeat_interleave(2, 1) for pool in (k_pool, v_pool)
        )
        scores = torch.einsum("hd,khd->hk", q[seq], k) / q.shape[2] ** 0.5
        read = torch.einsum("hk,khd->hd", scores.softmax(1), v)
        assert torch.allclose(_tensor(out.value)[seq], read, atol=1e-5)
        assert torch.allclose(_tensor(lse.value)[seq], scores.logsumexp(1), atol=1e-5)


def _tensor(arg):
    from minipaged.course.plain import Array, to_tensor

    return to_tensor(arg) if isinstance(arg, Array) else arg


SUSPECT = """
import json, os, re, sys
os.environ["TRITON_INTERPRET"] = "1"
import triton, triton.language as tl, linecache
sys.path.insert(0, ROOT)
from minipaged.course.catalog import catalog
from minipaged.course.checks.base import check_of
from minipaged.course.checks.lesson_12_suspect import Call, _expected
from minipaged.course.expect import matches
from minipaged.course import plain
from minipaged.course.script import run
notebook = json.load(open(ROOT + "/solutions/12_split_kv.ipynb", encoding="utf-8"))
texts = ["".join(cell["source"]) for cell in notebook["cells"]]
kernel = next(re.search(r"```python\\n(.*?)```", t, re.S)[1] for t in texts if "```python" in t)
solved = next(text for text in texts if "def piece_kernel" in text)
code = solved + "\\n\\n" + kernel.replace("suspect_kernel", "piece_kernel")
linecache.cache["<suspect>"] = (len(code), None, code.splitlines(True), "<suspect>")
defined = {}
exec(compile(code, "<suspect>", "exec"), defined)
for case in check_of(catalog().exercise("12.3")).visible():
    call = Call(*case.operations[0].args)
    seen = run(case.operations, defined["split_attention"])
    for operation, one in zip(case.operations[1:], seen[1:]):
        plainly = _expected(call, operation.args[0], "QPMDS")
        print(case.name, matches(plainly, plain.decode(one.value)))
"""


@needs_triton
def test_the_printed_kernel_has_just_the_five_faults():
    """It gives what the plain model with all five gives, in every visible case."""
    code = f"ROOT = {str(ROOT)!r}\n{SUSPECT}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) >= 10 and all(line.endswith("True") for line in lines), done.stdout


# --- answers -------------------------------------------------------------------------------------


def test_the_answers_are_right():
    right = {question.letter: question.answer for question in lesson_12_answers.QUESTIONS}
    pieces = [([2.0], math.log(3)), ([6.0], 0.0), ([7.0], -INF)]
    assert functools.reduce(lesson_12_merge.joined, pieces)[0] == pytest.approx([right["a"]])
    assert right["b"] == math.ceil(2 * 132 / (4 * 8))
    assert right["c"] * 1024 == torch.empty(2, 8, 32, 129).nbytes
    assert 2 * right["d"] / 362e12 >= 2 / 864e9 > 2 * (right["d"] - 1) / 362e12
    assert right["e"] == pytest.approx(100 * 64 / (989 / 3.35), abs=0.05)
    assert right["f"] == [4, 4] and right["g"] == "fixed size"
    assert right["h"] == pytest.approx(math.log(4), abs=5e-4)


def test_each_wrong_answer_differs_from_the_right_one_and_from_the_others():
    for question in lesson_12_answers.QUESTIONS:
        known = [str(mistake.answer) for mistake in question.mistakes]
        assert len({*known, str(question.answer)}) == len(known) + 1


def test_the_checks_load_neither_torch_nor_numpy():
    code = (
        "import sys\n"
        "from minipaged.course.checks.lesson_12 import CHECKS\n"
        "for check in CHECKS.values():\n"
        "    for case in (*check.visible(), *check.hidden(0)):\n"
        "        check.oracle(case)\n"
        "print(sorted({'torch', 'numpy', 'triton'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
