"""What a step costs depends on what it schedules: counted in executed lines, not in seconds."""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path

import pytest

import minipaged
from minipaged.components import Components
from minipaged.config import CacheConfig, EngineConfig, SamplingParams
from minipaged.plan import StepResult
from minipaged.request import Request

PACKAGE = str(Path(minipaged.__file__).parent)


def lines_of(call):
    """Lines of the package executed inside a call (a garbage collection may run others)."""
    count = 0

    def tracer(frame, event, arg):
        nonlocal count
        count += event == "line" and frame.f_code.co_filename.startswith(PACKAGE)
        return tracer

    previous = sys.gettrace()
    sys.settrace(tracer)
    try:
        result = call()
    finally:
        sys.settrace(previous)
    return count, result


def past_the_prompts(num_blocks=1000, num_waiting=0, context=20, running=8):
    """(scheduler, manager) after the step that reads `running` prompts; the rest wait.

    In the next step all of them decode, and none needs a block.
    """
    config = EngineConfig.of(
        num_blocks=num_blocks, max_num_seqs=running, max_num_batched_tokens=10**6
    )
    manager = Components().make_manager(CacheConfig(num_blocks=num_blocks))
    scheduler = Components().make_scheduler(config, manager)
    for number in range(running + num_waiting):
        scheduler.add(Request(str(number), [1] * context, SamplingParams(max_tokens=50)))
    plan = scheduler.schedule()
    scheduler.commit(plan, answer(plan))
    return scheduler, manager


def answer(plan):
    return StepResult({item.request_id: [7] for item in plan.items}, 0.0)


def lines_per_decode_step(running=8, **sizes):
    """Lines of one schedule + commit in which `running` requests decode."""
    scheduler, _ = past_the_prompts(running=running, **sizes)
    scheduled, plan = lines_of(scheduler.schedule)
    assert len(plan.items) == plan.num_tokens == running
    result = answer(plan)
    committed, _ = lines_of(lambda: scheduler.commit(plan, result))
    return scheduled + committed


BASE = lines_per_decode_step()


@pytest.mark.parametrize(
    "change", [{"num_blocks": 100_000}, {"num_waiting": 2000}, {"context": 1010}]
)
def test_pool_queue_and_context_do_not_matter(change):
    assert BASE > 50
    assert abs(lines_per_decode_step(**change) - BASE) <= 5


def test_what_is_scheduled_does():
    four, eight = (lines_per_decode_step(running=n) for n in (4, 8))
    twelve = lines_per_decode_step(running=12)
    assert twelve - eight == eight - four > 0


class Counted(list):
    """A list that counts the elements read from it, copies in C included."""

    read = 0

    def __getitem__(self, index):
        found = list.__getitem__(self, index)
        Counted.read += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self):
        Counted.read += len(self)
        return list.__iter__(self)

    def copy(self):
        Counted.read += len(self)
        return list.copy(self)


class CountedQueue(deque):
    """The same for a deque."""

    def __iter__(self):
        Counted.read += len(self)
        return deque.__iter__(self)

    def copy(self):
        Counted.read += len(self)
        return deque.copy(self)


def read_per_decode_step(**sizes):
    """Elements of tokens, tables, waiting queue and free queue that one step reads."""
    scheduler, manager = past_the_prompts(**sizes)
    for request in scheduler.running:
        request.token_ids = Counted(request.token_ids)
        table = manager.tables[request.request_id]
        table.block_ids = Counted(table.block_ids)
    scheduler.waiting = CountedQueue(scheduler.waiting)
    queue = manager.pool.free_queue
    queue._next, queue._prev = Counted(queue._next), Counted(queue._prev)
    Counted.read = 0
    plan = scheduler.schedule()
    scheduler.commit(plan, answer(plan))
    return Counted.read


@pytest.mark.parametrize(
    "change", [{"num_blocks": 100_000}, {"num_waiting": 2000}, {"context": 1010}]
)
def test_nothing_long_is_copied(change):
    assert read_per_decode_step(**change) == read_per_decode_step() == 8
