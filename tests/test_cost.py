"""Steps are counted, not timed: a search costs as many as it compares, wherever it happens."""

from __future__ import annotations

import array
import runpy
import sys
import tracemalloc
from collections import deque
from pathlib import Path

import pytest

from minipaged.course.checks.lesson_02_queue import CHECK, costs
from minipaged.course.cost import cost_of, fewest
from minipaged.course.expect import matches
from minipaged.course.script import Operation, run
from minipaged.course.verdict import show_call

SIZE = 1000


class ByList:
    def __init__(self):
        self.ids = list(range(SIZE))

    def remove(self, block_id):
        self.ids.remove(block_id)

    def find(self, block_id):
        return block_id in self.ids

    def prepend(self, block_id):
        self.ids.insert(0, block_id)

    def walk(self, block_id):
        for _one in self.ids:
            pass


class ByDict:
    def __init__(self):
        self.ids = dict.fromkeys(range(SIZE))

    def remove(self, block_id):
        del self.ids[block_id]


@pytest.mark.parametrize("method", ["remove", "find", "prepend", "walk"])
def test_a_search_or_a_shift_is_seen(method):
    assert cost_of(getattr(ByList(), method), SIZE - 1) >= SIZE


def test_a_look_up_is_cheap_wherever_it_is():
    costs = {cost_of(ByDict().remove, block_id) for block_id in range(0, SIZE, 97)}
    assert max(costs) < 10


def test_the_count_is_the_same_each_time():
    assert len({cost_of(ByList().remove, 500) for _ in range(5)}) == 1


def test_tracing_is_put_back_also_after_an_exception():
    before = sys.gettrace(), sys.getprofile()
    with pytest.raises(ValueError):
        cost_of(ByList().remove, SIZE + 1)
    assert (sys.gettrace(), sys.getprofile()) == before


def test_a_wrong_parameter_list_is_not_blamed_on_a_line_of_ours():
    class Short:
        def remove(self):
            pass

    [_, one] = run([Operation((), keep="q"), Operation(([[3]],), "q", "remove", how="cost")], Short)
    assert one.fault.kinds[0] == "TypeError"
    assert (one.fault.line, one.fault.source) == (None, "")


class ByCopies:
    """No search that compares, no line that repeats, and yet each call goes over all ids."""

    def __init__(self):
        self.ids, self.known = list(range(SIZE)), dict.fromkeys(range(SIZE))

    def unpack(self, block_id):
        self.ids = [block_id, *self.ids]

    def cut(self, block_id):
        self.ids = self.ids[1:]

    def add(self, block_id):
        self.ids = self.ids + [block_id]  # noqa: RUF005

    def rebuild(self, block_id):
        self.known = {block_id: None, **self.known}


@pytest.mark.parametrize("method", ["unpack", "cut", "add", "rebuild"])
def test_a_copy_is_seen(method):
    assert cost_of(getattr(ByCopies(), method), SIZE + 1) >= SIZE - 1


def test_a_users_own_memory_trace_goes_on():
    tracemalloc.start()
    try:
        cost_of(ByDict().remove, 3)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


class Objects:
    """Objects of a class of their own: what compares them is not seen, what it is called is."""

    def __init__(self, kind):
        self.rows = kind(object() for _ in range(SIZE))
        self.last = self.rows[-1]


class OwnList(list):
    def __len__(self):
        raise NotImplementedError


@pytest.mark.parametrize("kind", [list, deque, OwnList, type("OwnDeque", (deque,), {})])
@pytest.mark.parametrize("method", ["remove", "index", "count"])
def test_a_search_for_an_object_is_seen(kind, method):
    held = Objects(kind)
    assert cost_of(lambda: getattr(held.rows, method)(held.last)) >= SIZE
    assert cost_of(lambda: getattr(kind, method)(held.rows, object()) if method == "count" else 0)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda rows: rows.insert(0, 7), deque),
        (lambda rows: rows.rotate(9), deque),
        (lambda rows: rows.copy(), deque),
        (lambda rows: rows.reverse(), list),
        (lambda rows: rows.sort(), list),
        (lambda rows: rows.index(SIZE - 1), lambda ids: array.array("q", ids)),
        (lambda rows: rows.insert(0, 7), lambda ids: array.array("q", ids)),
        (lambda rows: rows.extend(list(rows)), list),
    ],
)
def test_what_goes_over_all_elements_is_seen(call, kind):
    rows = kind(range(SIZE))
    assert cost_of(lambda: call(rows)) >= SIZE


def test_what_adds_one_element_is_cheap():
    rows = list(range(SIZE))
    assert fewest(lambda i: rows.extend([i]), [[1], [2], [3]]) < 10


# --- the fewest of several calls ------------------------------------------------------------------


def test_one_dear_call_of_several_does_not_count():
    def adding(count):
        ids = dict.fromkeys(range(count))
        return lambda block_id: ids.update({block_id: None})

    # with some number of ids one more means that the dict is copied into a larger one
    [full] = [n for n in range(SIZE, 2 * SIZE) if cost_of(adding(n), n) > SIZE]
    add = adding(full)
    assert cost_of(add, full) > SIZE > 10 > cost_of(add, full + 1)
    assert fewest(adding(full), [[full], [full + 1], [full + 2]]) < 10


def test_a_call_that_is_always_dear_counts():
    assert fewest(ByList().remove, [[SIZE // 2], [SIZE // 2 + 3], [SIZE // 2 - 3]]) >= SIZE // 2


class Strict(ByList):
    """Takes ints of exactly that type."""

    def take(self, block_id):
        if type(block_id) is not int:
            raise ValueError(block_id)
        return block_id

    def drop(self, block_id):
        self.ids.remove(self.take(block_id))


def test_who_takes_nothing_but_ints_is_given_some():
    assert fewest(Strict().take, [[1], [2], [3]]) < 10
    assert fewest(Strict().drop, [[501], [502], [503]]) >= SIZE - 3
    with pytest.raises(ValueError, match="not in list"):
        fewest(Strict().drop, [[9999]])


SAMPLES = Path(__file__).with_name("samples") / "02"


@pytest.mark.parametrize("name", ["ordered_dict", "strict_about_ints", "two_logs", "head_and_tail"])
def test_a_right_queue_is_cheap_at_every_length(name):
    queue = runpy.run_path(str(SAMPLES / f"02.1_right_{name}.py"))["FreeQueue"]
    for length in (*range(2048, 4096, 128), *range(2716, 2744), 3071, 3072, 3073, 4095, 4096):
        case = costs(length)
        seen = run(case.operations, queue)[1:]
        expected = CHECK.oracle(case)
        steps = [one.value for one in seen]
        assert all(map(matches, expected, steps)), (length, steps, seen[0].fault)


def test_the_calls_are_shown_as_a_learner_would_write_them():
    remove = Operation(([[5], [7]],), "queue", "remove", how="cost")
    assert show_call(remove, "Queue") == "fewest steps of queue.remove(5), queue.remove(7)"
    pop = Operation(([[], []],), "queue", "pop_head", how="cost")
    assert show_call(pop, "Queue") == "fewest steps of queue.pop_head(), queue.pop_head()"
