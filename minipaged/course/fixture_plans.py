"""What is wrong with a plan, or with a scheduler behind a commit, in a sentence; "" if nothing is.

For the desk of fixture_sched.py. The first fault that is found is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from minipaged.plan import ScheduledItem, StepPlan, StepResult
from minipaged.request import Request, RequestStatus

if TYPE_CHECKING:
    from minipaged.course.fixture_sched import SchedulerDesk

SPIN = "would go on for ever"


def fault_of_plan(desk: SchedulerDesk, plan: Any) -> str:
    """Looks at a plan before it is carried out; notes what an executor would note."""
    if not isinstance(plan, StepPlan):
        return f"schedule returned {_kind(plan)}, not the plan"
    return next(_of_plan(desk, plan), "")


def _of_plan(desk: SchedulerDesk, plan: StepPlan) -> Iterator[str]:
    counts = Counter(item.request_id for item in plan.items)
    yield from (f"{name} is in the plan {n} times" for name, n in counts.items() if n > 1)
    for item in plan.items:
        yield from _of_item(desk, item)
    yield from _of_limits(desk, plan)
    yield from _of_progress(desk, plan)
    if sorted(plan.finished) != sorted(desk.unnamed):
        yield f"plan.finished is {plan.finished}, but {desk.unnamed} have ended since the last plan"
    desk.unnamed = []


def _of_item(desk: SchedulerDesk, item: ScheduledItem) -> Iterator[str]:
    name, request = item.request_id, desk.requests.get(item.request_id)
    if request is None or request not in desk.scheduler.running:
        yield f"{name} is in the plan, but it does not run"
        return
    start, count = item.start_position, len(item.token_ids)
    if not count:
        yield f"{name} is in the plan with no token to compute"
    if start != request.num_computed_tokens:
        yield f"{name} goes on at token {start}, but {request.num_computed_tokens} are computed"
    if item.token_ids != request.token_ids[start : start + count]:
        yield f"the tokens planned for {name} are not its own tokens from {start} on"
    table = desk.manager.tables.get(name, [])
    if len(table) * desk.manager.block_size < start + count:
        yield f"{name} has no slot for token {start + count - 1}: its table has {len(table)} blocks"
    row = desk.rows.get(name, [])[: item.first_block] if item.first_block else []
    desk.rows[name] = row + item.block_ids
    if desk.rows[name] != table:
        yield f"the executor is not told of every block of {name}"


def _of_limits(desk: SchedulerDesk, plan: StepPlan) -> Iterator[str]:
    seats, budget = desk.config.max_num_seqs, desk.config.max_num_batched_tokens
    if len(desk.scheduler.running) > seats:
        yield f"{len(desk.scheduler.running)} requests run, but max_num_seqs is {seats}"
    is_excused = desk.may_exceed and len(plan.items) == 1
    if plan.num_tokens > budget and not is_excused:
        yield f"the plan has {plan.num_tokens} tokens, but the budget is {budget}"


def _of_progress(desk: SchedulerDesk, plan: StepPlan) -> Iterator[str]:
    """One empty step may follow from a preemption; a second, or one without, is a spin."""
    is_empty = not plan.items and bool(desk.live())
    if is_empty and (desk.was_empty or not desk.scheduler.preempted):
        running, waiting = len(desk.scheduler.running), len(desk.scheduler.waiting)
        yield f"nothing is planned, though {running} run and {waiting} wait: this {SPIN}"
    desk.was_empty = is_empty


def fault_of_tokens(
    desk: SchedulerDesk,
    plan: StepPlan,
    result: StepResult,
    known: dict[str, list[int]],
    changed: Any,
) -> str:
    """What commit did with the computed tokens and with the new ones. known: the tokens before."""
    for item in plan.items:
        request = desk.requests[item.request_id]
        new = result.token_ids.get(item.request_id, [])
        if request.token_ids != known[item.request_id] + new:
            return f"{item.request_id} was to get {len(new)} new tokens; it has others now"
        computed = item.start_position + len(item.token_ids)
        if request.finish_reason is None and request.num_computed_tokens != computed:
            return (
                f"{item.request_id} has {computed} computed tokens now, but its "
                f"num_computed_tokens is {request.num_computed_tokens}"
            )
        if request.num_inflight_tokens:
            return f"{item.request_id} still has tokens in flight behind commit"
    names = sorted(one.request_id for one in _requests(changed))
    if names != sorted(item.request_id for item in plan.items if item.sample is not None):
        return f"commit returned {names}: it returns the requests that got tokens"
    return ""


def _requests(changed: Any) -> Sequence[Request]:
    is_list = isinstance(changed, list) and all(isinstance(one, Request) for one in changed)
    return changed if is_list else ()


def fault_of_queues(desk: SchedulerDesk) -> str:
    """Every live request is in one queue, with the status that belongs there; no block is lost."""
    return next(_of_queues(desk), "")


def _of_queues(desk: SchedulerDesk) -> Iterator[str]:
    running, waiting = desk.scheduler.running, list(desk.scheduler.waiting)
    counts = Counter(request.request_id for request in [*running, *waiting])
    for name, count in counts.items():
        if count > 1 or desk.requests[name].finish_reason is not None:
            yield f"{name} stands in the queues {count} times, and is {_status(desk, name)}"
    yield from (f"{name} is in no queue, though live" for name in desk.live() if name not in counts)
    for request in running:
        if request.status is not RequestStatus.RUNNING:
            yield f"{request.request_id} is in running, but its status is {request.status.value}"
    for request in waiting:
        if request.status not in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
            yield f"{request.request_id} is in waiting, but its status is {request.status.value}"
    names = {request.request_id for request in running}
    holders = {name for name, table in desk.manager.tables.items() if table}
    yield from (f"{name} does not run and still holds blocks" for name in sorted(holders - names))


def _status(desk: SchedulerDesk, name: str) -> str:
    return desk.requests[name].status.value


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
