"""Who is who in a picture: a letter and a colour per request. No torch.

Colour is never the only sign, so that a picture can be read without it: by the colour-blind, in
a terminal without colours, in print. The colours are those of Okabe and Ito, "Color Universal
Design" (2008), chosen to be told apart with every common form of colour blindness; grey stands
in for black.
"""

from __future__ import annotations

import string
from typing import NamedTuple

COLOURS = (
    "#e69f00",  # orange
    "#56b4e9",  # sky blue
    "#009e73",  # bluish green
    "#f0e442",  # yellow
    "#0072b2",  # blue
    "#d55e00",  # vermilion
    "#cc79a7",  # reddish purple
    "#b3b3b3",  # grey
)
SIGNS = string.ascii_uppercase + string.ascii_lowercase + string.digits
DARK, LIGHT = "#121212", "#ffffff"


class Mark(NamedTuple):
    """How one request is shown. sign: one ASCII letter or digit. colour: as #rrggbb.

    ink: what can be read on top of that colour, near-black or white.
    """

    sign: str
    colour: str
    ink: str


class Palette:
    """Gives each request id a mark when it is first asked for, and the same one ever after.

    The n-th id gets the n-th letter and colour: a run replayed from its trace looks the same.
    Letters repeat after 62 ids; letter and colour together only after 248.
    """

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}

    def __getitem__(self, request_id: str) -> Mark:
        mark = self._marks.get(request_id)
        if mark is None:
            mark = self._marks[request_id] = nth_mark(len(self._marks))
        return mark


def nth_mark(number: int) -> Mark:
    """The mark of the request that came as number 0, 1, 2 ..."""
    colour = COLOURS[number % len(COLOURS)]
    return Mark(SIGNS[number % len(SIGNS)], colour, ink_on(colour))


def ink_on(colour: str) -> str:
    """Near-black or white, whichever stands out more on `colour` (WCAG 2 contrast ratio)."""
    own, dark = luminance(colour), luminance(DARK)
    on_dark, on_light = (own + 0.05) / (dark + 0.05), 1.05 / (own + 0.05)
    return DARK if on_dark >= on_light else LIGHT


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb as in WCAG 2: 0 for black, 1 for white."""
    levels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
