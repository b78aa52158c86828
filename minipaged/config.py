"""What a user may set, checked where it is set.

Every class here is frozen and validates itself, so that no later code meets an impossible value.
Each refusal is one line that names the value, the limit and what to do. No torch, no numpy.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass, field
from typing import Any

from minipaged.require import (
    require_choice,
    require_int,
    require_real,
    require_type,
    several,
    strings,
)

MAX_LOGPROBS = 20
MAX_SAMPLES = 64
SCHEDULERS = ("unified", "static", "orca", "prefill-first")
ORDERS = ("fcfs", "lpm", "priority")
ADMISSIONS = ("full", "chunk")
VICTIMS = ("last-admitted", "fewest-computed", "lowest-priority", "most-blocks")
PREEMPTIONS = ("recompute", "swap", "auto")
MAX_NUM_BLOCKS = 2**24  # each costs some 150 bytes of bookkeeping in Python


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
    num_host_blocks: blocks in host memory that preempted requests may be swapped to.
    """

    block_size: int = 16
    num_blocks: int | None = None
    kv_cache_memory: int = 256 * 2**20
    gpu_memory_utilization: float = 0.9
    enable_prefix_caching: bool | str = False
    num_host_blocks: int = 0

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
        advice = "0 means that nothing can be swapped out"
        require_int("num_host_blocks", self.num_host_blocks, 0, advice, MAX_NUM_BLOCKS)
        require_int("kv_cache_memory", self.kv_cache_memory, 1, "give bytes, such as 256 * 2**20")
        require_real(
            "gpu_memory_utilization", self.gpu_memory_utilization, 0.01, "0.9 is usual", 1.0
        )
        kinds = (False, True, "off", "hash", "radix")
        if not isinstance(self.enable_prefix_caching, bool | str):
            raise ValueError(
                f"enable_prefix_caching is {self.enable_prefix_caching!r}: choose one of {kinds}"
            )
        require_choice("enable_prefix_caching", self.enable_prefix_caching, kinds)


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """What one step may hold, when a request may enter, and who has to give way.

    scheduler: whose rule it is. To serve with, take the first; the others are there to compare.
        "unified": all share one token budget at every step; prompts are cut to fit beside outputs.
        "static": batches that start and end together; shows idle places and padding.
        "orca": join and leave at every step, memory reserved for the longest end; shows how few
        run at once without paging.
        "prefill-first": prompts before outputs; shows how all others stall behind a long prompt.
    max_num_seqs: requests that may run at once.
    max_num_batched_tokens: tokens computed in one step over all requests (the token budget).
    order: who is admitted next: "fcfs", first come, first served; "lpm", the longest prefix
        match in the cache first, which no request loses to more than a few times in a row; or
        "priority", the smallest priority number first.
    admission: "full" admits a request if all its known tokens fit into the free blocks now,
        "chunk" if its first chunk does, which thrashes when memory is short.
    watermark_blocks: blocks that admission leaves free; growth of running requests may use them.
    admission_headroom: further blocks that must be free beyond a request's known tokens before
        it is admitted.
    high_water_blocks: with fewer free blocks nobody is admitted. low_water_blocks: with fewer,
        running requests are preempted until there are as many, or one runs. 0 switches off.
    backoff_steps: steps that a preempted request waits at least, doubled each further time, while
        others may pass it; 0 lets it return as soon as it fits. No gate holds while nothing runs,
        so nobody waits for ever.
    victim: who is preempted when a block is missing: "last-admitted", "fewest-computed",
        "lowest-priority" or "most-blocks"; None is lowest-priority with order "priority", else
        last-admitted.
    preemption: what becomes of a victim's keys and values: "recompute" drops them, "swap" moves
        them to host blocks, "auto" does what costs less (see DeviceCosts).
    max_preemptions: times that one request may be swapped out; after that it is recomputed. None
        sets no limit.

    "static" and "orca" reserve: who enters or gives way follows; "prefill-first" admits as "full".
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048
    order: str = "fcfs"
    admission: str = "full"
    watermark_blocks: int = 0
    admission_headroom: int = 0
    high_water_blocks: int = 0
    low_water_blocks: int = 0
    backoff_steps: int = 0
    victim: str | None = None
    preemption: str = "recompute"
    max_preemptions: int | None = None
    scheduler: str = "unified"

    def __post_init__(self) -> None:
        require_int("max_num_seqs", self.max_num_seqs, 1, "64 suits a small machine")
        require_int(
            "max_num_batched_tokens", self.max_num_batched_tokens, 1, "2048 is the usual choice"
        )
        for name in (
            "watermark_blocks",
            "admission_headroom",
            "high_water_blocks",
            "low_water_blocks",
            "backoff_steps",
        ):
            require_int(name, getattr(self, name), 0, "0 switches it off")
        if 0 < self.high_water_blocks < self.low_water_blocks:
            raise ValueError(
                f"high_water_blocks is {self.high_water_blocks}, below low_water_blocks "
                f"{self.low_water_blocks}: whoever is admitted would be preempted at once"
            )
        if self.max_preemptions is not None:
            require_int("max_preemptions", self.max_preemptions, 0, "or None for no limit")
        require_choice("scheduler", self.scheduler, SCHEDULERS)
        require_choice("order", self.order, ORDERS)
        require_choice("admission", self.admission, ADMISSIONS)
        require_choice("victim", self.victim, (None, *VICTIMS))
        require_choice("preemption", self.preemption, PREEMPTIONS)


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """What preemption="auto" weighs: a model and the device that it runs on.

    num_parameters; num_layers and hidden_size, for attention's part; kv_bytes_per_token: bytes of
    keys and values of one token. peak_flops: FLOP per second that a prompt is really computed at.
    host_bandwidth: bytes per second to the host and back. Defaults: Llama-3-8B in 16 bit, 500
    TFLOP/s, PCIe 4.0 x16 (32 GB/s in one direction).
    """

    num_parameters: float = 8.030e9
    num_layers: int = 32
    hidden_size: int = 4096
    kv_bytes_per_token: float = 131_072
    peak_flops: float = 500e12
    host_bandwidth: float = 32e9

    def __post_init__(self) -> None:
        for name in ("num_parameters", "kv_bytes_per_token", "peak_flops", "host_bandwidth"):
            require_real(name, getattr(self, name), 1.0, "give plain units, not billions")
        for name in ("num_layers", "hidden_size"):
            require_int(name, getattr(self, name), 1, "a model has at least one")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """All settings of one engine.

    max_model_len: prompt and output tokens of one request together; None takes the model's.
    seed: where the seed of every request that names none is derived from.
    device: "cpu", "cuda" or "auto". dtype: "float32", "bfloat16", "float16" or "auto"
        (float32 on a CPU, the checkpoint's own on a GPU).
    attention_backend: "torch", or "triton" (on a GPU, or in Triton's interpreter).
    costs: what swapping and recomputing cost, for preemption="auto"; LLM fills in the model's part.
    """

    cache: CacheConfig = field(default_factory=CacheConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    max_model_len: int | None = None
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    attention_backend: str = "torch"
    costs: DeviceCosts = field(default_factory=DeviceCosts)

    def __post_init__(self) -> None:
        if self.max_model_len is not None:
            require_int("max_model_len", self.max_model_len, 2, "a prompt token and an output")
        require_int("seed", self.seed, 0, "any non-negative integer will do")
        require_type("cache", self.cache, CacheConfig)
        require_type("scheduler", self.scheduler, SchedulerConfig)
        require_type("costs", self.costs, DeviceCosts)
        if self.scheduler.preemption != "recompute" and not self.cache.num_host_blocks:
            raise ValueError(
                f"preemption is {self.scheduler.preemption}, but num_host_blocks is 0: give host "
                "blocks to swap to, or choose recompute"
            )
        caching, name = self.cache.prefix_caching, self.scheduler.scheduler
        if caching != "off" and name in ("static", "orca"):
            raise ValueError(
                f"enable_prefix_caching is {caching!r}, but scheduler {name!r} reserves memory for "
                f"each request alone: switch it off, or take scheduler 'unified'"
            )
        require_choice("device", self.device, ("auto", "cpu", "cuda"))
        require_choice("dtype", self.dtype, ("auto", "float32", "bfloat16", "float16"))
        require_choice("attention_backend", self.attention_backend, ("torch", "triton"))

    @classmethod
    def of(cls, **options: Any) -> EngineConfig:
        """Build a config from flat names: EngineConfig.of(block_size=4, max_num_seqs=8).

        scheduler: the name of one, or a whole SchedulerConfig.
        """
        owners = {f.name: "cache" for f in dataclasses.fields(CacheConfig)}
        owners |= {f.name: "scheduler" for f in dataclasses.fields(SchedulerConfig)}
        owners |= {f.name: "" for f in dataclasses.fields(cls)}
        owners |= dict.fromkeys(("peak_flops", "host_bandwidth"), "costs")
        parts: dict[str, dict[str, Any]] = {"cache": {}, "scheduler": {}, "costs": {}, "": {}}
        for name, value in options.items():
            if name not in owners:
                near = difflib.get_close_matches(name, owners, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; choose from {sorted(owners)}"
                raise ValueError(f"unknown engine option {name!r}{hint}")
            is_choice = name == "scheduler" and isinstance(value, str)
            parts["scheduler" if is_choice else owners[name]][name] = value
        top = parts[""]
        cache = dataclasses.replace(top.pop("cache", CacheConfig()), **parts["cache"])
        sched = dataclasses.replace(top.pop("scheduler", SchedulerConfig()), **parts["scheduler"])
        costs = dataclasses.replace(top.pop("costs", DeviceCosts()), **parts["costs"])
        return cls(cache=cache, scheduler=sched, costs=costs, **top)


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
        object.__setattr__(self, "stop", strings("stop", self.stop))
        object.__setattr__(self, "stop_token_ids", several("stop_token_ids", self.stop_token_ids))
        require_int("n", self.n, 1, "1 is a single answer", MAX_SAMPLES)
        if self.best_of is not None:
            require_int("best_of", self.best_of, self.n, "or None for n", MAX_SAMPLES)
        require_real("temperature", self.temperature, 0.0, "0 is greedy, 1 the model's own odds")
        require_int("top_k", self.top_k, 0, "0 keeps every token")
        require_real("top_p", self.top_p, 1e-6, "1.0 keeps every token", 1.0)
        require_int("max_tokens", self.max_tokens, 1, "ask for at least one token")
        require_type("ignore_eos", self.ignore_eos, bool)
        require_int("min_tokens", self.min_tokens, 0, "0 lets it end at once", self.max_tokens)
        for token in self.stop_token_ids:
            require_int("stop_token_ids", token, 0, "give token ids")
        if self.logprobs is not None:
            require_int("logprobs", self.logprobs, 0, "or None for no report", MAX_LOGPROBS)
        if self.seed is not None:
            require_int("seed", self.seed, 0, "or None to derive one")
