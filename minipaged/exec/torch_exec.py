"""The executor that runs a model: plans in, sampled tokens out."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from minipaged.config import CacheConfig
from minipaged.exec.base import BlockRows, require_in_pools
from minipaged.exec.batch import Batch, pack
from minipaged.kernels.backends import TORCH, Kernels
from minipaged.model.llama import Llama
from minipaged.model.sampler import sample
from minipaged.plan import StepPlan, StepResult, branches_of


class TorchExecutor:
    """Runs a Llama over one paged pool per layer; an Executor (see exec/base.py)."""

    def __init__(
        self,
        model: Llama,
        cache: CacheConfig,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        kernels: Kernels = TORCH,
    ) -> None:
        """Move the model to device and dtype, and allocate the pools; they are never resized.

        cache: num_blocks must be set (derive_num_blocks in exec/memory.py works it out).
        kernels: what reads, writes and moves what is in the pools.
        """
        if cache.num_blocks is None:
            raise ValueError("num_blocks is None: derive it with derive_num_blocks, or set it")
        self.model = model.to(device=device, dtype=dtype).eval()
        self.num_blocks, self.block_size = cache.num_blocks, cache.block_size
        self.num_host_blocks = cache.num_host_blocks
        self._device = torch.device(device)
        self._kernels = kernels
        self._rows = BlockRows(cache.num_blocks)
        config = model.config
        block = (cache.block_size, config.num_kv_heads, config.head_dim)
        # Nobody may read a slot before it is written, so the pools need no clearing.
        try:
            self.k_pools, self.v_pools = (
                [
                    torch.empty((cache.num_blocks, *block), dtype=dtype, device=device)
                    for _ in range(config.num_layers)
                ]
                for _ in range(2)
            )
            self._host_pools = [
                torch.empty((cache.num_host_blocks, *block), dtype=dtype)
                for _ in (*self.k_pools, *self.v_pools)
            ]
        except RuntimeError:  # torch's out-of-memory errors are of this class
            size = cache.block_size * config.kv_bytes_per_token(dtype.itemsize)
            raise ValueError(
                f"{cache.num_blocks} blocks take {size * cache.num_blocks:,} bytes, more than can "
                f"be had on {self._device} beside {cache.num_host_blocks} on the host: lower "
                "num_blocks or num_host_blocks"
            ) from None

    @torch.inference_mode()
    def execute(self, plan: StepPlan) -> StepResult:
        """Carry out the plan. Raises ValueError, before anything is changed, for drafts, and for
        moves that leave a pool.

        elapsed is measured from the call to the last sampled token.
        """
        began = time.perf_counter()
        _refuse_unsupported(plan)
        self._rows.forget(plan.finished)
        self._move(plan)
        result = StepResult({}, 0.0)
        if plan.items:
            self._run(pack(plan, self._rows, self.block_size, self._device), result)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        result.elapsed = time.perf_counter() - began
        return result

    def _move(self, plan: StepPlan) -> None:
        """Swaps and copies, in the order of the plan's fields."""
        require_in_pools(plan.swap_out, self.num_blocks, self.num_host_blocks)
        require_in_pools(plan.swap_in, self.num_host_blocks, self.num_blocks)
        require_in_pools(plan.copies, self.num_blocks, self.num_blocks)
        for pool, host in zip((*self.k_pools, *self.v_pools), self._host_pools, strict=True):
            self._kernels.move_blocks(pool, host, plan.swap_out)
            self._kernels.move_blocks(host, pool, plan.swap_in)
            self._kernels.copy_blocks(pool, plan.copies)

    def _run(self, batch: Batch, result: StepResult) -> None:
        """The model over one batch; what it samples goes into `result`."""

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            k_pool, v_pool = self.k_pools[layer], self.v_pools[layer]
            self._kernels.write_kv(k, v, k_pool, v_pool, batch.slot_mapping)
            return self._kernels.attention(q, k_pool, v_pool, batch.attention)

        hidden = self.model(batch.token_ids, batch.positions, attend)
        if not batch.samples:
            return
        logits = self.model.logits(hidden[batch.sample_rows])
        drawn = [(i, spec) for i, (_, spec) in enumerate(batch.samples)]
        drawn += [(i, branch) for i, spec in drawn.copy() for branch in branches_of(spec)]
        if len(drawn) > len(logits):
            logits = logits[torch.tensor([i for i, _ in drawn], device=logits.device)]
        tokens, logprobs = sample(logits, [spec for _, spec in drawn])
        for number, (row, _) in enumerate(drawn):
            request_id, is_branch = batch.samples[row][0], number >= len(batch.samples)
            into, said = (
                (result.forks, result.fork_logprobs)
                if is_branch
                else (result.token_ids, result.logprobs)
            )
            into.setdefault(request_id, []).append(tokens[number])
            entry = logprobs[number]
            if entry is not None:
                said.setdefault(request_id, []).append(entry)


def _refuse_unsupported(plan: StepPlan) -> None:
    for item in plan.items:
        if item.draft_len:
            raise ValueError(
                f"request {item.request_id!r} brings {item.draft_len} drafted tokens, but "
                "TorchExecutor does not verify drafts: plan without them"
            )
