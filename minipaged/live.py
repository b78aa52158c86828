"""The live sequences of an engine and all that is kept for each: times, text, whose sample it is.

The scheduler knows sequences only, each under an id of its own. A user knows requests, which may be
several sequences. No torch.
"""

from __future__ import annotations

from minipaged.cache.invariants import InvariantError
from minipaged.cache.manager import KVManager
from minipaged.intake import Tokenizer
from minipaged.metrics import RequestTimes
from minipaged.output import TextStream
from minipaged.plan import StepPlan
from minipaged.protocols import SchedulerLike
from minipaged.request import FinishReason, Request, RequestStatus
from minipaged.samples import Samples


class Live:
    """requests, times: by sequence id. streams: of those whose text is wanted."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self.requests: dict[str, Request] = {}
        self.times: dict[str, RequestTimes] = {}
        self.streams: dict[str, TextStream] = {}
        self.samples = Samples()
        self._tokenizer = tokenizer

    def add(self, request: Request, with_text: bool) -> None:
        """Take a request in; ValueError, and nothing changed, if an id it needs is taken."""
        count = request.num_forks_due + 1
        taken = self.samples.clashes(request.request_id, count, self.requests)
        if taken is not None:
            raise ValueError(f"request id {taken!r} is live already: choose another")
        self.samples.reserve(request.request_id, count)
        self._open(request, with_text)

    def add_sample(self, sample: Request) -> str:
        """Take in a further sample that has branched off; returns the id of its request."""
        owner, _ = self.samples.owner(sample.request_id)
        self._open(sample, owner in self.streams)
        if owner in self.times:
            self.times[sample.request_id].first_scheduled = self.times[owner].first_scheduled
        return owner

    def sequences_of(self, request_id: str) -> list[str]:
        """The ids of a request's live sequences."""
        return [one for one in self.samples.all_of(request_id) if one in self.requests]

    def at_rest(self, request_id: str, what: str, in_step: bool) -> Request:
        """A live request between two steps; ValueError if it is none, so that it cannot `what`."""
        request = self.requests.get(request_id)
        if request is None or in_step:
            why = "a step is under way" if in_step else "there is no live request of that id"
            raise ValueError(f"{request_id!r} cannot {what}: {why}")
        return request

    def without_text(self, request_id: str, what: str, in_step: bool) -> Request:
        """The same, and ValueError for one whose text is given out."""
        request = self.at_rest(request_id, what, in_step)
        if request_id in self.streams:
            raise ValueError(
                f"{request_id!r} cannot {what}: its text is given out as it comes; add it "
                "with_text=False"
            )
        return request

    def remove(self, request: Request) -> tuple[int, RequestTimes]:
        """Let go of a sequence that has ended; returns the prompt tokens to count, and its times.

        Samples have one prompt together, which is counted with sample 0.
        """
        request_id = request.request_id
        self.streams.pop(request_id, None)
        del self.requests[request_id]
        _, index = self.samples.owner(request_id)
        for one in self.samples.all_of(request_id) if request.num_forks_due else [request_id]:
            self.samples.ended(one)
        return 0 if index else request.num_prompt_tokens, self.times.pop(request_id)

    def num_recomputed(self, plan: StepPlan) -> int:
        """Tokens of a plan that were computed before, until a preemption dropped them. O(items)."""
        count = 0
        for item in plan.items:
            lost, start = self.requests[item.request_id].num_lost_tokens, item.start_position
            if start < lost:
                count += min(lost, start + len(item.token_ids)) - start
        return count

    def text_of(self, request: Request, new_token_ids: list[int]) -> tuple[str, bool]:
        """The text that became certain with these tokens, and whether a stop string ended it."""
        stream = self.streams.get(request.request_id)
        if stream is None:
            return "", False
        ended_by_token = request.finish_reason is FinishReason.STOP
        visible = new_token_ids[:-1] if ended_by_token else new_token_ids
        text = stream.push(visible, request.num_output_tokens > request.params.min_tokens)
        if request.finish_reason is not None and not stream.stopped:
            text += stream.close()
        return text, stream.stopped

    def _open(self, request: Request, with_text: bool) -> None:
        request_id = request.request_id
        self.requests[request_id] = request
        self.times[request_id] = RequestTimes(request.arrival_time)
        if self._tokenizer is not None and with_text:
            self.streams[request_id] = TextStream(self._tokenizer, request.params.stop)


def require_consistent(
    live: Live, scheduler: SchedulerLike, manager: KVManager, max_num_seqs: int
) -> None:
    """InvariantError unless every live sequence is where its status says, and nowhere else."""
    running, waiting = scheduler.running, list(scheduler.waiting)
    ids = [r.request_id for r in [*running, *waiting]]
    for right, words in (
        (sorted(ids) == sorted(live.requests), "the queues do not hold each request once"),
        (all(r.status is RequestStatus.RUNNING for r in running), "running holds another status"),
        (all(r.status in _WAITING for r in waiting), "waiting holds another status"),
        (
            {r.request_id for r in running} == set(manager.tables),
            "running requests and block tables differ",
        ),
        (
            {r.request_id for r in waiting if r.is_swapped}
            == set(manager.swap.tables if manager.swap else ()),
            "swapped requests and tables of host blocks differ",
        ),
        (len(running) <= max_num_seqs, "more run than max_num_seqs"),
    ):
        if not right:
            raise InvariantError(f"{words}: {running} run, {waiting} wait")


_WAITING = (RequestStatus.WAITING, RequestStatus.PREEMPTED, RequestStatus.SWAPPED)
