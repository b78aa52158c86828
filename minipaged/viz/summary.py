"""What a run came to, in a few lines."""

from __future__ import annotations

from minipaged.viz.state import ViewState


def summary(state: ViewState, max_model_len: int) -> list[str]:
    """Requests, tokens, steps and time; blocks used beside what a contiguous cache would reserve.

    max_model_len: tokens that a contiguous cache sets aside for each request.
    """
    lives = list(state.lives.values())
    outputs = sum(life.num_outputs for life in lives)
    rate = f", {outputs / state.seconds:,.0f} tokens/s" if state.seconds > 0 else ""
    header = state.header
    each = -(-max_model_len // header.block_size)
    lines = [
        ("requests", f"{len(lives)}, at most {state.peak_running} at once"),
        ("answers", f"{outputs:,} tokens in {state.num_steps} steps, {state.seconds:.2f} s{rate}"),
        ("preempted", f"{state.num_preemptions}x, {state.num_dropped:,} tokens dropped"),
        ("computed", f"{state.num_tokens:,} tokens, prompts and what was redone included"),
        ("paged", f"at most {state.peak_blocks} of {header.num_blocks} blocks held"),
        ("contiguous", f"{each * len(lives)} blocks reserved, {max_model_len:,} tokens each;"),
        ("", f"this pool would hold {header.num_blocks // each} requests at once"),
    ]
    return [f"{name:<10}  {text}" for name, text in lines]
