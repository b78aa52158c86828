"""Engine options that several commands take, each with one line that says when to choose what."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

ENGINE_OPTIONS: dict[str, tuple[type, str]] = {
    "scheduler": (str, "unified to serve with; static, orca or prefill-first to compare with it."),
    "order": (str, "fcfs to be fair; lpm if prompts begin alike; priority if some are urgent."),
    "admission": (str, "full to let in what fits whole; chunk only to see what thrash is."),
    "watermark_blocks": (int, "Blocks kept from newcomers: some if outputs are long."),
    "admission_headroom": (int, "Blocks that must be left over: one or two against thrash."),
    "high_water_blocks": (int, "Nobody enters with fewer free: if load comes in bursts."),
    "low_water_blocks": (int, "The latest leave with fewer free: if growth must never wait."),
    "backoff_steps": (int, "Steps that a victim stays out, then twice as many: if it thrashes."),
    "victim": (
        str,
        "last-admitted so that the first finish; fewest-computed to lose little; most-blocks to "
        "free much; lowest-priority with priorities.",
    ),
    "preemption": (
        str,
        "recompute if prompts are short; swap if contexts are long; auto to weigh the two.",
    ),
    "num_host_blocks": (int, "Blocks in host memory, for swap and auto."),
    "host_bandwidth": (float, "Bytes per second to the host and back, for auto to weigh."),
    "peak_flops": (float, "FLOP per second that a prompt reaches, for auto to weigh."),
    "max_preemptions": (int, "Swaps of one request, then it is recomputed: if the link is slow."),
}


def takes_engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options; it gets those that were given as the dict `engine_options`."""
    hints = get_type_hints(function, include_extras=True)
    own = [p for n, p in inspect.signature(function).parameters.items() if n != "engine_options"]
    own = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, typer.Option(help=said)],
        )
        for name, (kind, said) in ENGINE_OPTIONS.items()
    ]

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        options = {name: given.pop(name, None) for name in ENGINE_OPTIONS}
        chosen = {name: value for name, value in options.items() if value is not None}
        return function(**given, engine_options=chosen)

    parameters = [*own, *added]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command
