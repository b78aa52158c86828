"""`minipaged bench …`: measure parts of the engine."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from minipaged.commands.bench_kernels import bench_kernels_command
from minipaged.commands.engine_options import takes_engine_options
from minipaged.config import EngineConfig

app = typer.Typer(help="Measure parts of the engine.")
app.command("kernels", epilog="Example: minipaged bench kernels --aot --kernel decode")(
    bench_kernels_command
)


@app.command(
    "scheduler",
    epilog="Example: minipaged bench scheduler --requests 256 --num-blocks 400 --max-num-seqs 64",
)
@takes_engine_options
def bench_scheduler_command(
    requests: Annotated[int, typer.Option(help="Requests in all.")] = 256,
    prompt_len: Annotated[tuple[int, int], typer.Option(help="Prompt tokens, LO HI.")] = (16, 256),
    output_len: Annotated[tuple[int, int], typer.Option(help="Output tokens, LO HI.")] = (8, 128),
    block_size: Annotated[int, typer.Option(help="Tokens per block.")] = 16,
    num_blocks: Annotated[int, typer.Option(help="Blocks in the pool.")] = 8192,
    max_num_seqs: Annotated[int, typer.Option(help="Requests that run at once.")] = 64,
    max_num_batched_tokens: Annotated[int, typer.Option(help="Token budget of a step.")] = 2048,
    arrival_rate: Annotated[float, typer.Option(help="Arrivals per step; 0: all at once.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of lengths, tokens and arrivals.")] = 0,
    shared_prefix: Annotated[int, typer.Option(help="Tokens that all prompts begin with.")] = 0,
    prefix_caching: Annotated[str, typer.Option(help="hash, radix or off.")] = "off",
    engine_options: dict[str, Any] | None = None,
) -> None:
    """Time scheduling decisions, with no model.

    Prints one JSON line: the fastest of 9 runs, and the median of their times.
    """
    from minipaged.bench import bench_scheduler
    from minipaged.workload import SyntheticWorkload

    config = EngineConfig.of(
        block_size=block_size,
        num_blocks=num_blocks,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        enable_prefix_caching=prefix_caching,
        **(engine_options or {}),
    )
    workload = SyntheticWorkload(
        requests, prompt_len, output_len, arrival_rate, seed, shared_prefix=shared_prefix
    )
    print(json.dumps(bench_scheduler(config, workload)))
