"""What becomes of a victim's keys and values: dropped and computed again, or moved to the host.

The sum: moving S tokens out and back takes 2 S x bytes per token / host bandwidth. Computing them
again takes 2 S x parameters FLOP, and 2 S^2 x layers x hidden size more for attention over the
tokens before (half of 4 x layers x hidden x S for each, as the mask lets each see half on average).
"""

from __future__ import annotations

from collections.abc import Callable

from minipaged.config import DeviceCosts
from minipaged.protocols import PreemptionPolicy
from minipaged.request import Request


def recompute(request: Request, num_blocks: int) -> str:
    """Drop keys and values; they are computed again on return. vLLM V1's only way."""
    return "recompute"


def swap(request: Request, num_blocks: int) -> str:
    """Move them to the host; recompute if it has no room."""
    return "swap"


def swap_seconds(costs: DeviceCosts, num_tokens: int) -> float:
    """Seconds to move the keys and values of `num_tokens` tokens to the host and back."""
    return 2 * num_tokens * costs.kv_bytes_per_token / costs.host_bandwidth


def recompute_seconds(costs: DeviceCosts, num_tokens: int) -> float:
    """Seconds to compute the keys and values of the first `num_tokens` tokens once more."""
    per_token = 2 * costs.num_parameters + 2 * costs.num_layers * costs.hidden_size * num_tokens
    return num_tokens * per_token / costs.peak_flops


def cheaper(costs: DeviceCosts) -> PreemptionPolicy:
    """For each victim what takes less time; recompute if both take the same."""

    def choose(request: Request, num_blocks: int) -> str:
        num_tokens = request.num_computed_tokens
        costs_less = swap_seconds(costs, num_tokens) < recompute_seconds(costs, num_tokens)
        return "swap" if costs_less else "recompute"

    return choose


PREEMPTION_POLICIES: dict[str, Callable[[DeviceCosts], PreemptionPolicy]] = {
    "recompute": lambda costs: recompute,
    "swap": lambda costs: swap,
    "auto": cheaper,
}
