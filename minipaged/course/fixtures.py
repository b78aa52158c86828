"""What a script may lend to the learner's code, so that one exercise never needs another one.

Slow and plain on purpose. Standard library only: this runs in the learner's process too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class PlainMeta(NamedTuple):
    """What an attention function is told about a step: the tensors of kernels.meta.AttentionMeta,
    under the same names."""

    query_start_loc: Any
    seq_lens: Any
    block_tables: Any


class PlainQueue:
    """A free queue (FreeQueueLike) on a list: right, and slow."""

    def __init__(self, num_blocks: int) -> None:
        self._ids = list(range(num_blocks))

    def pop_head(self) -> int:
        """Take the first id; IndexError if there is none."""
        if not self._ids:
            raise IndexError("the free queue is empty")
        return self._ids.pop(0)

    def append(self, block_id: int) -> None:
        """Queue an id last; ValueError if it is queued already."""
        self._require_absent(block_id)
        self._ids.append(block_id)

    def prepend(self, block_id: int) -> None:
        """Queue an id first; ValueError if it is queued already."""
        self._require_absent(block_id)
        self._ids.insert(0, block_id)

    def remove(self, block_id: int) -> None:
        """Take out a given id; ValueError if it is not queued."""
        self._ids.remove(block_id)

    def _require_absent(self, block_id: int) -> None:
        if block_id in self._ids:
            raise ValueError(f"block {block_id} is on the free queue already")

    def __contains__(self, block_id: object) -> bool:
        return block_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)


def words_missing(subject: Any, method: str, argument: Any, words: Sequence[str]) -> list[str]:
    """A call that must raise RuntimeError: which of these words its message lacks."""
    try:
        getattr(subject, method)(argument)
    except RuntimeError as error:
        return [word for word in words if word not in str(error)]
    return ["a RuntimeError"]
