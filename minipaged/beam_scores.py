"""Beam search's rules: which continuations live on, which are finished, and when it is over.

They are those of transformers 5 (src/transformers/generation/utils.py, `_beam_search`):

- A beam's score is its cumulative log-probability divided by length ** length_penalty. length
  counts generated tokens only: the end token is counted, the prompt is not. (Older versions of
  transformers counted the prompt too; vLLM, vllm/beam_search.py, counts the prompt but not the end
  token.)
- Each step ranks all continuations of all live beams and keeps the best candidates_of(...) of them.
  A candidate that ends there (with an end token, or at max_tokens) is finished if it ranks among
  the first beam_width; if it ranks behind them it is dropped. The best beam_width of those that
  do not end live on. The best beam_width finished ones are kept.
- Once beam_width are finished, early_stopping decides. True: it is over. False: it is over if the
  best live beam, scored at the length that it has now, is no better than the worst finished one;
  a longer one could still win, so this is a guess. "never": the same at the length at which a live
  beam would score best: max_tokens if length_penalty is above 0, else its length now.

Where it differs from transformers: sums are made in double precision here, in float32 there, so
two candidates within float32's rounding (about 1e-6) of each other may change places; candidates
that are exactly equal stand in the order of their beams, then of their token ids, where there the
order of torch.topk on equal values is not defined. beam_width 1 is a beam search here; there it is
greedy decoding. Both write the same tokens, unless early_stopping is "never": then the beam goes on
past an end token in the hope of a better score. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from minipaged.config import MAX_LOGPROBS
from minipaged.require import require_int, require_real

MAX_BEAM_WIDTH = MAX_LOGPROBS // 2


@dataclass(frozen=True, slots=True)
class BeamSearchParams:
    """What a beam search looks for. Names and meaning as in transformers.

    beam_width: beams that live at once, and that come back. max_tokens: generated tokens at most.
    length_penalty: exponent of the length in a score; above 0 favours long beams.
    early_stopping: False, True or "never": see the top of this module.
    ignore_eos: no token ends a beam; all come to max_tokens.
    """

    beam_width: int = 4
    max_tokens: int = 64
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        advice = f"each beam needs its 2 x beam_width likeliest tokens, of {MAX_LOGPROBS} at most"
        require_int("beam_width", self.beam_width, 1, advice, MAX_BEAM_WIDTH)
        require_int("max_tokens", self.max_tokens, 1, "ask for at least one token")
        require_real("length_penalty", self.length_penalty, -10.0, "1.0 is usual", 10.0)
        if not isinstance(self.early_stopping, bool) and self.early_stopping != "never":
            raise ValueError(
                f"early_stopping is {self.early_stopping!r}: choose one of False, True, 'never'"
            )
        if not isinstance(self.ignore_eos, bool):
            raise ValueError(f"ignore_eos is {self.ignore_eos!r}, but it must be a bool")


@dataclass(slots=True)
class Beam:
    """One hypothesis.

    token_ids: generated tokens, the end token included. text: what they say, without it ("" if
    there is no tokenizer). cumulative_logprob: sum of their natural-log probabilities. score:
    cumulative_logprob / len(token_ids) ** length_penalty. finish_reason: "stop" or "length".
    """

    token_ids: list[int] = field(default_factory=list)
    cumulative_logprob: float = 0.0
    score: float = 0.0
    finish_reason: str | None = None
    text: str = ""


class _Candidate(NamedTuple):
    """One continuation: of which live beam, by which token, and what the sum is then."""

    parent: int
    token_id: int
    total: float


def candidates_of(params: BeamSearchParams, num_end_tokens: int) -> int:
    """Continuations to look at in each step: so many that beam_width go on even if all end tokens
    of all beams stand before them. ValueError if that is more than MAX_LOGPROBS."""
    each = 1 + max(1, 0 if params.ignore_eos else num_end_tokens)
    if each * params.beam_width > MAX_LOGPROBS:
        raise ValueError(
            f"beam_width is {params.beam_width}, but with {num_end_tokens} end tokens each beam "
            f"needs its {each * params.beam_width} likeliest tokens, of {MAX_LOGPROBS} at most: "
            f"ask for at most {MAX_LOGPROBS // each} beams"
        )
    return each * params.beam_width


class BeamScores:
    """The beams of one prompt: those that live, best first, and those that are finished.

    max_tokens: generated tokens at most. done: nothing can be added any more.
    """

    def __init__(
        self, params: BeamSearchParams, end_tokens: Iterable[int], max_tokens: int
    ) -> None:
        self.params = params
        self.max_tokens = max_tokens
        self.end_tokens = frozenset(() if params.ignore_eos else end_tokens)
        self.num_candidates = candidates_of(params, len(self.end_tokens))
        self.live = [Beam()]
        self.finished: list[Beam] = []
        self.done = False

    @property
    def length(self) -> int:
        """Tokens that every live beam has by now."""
        return len(self.live[0].token_ids) if self.live else self.max_tokens

    def advance(self, tops: Sequence[Sequence[tuple[int, float]]]) -> list[int]:
        """One step. tops: for each live beam, the (token id, log-probability) of its likeliest.

        Returns for each beam that now lives the index of the one it continues; several may
        continue the same, and some none. Cost: O(beams x candidates).
        """
        length, width = self.length + 1, self.params.beam_width
        parents: list[int] = []
        survivors: list[Beam] = []
        ended: list[Beam] = []
        for rank, candidate in enumerate(self._best(tops)):
            reason = self._reason(candidate, length)
            if reason is None and len(survivors) < width:
                parents.append(candidate.parent)
                survivors.append(self._continued(candidate, None))
            elif reason is not None and rank < width:
                ended.append(self._continued(candidate, reason))
        self.live = survivors
        # sorted() is stable: of equal scores the older one stays
        self.finished = sorted([*self.finished, *ended], key=lambda beam: -beam.score)[:width]
        self.done = not survivors or self._is_hopeless()
        return parents

    def _best(self, tops: Sequence[Sequence[tuple[int, float]]]) -> list[_Candidate]:
        candidates = [
            _Candidate(parent, token, beam.cumulative_logprob + logprob)
            for parent, (beam, top) in enumerate(zip(self.live, tops, strict=True))
            for token, logprob in top
        ]
        candidates.sort(key=lambda c: (-c.total, c.parent, c.token_id))
        return candidates[: self.num_candidates]

    def _reason(self, candidate: _Candidate, length: int) -> str | None:
        if candidate.token_id in self.end_tokens:
            return "stop"
        return "length" if length == self.max_tokens else None

    def _continued(self, candidate: _Candidate, reason: str | None) -> Beam:
        tokens = [*self.live[candidate.parent].token_ids, candidate.token_id]
        return Beam(tokens, candidate.total, self._score(candidate.total, len(tokens)), reason)

    def _score(self, total: float, length: int) -> float:
        return total / length**self.params.length_penalty

    def _is_hopeless(self) -> bool:
        """Whether no live beam is taken to be able to displace a finished one."""
        if len(self.finished) < self.params.beam_width:
            return False
        if self.params.early_stopping is True:
            return True
        may_wait = self.params.early_stopping == "never" and self.params.length_penalty > 0
        length = self.max_tokens if may_wait else self.length
        return self._score(self.live[0].cumulative_logprob, length) <= self.finished[-1].score
