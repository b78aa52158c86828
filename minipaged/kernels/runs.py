"""Which copies of blocks may happen at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def independent_runs(pairs: Iterable[tuple[int, int]]) -> Iterator[dict[int, int]]:
    """Cut (source, target) pairs, meant one after another, into runs {target: source} that may be
    carried out in any order: no block that one pair of a run writes is read or written by another.
    """
    run: dict[int, int] = {}
    sources: set[int] = set()
    for source, target in pairs:
        if source in run or target in run or target in sources:
            yield run
            run, sources = {}, set()
        run[target] = source
        sources.add(source)
    if run:
        yield run
