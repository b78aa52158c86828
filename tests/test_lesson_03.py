"""Lesson 03: its prose agrees with its cells, its checks with the reference and with torch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st

from minipaged.cache.table import BlockTable
from minipaged.components import Components
from minipaged.config import CacheConfig
from minipaged.course import plain
from minipaged.course.catalog import catalog
from minipaged.course.checks import lesson_03_answers, lesson_03_plain, lesson_03_rows
from minipaged.course.checks.base import check_of
from minipaged.course.plain import Array
from minipaged.kernels import reference

ROOT = Path(__file__).parents[1]
STEM = "03_block_table"


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
    """What the solved cells define."""
    notebook = json.loads((ROOT / "solutions" / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    defined: dict = {}
    for cell in notebook["cells"]:
        if cell["id"].startswith("ex-"):
            exec("".join(cell["source"]), defined)
    return defined


def test_the_lessons_prose_says_what_its_cells_print():
    text = prose("lessons")
    picture, by_hand, mapping, into, back, same, wrong, play, cost = outputs("lessons")
    assert "It has 50 tokens in the blocks `[5, 6, 7, 0]`" in text
    assert re.search(r"^C +50 tokens, +14 empty +\[5, 6, 7, 0\]$", picture, re.MULTILINE)
    assert "A claim, recomputed" in text and "logical block 2, offset 5, slot 2277" in text
    assert by_hand.startswith("logical block 2, offset 5, physical block 142\n")
    assert by_hand.endswith("= 2277\n")
    assert "B's token is at position 48" in text and "logical block 3: slot 0" in text
    assert re.search(r"^B +table \[2, 3, 4, 0\] +positions 48 +-> slots 0$", mapping, re.MULTILINE)
    assert "D's 55 tokens go to two stretches" in text
    assert re.search(r"positions 0–54 +-> slots 16–31, 128–166$", mapping, re.MULTILINE)
    assert "Eight: 48 slots, 40 tokens" in text
    assert into.endswith("stayed as they were: 8\n") and "token 37: True" in into
    assert back == "every bit came back: True\n"
    assert same.count("True") == 2
    assert "32 of 40 tokens are in the wrong place" in text
    assert "difference 0.00000, 32 of 40 tokens misplaced" in wrong
    assert float(re.search(r"ignored: +largest difference (\S+)", wrong)[1]) > 0.1
    assert "slot 6 * 16 + 5 = 101" in play
    assert "An entry of 4 bytes leads to 65,536 bytes" in text and "has 1 KiB" in text
    assert re.search(r"^ +16 +65,536 bytes +1,024 bytes +7.5$", cost, re.MULTILINE)
    assert "128, 63.5 slots are empty" in text and cost.rstrip().endswith("63.5")
    assert 4096 * 131_072 == 512 * 2**20 and "512 MiB" in text


def test_step_9_is_where_b_gets_its_new_block_and_c_does_not():
    """The lesson says that B's table changed in step 9 and C's did not."""
    from minipaged.simulate import simulate

    workload = [(20, 9), (40, 12), (30, 60), (55, 40), (33, 40)]
    trace = simulate(workload, block_size=16, num_blocks=20, max_num_seqs=3)
    before, after = trace.steps[8].tables, trace.steps[9].tables
    assert before["B"] != after["B"] and before["C"] == after["C"]
    assert trace.steps[18].tables["C"] == [5, 6, 7]  # and the fourth block is 0, as told of C
    assert trace.steps[19].tables["C"] == [5, 6, 7, 0]


def test_the_solutions_prose_says_what_its_cells_print():
    text, printed = prose("solutions"), "".join(outputs("solutions"))
    assert printed.count("as the reference: True") == 3
    assert "Sorted: the ledger gives other tokens for ['B', 'C']" in printed
    assert "Sorted: every check passed; same texts: False" in printed
    assert "FromOne: the ledger gives other tokens for nobody" in printed
    assert "FromOne: token 16 of request '0' is not in slot 16" in printed
    assert "When C's `[5, 6, 7]` gets block 0" in text
    assert "1024 // 16 + 1 = 65" in text.replace(",", "")


table_scripts = st.lists(
    st.one_of(
        st.tuples(st.just("append_blocks"), st.lists(st.integers(0, 99), max_size=4)),
        st.tuples(st.just("slot"), st.integers(-5, 60)),
        st.tuples(st.just("slot_mapping"), st.integers(0, 40), st.integers(0, 40)),
        st.tuples(st.just("release")),
    ),
    max_size=12,
)


def outcome_of(table, method, *args):
    """A call's answer, or the class of what it raised; and all that can be seen of the table."""
    try:
        answer = getattr(table, method)(*args)
    except IndexError as error:
        answer = type(error)
    return answer, list(table.block_ids), len(table), table.num_slots


