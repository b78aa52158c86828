"""How many blocks fit: the sum behind a pool's size, term by term."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from minipaged.config import MAX_NUM_BLOCKS, CacheConfig
from minipaged.kernels.meta import AttentionFn, AttentionMeta
from minipaged.model.llama import Llama
from minipaged.model.llama_config import LlamaConfig


@dataclass(frozen=True, slots=True)
class MemorySum:
    """num_blocks = available // block_bytes, at most MAX_NUM_BLOCKS. All others in bytes.

    kv_bytes_per_token: keys and values of one token in all layers.
    block_bytes: kv_bytes_per_token x block_size.
    weight_bytes, workspace_bytes: what the model and one step's temporaries take beside it.
    available: what is left for keys and values.
    """

    block_bytes: int
    kv_bytes_per_token: int
    weight_bytes: int
    workspace_bytes: int
    available: int
    num_blocks: int


def derive_num_blocks(
    model: LlamaConfig,
    cache: CacheConfig,
    *,
    device: torch.device | str,
    dtype: torch.dtype,
    weight_bytes: int,
    workspace_bytes: int = 0,
) -> MemorySum:
    """The pool's size: cache.num_blocks if given, else what memory allows.

    On a CPU that is kv_cache_memory. On a GPU, total memory x gpu_memory_utilization less what is
    in use now (the loaded weights, and whatever else runs there) less workspace_bytes.
    Raises ValueError if not even one block fits.
    """
    per_token = model.kv_bytes_per_token(dtype.itemsize)
    block_bytes = per_token * cache.block_size
    if cache.num_blocks is not None:
        available = cache.num_blocks * block_bytes
    elif torch.device(device).type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        budget = int(total * cache.gpu_memory_utilization)
        available = budget - (total - free) - workspace_bytes
    else:
        available = cache.kv_cache_memory
    num_blocks = min(available // block_bytes, MAX_NUM_BLOCKS)
    if num_blocks < 1:
        raise ValueError(
            f"{available} bytes are left for the KV cache, but one block of {cache.block_size} "
            f"tokens takes {block_bytes}: raise kv_cache_memory (CPU) or gpu_memory_utilization "
            "(GPU), or take a smaller block_size or model"
        )
    return MemorySum(block_bytes, per_token, weight_bytes, workspace_bytes, available, num_blocks)


def weight_bytes(model: Llama) -> int:
    """Bytes of the model's parameters."""
    return sum(p.numel() * p.element_size() for p in model.parameters())


@torch.inference_mode()
def measure_workspace(model: Llama, max_num_batched_tokens: int, attention: AttentionFn) -> int:
    """Peak bytes of one full step's temporaries (a single sample's) on the model's GPU; 0 on a CPU.

    Runs one prompt as long as the budget (or as the model's positions) through a one-layer pool.
    """
    weight = model.model.norm.weight
    if weight.device.type != "cuda":
        return 0
    config = model.config
    tokens = min(max_num_batched_tokens, config.max_position_embeddings)
    positions = torch.arange(tokens, device=weight.device)
    pool = weight.new_zeros(1, tokens, config.num_kv_heads, config.head_dim)
    ends = torch.tensor([0, tokens], device=weight.device)
    meta = AttentionMeta(ends, ends[1:], torch.zeros_like(ends[None, :1]))
    before = torch.cuda.memory_allocated(weight.device)
    torch.cuda.reset_peak_memory_stats(weight.device)
    hidden = model(
        positions % config.vocab_size,
        positions,
        lambda _, q, k, v: attention(q, pool, pool, meta),
    )
    model.logits(hidden[-1:])
    peak = torch.cuda.max_memory_allocated(weight.device) - before
    torch.cuda.empty_cache()  # or what is asked next counts these temporaries as taken, too
    return peak
