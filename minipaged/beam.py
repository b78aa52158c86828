"""Beam search on an engine: every live beam is a request, and branching is fork and copy-on-write.

The rules stand in minipaged/beam_scores.py. After each step in which all beams of a group got
their next token, those without a future are aborted, those with several are forked, and the token
that each of them drew (the likeliest) is exchanged for the one that it was given. No key or value
is copied for that; the next step copies the last block of a beam that lives on twice, if that block
is not full.

If only some beams of a group got a token, because one was preempted or the budget ran out, they
give it back and try again at the next step. If then nothing else in the engine moves, the group
holds what a request at the head of the queue waits for, and waits behind it itself. It gives way:
its beams are queued again behind all others, and computed again.

A group needs beam_width places and tokens of the budget, and beam_width x blocks for the prompt and
max_tokens - 1 more tokens (the last is never stored). Groups that do not fit together in this sense
run one after another, so no group ever takes from another what that one needs. No torch.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence

from minipaged.beam_scores import Beam, BeamScores, BeamSearchParams
from minipaged.config import SamplingParams
from minipaged.engine import Engine
from minipaged.output import RequestOutput
from minipaged.plan import TokenLogprobs
from minipaged.prompts import Prompt

_names = itertools.count()


def beam_search(
    engine: Engine,
    prompts: Sequence[Prompt],
    params: BeamSearchParams,
    *,
    eos_token_ids: Sequence[int] = (),
) -> list[list[Beam]]:
    """For each prompt its beams, best first: beam_width of them unless the vocabulary is tiny.

    Steps the engine until all are found; other requests in it move on meanwhile. ValueError, and
    nothing was started, if a prompt can never be served. Whatever is raised, no beam is left.
    """
    search = BeamSearch(engine, prompts, params, eos_token_ids)
    try:
        while not search.done:
            search.step()
    finally:
        search.close()
    return search.found


class BeamSearch:
    """A search under way: call step until done, and close whatever happens.

    ValueError, and nothing was started, if a prompt can never be served.
    """

    def __init__(
        self,
        engine: Engine,
        prompts: Sequence[Prompt],
        params: BeamSearchParams,
        eos_token_ids: Sequence[int] = (),
    ) -> None:
        if not isinstance(params, BeamSearchParams):
            raise ValueError(f"params is {params!r:.80}, but it must be a BeamSearchParams")
        self._engine = engine
        self._groups: list[_Group] = []
        for number, prompt in enumerate(prompts):
            try:
                self._groups.append(_Group(engine, prompt, params, eos_token_ids))
                _require_room(engine, self._groups[-1:])
            except ValueError as error:
                where = f"prompt {number}: " if len(prompts) > 1 else ""
                raise ValueError(f"{where}{error}") from None
        self._waiting, self._live = deque(self._groups), list[_Group]()

    @property
    def done(self) -> bool:
        """Every prompt has its beams."""
        return not (self._waiting or self._live)

    @property
    def found(self) -> list[list[Beam]]:
        """The finished beams of each prompt so far, best first."""
        return [group.scores.finished for group in self._groups]

    @property
    def live(self) -> dict[str, tuple[int, list[int]]]:
        """The number of its prompt and the tokens so far of each live beam, by request id."""
        return {
            request_id: (number, list(beam.token_ids))
            for number, group in enumerate(self._groups)
            for request_id, beam in zip(group.ids, group.scores.live, strict=False)
        }

    def step(self) -> None:
        """Let in whom there is room for, run the engine for one step, and branch."""
        engine, live = self._engine, self._live
        while self._waiting and _lacks(engine, [*live, self._waiting[0]]) is None:
            live.append(self._waiting.popleft())
            live[-1].enter()
        before = _standing_still(engine, live)
        outputs = {output.request_id: output for output in engine.step()}
        for group in live:
            group.after_step(outputs)
        self._live = [group for group in live if not group.scores.done]
        if before and before == _standing_still(engine, self._live):
            _give_way(engine, self._live)

    def close(self) -> None:
        """End every request of the search. Safe at any time."""
        for group in self._groups:
            group.close()


def _standing_still(engine: Engine, live: Sequence[_Group]) -> set[str]:
    """All that run, if they are beams that had to give their token back and nobody was preempted.

    If it is the same before and after a step, nobody came or went, and each ran one token only to
    lose it again: every further step would be the same.
    """
    if getattr(engine.scheduler, "num_out", 0):
        return set()  # they come back when their time is up
    running = {request.request_id for request in engine.scheduler.running}
    held = {request_id for group in live for request_id in group.held_back}
    return running if running <= held and not engine.scheduler.preempted else set()


def _give_way(engine: Engine, live: Sequence[_Group]) -> None:
    beams = {request_id for group in live for request_id in group.ids}
    if beams.issuperset(engine.requests):
        raise RuntimeError(
            "the beams of a group never run together although they fit and nothing else is left: "
            "look at the admission and victim policies in use"
        )
    for group in live:
        if group.held_back:
            group.give_way()


def _lacks(engine: Engine, groups: Sequence[_Group]) -> str | None:
    """What these groups would need, beyond what there is, to live side by side; None if nothing."""
    config = engine.config.scheduler
    width = sum(group.width for group in groups)
    if width > 1 and config.scheduler == "static":
        return (
            f"beam_width is {width}, but scheduler 'static' lets no new beam join a batch: lower "
            "it to 1 or take another scheduler"
        )
    for name in ("max_num_seqs", "max_num_batched_tokens"):
        limit = getattr(config, name)
        if width > limit:
            return f"beam_width is {width}, but {name} is {limit}: lower the one or raise the other"
    reserve = config.watermark_blocks + config.admission_headroom
    kept = max(reserve, config.low_water_blocks, config.high_water_blocks) if width > 1 else 0
    need = kept + sum(group.width * group.num_blocks_each for group in groups)
    if need > engine.manager.num_blocks:
        free = f", {kept} kept free" if kept else ""
        return (
            f"beam search needs {need} blocks ({width} beams of {groups[0].num_blocks_each}{free}),"
            f" but the pool has {engine.manager.num_blocks}: lower beam_width or max_tokens, or "
            "raise num_blocks"
        )
    return None


def _require_room(engine: Engine, groups: Sequence[_Group]) -> None:
    lack = _lacks(engine, groups)
    if lack is not None:
        raise ValueError(lack)


class _Group:
    """The beams of one prompt, each a request of the engine.

    ids: the request of each live beam, in the order of scores.live. held_back: those that gave a
    token back after the last step.
    """

    def __init__(
        self, engine: Engine, prompt: Prompt, params: BeamSearchParams, eos: Sequence[int]
    ) -> None:
        self.prompt = engine.check_prompt(prompt, SamplingParams(max_tokens=params.max_tokens))
        max_tokens = min(params.max_tokens, engine.max_model_len - len(self.prompt))
        self.scores = BeamScores(params, eos, max_tokens)
        self.width = params.beam_width
        self.num_blocks_each = engine.manager.blocks_for(len(self.prompt) + max_tokens - 1)
        self.ids: list[str] = []
        self.held_back: list[str] = []
        self._engine = engine
        self._tops: dict[str, TokenLogprobs] = {}
        self._born: set[str] = set()
        self._name, self._numbers = f"beam-{next(_names)}", itertools.count()

    def enter(self) -> None:
        """Queue a request for each live beam, behind all others."""
        self.ids = [self._queue(beam) for beam in self.scores.live]

    def after_step(self, outputs: dict[str, RequestOutput]) -> None:
        """Move on if every beam has its next token; else those that have one give it back."""
        self.held_back = []
        for request_id in self.ids:
            self._note(request_id, outputs.get(request_id))
        if len(self._tops) == len(self.ids):
            self._branch()
        else:
            self._take_back()

    def give_way(self) -> None:
        """Let go of all blocks and stand behind all others in the queue."""
        again = [place for place, i in enumerate(self.ids) if i not in self._tops]
        self._drop([self.ids[place] for place in again])
        for place in again:
            self.ids[place] = self._queue(self.scores.live[place])

    def close(self) -> None:
        """End every request of the group. Safe at any time."""
        self._engine.abort(self._born)

    def _note(self, request_id: str, output: RequestOutput | None) -> None:
        """Keep what a beam's step brought; RuntimeError if somebody else has ended it."""
        has_ended = request_id in self._tops  # in an earlier step, at its last token
        if output is not None:
            self._tops[request_id] = _odds(output)
            has_ended = output.finished
        if not has_ended and request_id not in self._engine.requests:
            raise RuntimeError(f"beam {request_id!r} was aborted while it was being searched")

    def _branch(self) -> None:
        """All beams have their odds: choose who lives on, and make the requests follow."""
        parents = self.scores.advance([self._tops[request_id].top for request_id in self.ids])
        self._tops = {}
        if self.scores.done:
            self._drop(self.ids)
            return
        kept = {self.ids[parent] for parent in parents}
        self._drop([request_id for request_id in self.ids if request_id not in kept])
        ids = []
        for parent in parents:  # the first to continue a beam takes its request over
            request_id = self.ids[parent]
            ids.append(request_id if request_id not in ids else self._fork(request_id))
        self.ids = ids
        for request_id, beam in zip(ids, self.scores.live, strict=True):
            self._engine.exchange_last_token(request_id, beam.token_ids[-1])

    def _fork(self, request_id: str) -> str:
        new_id = self._new_id()
        self._engine.fork(request_id, new_id, self._params(), with_text=False)
        return new_id

    def _take_back(self) -> None:
        """Undo the last token of those that have one.

        A beam whose request has ended, at its last token, cannot; its odds are kept instead.
        """
        self.held_back = [i for i in self._tops if i in self._engine.requests]
        for request_id in self.held_back:
            self._engine.take_back_last_token(request_id)
            del self._tops[request_id]

    def _queue(self, beam: Beam) -> str:
        request_id = self._new_id()
        tokens = [*self.prompt, *beam.token_ids]
        self._engine.add_request(request_id, tokens, self._params(), with_text=False)
        return request_id

    def _drop(self, request_ids: Sequence[str]) -> None:
        self._engine.abort(request_ids)
        self._born.difference_update(request_ids)

    def _params(self) -> SamplingParams:
        """For a request that is to write what is left of the live beams' length."""
        return SamplingParams(
            max_tokens=self.scores.max_tokens - self.scores.length,
            ignore_eos=True,
            logprobs=self.scores.num_candidates,
        )

    def _new_id(self) -> str:
        request_id = f"{self._name}.{next(self._numbers)}"
        self._born.add(request_id)  # before it exists: an interruption may come right after
        return request_id


def _odds(output: RequestOutput) -> TokenLogprobs:
    if not output.logprobs:
        raise RuntimeError("this executor reports no log-probabilities: beam search needs them")
    return output.logprobs[-1]
