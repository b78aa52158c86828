"""What a user may set, checked where it is set.

Every class here is frozen and validates itself, so that no later code meets an impossible value.
Each refusal is one line that names the value, the limit and what to do. No torch, no numpy.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass, field
from typing import Any

MAX_LOGPROBS = 20
MAX_SAMPLES = 64
MAX_NUM_BLOCKS = 2**24  # each costs some 150 bytes of bookkeeping in Python


def require_int(name: str, value: object, low: int, advice: str, high: int | None = None) -> None:
    """Raise ValueError unless `value` is an int with low <= value (<= high)."""
    limit = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    ok = isinstance(value, int) and not isinstance(value, bool)
    if not ok or value < low or (high is not None and value > high):  # type: ignore[operator]
        raise ValueError(f"{name} is {value!r}, but it must be {limit}: {advice}")


def require_real(
    name: str, value: object, low: float, advice: str, high: float = float("inf")
) -> None:
    """Raise ValueError unless `value` is a finite number with low <= value <= high."""
    ok = isinstance(value, int | float) and not isinstance(value, bool)
    if not ok or not low <= value <= high or value == float("inf"):  # type: ignore[operator]
        top = "" if high == float("inf") else f" and at most {high:g}"
        raise ValueError(
            f"{name} is {value!r}, but it must be a number of at least {low:g}{top}: {advice}"
        )


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """The KV cache: how large a block is and how many there are.

    block_size: tokens per block.
    num_blocks: blocks in the pool; None derives it from memory (LLM does that).
    kv_cache_memory: bytes for keys and values on a CPU, used when num_blocks is None.
    gpu_memory_utilization: share of a card's memory that weights, workspace and KV cache may
        fill together, used when num_blocks is None.
    enable_prefix_caching: keep what finished requests leave and use it again for prompts that
        begin alike. "hash" (or True) looks blocks up by a chained hash, "radix" keeps a tree;
        False or "off" does neither.
    """

    block_size: int = 16
    num_blocks: int | None = None
    kv_cache_memory: int = 256 * 2**20
    gpu_memory_utilization: float = 0.9
    enable_prefix_caching: bool | str = False

    @property
    def prefix_caching(self) -> str:
        """enable_prefix_caching by name: "off", "hash" or "radix"."""
        kind = self.enable_prefix_caching
        return kind if isinstance(kind, str) else ("hash" if kind else "off")

    def __post_init__(self) -> None:
        require_int("block_size", self.block_size, 1, "16 is the usual choice")
        if self.num_blocks is not None:
            advice = "or leave it out to derive it"
            require_int("num_blocks", self.num_blocks, 1, advice, MAX_NUM_BLOCKS)
        require_int("kv_cache_memory", self.kv_cache_memory, 1, "give bytes, such as 256 * 2**20")
        require_real(
            "gpu_memory_utilization", self.gpu_memory_utilization, 0.01, "0.9 is usual", 1.0
        )
        kinds = (False, True, "off", "hash", "radix")
        if not isinstance(self.enable_prefix_caching, bool | str):
            raise ValueError(
                f"enable_prefix_caching is {self.enable_prefix_caching!r}: choose one of {kinds}"
            )
        _require_choice("enable_prefix_caching", self.enable_prefix_caching, kinds)


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """What one step may hold, and when a request may enter.

    max_num_seqs: requests that may run at once.
    max_num_batched_tokens: tokens computed in one step over all requests (the token budget).
    watermark_blocks: blocks that admission leaves free; growth of running requests may use them.
    admission_headroom: further blocks that must be free beyond a request's known tokens before
        it is admitted. Neither gate applies while nothing runs, so no request waits for ever.
    order: who is admitted next: "fcfs", first come, first served; or "lpm", the longest prefix
        match in the cache first, which no request loses to more than a few times in a row.
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048
    watermark_blocks: int = 0
    admission_headroom: int = 0
    order: str = "fcfs"

    def __post_init__(self) -> None:
        require_int("max_num_seqs", self.max_num_seqs, 1, "64 suits a small machine")
        require_int(
            "max_num_batched_tokens", self.max_num_batched_tokens, 1, "2048 is the usual choice"
        )
        require_int("watermark_blocks", self.watermark_blocks, 0, "0 switches it off")
        require_int("admission_headroom", self.admission_headroom, 0, "0 switches it off")
        _require_choice("order", self.order, ("fcfs", "lpm"))


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """All settings of one engine.

    max_model_len: prompt and output tokens of one request together; None takes the model's.
    seed: where the seed of every request that names none is derived from.
    device: "cpu", "cuda" or "auto". dtype: "float32", "bfloat16", "float16" or "auto"
        (float32 on a CPU, the checkpoint's own on a GPU).
    attention_backend: "torch" is the only one so far.
    """

    cache: CacheConfig = field(default_factory=CacheConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    max_model_len: int | None = None
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    attention_backend: str = "torch"

    def __post_init__(self) -> None:
        if self.max_model_len is not None:
            require_int("max_model_len", self.max_model_len, 2, "a prompt token and an output")
        require_int("seed", self.seed, 0, "any non-negative integer will do")
        _require_type("cache", self.cache, CacheConfig)
        _require_type("scheduler", self.scheduler, SchedulerConfig)
        _require_choice("device", self.device, ("auto", "cpu", "cuda"))
        _require_choice("dtype", self.dtype, ("auto", "float32", "bfloat16", "float16"))
        _require_choice("attention_backend", self.attention_backend, ("torch",))

    @classmethod
    def of(cls, **options: Any) -> EngineConfig:
        """Build a config from flat names: EngineConfig.of(block_size=4, max_num_seqs=8)."""
        owners = {f.name: "cache" for f in dataclasses.fields(CacheConfig)}
        owners |= {f.name: "scheduler" for f in dataclasses.fields(SchedulerConfig)}
        owners |= {f.name: "" for f in dataclasses.fields(cls)}
        parts: dict[str, dict[str, Any]] = {"cache": {}, "scheduler": {}, "": {}}
        for name, value in options.items():
            if name not in owners:
                near = difflib.get_close_matches(name, owners, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; choose from {sorted(owners)}"
                raise ValueError(f"unknown engine option {name!r}{hint}")
            parts[owners[name]][name] = value
        top = parts[""]
        cache = dataclasses.replace(top.pop("cache", CacheConfig()), **parts["cache"])
        sched = dataclasses.replace(top.pop("scheduler", SchedulerConfig()), **parts["scheduler"])
        return cls(cache=cache, scheduler=sched, **top)


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one request's tokens are chosen and when it ends. Names as in vLLM.

    n: answers to one prompt, each a sequence of its own that shares the prompt's blocks.
    temperature: 0 takes the likeliest token (greedy); above 0 samples from softmax(logits / t).
    top_k: sample among the k likeliest; 0 keeps all.
    top_p: then among the smallest set whose probability reaches p; 1.0 keeps all.
    min_tokens: outputs before a stop token or stop string may end the request.
    max_tokens: outputs at most; max_model_len and the pool may end a request sooner.
    stop: strings that end the text; the text is cut before the first of them.
    stop_token_ids: tokens that end the request, beside the model's end-of-text token.
    ignore_eos: go on past the model's end-of-text token.
    logprobs: report the log-probabilities of this many likeliest tokens, and of the chosen one;
        None reports nothing.
    seed: fixes the sampled tokens whatever else is in the batch; None derives one.
    best_of: write this many samples (at least n) and give back the n with the highest mean
        log-probability per token, best first; None writes n. For LLM.generate alone.
    """

    n: int = 1
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_tokens: int = 0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    seed: int | None = None
    best_of: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", _strings("stop", self.stop))
        object.__setattr__(self, "stop_token_ids", _several("stop_token_ids", self.stop_token_ids))
        require_int("n", self.n, 1, "1 is a single answer", MAX_SAMPLES)
        if self.best_of is not None:
            require_int("best_of", self.best_of, self.n, "or None for n", MAX_SAMPLES)
        require_real("temperature", self.temperature, 0.0, "0 is greedy, 1 the model's own odds")
        require_int("top_k", self.top_k, 0, "0 keeps every token")
        require_real("top_p", self.top_p, 1e-6, "1.0 keeps every token", 1.0)
        require_int("max_tokens", self.max_tokens, 1, "ask for at least one token")
        _require_type("ignore_eos", self.ignore_eos, bool)
        require_int("min_tokens", self.min_tokens, 0, "0 lets it end at once", self.max_tokens)
        for token in self.stop_token_ids:
            require_int("stop_token_ids", token, 0, "give token ids")
        if self.logprobs is not None:
            require_int("logprobs", self.logprobs, 0, "or None for no report", MAX_LOGPROBS)
        if self.seed is not None:
            require_int("seed", self.seed, 0, "or None to derive one")


def _strings(name: str, value: object) -> tuple[str, ...]:
    """A string, or several, as a tuple; empty strings are refused, as they would always match."""
    items = (value,) if isinstance(value, str) else _several(name, value)
    for item in items:
        if not isinstance(item, str) or not item:
            raise ValueError(f"{name} holds {item!r}, but it must hold non-empty strings")
    return items


def _several(name: str, value: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError(f"{name} is {value!r}, but it must be a list, such as []")
    return tuple(value)


def _require_type(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {value!r}, but it must be a {kind.__name__}")


def _require_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(str, choices))}")
