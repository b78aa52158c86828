"""Text in terminal columns: wrapping that knows Chinese, and room shared among many texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
_CLOSING = "。，、；：？！）」』》〉】”’"
# one character of Chinese may be followed by a line break, unless a closing mark follows it
_UNIT = re.compile(rf"[{_WIDE}][{_CLOSING}]*\s*|[^\s{_WIDE}]+[{_CLOSING}]*\s*|\s+")


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` terminal columns; [] for an empty text.

    Lines break at spaces and between Chinese characters; what is longer than a line is cut.
    """
    lines: list[str] = []
    for paragraph in text.split("\n") if text else ():
        lines.extend(_wrap_paragraph(paragraph, max(width, 2)))
    return lines


def _wrap_paragraph(text: str, width: int) -> list[str]:
    lines = [""]
    for unit in _UNIT.findall(text):
        if cell_len(lines[-1] + unit.rstrip()) <= width:
            lines[-1] += unit
            continue
        *cut, rest = chop_cells(unit.rstrip(), width)
        lines += [*cut, rest + unit[len(unit.rstrip()) :]]
    return [line.rstrip() for line in lines if line.strip()] or [""]


def share_out(needs: Sequence[int], total: int, keen: Sequence[bool]) -> list[int]:
    """Divide `total` lines among texts that need `needs` of them.

    Everybody gets one line, then the keen ones what they need, then the others; turn by turn, so
    that what is short is short for all. Nobody gets more than it needs.
    """
    given = [0] * len(needs)
    everybody = range(len(needs))
    first = sorted(everybody, key=lambda i: not keen[i])
    for turn, most in ((first, 1), ([i for i in first if keen[i]], total), (first, total)):
        for line in range(1, most + 1):
            for i in turn:
                if total > 0 and given[i] < min(line, needs[i]):
                    given[i] += 1
                    total -= 1
    return given
