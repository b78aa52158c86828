"""What an oracle may expect: tolerances, limits, refusals; and tensors as plain data."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minipaged.course import expect, plain
from minipaged.course.checks.base import Check
from minipaged.course.expect import AtMost, Close, Raises
from minipaged.course.plain import Array, Kept
from minipaged.course.script import Case, Operation, from_json, run, to_json
from minipaged.course.verdict import judge

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool", "uint8"]


def journey(value):
    """What the other process gets."""
    return plain.decode(json.loads(json.dumps(plain.encode(value))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_survives_the_journey(dtype):
    tensor = torch.tensor([[0.0, 1.0, 2.5], [0.0, 3.0, 100.0]]).to(getattr(torch, dtype))
    there = journey(tensor)
    assert (there.dtype, there.shape) == (dtype, (2, 3))
    assert list(there.numbers()) == tensor.flatten().tolist()
    back = plain.to_tensor(there)
    assert back.dtype == tensor.dtype and torch.equal(back, tensor)


def test_views_and_empty_tensors_are_taken_as_they_read():
    whole = torch.arange(12.0).reshape(3, 4)
    assert list(journey(whole.T).numbers()) == whole.T.flatten().tolist()
    empty = journey(torch.empty(0, 4))
    assert empty.shape == (0, 4) and plain.to_tensor(empty).shape == (0, 4)
    assert list(journey(torch.ones(2, requires_grad=True)).numbers()) == [1.0, 1.0]


def test_arrays_are_the_same_only_in_dtype_shape_and_every_number():
    one = Array.of("float32", (2, 2), [1, 2, 3, math.nan])
    assert plain.same(one, Array.of("float32", (2, 2), [1, 2, 3, math.nan]))
    assert not plain.same(one, Array.of("float32", (2, 2), [1, 2, 4, math.nan]))
    assert not plain.same(one, Array.of("float32", (4,), [1, 2, 3, math.nan]))
    assert not plain.same(one, Array.of("float64", (2, 2), [1, 2, 3, math.nan]))
    assert not plain.same(one, [1, 2, 3])


def test_a_parameter_or_a_subclass_is_no_tensor():
    class Sly(torch.Tensor):
        pass

    assert type(journey(torch.ones(2).as_subclass(Sly))) is plain.Other
    assert type(journey(torch.nn.Parameter(torch.ones(2)))) is plain.Other


@pytest.mark.parametrize(
    "data",
    [
        {"array": ["float32", [2], "AAAA"]},
        {"array": ["float99", [0], ""]},
        {"array": ["float32", [-1], ""]},
        {"array": ["float32", [True], "AAAAAA=="]},
        {"array": ["float32", 3, ""]},
        {"array": ["float32", [1], "?"]},
        {"array": ["float32"]},
    ],
)
def test_a_malformed_array_is_refused(data):
    with pytest.raises(ValueError):
        plain.decode(data)


@given(st.floats(-1e6, 1e6), st.floats(-1e-3, 1e-3))
def test_close_is_a_tolerance(value, error):
    close = Close(value, relative=0, absolute=5e-4)
    apart = abs((value + error) - value)
    if abs(apart - 5e-4) > 1e-9:
        assert expect.matches(close, value + error) == (apart <= 5e-4)


def test_close_takes_whole_numbers_and_no_others():
    assert expect.matches(Close(3.0), 3)
    assert not any(
        expect.matches(Close(1.0), other) for other in (True, "1", None, [1.0], math.nan)
    )
    assert expect.matches(Close(math.inf), math.inf)
    assert expect.has_type(Close(1.0), 7) and not expect.has_type(Close(1.0), "7")


def test_close_arrays():
    close = Close(Array.of("float32", (2,), [1, 2]), relative=1e-3)
    assert expect.matches(close, Array.of("float32", (2,), [1.0005, 2]))
    assert not expect.matches(close, Array.of("float32", (2,), [1.01, 2]))
    assert not expect.matches(close, Array.of("float64", (2,), [1, 2]))
    assert not expect.matches(close, Array.of("float32", (1, 2), [1, 2]))
    assert not expect.matches(close, [1.0, 2.0])


def test_at_most():
    assert expect.matches(AtMost(5), 5)
    assert not expect.matches(AtMost(5), 6)
    assert not expect.matches(AtMost(5), True) and not expect.matches(AtMost(5), 4.0)
    assert expect.show(AtMost(5, "steps")) == "at most 5 steps"


def test_a_refusal_never_matches_a_value():
    assert not expect.matches(Raises("ValueError"), Raises("ValueError"))
    assert expect.show(Raises("ValueError")) == "a ValueError"


# the operations of a script


class Bag:
    """Something with a length, contents, a key and an attribute."""

    def __init__(self, items):
        self.items = items
        self.label = "bag"

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, key):
        return self.items[key]

    def __contains__(self, item):
        return item in self.items


def said(*operations, subject=Bag):
    """The decoded answers, after a journey of the script."""
    there = from_json(json.loads(json.dumps(to_json(operations))))
    return [
        plain.decode(one.value) if one.fault is None else one.fault for one in run(there, subject)
    ]


def test_each_kind_of_operation():
    assert said(
        Operation(([3, 4],), keep="bag"),
        Operation((), "bag", how="len"),
        Operation((), "bag", how="list"),
        Operation((3,), "bag", how="in"),
        Operation((1,), "bag", how="item"),
        Operation((), "bag", "label", how="get"),
    ) == [None, 2, [3, 4], True, 4, "bag"]


def test_a_kept_thing_and_a_fixture_can_be_arguments():
    def drain(queue, count):
        return [queue.pop_head() for _ in range(count)]

    answers = said(
        Operation(([1],), how="give", keep="list"),
        Operation((Kept("list"),), how="call"),
        Operation((), "list", how="get"),
        subject=lambda items: items.append(2),
    )
    assert answers == [None, None, [1, 2]]
    [lost] = said(Operation((Kept("nothing"),)), subject=drain)
    assert lost.kinds[0] == "LookupError"
    answers = said(
        Operation((4,), "PlainQueue", keep="queue"),
        Operation((Kept("queue"), 2)),
        Operation((), "queue", how="list"),
        subject=drain,
    )
    assert answers == [None, [0, 1], [2, 3]]


def test_what_was_kept_may_be_changed_and_what_was_given_may_not():
    case = Case(
        "add in place",
        "",
        (
            Operation((Array.of("float32", (2,), [1, 2]),), how="give", keep="pool"),
            Operation((Kept("pool"), Array.of("float32", (2,), [10, 10]))),
            Operation((), "pool", how="get"),
        ),
    )
    after = Array.of("float32", (2,), [11, 12])
    a_check = Check(lambda: [case], lambda seed: [], lambda case: [None, after])

    def right(pool, new):
        pool += new

    def greedy(pool, new):
        pool += new
        new.zero_()

    [good] = judge(a_check, [case], [run(case.operations, right)], "f")
    [bad] = judge(a_check, [case], [run(case.operations, greedy)], "f")
    assert good.passed
    assert (bad.problem.kind, bad.problem.operation) == ("changed", 1)
    assert bad.problem.call.startswith("f(pool, tensor float32 [2]: 10, 10)")


def test_a_tensor_without_numbers_is_no_array_and_costs_no_observation():
    def add(items):
        items.append(torch.ones(2, device="meta"))
        return items[0]

    [one] = run([Operation(([],))], add)
    assert one.fault is None
    assert plain.decode(one.value) == plain.Other("Tensor")
    assert plain.decode(one.args_after) == ([plain.Other("Tensor")],)
    assert journey(torch.ones(2, device="meta")) == plain.Other("Tensor")
