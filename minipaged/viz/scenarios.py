"""What the demo can show: questions and settings that bring one mechanism to light each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minipaged.beam_scores import BeamSearchParams
from minipaged.config import SamplingParams

DEFAULT_QUESTIONS = [
    "What is paging?",
    "Where is token 37?",
    "How many blocks does a sequence need?",
    "What is the weather today?",
    "什么是连续批处理？",
    "What is preemption?",
    "What is copy-on-write?",
    "Why is decode memory-bound?",
]
# 64 blocks hold four or five of these requests at full length: six or seven start, and before the
# longest answers end the last ones have to give way. A contiguous cache would hold two.
DEFAULT_OPTIONS: dict[str, Any] = {
    "block_size": 16,
    "num_blocks": 64,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 32,
    "max_model_len": 512,
}


@dataclass(frozen=True)
class Scenario:
    """about: what to look at. options: engine settings that differ from DEFAULT_OPTIONS.

    beams: search for answers with these parameters instead of sampling with params.
    first: requests that are there from the start; every: steps between others.
    """

    about: str
    questions: list[str] = field(default_factory=lambda: list(DEFAULT_QUESTIONS))
    options: dict[str, Any] = field(default_factory=dict)
    params: SamplingParams = field(default_factory=lambda: SamplingParams(max_tokens=400))
    beams: BeamSearchParams | None = None
    first: int = 4
    every: int = 8

    def engine_options(self, **given: Any) -> dict[str, Any]:
        """Engine settings by name; those given (not None) come before the scenario's own."""
        own = {name: value for name, value in given.items() if value is not None}
        return DEFAULT_OPTIONS | self.options | own


SCENARIOS: dict[str, Scenario] = {
    "mixed": Scenario("Eight questions, a pool that is too small for all of them."),
    "prefix": Scenario(
        "All prompts begin alike, and some come twice: the blocks that earlier ones left are used "
        "again.",
        questions=[
            "What is paging?",
            "What is a slot?",
            "What is preemption?",
            "What is paging?",
            "What is a slot?",
            "What is EOS?",
        ],
        options={"enable_prefix_caching": "hash", "max_num_seqs": 4},
        first=1,
        every=40,
    ),
    "fork": Scenario(
        "Three samples of each prompt share its blocks (+) until they write on. At temperature 2 "
        "the tutor begins to ramble, so that they differ.",
        questions=["What is copy-on-write?", "What is a slot?"],
        options={"max_num_seqs": 6},
        params=SamplingParams(n=3, temperature=2.0, seed=1, max_tokens=120),
        first=1,
        every=30,
    ),
    "beam": Scenario(
        "Beam search: four beams branch (+) and are dropped at every step; nothing is copied but "
        "last blocks.",
        questions=["Is paging like a library?"],
        options={"max_num_seqs": 8},
        beams=BeamSearchParams(beam_width=4, max_tokens=60),
    ),
}


def scenario(name: str) -> Scenario:
    """The scenario of this name; ValueError names those that exist."""
    if name not in SCENARIOS:
        raise ValueError(f"there is no scenario {name!r}: choose one of {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
