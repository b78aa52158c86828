"""The engine: schedule, execute, commit, again and again.

It joins the parts and knows the rules of none of them: the scheduler decides, the executor
computes, the manager keeps the blocks, and this file passes plans and results between them.
Everything here works on tokens; text is added where a tokenizer was given. No torch, no numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minipaged.cache import last_token
from minipaged.clock import Clock, WallClock
from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.exec.base import Executor
from minipaged.intake import Intake, Tokenizer, refuse_best_of
from minipaged.live import Live, require_consistent
from minipaged.metrics import Metrics
from minipaged.observer import Observer
from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult, require_tokens
from minipaged.request import FinishReason, Request, RequestStatus


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
        if config.cache.num_blocks is None:
            raise ValueError("an Engine needs num_blocks: set it, or use LLM")
        parts = Components() if components is None else components
        self.config = config
        self.executor = executor
        self.clock: Clock = clock or WallClock()
        self.manager = parts.make_manager(config.cache)
        self.scheduler = parts.make_scheduler(config, self.manager)
        self.metrics = Metrics()
        self.observers: list[Observer] = []
        self._live = Live(tokenizer)
        self.requests, self.times = self._live.requests, self._live.times
        self._intake = Intake(config, self.manager.num_slots, tokenizer, vocab_size, eos_token_ids)
        self._aborts: dict[str, None] = {}
        self._in_step = False
        self._was_empty = False

    def add_request(
        self,
        request_id: str,
        prompt: str | Sequence[int],
        params: SamplingParams | None = None,
        *,
        arrival_time: float | None = None,
        cache_salt: str = "",
        adapter: str = "",
        priority: int = 0,
        with_text: bool = True,
    ) -> None:
        """Queue a request. ValueError, and nothing changed, if it can never be served.

        cache_salt, adapter: only requests with the same two share cached blocks. priority: the
        smaller, the more urgent. with_text: make text of its tokens, if there is a tokenizer.
        """
        params = SamplingParams() if params is None else params
        refuse_best_of(params)
        arrival = self.clock.now() if arrival_time is None else arrival_time
        request = self._intake.request(
            request_id, prompt, params, arrival, (cache_salt, adapter), priority
        )
        self._live.add(request, with_text)
        self.scheduler.add(request)
        self._tell("added", request_id)

    def fork(
        self,
        request_id: str,
        new_id: str,
        params: SamplingParams | None = None,
        *,
        with_text: bool = True,
    ) -> None:
        """A new request whose prompt is all that a live one knows now: prompt and outputs.

        It shares the blocks of the other one, copies none, and goes its own way from here. Not
        during a step. params: the other's, if left out. ValueError if there is no such request.
        Cost: O(tokens).
        """
        refuse_best_of(params)
        parent = self._live.at_rest(request_id, "be forked", self._in_step)
        child = self._intake.branch(parent, new_id, params, self.clock.now())
        self._live.add(child, with_text)
        self.scheduler.fork(parent, child)
        self._tell("forked", new_id, request_id)

    def exchange_last_token(self, request_id: str, token_id: int) -> None:
        """Let the last known token of a live request, not computed yet, be another one.

        Not during a step, and only for a request without text. The new token ends nothing, even
        if it is a stop token. ValueError if it cannot be; then nothing has changed. O(1).
        """
        request = self._live.without_text(request_id, "exchange a token", self._in_step)
        self.check_prompt([token_id], SamplingParams())
        last_token.exchange(self.manager, request, token_id)

    def take_back_last_token(self, request_id: str) -> int:
        """Drop the last output of a live request and return it; the next step draws it anew.

        Not during a step, and only for a request without text. Nothing that was computed is lost
        but the last position, which is computed once more. ValueError if it cannot be. O(1).
        """
        request = self._live.without_text(request_id, "take a token back", self._in_step)
        times = self.times[request_id]
        if not times.num_outputs:
            raise ValueError(f"{request_id!r} cannot take a token back: it has no output")
        times.num_outputs -= 1
        return last_token.take_back(self.manager, request)

    def check_prompt(self, prompt: str | Sequence[int], params: SamplingParams) -> list[int]:
        """The prompt's tokens; ValueError says why it can never be served."""
        return self._intake.token_ids(prompt, params)

    def abort(self, request_ids: str | Iterable[str]) -> None:
        """End requests whatever they are doing. Unknown and finished ids are ignored.

        During a step (from a callback, say) the abort waits for its end: blocks in use by the
        step are never handed out under it.
        """
        ids = [request_ids] if isinstance(request_ids, str) else list(request_ids)
        every = (one for request_id in ids for one in self._live.sequences_of(request_id))
        self._aborts |= dict.fromkeys(every)
        if not self._in_step:
            self._apply_aborts()

    @property
    def max_model_len(self) -> int:
        """Prompt and output tokens of one request at most."""
        return self.config.max_model_len or 0

    def has_unfinished_requests(self) -> bool:
        """True while any request is waiting or running."""
        return bool(self.requests)

    def step(self) -> list[RequestOutput]:
        """One turn: schedule, execute, commit. Returns the news of every request that has some.

        Whatever raises before the commit (a policy, an observer, the executor), the step's
        requests then wait again as if preempted, nothing is lost, and the error goes on to the
        caller.
        """
        self._in_step = True
        try:
            result = self._carry_out(plan := self._decide())
            outputs = self._take_over(plan, result)
            for observer in self.observers:
                observer.committed(self, plan, result, outputs)
            return outputs
        finally:
            self._in_step = False
            self._apply_aborts()

    def check(self) -> None:
        """Verify the cache and that every request is where its status says (InvariantError)."""
        self.manager.check()
        limit = self.config.scheduler.max_num_seqs
        require_consistent(self._live, self.scheduler, self.manager, limit)

    def _decide(self) -> StepPlan:
        try:
            return self.scheduler.schedule()
        except BaseException:
            self._tell_preempted(0)
            raise

    def _carry_out(self, plan: StepPlan) -> StepResult:
        """Announce and execute a plan, or take it back."""
        told = 0
        try:
            told = self._tell_preempted(told)
            self._announce(plan)
            result = self.executor.execute(plan)
            require_tokens(plan, result)
            self.clock.advance(result.elapsed)
        except BaseException:
            moved = [victim for victim in self.scheduler.preempted[:told] if victim.is_swapped]
            self.scheduler.retract(plan)
            self._tell_preempted(told)
            for victim in moved:  # their way to the host was not carried out
                self._tell("preempted", victim.request_id)
            raise
        return result

    def _tell_preempted(self, told: int) -> int:
        """Count and tell the victims from number `told` on; returns how many there are."""
        victims = self.scheduler.preempted
        self.metrics.num_preemptions_total += len(victims) - told
        for victim in victims[told:]:
            self._tell("preempted", victim.request_id, "swapped" * victim.is_swapped)
        return len(victims)

    def _announce(self, plan: StepPlan) -> None:
        self._require_progress(plan)
        running, waiting = len(self.scheduler.running), len(self.scheduler.waiting)
        self.metrics.planned(plan, running, waiting, self.manager)
        now = self.clock.now()
        for item in plan.items:
            if item.first_block == 0:
                self.times[item.request_id].scheduled(now)
        for observer in self.observers:
            observer.planned(self, plan)

    def _require_progress(self, plan: StepPlan) -> None:
        """One empty step may follow from a preemption; a second, or one without, is a spin."""
        is_empty = plan.is_empty() and bool(self.requests)
        if is_empty and (self._was_empty or not self.scheduler.preempted):
            raise RuntimeError(
                f"the scheduler planned nothing although {len(self.scheduler.running)} requests "
                f"run and {len(self.scheduler.waiting)} wait: it would spin for ever"
            )
        self._was_empty = is_empty

    def _take_over(self, plan: StepPlan, result: StepResult) -> list[RequestOutput]:
        """Commit, and make outputs; a request that ended is let go of even if its text fails."""
        self.metrics.carried_out(plan, self._live.num_recomputed(plan))
        now, changed = self.clock.now(), list(self.scheduler.commit(plan, result))
        for request in changed:
            if request.request_id not in self.requests:
                self._tell("forked", request.request_id, self._live.add_sample(request))
        try:
            return [self._output(request, result, now) for request in changed]
        finally:
            for request in changed:
                if request.finish_reason is not None and request.request_id in self.requests:
                    self._forget(request, request.finish_reason)

    def _output(self, request: Request, result: StepResult, now: float) -> RequestOutput:
        request_id = request.request_id
        times = self.times[request_id]
        new = request.token_ids[request.num_prompt_tokens + times.num_outputs :]
        times.produced(len(new), now)
        text = self._text_of(request, new)
        reason = request.finish_reason
        owner, index = self._live.samples.owner(request_id)
        output = RequestOutput(owner, new, text, reason and str(reason), sample_index=index)
        logprobs = result.logprobs.get(request_id)
        if logprobs is None and index:
            logprobs = result.fork_logprobs.get(owner, [])[index - 1 :]
        output.logprobs = (logprobs or [])[: len(new)]
        if reason is not None:
            output.times = times
            self._forget(request, reason)
        return output

    def _text_of(self, request: Request, new_token_ids: list[int]) -> str:
        """The new text; a stop string found in it ends the request."""
        text, found_stop = self._live.text_of(request, new_token_ids)
        if found_stop and request.status is RequestStatus.FINISHED:
            request.finish_reason = FinishReason.STOP
        elif found_stop:
            self.scheduler.finish(request, FinishReason.STOP)
        return text

    def _apply_aborts(self) -> None:
        while self._aborts:  # an observer that hears of one may ask for more
            request = self.requests.get(self._aborts.popitem()[0])
            if request is not None:
                self.scheduler.finish(request, FinishReason.ABORT)
                self._forget(request, FinishReason.ABORT)

    def _forget(self, request: Request, reason: FinishReason) -> None:
        """A request has ended: count it and let go of everything kept for it."""
        num_prompt_tokens, times = self._live.remove(request)
        self.metrics.finished(str(reason), num_prompt_tokens, times)
        kind = "aborted" if reason is FinishReason.ABORT else "finished"
        self._tell(kind, request.request_id, reason)

    def _tell(self, kind: str, request_id: str, detail: str = "") -> None:
        for observer in self.observers:
            observer.event(kind, request_id, str(detail))
