"""Which copies of blocks may happen at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def independent_runs(pairs: Iterable[tuple[int, int]]) -> Iterator[dict[int, int]]:
    """Cut (source, target) pairs, meant one after another, into runs {target: source} that may be
    carried out in any order: within a run no block is read after, or written again after, a write.
    """
    run: dict[int, int] = {}
    for source, target in pairs:
        if source in run or target in run:
            yield run
            run = {}
        run[target] = source
    if run:
        yield run
