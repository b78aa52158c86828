"""One sequence of tokens on its way through the engine, and the states it may be in.

A request has no phase. It has `num_tokens` known tokens (prompt and outputs so far) and
`num_computed_tokens` whose keys and values are in the cache; the scheduler lets the second number
chase the first. A prompt being read, a single next token and a resumed request differ only in how
far apart the two are.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from minipaged.config import SamplingParams


class RequestStatus(enum.Enum):
    """Where a request is. WAITING, PREEMPTED and SWAPPED wait in the same queue and hold no blocks
    of the pool; a SWAPPED one holds host blocks."""

    WAITING = "waiting"
    RUNNING = "running"
    PREEMPTED = "preempted"
    SWAPPED = "swapped"
    FINISHED = "finished"


class FinishReason(enum.StrEnum):
    """Why a request ended: a stop token or string, a length limit, or its user's wish."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


_LEGAL: dict[RequestStatus, frozenset[RequestStatus]] = {
    RequestStatus.WAITING: frozenset({RequestStatus.RUNNING, RequestStatus.FINISHED}),
    RequestStatus.RUNNING: frozenset(
        {RequestStatus.PREEMPTED, RequestStatus.SWAPPED, RequestStatus.FINISHED}
    ),
    RequestStatus.PREEMPTED: frozenset({RequestStatus.RUNNING, RequestStatus.FINISHED}),
    RequestStatus.SWAPPED: frozenset(
        {RequestStatus.RUNNING, RequestStatus.PREEMPTED, RequestStatus.FINISHED}
    ),
    RequestStatus.FINISHED: frozenset(),
}


SAMPLE_MARK = "~"


def sample_id(request_id: str, sample_index: int) -> str:
    """The id of one of several samples of a request; sample 0 has the request's own."""
    return f"{request_id}{SAMPLE_MARK}{sample_index}" if sample_index else request_id


class Request:
    """The state of one sequence. A user reads RequestOutput instead.

    Written by the scheduler; by the manager (computed and in-flight counts when blocks come and
    go) and, for a stop string, the finish reason by the engine.

    request_id: the caller's name for it, unique among live requests.
    token_ids: prompt, then outputs; only ever appended to.
    num_prompt_tokens: how many of them are the prompt.
    num_computed_tokens: how many have their keys and values in the cache.
    num_inflight_tokens: how many more the plan now being executed computes.
    max_output_tokens: the tightest of max_tokens, max_model_len and the pool's slots.
    max_num_tokens: prompt and outputs when the last output is written.
    seed, sample_index: what the randomness of its tokens is a function of.
    num_forks_due: further samples that its prompt is still to be continued by.
    cache_key: (cache_salt, adapter); requests share cached blocks only if it is the same.
    num_blocks, num_sent_blocks: length of its table; entries of it that the executor knows.
    ready_slots: slots that may be written with no further ado; 0 if its last block may be shared
        or its table has entries that the executor does not know.
    num_published_blocks: leading blocks that the prefix cache knows.
    num_lost_tokens: most tokens that were computed when a preemption dropped them.
    num_swaps: times that it was swapped out. not_before: the step before which it stays out.
    priority: the smaller, the more urgent.
    block_links: what a prefix cache has worked out about its first full blocks, hashes say.
    """

    __slots__ = (
        "arrival_time",
        "block_links",
        "cache_key",
        "finish_reason",
        "max_num_tokens",
        "max_output_tokens",
        "not_before",
        "num_blocks",
        "num_computed_tokens",
        "num_forks_due",
        "num_inflight_tokens",
        "num_lost_tokens",
        "num_preemptions",
        "num_prompt_tokens",
        "num_published_blocks",
        "num_sent_blocks",
        "num_swaps",
        "params",
        "priority",
        "ready_slots",
        "request_id",
        "sample_index",
        "seed",
        "status",
        "stop_token_ids",
        "token_ids",
    )

    def __init__(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int],
        params: SamplingParams,
        *,
        max_output_tokens: int | None = None,
        arrival_time: float = 0.0,
        seed: int = 0,
        num_samples: int = 1,
        cache_key: tuple[str, str] = ("", ""),
        priority: int = 0,
    ) -> None:
        self.request_id = request_id
        self.token_ids = list(prompt_token_ids)
        self.num_prompt_tokens = len(self.token_ids)
        self.params = params
        self.max_output_tokens = (
            params.max_tokens if max_output_tokens is None else max_output_tokens
        )
        self.max_num_tokens = self.num_prompt_tokens + self.max_output_tokens
        self.stop_token_ids = frozenset(params.stop_token_ids)
        self.arrival_time = arrival_time
        self.seed = seed
        self.sample_index = 0
        self.num_forks_due = num_samples - 1
        self.cache_key = cache_key
        self.block_links: list[tuple[bytes, bytes]] = []
        self.num_blocks = self.num_sent_blocks = self.ready_slots = 0
        self.num_published_blocks = 0
        self.num_computed_tokens = 0
        self.num_inflight_tokens = 0
        self.num_preemptions = self.num_swaps = self.num_lost_tokens = self.not_before = 0
        self.priority = priority
        self.status = RequestStatus.WAITING
        self.finish_reason: FinishReason | None = None

    def branch(self, request_id: str) -> Request:
        """A request with the same tokens, prompt and parameters, not yet in any queue."""
        twin = Request(
            request_id,
            self.token_ids,
            self.params,
            max_output_tokens=self.max_output_tokens,
            arrival_time=self.arrival_time,
            seed=self.seed,
            cache_key=self.cache_key,
            priority=self.priority,
        )
        twin.num_prompt_tokens = self.num_prompt_tokens
        twin.max_num_tokens = self.max_num_tokens
        twin.block_links = self.block_links.copy()
        return twin

    @property
    def num_tokens(self) -> int:
        """Known tokens: the prompt and every output so far."""
        return len(self.token_ids)

    @property
    def num_output_tokens(self) -> int:
        """Outputs so far."""
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def output_token_ids(self) -> list[int]:
        """The outputs so far, as a new list."""
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def is_swapped(self) -> bool:
        """Whether what it has computed waits on the host."""
        return self.status is RequestStatus.SWAPPED

    def move_to(self, status: RequestStatus) -> None:
        """Change the status; an illegal change raises RuntimeError and changes nothing."""
        if status not in _LEGAL[self.status]:
            legal = ", ".join(sorted(s.value for s in _LEGAL[self.status])) or "none"
            raise RuntimeError(
                f"request {self.request_id!r} cannot go from {self.status.value} to "
                f"{status.value}; legal next states: {legal}"
            )
        self.status = status

    def finish(self, reason: FinishReason) -> None:
        """Move to FINISHED for `reason`."""
        self.move_to(RequestStatus.FINISHED)
        self.finish_reason = reason

    def __repr__(self) -> str:
        return (
            f"Request({self.request_id!r}, {self.status.value}, "
            f"{self.num_computed_tokens} of {self.num_tokens} tokens computed)"
        )
