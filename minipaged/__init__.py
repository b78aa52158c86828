"""minipaged: learn how an LLM serving engine works by building one.

    from minipaged import LLM, SamplingParams

    llm = LLM("tutor")
    print(llm.generate("What is a block table?")[0].text)

Importing this package loads neither torch nor numpy; LLM does, when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minipaged.beam_scores import Beam, BeamSearchParams
from minipaged.components import Components
from minipaged.config import CacheConfig, EngineConfig, SamplingParams, SchedulerConfig

if TYPE_CHECKING:
    from minipaged.llm import LLM, Completion

__version__ = "0.1.0"
__all__ = [
    "LLM",
    "Beam",
    "BeamSearchParams",
    "CacheConfig",
    "Completion",
    "Components",
    "EngineConfig",
    "SamplingParams",
    "SchedulerConfig",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in ("LLM", "Completion"):
        from minipaged import llm

        return getattr(llm, name)
    raise AttributeError(f"module 'minipaged' has no attribute {name!r}")
