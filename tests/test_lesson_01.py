"""Lesson 01: its figures, its check of first fit, and its prose beside what its cells print."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.contiguous import ContiguousPool
from minipaged.course.catalog import catalog
from minipaged.course.checks.base import Failure, Raises, check_of
from minipaged.course.checks.lesson_01_answers import QUESTIONS as ALL_QUESTIONS
from minipaged.course.checks.lesson_01_rows import Row
from minipaged.course.checks.lesson_01_sums import count_bytes, count_slots
from minipaged.course.expect import matches
from minipaged.course.script import Case, Operation

ROOT = Path(__file__).parents[1]
FIT = check_of(catalog().exercise("01.3"))
QUESTIONS = {question.letter: question for question in ALL_QUESTIONS}


def printed(folder: str) -> dict[str, str]:
    """What each code cell of a stored notebook printed and showed as text, by cell id."""
    path = ROOT / folder / "01_fragmentation.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: "".join(
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell["outputs"]
        )
        for cell in cells
        if cell["cell_type"] == "code"
    }


def prose(folder: str) -> str:
    """The source with each paragraph in one line."""
    text = (ROOT / folder / "01_fragmentation.py").read_text(encoding="utf-8")
    return re.sub(r"\n# +", " ", text)


# --- the golden figures ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "kv_heads", "expected"),
    [(32, 32, 524_288), (40, 40, 819_200), (32, 8, 131_072), (80, 8, 327_680), (40, 8, 163_840)],
)
def test_bytes_a_token(layers, kv_heads, expected):
    assert count_bytes(layers, kv_heads, 128) == expected


def test_sixteen_reservations_of_a_7b():
    assert count_bytes(32, 32, 128) * 8192 == 4 * 2**30
    assert matches(QUESTIONS["a"].expected, 16 * 4)


def test_a_hundred_requests():
    random.seed(2026)
    lengths = [random.randint(40, 600) for _ in range(100)]
    reserved, used, in_blocks = count_slots(lengths, 2048, 16)
    assert (reserved, used, reserved - used) == (204_800, 37_213, 167_587)
    assert (in_blocks // 16, in_blocks, in_blocks - used) == (2375, 38_000, 787)


# --- the oracle of first fit against intervals that are searched by brute force -------------------


class Intervals:
    """First fit by definition: the lowest start at which the stretch meets no other."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots, self.taken = num_slots, {}

    def fits(self, start: int, length: int) -> bool:
        wanted = set(range(start, start + length))
        taken = {slot for s, n in self.taken.items() for slot in range(s, s + n)}
        return start + length <= self.num_slots and not wanted & taken

    def allocate(self, length: int) -> object:
        if length < 1:
            return Raises("ValueError")
        for start in range(self.num_slots):
            if self.fits(start, length):
                self.taken[start] = length
                return start
        return Raises("MemoryError")

    def free(self, start: int) -> object:
        return None if self.taken.pop(start, None) else Raises("ValueError")

    def num_free(self) -> int:
        return self.num_slots - sum(self.taken.values())

    def largest_gap(self) -> int:
        slots = range(self.num_slots)
        return max((n + 1 for s in slots for n in slots if self.fits(s, n + 1)), default=0)


@given(
    num_slots=st.integers(1, 16),
    calls=st.lists(
        st.one_of(
            st.tuples(st.just("allocate"), st.integers(-1, 8)),
            st.tuples(st.just("free"), st.integers(-1, 16)),
        ),
        max_size=40,
    ),
)
def test_the_oracle_is_first_fit(num_slots, calls):
    operations = [Operation((num_slots,), keep="memory")]
    brute, expected = Intervals(num_slots), []
    for method, number in calls:
        operations.append(Operation((number,), "memory", method))
        expected.append(getattr(brute, method)(number))
        for name in ("num_free", "largest_gap"):
            operations.append(Operation((), "memory", name, how="get"))
            expected.append(getattr(brute, name)())
    assert FIT.oracle(Case("drawn", "", tuple(operations))) == expected


def test_the_cases_meet_every_rule():
    answers = [a for case in FIT.visible() for a in FIT.oracle(case)]
    assert {Raises("MemoryError"), Raises("ValueError"), None, 0} <= {
        a for a in answers if not isinstance(a, int) or a == 0
    }
    for seed in range(20):
        assert len(FIT.hidden(seed)) == FIT.num_hidden
        kinds = [a.kind for case in FIT.hidden(seed) for a in FIT.oracle(case) if type(a) is Raises]
        assert min(kinds.count("MemoryError"), kinds.count("ValueError")) >= 5