@given(st.integers(1, 9), table_scripts)
def test_the_plain_table_is_the_references(block_size, script):
    pair = BlockTable(block_size), lesson_03_plain.PlainTable(block_size)
    for step in script:
        first, second = (outcome_of(table, *step) for table in pair)
        assert first == second, step


@given(st.data())
def test_the_plain_rows_are_what_torch_makes_of_them(data):
    blocks, size, heads = (data.draw(st.integers(1, 4)) for _ in range(3))
    pool = torch.arange(blocks * size * heads * 2, dtype=torch.float32).view(blocks, size, heads, 2)
    slots = data.draw(st.permutations(range(blocks * size)))[: data.draw(st.integers(0, 9))]
    new = -torch.rand(len(slots), heads, 2)
    table = data.draw(st.permutations(range(blocks)))
    tokens = data.draw(st.integers(0, blocks * size))
    mapping, entries = torch.tensor(slots, dtype=torch.int64), torch.tensor(table)

    put = lesson_03_rows.put(*map(as_array, (pool, mapping, new)))
    reference.write_kv(new, new, pool, pool.clone(), mapping)
    assert plain.same(put, as_array(pool))

    read = lesson_03_rows.gather(put, as_array(entries), tokens)
    wanted = reference.slots_of(
        entries[None], torch.zeros(tokens, dtype=torch.int64), torch.arange(tokens), size
    )
    assert plain.same(read, as_array(pool.view(-1, heads, 2)[wanted]))


def as_array(tensor: torch.Tensor) -> Array:
    return plain.decode(plain.encode(tensor))


def test_case_35_is_a_visible_case():
    """Table [3, 1], V = physical block id, uniform weights, 8 tokens, block size 4: 2.0."""
    check = check_of(catalog().exercise("03.3"))
    case = check.visible()[0]
    pool, read, _ = case.operations
    assert pool.args[0].shape[:2] == (4, 4)
    assert list(read.args[1].numbers()) == [3, 1] and read.args[2] == 8
    values = list(check.oracle(case)[0].numbers())
    assert sum(values) / len(values) == 2.0


def test_claim_e3_is_a_visible_case():
    check = check_of(catalog().exercise("03.1"))
    case = check.visible()[0]
    assert case.operations[-1].args == (37,)
    assert check.oracle(case)[-1] == 2277


def blocks_for(num_tokens: int, block_size: int) -> int:
    config = CacheConfig(num_blocks=8, block_size=block_size)
    return Components().make_manager(config).blocks_for(num_tokens)


def test_the_answers_are_right_by_the_reference():
    right = {question.letter: question.answer for question in lesson_03_answers.QUESTIONS}
    table = BlockTable(32)
    table.append_blocks([12, 5, 88, 3])
    assert right["a"] == table.slot(70)
    table = BlockTable(16)
    table.append_blocks([7, 91, 142])
    assert table.slot(right["b"]) == 1460
    assert right["c"] == len(range(0, 6000, 32)) * 4
    manager = Components().make_manager(CacheConfig(num_blocks=8))
    changes = [manager.blocks_for(n + 1) - manager.blocks_for(n) for n in (47, 48)]
    assert right["d"] == changes
    assert right["f"] == 327_680 * 32 // 80  # claim E4: bytes a token, in 80 layers
    assert right["g"] == [blocks_for(480, size) for size in (1, 16)]
    assert right["h"] == [blocks_for(20, size) * size - 20 for size in (4, 16, 128)]
    table = BlockTable(16)
    table.append_blocks([7, 91, 142])
    pool = torch.arange(200 * 16 * 8 * 128).view(200, 16, 8, 128)
    assert right["i"] == pool.view(-1, 8, 128)[table.slot(37), 3, 10]
    assert right["i"] == pool[142, 5, 3, 10]


def test_the_solutions_table_serves_a_checked_engine(lab):
    """Preemption, reuse and growth with every invariant checked after each step."""
    runs = []
    for components in (Components(), replace(Components(), block_table=solution()["BlockTable"])):
        one = lab(components, block_size=4, num_blocks=7)
        for name, prompt in (("a", 6), ("b", 9), ("c", 5)):
            one.add(name, prompt, max_tokens=9)
        one.run()
        one.assert_clean()
        runs.append(one.outputs)
    assert runs[0] == runs[1]


def test_the_checks_load_neither_torch_nor_numpy():
    code = (
        "import sys\n"
        "from minipaged.course.checks.lesson_03 import CHECKS\n"
        "for check in CHECKS.values():\n"
        "    for case in (*check.visible(), *check.hidden(0)):\n"
        "        check.oracle(case)\n"
        "print(sorted({'torch', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
