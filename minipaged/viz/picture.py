"""What a notebook cell shows: a drawing and, beside it, the same facts as plain text."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from minipaged.viz.figure_svg import MAX_WIDTH, Canvas

_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
_TITLE = re.compile("<title>(.*?)</title>", re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """svg: the drawing. text: the same facts for a screen reader, a log or a pipe."""

    svg: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Both forms; the notebook chooses."""
        return {"image/svg+xml": self.svg, "text/plain": self.text}


def side_by_side(*pictures: Picture) -> Picture:
    """Several pictures in one: beside each other where 760 pixels allow, else below.

    The text forms follow one another.
    """
    if not pictures:
        raise ValueError("side_by_side needs at least one picture: show_step(trace, 0), say")
    canvas = Canvas()
    x = y = below = 0.0
    for picture in pictures:
        width, height = _size(picture)
        if x and x + width > MAX_WIDTH:
            x, y = 0.0, below
        canvas.nest(x, y, picture.svg, width, height)
        x, below = x + width, max(below, y + height)
    found = (_TITLE.search(picture.svg) for picture in pictures)
    title = "; ".join(html.unescape(match[1]) for match in found if match)
    text = "\n\n".join(picture.text for picture in pictures)
    return Picture(canvas.svg(title, margin=0), text)


def _size(picture: Picture) -> tuple[float, float]:
    """Width and height in pixels, as the drawing's first line says."""
    found = _SIZE.match(picture.svg)
    if found is None:
        raise ValueError(
            f"a picture does not begin with <svg ... width= height=>, but with "
            f"{picture.svg[:40]!r}: make it with the functions of minipaged.viz"
        )
    return float(found[1]), float(found[2])