def test_what_is_said_of_a_failure_quotes_no_case():
    for case in FIT.visible():
        for number in range(1, len(case.operations)):
            expected = FIT.oracle(case)[number - 1]
            for got, fault in ((None, "MemoryError"), (None, "KeyError"), (999, "")):
                said = FIT.explain(Failure(case, number, expected, got, fault))
                assert case.name not in said
                assert not set(re.findall(r"\d+", said)) - {"0", "1"}


def test_the_picture_is_the_memory_before_the_step():
    case = next(case for case in FIT.visible() if case.name == "too scattered")
    refused = FIT.oracle(case).index(Raises("MemoryError")) + 1
    assert FIT.picture(case, refused) == "....BBBB....   (. is free)"
    assert FIT.picture(case, 0) == ""


def test_a_row_knows_where_stretches_start():
    row = Row(8)
    row.allocate(2)
    row.allocate(3)
    assert [slot for slot in range(-1, 9) if row.starts(slot)] == [0, 2]


# --- the questions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letter", "right", "wrong"),
    [
        ("a", (64, 64.0), (4, 63.9, 32)),
        ("b", (7.41, 7.4, 7.406), (6.1, 12.2, 7.3, 7.5, 0.074)),
        ("c", (9.8, 9.77, 9.765625), (9.7, 9.9)),
        ("d", (32,), (33, 32.2, 160, 161, 168)),
        ("e", (63.5,), (63, 64)),
        ("f", (6.67, 280 / 42, 6.66), (6.6, 6.7, 7)),
        ("g", ([9, 11, 12],), ([20, 0, 12], [9, 11], 9)),
        ("h", (42, 42.0, 80 * 0.9 - 30), (72, 45, 50)),
        ("i", (0.96,), (0.97, 0.96875, 0.9, 96)),
    ],
)
def test_answers_and_their_tolerance(letter, right, wrong):
    expected = QUESTIONS[letter].expected
    assert all(matches(expected, value) for value in right)
    assert not any(matches(expected, value) for value in wrong)


def test_the_three_kinds_of_waste_of_question_g():
    """Counted slot by slot: why is it empty?"""
    pool = ContiguousPool(40)
    pool.reserve("A", 16)
    pool.reserve("between", 4)
    pool.reserve("B", 12)
    pool.release("between")
    with pytest.raises(MemoryError):
        pool.reserve("C", 10)
    now, end = {"A": 3, "B": 5}, {"A": 7, "B": 12}
    places = [(name, slot) for name, p in pool.held.items() for slot in range(p.length)]
    internal = sum(slot >= end[name] for name, slot in places)
    reservation = sum(now[name] <= slot < end[name] for name, slot in places)
    assert QUESTIONS["g"].answer == [internal, reservation, pool.num_free]


def test_the_share_of_question_i_is_the_highest():
    share = QUESTIONS["i"].answer
    assert 80 * (1 - share) >= 2.5 > 80 * (1 - share - 0.01)


# --- prose and cells ------------------------------------------------------------------------------


def test_the_lessons_prose_says_what_its_first_cells_print():
    cells, text = printed("lessons"), prose("lessons")
    assert "Llama-2-7B     524,288 B a token    4.00 GiB" in cells["01-code-1"]
    assert "524,288 bytes, half a mebibyte" in text
    assert "204,800 slots, 167,587 empty, 18.17% used" in cells["01-code-2"]
    assert "38,000 slots,     787 empty, 97.93% used" in cells["01-code-2"]
    assert "ratio 5.39" in cells["01-code-2"]
    assert (
        "18.17 % against 97.93 %, and the same hundred requests fit into less than a fifth" in text
    )
    assert "787 slots in all, some 8 for each request" in text
    assert "over requests 6.1%, over time 7.4%" in cells["01-code-3"]
    assert "The 6.1 % is the mean over requests; over time it is 7.4 %" in text
    assert "the share is higher over time than at the end" in text
    over_time, at_the_end = re.findall(r"(?:time|end) +([\d.]+)", cells["01-code-4"])
    assert float(over_time) > float(at_the_end)


