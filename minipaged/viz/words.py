"""Words that depend on a number."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 block, 2 blocks, 1,024 blocks."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
