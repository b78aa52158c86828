"""What a run came to, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping

from minipaged.trace import Trace
from minipaged.viz.state import ViewState
from minipaged.viz.words import counted


def summary(state: ViewState, max_model_len: int) -> list[str]:
    """Requests, tokens, steps and time; blocks used beside what a contiguous cache would reserve.

    max_model_len: tokens that a contiguous cache sets aside for each request.
    """
    lives = list(state.lives.values())
    outputs = sum(life.num_outputs for life in lives)
    rate = f", {outputs / state.seconds:,.0f} tokens/s" if state.seconds > 0 else ""
    answers = f"{counted(outputs, 'token')} in {counted(state.num_steps, 'step')}"
    total = state.header.num_blocks
    each = -(-max_model_len // state.header.block_size)
    reserved = counted(each * len(lives), "block")
    lines = [
        ("requests", f"{len(lives)}, at most {state.peak_running} at once"),
        ("answers", f"{answers}, {state.seconds:.2f} s{rate}"),
        ("preempted", f"{state.num_preemptions}x, {counted(state.num_dropped, 'token')} dropped"),
        ("computed", f"{counted(state.num_tokens, 'token')}, prompts and what was redone included"),
        ("paged", f"at most {state.peak_blocks} of {counted(total, 'block')} held"),
        ("contiguous", f"{reserved} reserved, max_model_len {max_model_len} for each request;"),
        ("", f"this pool would hold {counted(total // each, 'request')} at once"),
    ]
    if state.num_swapped_out:
        back = counted(state.num_swapped_in, "block")
        out = counted(state.num_swapped_out, "block")
        lines.append(("swapped", f"{out} to the host, {back} back"))
    if state.num_cached:
        lines.append(("cached", f"{counted(state.num_cached, 'token')} taken from earlier blocks"))
    if state.peak_saved:
        copies = f"{counted(state.num_copied, 'block')} copied before writing"
        lines.append(("shared", f"{counted(state.peak_saved, 'block')} saved at most; {copies}"))
    return [f"{name:<10}  {text}" for name, text in lines]


def versus(traces: Mapping[str, Trace]) -> list[str]:
    """Runs side by side: steps, and how many of the places in them had no work."""
    width = max(map(len, traces))
    lines = []
    for name, trace in traces.items():
        places = len(trace.steps) * trace.max_num_seqs
        busy = sum(len(record.work) for record in trace.steps)
        idle = f"{places - busy:>5} of {places} places idle ({1 - busy / places:.0%})"
        lines.append(f"{name:<{width}}  {len(trace.steps):>5} steps, {idle}")
    return lines
