"""Steps are counted, not timed: a search costs as many as it compares, wherever it happens."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from minipaged.course.cost import cost_of
from minipaged.course.script import Operation, run

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

    [_, one] = run([Operation((), keep="q"), Operation((3,), "q", "remove", how="cost")], Short)
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
