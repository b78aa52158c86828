"""The workloads of `minipaged compare`: who asks what, at which second, and what the user allows.

A user bounds an answer (max_tokens), the model ends it earlier; who reserves has to go by the
bound. So each request here has both, and ends at its own length by an end-of-text token.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from minipaged.config import SamplingParams
from minipaged.require import require_int
from minipaged.viz.palette import SIGNS
from minipaged.workload import SyntheticWorkload

EOS = 0


class Asked(NamedTuple):
    """One request. at: seconds. num_outputs: tokens that it writes, the last of them EOS unless
    the bound is reached; max_tokens: the bound."""

    request_id: str
    prompt_token_ids: list[int]
    at: float
    num_outputs: int
    max_tokens: int

    @property
    def params(self) -> SamplingParams:
        """As the user would ask."""
        return SamplingParams(max_tokens=self.max_tokens)


@dataclass(frozen=True)
class Workload:
    """help: what it shows, in a line. make: its requests. options: of EngineConfig.of."""

    help: str
    make: Callable[[], list[Asked]]
    options: Mapping[str, int] = field(default_factory=dict)
    drawn: Drawn | None = None


@dataclass(frozen=True)
class Drawn:
    """Requests drawn at random, the same for the same seed.

    prompt_len, output_len: ranges in tokens. arrival_rate: mean requests per second, in a Poisson
    process; 0 lets all come at once. max_tokens: the bound of every answer; None takes the longest
    that can be drawn. shared_prefix: tokens that all prompts begin with. long_prompts: every n-th
    prompt is `long_len` tokens longer; 0 for none.
    """

    requests: int = 64
    prompt_len: tuple[int, int] = (16, 256)
    output_len: tuple[int, int] = (8, 128)
    arrival_rate: float = 0.0
    max_tokens: int | None = None
    shared_prefix: int = 0
    long_prompts: int = 0
    long_len: int = 0
    seed: int = 0

    def __call__(self) -> list[Asked]:
        """The requests in order of arrival; ValueError for a range that cannot be."""
        source = SyntheticWorkload(
            self.requests,
            self.prompt_len,
            self.output_len,
            self.arrival_rate,
            self.seed,
            shared_prefix=self.shared_prefix,
        )
        bound = self.output_len[1] if self.max_tokens is None else self.max_tokens
        require_int("max_tokens", bound, self.output_len[1], "no answer may be longer")
        clock, more = random.Random(f"seconds{self.seed}"), random.Random(f"long{self.seed}")
        at, asked = 0.0, []
        for number, (name, prompt, params, *_) in enumerate(source.arrivals(), 1):
            if self.long_prompts and number % self.long_prompts == 0:
                prompt = prompt + [more.randrange(*source.vocabulary) for _ in range(self.long_len)]
            asked.append(Asked(name, prompt, at, params.max_tokens, bound))
            at += clock.expovariate(self.arrival_rate) if self.arrival_rate else 0.0
        return asked


def _exact(*pairs: tuple[int, int]) -> Callable[[], list[Asked]]:
    """(prompt, output) lengths in tokens: all at once, called A, B, C ..., bounds exact."""

    def make() -> list[Asked]:
        return [
            Asked(SIGNS[number], [1 + number] * prompt, 0.0, outputs, outputs)
            for number, (prompt, outputs) in enumerate(pairs)
        ]

    return make


def _e2() -> list[Asked]:
    draw = random.Random(42)
    return _exact(*((1, draw.randint(10, 120)) for _ in range(16)))()


def _of(what: str, drawn: Drawn, **options: int) -> Workload:
    return Workload(what, drawn, options, drawn)


WORKLOADS: dict[str, Workload] = {
    "e2": Workload(
        "16 answers of 10 to 120 tokens on 4 places (claim E2)", _e2, {"max_num_seqs": 4}
    ),
    "e7": Workload(
        "prompts 10, 500, 50 with answers of 200, 5, 50 (claim E7)",
        _exact((10, 200), (500, 5), (50, 50)),
        {"max_num_seqs": 3},
    ),
    "c21": Workload(
        "four answers of 50, 500, 100, 150 tokens (claim C21)",
        _exact((1, 50), (1, 500), (1, 100), (1, 150)),
        {"max_num_seqs": 4},
    ),
    "mixed": _of(
        "chats that keep coming, in a pool too small for all",
        Drawn(requests=96, arrival_rate=20.0, max_tokens=512),
        num_blocks=192,
        max_num_seqs=16,
        max_num_batched_tokens=512,
    ),
    "pressure": _of(
        "long answers in a pool that is too small: who gives way, and at what cost",
        Drawn(requests=48, prompt_len=(64, 512), output_len=(64, 384)),
        num_blocks=256,
        max_num_seqs=32,
        max_num_batched_tokens=512,
    ),
    "thrash": Workload(
        "two prompts of 8 with answers of 12, blocks of 4, and only six of them (case 15)",
        _exact((8, 12), (8, 12)),
        {"block_size": 4, "num_blocks": 6, "max_num_batched_tokens": 6, "max_num_seqs": 2},
    ),
    "long-prompts": _of(
        "chats, and every eighth prompt is a document of 6,000 tokens more",
        Drawn(requests=96, arrival_rate=10.0, long_prompts=8, long_len=6000),
        num_blocks=4096,
        max_num_seqs=32,
        max_num_batched_tokens=512,
    ),
    "shared-prefix": _of(
        "prompts that all begin with the same 1,024 tokens",
        Drawn(requests=96, prompt_len=(8, 64), arrival_rate=40.0, shared_prefix=1024),
        num_blocks=1024,
        max_num_seqs=16,
    ),
}
