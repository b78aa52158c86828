"""Lesson 11: its prose says what its cells print, its oracles agree with the layouts, the trace and
torch, and the kernel can be compiled as well as interpreted. Triton runs in processes of their own.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from minipaged.course import needs, plain, wrapped
from minipaged.course.catalog import catalog
from minipaged.course.checks import (
    lesson_11_address,
    lesson_11_answers,
    lesson_11_blocks,
    lesson_11_kernel,
    lesson_11_told,
)
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.fixture_far import DECOY, STRAY, far_pool
from minipaged.course.script import describe, run
from minipaged.course.verdict import judge
from minipaged.kernels import reference
from minipaged.kernels.layouts import pack_k, pack_width
from minipaged.kernels.meta import AttentionMeta

ROOT = Path(__file__).parents[1]
STEM = "11_decode_kernel"
EXERCISES = ("11.1", "11.2", "11.4")  # 11.3 runs in the tests of samples, in workers
LLAMA = (16, 8, 128)

in_triton = pytest.mark.skipif(bool(needs.lacking("triton")), reason=needs.NO_TRITON)


def prose(folder: str) -> str:
    """A source's text, line breaks and comment signs taken out."""
    text = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    return " ".join(re.findall(r"^# ?(?:> ?)?(?:  )?(.*)$", text, re.MULTILINE))


