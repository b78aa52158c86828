"""An executor without a model: a ledger that proves block tables right, and a cost model.

The ledger. Where a real executor stores a token's keys and values, this one stores in the same
slot a hash of (token, position, everything before it). What stood before is not remembered from
the last step: it is read again through the request's block table, slot by slot, as attention
would read it. The "model's" next token is a function of that reading. So a wrong table, a missing
copy, a swap in the wrong order or a block handed to two requests changes the output at once, in
plain Python, in milliseconds, and nothing else does: not the schedule, the block size or the batch.

What it does not do: compute attention. It cannot notice a kernel that reads the right slots and
adds them up wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import mul

from minipaged.config import CacheConfig
from minipaged.exec.base import BlockRows, require_in_pools
from minipaged.plan import (
    BlockMove,
    SampleSpec,
    ScheduledItem,
    StepPlan,
    StepResult,
    branches_of,
)
from minipaged.require import require_int, require_real

_MODULUS = (1 << 61) - 1  # a Mersenne prime: sums of products stay small and mix well


@dataclass(frozen=True, slots=True)
class CostModel:
    """How long a step takes: a roofline over weights and KV cache, plus a fixed overhead.

    seconds = overhead_s + max(weight bytes + KV bytes read over memory bandwidth,
                               tokens x FLOP per token over peak FLOP/s) + copied bytes / bandwidth

    Defaults: Llama-3-8B in 16 bit (8.030e9 parameters, 131,072 B of KV per token) on an H100 SXM
    (989 TFLOP/s dense, 3,350 GB/s), 32 GB/s to the host (PCIe 4.0 x16, one direction).

    overhead_s: seconds per step whatever it holds. weight_bytes: bytes read once a step.
    kv_bytes_per_token: bytes per token of context. flop_per_token: FLOP to compute one token.
    memory_bandwidth, host_bandwidth: bytes per second. peak_flops: FLOP per second.
    """

    overhead_s: float = 0.002
    weight_bytes: float = 16.06e9
    kv_bytes_per_token: float = 131_072
    flop_per_token: float = 16.06e9
    memory_bandwidth: float = 3.35e12
    host_bandwidth: float = 32e9
    peak_flops: float = 989e12

    def __post_init__(self) -> None:
        for name in ("overhead_s", "weight_bytes", "kv_bytes_per_token", "flop_per_token"):
            require_real(name, getattr(self, name), 0.0, "0 leaves this cost out")
        for name in ("memory_bandwidth", "host_bandwidth", "peak_flops"):
            require_real(name, getattr(self, name), 1.0, "give units per second")

    def seconds(self, plan: StepPlan, block_size: int) -> float:
        """Predicted duration of one step; 0 for a step with nothing to do. Cost: O(items)."""
        if plan.is_empty():
            return 0.0
        tokens = plan.num_tokens
        context = sum(item.start_position + len(item.token_ids) for item in plan.items)
        block_bytes = block_size * self.kv_bytes_per_token
        read = self.weight_bytes + context * self.kv_bytes_per_token
        compute = tokens * self.flop_per_token / self.peak_flops
        work = max(read / self.memory_bandwidth, compute) if tokens else 0.0
        moved = (len(plan.swap_in) + len(plan.swap_out)) * block_bytes / self.host_bandwidth
        copied = 2 * len(plan.copies) * block_bytes / self.memory_bandwidth
        return self.overhead_s + work + moved + copied


@dataclass(frozen=True, slots=True)
class SimConfig:
    """vocab_size: tokens are 0 … vocab_size - 1.
    ledger: False leaves only the cost model (every token is then 0): the simulator."""

    vocab_size: int = 32_000
    ledger: bool = True
    cost: CostModel = CostModel()

    def __post_init__(self) -> None:
        require_int("vocab_size", self.vocab_size, 1, "32000 is Llama-2's")


ChooseToken = Callable[[str, SampleSpec, int], int]


class SimExecutor:
    """Carries plans out over a ledger.

    choose_token: (request id, spec, digest of all known tokens) -> token id, instead of the
        built-in function. A golden test forces the tokens of a real model with it.
    """

    def __init__(
        self,
        cache: CacheConfig,
        config: SimConfig | None = None,
        choose_token: ChooseToken | None = None,
    ) -> None:
        if cache.num_blocks is None:
            raise ValueError("SimExecutor needs num_blocks: it has no memory to derive it from")
        self.config = config or SimConfig()
        self.block_size = cache.block_size
        self.rows = BlockRows(cache.num_blocks)
        self._choose = choose_token or self._next_token
        if self.config.ledger:
            # slots never written hold a value of their own each, as memory holds garbage
            self._slots = [
                hash((-1 - i, 0)) % _MODULUS for i in range(cache.num_blocks * self.block_size)
            ]
            self._host = [0] * (cache.num_host_blocks * self.block_size)
            self._weights: list[int] = []

    def execute(self, plan: StepPlan) -> StepResult:
        """Carry out one plan. Cost with the ledger: O(tokens + context of each item)."""
        self.rows.forget(plan.finished)
        result = StepResult({}, 0.0)
        if self.config.ledger:
            self._move(self._slots, self._host, plan.swap_out)
            self._move(self._host, self._slots, plan.swap_in)
            self._move(self._slots, self._slots, plan.copies)
        for item in plan.items:
            row = self.rows.update_for(item, self.block_size)
            digest = self._compute(item, row) if self.config.ledger else 0
            if item.sample is not None:
                self._sample(item.request_id, item.sample, digest, result)
        result.elapsed = self.config.cost.seconds(plan, self.block_size)
        return result

    def _sample(self, request_id: str, spec: SampleSpec, digest: int, result: StepResult) -> None:
        """One token for the item, and one for each sequence that branches off it."""
        result.token_ids[request_id] = [self._choose(request_id, spec, digest)]
        if spec.num_samples > 1:
            result.forks[request_id] = [
                self._choose(request_id, branch, digest) for branch in branches_of(spec)
            ]

    def _compute(self, item: ScheduledItem, row: list[int]) -> int:
        """Write the item's entries and return the digest of everything up to its last token."""
        start, size = item.start_position, self.block_size
        digest = self._read(row, start)
        for position, token in enumerate(item.token_ids, start):
            entry = hash((token, position, digest)) % _MODULUS
            self._slots[row[position // size] * size + position % size] = entry
            digest = (digest + entry * self._weights[position]) % _MODULUS
        return digest

    def _read(self, row: list[int], end: int) -> int:
        """Digest of the first `end` slots of a row, each weighted by its position."""
        size, slots, weights = self.block_size, self._slots, self._weights
        while len(weights) < len(row) * size:
            weights.append(2 * len(weights) + 1)
        digest = 0
        for first in range(0, end, size):
            base, count = row[first // size] * size, min(size, end - first)
            entries = slots[base : base + count]
            digest += sum(map(mul, entries, weights[first : first + count]))
        return digest % _MODULUS

    def _move(self, source: list[int], target: list[int], moves: list[BlockMove]) -> None:
        size = self.block_size
        require_in_pools(moves, len(source) // size, len(target) // size)
        for move in moves:
            block = source[move.source * size : (move.source + 1) * size]
            target[move.target * size : (move.target + 1) * size] = block

    def _next_token(self, request_id: str, spec: SampleSpec, digest: int) -> int:
        """Greedy: a function of the history. Sampled: of the history, seed and indices."""
        if spec.params.temperature > 0:
            digest = hash((digest, spec.seed, spec.sample_index, spec.output_index))
        if not self.config.ledger:
            return 0
        token = digest % self.config.vocab_size
        stops = spec.params.stop_token_ids
        if spec.output_index < spec.params.min_tokens:
            for _ in range(self.config.vocab_size):  # if all are stop tokens, the first will do
                if token not in stops:
                    break
                token = (token + 1) % self.config.vocab_size
        return token
