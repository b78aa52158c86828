"""The engine: schedule, execute, commit, again and again.

It joins the parts and knows the rules of none of them: the scheduler decides, the executor
computes, the manager keeps the blocks, and this file passes plans and results between them.
Everything here works on tokens; text is added where a tokenizer was given. No torch, no numpy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from minipaged.cache.manager import InvariantError
from minipaged.clock import Clock, WallClock
from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.exec.base import Executor
from minipaged.metrics import Metrics, RequestTimes
from minipaged.output import RequestOutput, TextStream
from minipaged.plan import StepPlan, StepResult
from minipaged.request import FinishReason, Request, RequestStatus
from minipaged.sched.limits import max_output_tokens


class Tokenizer(Protocol):
    """What the engine needs to take and give text."""

    def prompt_ids(self, text: str) -> list[int]: ...

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes: ...


class Observer(Protocol):
    """Something that watches an engine, such as trace.Recorder."""

    def event(self, kind: str, request_id: str, detail: str = "") -> None: ...

    def planned(self, engine: Engine, plan: StepPlan) -> None: ...

    def committed(
        self, engine: Engine, plan: StepPlan, result: StepResult, outputs: list[RequestOutput]
    ) -> None: ...


class Engine:
    """Serves requests. Not thread-safe: call it from one thread, or from its own callbacks.

    config.cache.num_blocks and config.max_model_len must be set here (LLM derives them).
    vocab_size: prompt tokens beyond it are refused. eos_token_ids: tokens that end a request.
    """

    def __init__(
        self,
        config: EngineConfig,
        executor: Executor,
        *,
        components: Components | None = None,
        clock: Clock | None = None,
        tokenizer: Tokenizer | None = None,
        vocab_size: int | None = None,
        eos_token_ids: Sequence[int] = (),
    ) -> None:
        if config.cache.num_blocks is None or config.max_model_len is None:
            raise ValueError("an Engine needs num_blocks and max_model_len: set both, or use LLM")
        parts = components or Components()
        self.config = config
        self.max_model_len = config.max_model_len
        self.executor = executor
        self.clock: Clock = clock or WallClock()
        self.manager = parts.make_manager(config.cache.num_blocks, config.cache.block_size)
        self.scheduler = parts.make_scheduler(config, self.manager)
        self.metrics = Metrics()
        self.observers: list[Observer] = []
        self.requests: dict[str, Request] = {}
        self.times: dict[str, RequestTimes] = {}
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._eos = tuple(eos_token_ids)
        self._streams: dict[str, TextStream] = {}
        self._aborts: dict[str, None] = {}
        self._plan_is_out = False

    def add_request(
        self,
        request_id: str,
        prompt: str | Sequence[int],
        params: SamplingParams | None = None,
        *,
        arrival_time: float | None = None,
    ) -> None:
        """Queue a request. ValueError, and nothing changed, if it can never be served."""
        params = params or SamplingParams()
        if request_id in self.requests:
            raise ValueError(f"request id {request_id!r} is live already: choose another")
        token_ids = self.check_prompt(prompt, params)
        if not params.ignore_eos:
            params = replace(params, stop_token_ids=(*params.stop_token_ids, *self._eos))
        arrival = self.clock.now() if arrival_time is None else arrival_time
        request = Request(
            request_id,
            token_ids,
            params,
            max_output_tokens=self._max_outputs(len(token_ids), params),
            arrival_time=arrival,
            seed=_seed_of(self.config.seed, request_id) if params.seed is None else params.seed,
        )
        self.requests[request_id] = request
        self.times[request_id] = RequestTimes(arrival)
        if self._tokenizer is not None:
            self._streams[request_id] = TextStream(self._tokenizer, params.stop)
        self.scheduler.add(request)
        self._tell("added", request_id)

    def check_prompt(self, prompt: str | Sequence[int], params: SamplingParams) -> list[int]:
        """The prompt's tokens; ValueError says why it can never be served."""
        if params.stop and self._tokenizer is None:
            raise ValueError(f"stop strings {params.stop} need a tokenizer: use stop_token_ids")
        token_ids = self._tokens_of(prompt)
        self._max_outputs(len(token_ids), params)
        for token in token_ids:
            known = isinstance(token, int) and token >= 0
            if not known or (self._vocab_size is not None and token >= self._vocab_size):
                limit = "any size" if self._vocab_size is None else f"0 to {self._vocab_size - 1}"
                raise ValueError(f"prompt token {token!r} is not a token id: give ints, {limit}")
        return token_ids

    def abort(self, request_ids: str | Iterable[str]) -> None:
        """End requests whatever they are doing. Unknown and finished ids are ignored.

        While a step is being executed the abort waits for its end: blocks in use by the step are
        never handed out under it.
        """
        ids = [request_ids] if isinstance(request_ids, str) else list(request_ids)
        self._aborts |= dict.fromkeys(i for i in ids if i in self.requests)
        if not self._plan_is_out:
            self._apply_aborts()

    def has_unfinished_requests(self) -> bool:
        """True while any request is waiting or running."""
        return bool(self.requests)

    def step(self) -> list[RequestOutput]:
        """One turn: schedule, execute, commit. Returns the news of every request that has some.

        If the executor raises, the step's requests wait again as if preempted, and the error
        goes on to the caller.
        """
        plan = self._make_plan()
        result = self._execute(plan)
        self.clock.advance(result.elapsed)
        now = self.clock.now()
        outputs = [self._output(r, result, now) for r in self.scheduler.commit(plan, result)]
        for observer in self.observers:
            observer.committed(self, plan, result, outputs)
        self._apply_aborts()
        return outputs

    def check(self) -> None:
        """Verify the cache and that every request is where its status says (InvariantError)."""
        self.manager.check()
        running, waiting = self.scheduler.running, list(self.scheduler.waiting)
        ids = [r.request_id for r in [*running, *waiting]]
        for right, words in (
            (sorted(ids) == sorted(self.requests), "the queues do not hold each request once"),
            (
                all(r.status is RequestStatus.RUNNING for r in running),
                "a queue holds another status",
            ),
            (
                {r.request_id for r in running} == set(self.manager.tables),
                "running requests and block tables differ",
            ),
            (len(running) <= self.config.scheduler.max_num_seqs, "more run than max_num_seqs"),
        ):
            if not right:
                raise InvariantError(f"{words}: {running} run, {waiting} wait")

    def _tokens_of(self, prompt: str | Sequence[int]) -> list[int]:
        if not isinstance(prompt, str):
            return list(prompt)
        if not prompt:
            raise ValueError("the prompt is empty: give at least one character")
        if self._tokenizer is None:
            raise ValueError("this engine has no tokenizer: give the prompt as token ids")
        return self._tokenizer.prompt_ids(prompt)

    def _max_outputs(self, num_prompt_tokens: int, params: SamplingParams) -> int:
        return max_output_tokens(
            num_prompt_tokens, params.max_tokens, self.max_model_len, self.manager.num_slots
        )

    def _make_plan(self) -> StepPlan:
        plan = self.scheduler.schedule()
        running, waiting = len(self.scheduler.running), len(self.scheduler.waiting)
        if plan.is_empty() and self.requests and not self.scheduler.preempted:
            raise RuntimeError(
                f"the scheduler planned nothing although {running} requests run and {waiting} "
                f"wait: it would spin for ever"
            )
        used = self.manager.num_blocks - self.manager.pool.num_free
        self.metrics.planned(plan, running, waiting, used, self.manager.num_blocks)
        self.metrics.num_preemptions_total += len(self.scheduler.preempted)
        now = self.clock.now()
        for item in plan.items:
            if item.first_block == 0:
                self.times[item.request_id].scheduled(now)
        for observer in self.observers:
            observer.planned(self, plan)
        return plan

    def _execute(self, plan: StepPlan) -> StepResult:
        self._plan_is_out = True
        try:
            result = self.executor.execute(plan)
            _require_tokens(plan, result)
        except BaseException:
            self.scheduler.retract(plan)
            self._plan_is_out = False
            self._apply_aborts()
            raise
        self._plan_is_out = False
        return result

    def _output(self, request: Request, result: StepResult, now: float) -> RequestOutput:
        request_id = request.request_id
        times = self.times[request_id]
        new = request.token_ids[request.num_prompt_tokens + times.num_outputs :]
        times.produced(len(new), now)
        text = self._text_of(request, new)
        reason = request.finish_reason
        output = RequestOutput(request_id, new, text, reason and str(reason))
        output.logprobs = result.logprobs.get(request_id, [])[: len(new)]
        if reason is not None:
            output.times = times
            self._forget(request, reason)
        return output

    def _text_of(self, request: Request, new_token_ids: list[int]) -> str:
        """The new text; a stop string found in it ends the request."""
        stream = self._streams.get(request.request_id)
        if stream is None:
            return ""
        ended_by_token = request.finish_reason is FinishReason.STOP
        visible = new_token_ids[:-1] if ended_by_token else new_token_ids
        text = stream.push(visible, request.num_output_tokens > request.params.min_tokens)
        if stream.stopped and request.status is RequestStatus.FINISHED:
            request.finish_reason = FinishReason.STOP
        elif stream.stopped:
            self.scheduler.finish(request, FinishReason.STOP)
        elif request.finish_reason is not None:
            text += stream.close()
        return text

    def _apply_aborts(self) -> None:
        for request_id in self._aborts:
            request = self.requests.get(request_id)
            if request is not None:
                self.scheduler.finish(request, FinishReason.ABORT)
                self._forget(request, FinishReason.ABORT)
        self._aborts = {}

    def _forget(self, request: Request, reason: FinishReason) -> None:
        """A request has ended: count it and let go of everything kept for it."""
        request_id = request.request_id
        self._streams.pop(request_id, None)
        del self.requests[request_id]
        self.metrics.finished(str(reason), request.num_prompt_tokens, self.times.pop(request_id))
        self._tell("aborted" if reason is FinishReason.ABORT else "finished", request_id, reason)

    def _tell(self, kind: str, request_id: str, detail: str = "") -> None:
        for observer in self.observers:
            observer.event(kind, request_id, str(detail))


def _require_tokens(plan: StepPlan, result: StepResult) -> None:
    for item in plan.items:
        if item.sample is not None and not result.token_ids.get(item.request_id):
            raise RuntimeError(f"the executor returned no token for request {item.request_id!r}")


def _seed_of(engine_seed: int, request_id: str) -> int:
    """A request's own seed: depends on its id, not on when it arrives or what runs beside it."""
    digest = hashlib.blake2b(f"{engine_seed}/{request_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