def outputs(folder: str) -> list[str]:
    """What each code cell of a stored notebook printed or shows as text."""
    notebook = json.loads((ROOT / folder / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(map(_text, cell["outputs"])) for cell in cells]


def _text(output: dict) -> str:
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")))


def cells() -> dict[str, str]:
    """The exercises' solved cells and the given one, by their ids."""
    notebook = json.loads((ROOT / f"solutions/{STEM}.ipynb").read_text(encoding="utf-8"))
    found = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    return {i: text for i, text in found.items() if i.startswith(("ex-", "11-given"))}


def solution() -> dict:
    """What the solved cells without Triton define."""
    defined: dict = {}
    for cell_id, source in cells().items():
        if cell_id != "ex-11-3":
            exec(source, defined)
    return defined


# prose and cells


def test_the_lessons_prose_says_what_its_cells_print():
    said, text = prose("lessons"), "\n".join(outputs("lessons"))
    assert "The two places behind `total` still are -1" in said
    assert "108, 109, -1, -1]" in text
    assert "slot 2277  number 2332109" in text
    assert "16 · 8 · 128 = 16,384 numbers, and 131,072 of them are 2 to the 31" in said
    assert "block 131,072 begins at number 2147483648" in text
    assert "in 32 bits                      -2147483648" in text
    assert 2**31 * 2 == 4 * 2**30 and "such a pool has 4 GiB a layer for K alone" in said
    assert 131_072 * 16 * 131_072 == 256 * 2**30 and "would be 256 GiB" in said
    assert "80 numbers, in 10 pieces of 8" in said and "80 numbers in 10 pieces" in text
    assert "4 tokens             [5.0, nan]" in text and "5, as on paper" in said
    assert "0 tokens             [0.0, nan]" in text
    assert "masked when loaded   [5.5, nan]\nonly scores masked   [nan, nan]" in text
    assert "so 4,096 bytes: 8 MiB for 2,048 of them" in said
    assert "loaded four times, 32 MiB" in said
    assert "each query head:   32 MiB" in text and "each KV    head:    8 MiB" in text


def test_the_table_of_lines_is_what_the_claim_says():
    said, text = prose("lessons"), "\n".join(outputs("lessons"))
    rows = re.findall(r"^(NHD|packed) +(\d+) +([\d,]+) +(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)
    table = {(r[0], int(r[1])): [int(n.replace(",", "")) for n in r[2:]] for r in rows}
    assert len(table) == 6
    assert all(tile == 128 * lines for tile, lines, _, _ in table.values())
    assert table["packed", 4] == [1024, 8, 8, 64]
    assert "it finds 64 bytes side by side in blocks of 4, so it touches 8 lines for 512" in said
    assert {tuple(table["NHD", size][2:]) for size in (4, 16, 128)} == {(4, 256)}
    for (layout, size), (tile, _, _, run_bytes) in table.items():
        asked = lesson_11_blocks.Asked(size, layout, [], 128, 2)
        figures = lesson_11_blocks.answer(asked)
        assert (figures["tile"], figures["run"]) == (tile, run_bytes)


def test_the_table_of_block_sizes_is_what_the_prose_says():
    said, text = prose("lessons"), "\n".join(outputs("lessons"))
    rows = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)% +(\d+)$", text, re.MULTILINE)
    assert [int(row[0]) for row in rows] == [1, 4, 16, 32, 128]
    for size, empty, half, *_ in rows:
        assert float(half) == (int(size) - 1) / 2
        assert abs(float(empty) - float(half)) <= (1.5 if size == "128" else 0.11)
    assert "to within 0.1 slots, for blocks of 128 to within 1.5" in said
    assert "108 of 128 slots, 84 %" in said and round(100 * 108 / 128) == 84
    assert 16 * 4096 == 65_536 and "beside 65,536 bytes of K and V a layer" in said


def test_the_solutions_prose_says_what_its_cells_print():
    said, text = prose("solutions"), "\n".join(outputs("solutions"))
    assert "number 3 of head 1 of token 5 is at 27, and with x = 4 at 39" in said
    for x, place in ((0, 27), (4, 39)):
        asked = lesson_11_address.Asked([2, 0], 5, 1, 3, (4, 2, 8), x)
        assert lesson_11_address.answer(asked) == place
    assert "86 · 2 · 5 = 860, and 10 more for each further token" in said
    assert "same text as the reference: True" in text
    assert "a difference above 0.0001:  False" in text
    assert f"programs: {860 + 9 * 10}" in text
    assert "a difference above 0.00001: False" in text
    assert (128 - 1) / 2 == 63.5 and "63.5 empty slots a request on average in place of 7.5" in said


def test_the_lesson_is_short_enough_and_claims_no_time():
    said = prose("lessons")
    assert len(said.split()) <= 2500
    assert not re.search(r"\b\d[\d.,]*\s?(ms|µs|GB/s|TB/s|TFLOP)", said)
    for claim in ("C8", "C9", "C16", "C23"):
        assert f"claim {claim}" in said


@pytest.mark.parametrize("folder", ["lessons", "solutions"])
def test_no_line_of_prose_turns_into_a_heading_by_accident(folder):
    text = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    assert not re.search(r"^# #[^ #]", text, re.MULTILINE)


# 11.1 and 11.2


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_solution_passes_visible_and_hidden_cases(exercise_id):
    exercise = catalog().exercise(exercise_id)
    check, subject = check_of(exercise), solution()[exercise.name]
    cases = check.visible() + check.hidden(5)
    verdicts = judge(check, cases, [run(c.operations, subject) for c in cases], exercise.name)
    assert [verdict.case.name for verdict in verdicts if not verdict.passed] == []


def test_the_addresses_are_where_the_kernels_pools_have_their_numbers():
    """By layouts.py: a pool that holds its own places, packed and not."""
    size, heads, dim = shape = (3, 2, 16)
    nhd = torch.arange(5 * size * heads * dim, dtype=torch.float32).view(5, *shape)
    x = pack_width(nhd.dtype)
    packed = pack_k(nhd).flatten()
    rng = random.Random(0)
    for _ in range(50):
        table = rng.sample(range(5), 2)
        token, head, d = rng.randrange(2 * size), rng.randrange(heads), rng.randrange(dim)
        number = nhd[table[token // size], token % size, head, d]
        for width, flat in ((0, nhd.flatten()), (x, packed)):
            asked = lesson_11_address.Asked(table, token, head, d, shape, width)
            assert flat[lesson_11_address.answer(asked)] == number


def test_case_30_is_an_address():
    asked = lesson_11_address.Asked([131_072], 0, 0, 0, LLAMA, 0)
    assert lesson_11_address.answer(asked) == 2**31
    assert any(case.operations[0].args == tuple(asked) for case in lesson_11_address.visible())


def test_claim_c23_is_a_case():
    asked = lesson_11_blocks.Asked(128, "NHD", [20], 128, 2)
    assert lesson_11_blocks.answer(asked)["waste"] == 108
    assert any(case.operations[0].args == tuple(asked) for case in lesson_11_blocks.visible())


# 11.3


def meta_of(call) -> AttentionMeta:
    return AttentionMeta(*(plain.to_tensor(array) for array in call[3:]))


@pytest.mark.parametrize("case", lesson_11_kernel.visible(), ids=lambda case: case.name)
def test_the_kernels_oracle_is_the_reference(case):
    call = lesson_11_told.call_of(case)
    q, k_pool, v_pool = (plain.to_tensor(array) for array in call[:3])
    expected = reference.paged_attention(q, k_pool, v_pool, meta_of(call))
    right = plain.to_tensor(lesson_11_told.right(call))
    torch.testing.assert_close(right, expected, rtol=1e-4, atol=1e-5)


def test_cases_30_to_35_are_visible_cases():
    cases = {case.name: case for case in lesson_11_kernel.visible()}
    right = {
        name: lesson_11_told.right(lesson_11_told.call_of(case)) for name, case in cases.items()
    }
    (_, _, size, block, written) = cases["block 131,072"].operations[1].args
    assert (block * size * 8 * 128, written) == (2**31, 5)
    assert list(right["block 131,072"].numbers())[::128] == list(range(8))
    assert right["head_dim 80"].shape[2] == 80
    assert list(right["48 heads share 2"].numbers()) == [0.0] * 24 + [1.0] * 24
    tail = lesson_11_told.call_of(cases["a begun block"])
    assert [x != x for x in tail.v_pool.numbers()].count(True) == 2 * (12 - 5)
    empty = list(right["no keys"].numbers())
    assert empty[2:4] == [0.0, 0.0] and all(math.isfinite(x) for x in empty)
    assert list(right["by block number"].numbers()) == [2.5]


def test_each_wrong_idea_differs_from_the_right_one_in_a_visible_case():
    calls = [lesson_11_told.call_of(case) for case in lesson_11_kernel.visible()]
    clean = [
        call._replace(
            k_pool=lesson_11_told._without_nan(call.k_pool),
            v_pool=lesson_11_told._without_nan(call.v_pool),
        )
        for call in calls
    ]
    for idea, said in lesson_11_told.MISTAKES:
        gives = [lesson_11_told._gives(call, idea, lesson_11_told.right(call)) for call in clean]
        assert not all(gives), said


def test_whatever_comes_back_of_the_far_block_is_explained():
    (case,) = [c for c in lesson_11_kernel.visible() if c.name == "block 131,072"]
    right = lesson_11_told.right(lesson_11_told.call_of(case))
    wrapped_around = plain.Array.of("float32", right.shape, [DECOY] * 1024)
    failure = Failure(case, 3, None, wrapped_around, "")
    assert lesson_11_told.explain(failure) == lesson_11_told.IN_32_BITS
    assert lesson_11_told.picture(case, 3) == "table [131072], context 5"


def test_an_exception_is_explained_only_where_the_rule_fits_it():
    case = lesson_11_kernel.visible()[0]
    says = {
        fault: lesson_11_told.explain(Failure(case, 1, None, None, fault))
        for fault in ("NameError", "AttributeError", "TypeError", "ValueError", "IndexError")
    }
    assert says["NameError"] == says["AttributeError"] == ""
    assert says["ValueError"] == lesson_11_told.INSIDE
    assert says["TypeError"] == lesson_11_told.ADDRESS + lesson_11_told.INSIDE
    assert says["IndexError"] == lesson_11_told.BEHIND


@in_triton
def test_a_far_pool_holds_its_block_and_what_wrong_offsets_find():
    pool = far_pool([1.0, 2.0], 4, 16, 2**24, 3)
    assert pool.shape == (2**24 + 1, 16, 2, 4)
    assert pool[-1, :3, :, 0].tolist() == [[1.0, 2.0]] * 3
    assert pool[-1, 3:].isnan().all()
    assert pool[0, 0, 0, 0] == STRAY
    first = 2**24 * 16 * 2 * 4
    assert pool.view(-1)[first] == 1.0
    assert ctypes.c_float.from_address(pool.data_ptr() + 4 * (first - 2**32)).value == DECOY
    other = far_pool([1.0], 4, 16, 2**25, 3)
    assert other.data_ptr() != pool.data_ptr()
    with pytest.raises(ValueError, match="from 2\\^31 up to 2\\^32"):
        far_pool([1.0], 4, 16, 5, 3)


# Triton, in processes of their own


def python(code: str, **environment: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@in_triton
def test_an_error_in_a_kernel_is_told_with_its_line():
    code = """
import linecache
from minipaged.course.script import describe
import triton, triton.language as tl
source = '''import triton, triton.language as tl
@triton.jit
def inner(x):
    return x + missing
@triton.jit
def outer(x):
    tl.store(x, inner(1))
def launch(x):
    outer[(1,)](x)
'''
linecache.cache["<cell ex-1>"] = (len(source), None, source.splitlines(True), "<cell ex-1>")
space = {"__name__": "__main__"}
exec(compile(source, "<cell ex-1>", "exec"), space)
import torch
try:
    space["launch"](torch.zeros(1))
except Exception as error:
    print(*describe(error), sep="|")
"""
    said = python(code, TRITON_INTERPRET="1").strip().split("|")
    assert said[1:] == ["name 'missing' is not defined", "4", "return x + missing"]
    assert said[0].startswith("['NameError'")


def test_other_exceptions_are_not_unwrapped():
    class InterpreterError(Exception):
        """Somebody else's."""

    try:
        try:
            raise KeyError("inside")
        except KeyError as inner:
            raise InterpreterError("outside") from inner
    except InterpreterError as error:
        assert wrapped.unwrapped(error) is error
        assert describe(error).message == "outside"


def test_of_what_the_compiler_refuses_the_reason_is_kept():
    """Triton puts it behind up to twelve lines of the kernel, and a long message is cut."""

    class CompilationError(Exception):
        src = "def kernel(x):\n    y = x + [1, 2]"
        node = types.SimpleNamespace(lineno=2)
        error_message = "types differ in a loop"

    told = describe(CompilationError("at 1:2:\n" + "a line of the kernel\n" * 40))
    assert told.message == "types differ in a loop (at `y = x + [1, 2]`)"
    assert describe(ValueError("plain")).message == "plain"


@in_triton
def test_the_check_on_a_gpu_is_rehearsed_on_the_cpu():
    code = f"""
from minipaged.course.catalog import catalog
from minipaged.course.native import check_natively
cells = {list(cells().items())!r}
cells = [cell for cell in cells if cell[0] in ("11-given-1", "ex-11-3")]
exercise = catalog().exercise("11.3")
lines, passed = check_natively(exercise, cells, "cpu")
print(lines[0], passed, any("131,072" in line for line in lines), *lines[-4:], sep="|")
wrong = [cells[0], ("ex-11-3", cells[1][1].replace("tl.trans(k)", "k"))]
lines, passed = check_natively(exercise, wrong, "cpu")
print(passed, any("tl.dot(queries, k," in line for line in lines))
"""
    first, second = python(code).strip().splitlines()
    head, passed, has_far, *rest = first.split("|")
    assert (head, passed, has_far) == ("compiled, on cpu: 11.3  your paged_decode", "True", "False")
    assert "16 of 16 passed." in rest
    assert second == "False True"


@in_triton
def test_what_a_kernel_prints_is_not_taken_for_the_answer():
    """tl.device_print goes through C, whose buffer is written when the process ends."""
    code = f"""
from minipaged.course.catalog import catalog
from minipaged.course.native import check_natively
cells = {list(cells().items())!r}
cells = [cell for cell in cells if cell[0] in ("11-given-1", "ex-11-3")]
noise = "import ctypes as _c" + chr(10) + "_c.CDLL(None).printf(b'pid (0, 0, 0)' + bytes([10]))"
cells[-1] = (cells[-1][0], cells[-1][1] + chr(10) + noise)
lines, passed = check_natively(catalog().exercise("11.3"), cells, "cpu")
print(passed, lines[0])
"""
    said = python(code, PYTHONUNBUFFERED="")
    assert said.strip().startswith("True compiled, on cpu")


@in_triton
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_is_said_so():
    code = """
from minipaged.course.catalog import catalog
from minipaged.course.native import NoDevice, check_natively
exercise = catalog().exercise("11.3")
try:
    check_natively(exercise, [("ex-11-3", "import triton")])
except NoDevice as error:
    print(error)
"""
    assert "torch sees no GPU here" in python(code)


def test_an_exercise_without_a_kernel_is_not_for_a_gpu():
    from minipaged.course.native import check_natively

    with pytest.raises(ValueError, match=r"11\.1 writes no kernel"):
        check_natively(catalog().exercise("11.1"), [])


@in_triton
def test_the_solutions_kernel_can_be_compiled():
    """For two kinds of card, with none there: the interpreter takes what the compiler may not."""
    code = f"""
import linecache
source = {cells()["ex-11-3"]!r}
linecache.cache["<cell>"] = (len(source), None, source.splitlines(True), "<cell>")
space = {{"__name__": "__main__"}}
exec(compile(source, "<cell>", "exec"), space)
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
names = ["HEADS", "KV_HEADS", "HEAD_DIM", "BLOCK_SIZE", "ROWS", "DIM", "TILE"]
for arch, dtype, numbers in ((80, "fp32", (6, 2, 80, 12, 16, 128, 64)),
                             (90, "fp16", (32, 8, 128, 16, 16, 128, 64))):
    signature = dict.fromkeys(("q", "k_pool", "v_pool", "out"), "*" + dtype)
    signature |= dict.fromkeys(("block_tables", "seqs", "contexts"), "*i32")
    signature |= {{"table_width": "i32", "scale": "fp32"}} | dict.fromkeys(names, "constexpr")
    constants = dict(zip(names, numbers))
    attrs = {{(i,): [["tt.divisibility", 16]] for i in range(7)}}
    made = triton.compile(
        ASTSource(space["decode_kernel"], signature=signature, constexprs=constants, attrs=attrs),
        target=GPUTarget("cuda", arch, 32),
    )
    print(made.metadata.shared < 99 * 1024, len(made.asm["cubin"]) > 0)
"""
    assert python(code, TRITON_INTERPRET="0") == "True True\n" * 2


# 11.4


def test_the_answers_are_right():
    right = {question.letter: question.answer for question in lesson_11_answers.QUESTIONS}
    for letter, x in (("a", 0), ("b", 8)):
        asked = lesson_11_address.Asked([12, 3, 40], 20, 2, 5, LLAMA, x)
        assert lesson_11_address.answer(asked) == right[letter]
    begin = torch.tensor(196_608, dtype=torch.int32) * 16_384
    assert begin.item() == right["c"]
    assert right["d"] == [32 * 1000 * 128 * 2 * 2, 8 * 1000 * 128 * 2 * 2]
    figures = lesson_11_blocks.answer(lesson_11_blocks.Asked(8, "packed", [40], 128, 2))
    assert right["f"] == [figures["run"], 512 // figures["run"], figures["tile"]]
    waste = lesson_11_blocks.answer(lesson_11_blocks.Asked(128, "NHD", [40], 128, 2))["waste"]
    assert right["g"] == 100 * waste / 128


def test_each_wrong_answer_differs_from_the_right_one_and_from_the_others():
    for question in lesson_11_answers.QUESTIONS:
        answers = [question.answer, *(mistake.answer for mistake in question.mistakes)]
        assert len({repr(answer) for answer in answers}) == len(answers), question.letter


def test_the_checks_load_neither_torch_nor_numpy():
    code = (
        "import minipaged.course.checks.lesson_11 as l, sys\n"
        "[check.visible() for check in l.CHECKS.values()]\n"
        "print(sorted({'torch', 'numpy', 'triton'} & set(sys.modules)))"
    )
    assert python(code).strip() == "[]"
