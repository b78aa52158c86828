"""What one decode step of the scheduler costs as pool, queue and context grow.

    python benchmarks/scheduler_scaling.py [off|hash|radix]

64 requests decode in every step; one of three sizes changes at a time. Each figure is the median
of many steps (schedule + commit, in microseconds), as a ratio to the first of its row as well. A
step's cost should follow what is scheduled in it, so every ratio should be near 1; a test counts
executed lines and elements read to the same end, because seconds on a shared machine prove little.
"""

from __future__ import annotations

import statistics
import sys
from time import perf_counter

from rich.console import Console
from rich.table import Table

from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.plan import StepPlan, StepResult
from minipaged.request import Request

RUNNING = 64
ROWS = (
    # what grows, its sizes, what the other two are meanwhile
    ("blocks", (1_000, 10_000, 100_000), {"waiting": 100, "context": 100}),
    ("waiting", (100, 1_000, 10_000), {"blocks": 100_000, "context": 100}),
    ("context", (1_000, 10_000, 100_000), {"blocks": 450_000, "waiting": 0}),
)


def microseconds_per_step(
    caching: str, blocks: int, waiting: int, context: int, steps: int = 200
) -> float:
    """Median of schedule + commit over `steps` decode steps."""
    config = EngineConfig.of(
        num_blocks=blocks,
        max_num_seqs=RUNNING,
        max_num_batched_tokens=RUNNING * context,
        enable_prefix_caching=caching,
    )
    parts = Components()
    manager = parts.make_manager(config.cache)
    scheduler = parts.make_scheduler(config, manager)
    for number in range(RUNNING + waiting):
        params = SamplingParams(max_tokens=steps + 10, ignore_eos=True)
        scheduler.add(Request(str(number), [number] * context, params))
    taken = []
    for _ in range(steps + 1):
        begin = perf_counter()
        plan = scheduler.schedule()
        planned = perf_counter()
        result = _tokens(plan)
        resumed = perf_counter()
        scheduler.commit(plan, result)
        taken.append((planned - begin) + (perf_counter() - resumed))
    return statistics.median(taken[1:]) * 1e6  # the first step reads the prompts


def _tokens(plan: StepPlan) -> StepResult:
    return StepResult({item.request_id: [7] for item in plan.items}, 0.0)


def main() -> None:
    """Print the table."""
    caching = sys.argv[1] if len(sys.argv) > 1 else "off"
    table = Table("what grows", "small", "medium", "large", title=f"prefix caching {caching}")
    for name, sizes, others in ROWS:
        figures = [microseconds_per_step(caching, **others, **{name: size}) for size in sizes]
        cells = (
            f"{size:,}: {figure:.0f} us, x{figure / figures[0]:.2f}"
            for size, figure in zip(sizes, figures, strict=True)
        )
        table.add_row(name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
