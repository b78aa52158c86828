"""The few styles that all parts of the terminal view share."""

from __future__ import annotations

from rich.text import Text

from minipaged.viz.palette import DARK, Mark

DIM = "grey58"
Lines = list[Text]


def solid(mark: Mark) -> str:
    """The style of what is full or running."""
    return f"bold {mark.ink} on {mark.colour}"


def hollow(mark: Mark) -> str:
    """The style of what is half full or put aside; readable on a dark and on a light terminal."""
    return f"bold {mark.colour} on {DARK}"


def fitted(line: Text, width: int) -> Text:
    """The line, cut with an ellipsis if it is too long."""
    line.truncate(max(width, 0), overflow="ellipsis")
    line.no_wrap = True
    return line
