"""Requests and settings as a scheduling policy is shown them, for scripts.

Standard library only: this runs in the learner's process too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any


@dataclass(eq=False)
class PlainRequest:
    """What a policy may read of a request; the names are those of minipaged.request.Request."""

    request_id: str
    num_computed_tokens: int
    num_tokens: int
    num_blocks: int
    num_preemptions: int = 0
    priority: int = 0


def requests(rows: Iterable[Sequence[Any]]) -> list[PlainRequest]:
    """Requests from rows of their fields, in order: (request_id, num_computed_tokens, …)."""
    return [PlainRequest(*row) for row in rows]


def names(some: Iterable[Any]) -> list[Any]:
    """The ids of requests, in order."""
    return [request.request_id for request in some]


def settings(options: Mapping[str, Any]) -> SimpleNamespace:
    """A configuration with these attributes."""
    return SimpleNamespace(**options)
