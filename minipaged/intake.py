"""What comes in: a prompt and its parameters, checked and made into a request.

Everything that can be refused is refused here, before anything has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from minipaged.config import EngineConfig, SamplingParams
from minipaged.request import Request
from minipaged.sched.limits import max_output_tokens


class Tokenizer(Protocol):
    """What the engine needs to take and give text."""

    def prompt_ids(self, text: str) -> list[int]: ...

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes: ...


class Intake:
    """Makes requests for one engine. Every refusal is a ValueError of one line."""

    def __init__(
        self,
        config: EngineConfig,
        num_slots: int,
        tokenizer: Tokenizer | None,
        vocab_size: int | None,
        eos_token_ids: Sequence[int],
    ) -> None:
        if config.max_model_len is None:
            raise ValueError("an Engine needs max_model_len: set it, or use LLM")
        self._seed = config.seed
        self._max_model_len = config.max_model_len
        self._max_num_seqs = config.scheduler.max_num_seqs
        self._num_slots = num_slots
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._eos = tuple(eos_token_ids)

    def token_ids(self, prompt: str | Sequence[int], params: SamplingParams) -> list[int]:
        """The prompt's tokens, if it can be served with these parameters.

        A text is put into the form that the model was trained on; token ids are taken as they are.
        """
        if not isinstance(params, SamplingParams):
            raise ValueError(f"params is {params!r}, but it must be a SamplingParams")
        if params.stop and self._tokenizer is None:
            raise ValueError(f"stop strings {params.stop} need a tokenizer: use stop_token_ids")
        token_ids = self._tokens_of(prompt)
        self._max_outputs(len(token_ids), params)
        if params.n > self._max_num_seqs:
            raise ValueError(
                f"n is {params.n}, but max_num_seqs is {self._max_num_seqs}: each sample takes a "
                "place, so ask for fewer or raise max_num_seqs"
            )
        self._require_ids("prompt token", token_ids)
        self._require_ids("stop token", params.stop_token_ids)
        return token_ids

    def request(
        self,
        request_id: str,
        prompt: str | Sequence[int],
        params: SamplingParams,
        arrival_time: float,
        cache_key: tuple[str, str] = ("", ""),
        priority: int = 0,
    ) -> Request:
        """The request for a prompt; its stop_token_ids include the model's own."""
        if not isinstance(request_id, str):
            raise ValueError(f"request id {request_id!r} is no text: give a str")
        for name, part in zip(("cache_salt", "adapter"), cache_key, strict=True):
            if not isinstance(part, str):
                raise ValueError(f"{name} is {part!r}: give a str, or leave it out")
        if type(priority) is not int:
            raise ValueError(f"priority is {priority!r}: give an integer, the smaller the sooner")
        token_ids = self.token_ids(prompt, params)
        if not params.ignore_eos:
            params = replace(params, stop_token_ids=(*params.stop_token_ids, *self._eos))
        return Request(
            request_id,
            token_ids,
            params,
            max_output_tokens=self._max_outputs(len(token_ids), params),
            arrival_time=arrival_time,
            seed=_seed_of(self._seed, request_id) if params.seed is None else params.seed,
            num_samples=params.n,
            cache_key=cache_key,
            priority=priority,
        )

    def branch(
        self, parent: Request, request_id: str, params: SamplingParams | None, now: float
    ) -> Request:
        """A request that arrives now, and whose prompt is all that `parent` knows.

        It has the parent's parameters (as one sequence) unless others are given.
        """
        if params is None:
            params = replace(parent.params, n=1, seed=None)
            ended_early = params.min_tokens - parent.num_output_tokens
            params = replace(params, min_tokens=max(0, ended_early))
        known = parent.token_ids
        return self.request(request_id, known, params, now, parent.cache_key, parent.priority)

    def _tokens_of(self, prompt: str | Sequence[int]) -> list[int]:
        if not isinstance(prompt, str | list | tuple | range):
            raise ValueError(f"prompt is {prompt!r:.80}: give a text or a list of token ids")
        if not isinstance(prompt, str):
            return list(prompt)
        if not prompt.strip():
            raise ValueError("the prompt is empty: give at least one character other than space")
        if self._tokenizer is None:
            raise ValueError("this engine has no tokenizer: give the prompt as token ids")
        return self._tokenizer.prompt_ids(prompt)

    def _max_outputs(self, num_prompt_tokens: int, params: SamplingParams) -> int:
        return max_output_tokens(
            num_prompt_tokens, params.max_tokens, self._max_model_len, self._num_slots
        )

    def _require_ids(self, what: str, token_ids: Sequence[int]) -> None:
        for token in token_ids:
            known = type(token) is int and token >= 0  # True and numpy's integers are none
            if not known or (self._vocab_size is not None and token >= self._vocab_size):
                limit = "any size" if self._vocab_size is None else f"0 to {self._vocab_size - 1}"
                raise ValueError(f"{what} {token!r} is not a token id: give ints, {limit}")


def refuse_best_of(params: SamplingParams | None) -> None:
    """ValueError if best_of is asked of the engine, which gives tokens out as they come."""
    if isinstance(params, SamplingParams) and params.best_of is not None:
        raise ValueError(
            f"best_of is {params.best_of}, but only whole answers can be ranked: use LLM.generate, "
            "or ask for n samples"
        )


def _seed_of(engine_seed: int, request_id: str) -> int:
    """A request's own seed: depends on its id, not on when it arrives or what runs beside it."""
    digest = hashlib.blake2b(f"{engine_seed}/{request_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