def test_the_lessons_prose_says_how_many_sessions_fit():
    cells, text = printed("lessons"), prose("lessons")
    assert "8 KV heads: 163,840 B a token, 160.9 sessions" in cells["01-code-5"]
    assert "40 KV heads: 819,200 B a token,  32.2 sessions" in cells["01-code-5"]
    assert "160 KiB are 163,840 bytes: 8 KV heads, and 160 sessions fit" in text
    assert "Llama-2-13B has 40: 819,200 bytes, and 32 sessions fit" in text


def test_the_lessons_prose_says_what_the_memory_looked_like():
    cells, text = printed("lessons"), prose("lessons")
    equal, exact, paged = (cells[f"01-code-{number}"] for number in (6, 7, 8))
    assert "F asks for 128, free 0, largest gap 0" in equal
    assert "168 used, 344 reserved but empty, 0 free" in equal
    assert 344 / 512 > 2 / 3
    assert "so F is refused, while two thirds of the slots are empty" in text
    assert "K asks for 76, free 183, largest gap 65" in exact
    assert "step 78" in exact
    assert "step 78" in paged
    assert "K asks for 76 slots, and 183 are free, more than twice as many" in text
    free = re.findall(r"^ *\d+  (\S+)$", exact, re.MULTILINE)
    gaps = [len(gap) for gap in re.findall("·+", "".join(free))]
    assert gaps == [39, 27, 52, 65]
    assert "four gaps of 39, 27, 52 and 65" in text
    assert re.search(r"^K +32 tokens, +0 empty  \[15, 0\]$", paged, re.MULTILINE)
    assert (
        "for the 32 tokens of its prompt, wherever they lay. Look at its row: blocks 15 and 0"
        in text
    )


def test_the_lessons_prose_says_how_many_chats_fit():
    cells, text = printed("lessons"), prose("lessons")
    rows = re.findall(r"^ *(\d+) +(\d+) +([\d.]+)% +(\d+) +\d+$", cells["01-code-9"], re.MULTILINE)
    table = {int(limit): (int(n), float(share), int(p)) for limit, n, share, p in rows}
    assert all(at_once == limit for limit, (at_once, _, _) in table.items())
    assert table[280][1] < 100 / 3
    assert [limit for limit, (_, _, preempted) in table.items() if preempted] == [1000]
    assert "With 280 chats less than a third of the memory is in use" in text
    blocks = [-(-n // 16) for n in range(150, 301)]
    assert f"{sum(blocks) / len(blocks):.2f} blocks on average" in text
    assert f"10,752 / 14.53, some {10752 / 14.53:.0f}" in text
    assert f"{1 - 225 / (16 * sum(blocks) / len(blocks)):.1%}" == "3.2%"
    assert f"{1 - 225 / 4096:.1%}" == "94.5%"


def test_the_engine_of_the_lesson_served_everybody():
    from minipaged.simulate import simulate
    from minipaged.workload import SyntheticWorkload

    workload = SyntheticWorkload(
        requests=24, prompt_len=(8, 40), output_len=(8, 88), arrival_rate=0.12, seed=241
    )
    trace = simulate(
        workload.arrivals(), block_size=16, num_blocks=32, max_num_seqs=8, max_model_len=128
    )
    events = [event.kind for record in trace.steps for event in record.events]
    assert events.count("finished") == 24
    assert "preempted" not in events
    assert max(len(record.tables) for record in trace.steps) == 8
    assert "The engine served all 24, up to 8 at once" in prose("lessons")


def test_the_exercises_end_says_what_its_cells_print():
    cells, text = printed("solutions"), prose("solutions")
    first, second = re.findall(r"^(?:128 slots|its length)(.*)$", cells["01-code-3"], re.MULTILINE)
    _, asked, free, gap, _, _ = map(int, first.split())
    assert free < asked
    _, asked, free, gap, _, _ = map(int, second.split())
    assert gap < asked < free / 2
    assert "more than twice as many slots were free as the request asked for" in text
    assert "all 24 served, 8 at once at most, 0 preempted" in cells["01-code-3"]
    assert 131_072 * 2000 * 2 // 10**6 == 524
    assert "524 · 10⁶ bytes, 0.16 ms" in text
    assert f"{524e6 / 3.35e12 * 1e3:.2f} {120e9 / 3.35e12 * 1e3:.0f}" == "0.16 36"
