"""A rich renderable as an SVG picture of a terminal: the same input gives the same bytes."""

from __future__ import annotations

import html
import io
import re
from itertools import groupby
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console, RenderableType

# a picture in a page may not load fonts: the reader's own monospace font has to do
_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_TEXT = re.compile(
    r'<text (class="[^"]*") x="([\d.]+)" (y="[^"]*") textLength="[^"]*" ([^>]*)>([^<]*)<'
)
_COLUMN = 12.2  # width of a character in rich's picture


def to_svg(renderable: RenderableType, *, width: int, height: int, title: str) -> str:
    """The SVG text of a renderable in a terminal of width x height characters."""
    console = Console(
        record=True,
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        force_jupyter=False,
        color_system="truecolor",
        no_color=False,
        legacy_windows=False,
    )
    console.print(renderable, height=height, end="")
    svg = console.export_svg(title=title, unique_id="minipaged")
    return _TEXT.sub(_in_columns, _FONT_FACE.sub("", svg))


def save_svg(
    renderable: RenderableType, path: Path, *, width: int, height: int, title: str
) -> None:
    """Write `to_svg` to a file, in UTF-8 and with the same newlines on every system."""
    text = to_svg(renderable, width=width, height=height, title=title)
    path.write_bytes(text.encode("utf-8"))


def _in_columns(match: re.Match[str]) -> str:
    """rich gives a Chinese character the length of one column: give it two, apart from the rest."""
    if match[5].isascii():
        return match[0]
    start, style, y, rest = float(match[2]), match[1], match[3], match[4]
    parts = []
    for width, run in groupby(html.unescape(match[5]), cell_len):
        text = "".join(run)
        length = width * len(text) * _COLUMN
        shown = html.escape(text).replace("\xa0", "&#160;")
        parts.append(
            f'<text {style} x="{start:.1f}" {y} textLength="{length:.1f}" {rest}>{shown}</text>'
        )
        start += length
    return "".join(parts).removesuffix("/text>")


def require_target(path: Path) -> None:
    """ValueError, with what to do instead, if no picture can be saved there; changes nothing."""
    try:
        problem = _problem_with(path)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"{reason}: choose another place"
    if problem:
        raise ValueError(f"cannot save a picture as '{path}': {problem}")


def _problem_with(path: Path) -> str:
    """Why no picture can be saved there, or ""; OSError if the system refuses."""
    if path.is_dir():
        return "that is a folder: give a file in it, such as demo.svg"
    if path.suffix.lower() != ".svg":
        return "it is an SVG picture: let the name end in .svg"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}: make it first, or choose another"
    target = path.resolve()
    is_new = not target.exists()
    with target.open("ab"):
        pass  # only a try tells: rights, a full name, a disk that cannot be written to
    if is_new:
        target.unlink()
    return ""
