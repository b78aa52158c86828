"""What the demo can show: questions and settings that bring one mechanism to light each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minipaged.beam_scores import BeamSearchParams
from minipaged.config import EngineConfig, SamplingParams

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

    rivals: for a comparison, the name of each run and the settings that are its own.

    beams: search for answers with these parameters instead of sampling with params.
    first: requests that are there from the start; every: steps between others.
    """

    about: str
    questions: list[str] = field(default_factory=lambda: list(DEFAULT_QUESTIONS))
    options: dict[str, Any] = field(default_factory=dict)
    params: SamplingParams = field(default_factory=lambda: SamplingParams(max_tokens=400))
    beams: BeamSearchParams | None = None
    rivals: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: int = 4
    every: int = 8

    def configs(self, **given: Any) -> dict[str, EngineConfig]:
        """The settings of each run by its name, "" if there is one; what is given (not None) comes
        before the scenario's own. ValueError for a setting that cannot be."""
        own = {name: value for name, value in given.items() if value is not None}
        return {
            name: EngineConfig.of(**(DEFAULT_OPTIONS | self.options | rival | own))
            for name, rival in (self.rivals or {"": {}}).items()
        }


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
    "pressure": Scenario(
        "A pool for two long answers, and six that want in: the last admitted gives way, drops "
        "what it has computed, and computes prompt and answer again when it returns.",
        options={"num_blocks": 40},
        first=6,
    ),
    "swap": Scenario(
        "The same pool, but whoever gives way is moved to host memory and comes back from there: "
        "nothing is computed twice.",
        options={"num_blocks": 40, "preemption": "swap", "num_host_blocks": 96},
        first=6,
    ),
    "thrash": Scenario(
        "Admitted as soon as the first chunk fits: requests come back too early and are thrown out "
        "again. Compare with --admission full, --backoff-steps 8 or --high-water-blocks 12.",
        options={"num_blocks": 32, "admission": "chunk", "max_num_batched_tokens": 16},
        first=6,
    ),
    "static-vs-continuous": Scenario(
        "The same questions twice, four places each time. First a batch starts and ends together; "
        "then a place that becomes free is taken at the next step.",
        options={"max_num_seqs": 4, "num_blocks": 200, "max_num_batched_tokens": 512},
        params=SamplingParams(max_tokens=300),
        rivals={"static batching": {"scheduler": "static"}, "continuous batching": {}},
        first=8,
    ),
}


def scenario(name: str) -> Scenario:
    """The scenario of this name; ValueError names those that exist."""
    if name not in SCENARIOS:
        raise ValueError(f"there is no scenario {name!r}: choose one of {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
