"""Several samples of one request: which sequences belong together, by id.

The scheduler knows sequences only, each under an id of its own. A user knows the request. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable

from minipaged.request import sample_id


class Samples:
    """Which live sequences are samples of which request. Sample 0 has the request's own id."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, int]] = {}

    def reserve(self, request_id: str, count: int) -> None:
        """Keep the ids of a request's further samples for it. O(count)."""
        for index in range(1, count):
            self._of[sample_id(request_id, index)] = (request_id, index)

    def clashes(self, request_id: str, count: int, live: Iterable[str]) -> str | None:
        """An id among those that a request would use that is taken already, or None."""
        wanted = [sample_id(request_id, index) for index in range(count)]
        return next((i for i in wanted if i in live or i in self._of), None)

    def owner(self, sequence_id: str) -> tuple[str, int]:
        """The request that a sequence is a sample of, and the sample's index."""
        return self._of.get(sequence_id, (sequence_id, 0))

    def all_of(self, request_id: str) -> list[str]:
        """The ids of a request's sequences, also of those that do not exist yet."""
        others = [one for one, (owner, _) in self._of.items() if owner == request_id]
        return [request_id, *others]

    def ended(self, sequence_id: str) -> None:
        """A sequence is gone; its id is free again."""
        self._of.pop(sequence_id, None)
