"""Pictures of what a program reads of a pool."""

from __future__ import annotations

from collections import Counter

import pytest
from drawings import SVG, parsed, words

from minipaged.viz.figures import show_reads
from minipaged.viz.palette import nth_mark


def test_places_read_and_not_read():
    picture = show_reads(3, 8, [18, 19, 16, 17, 4, 5, 22], unit=2, title="Head 0")
    assert picture.text == (
        "Head 0\n\n7 numbers in 3 pieces\n\nblock 0  ··#·\nblock 1  ····\nblock 2  ##·#"
    )
    assert words(picture)[:2] == ["Head 0", "7 numbers in 3 pieces"]
    fills = Counter(rect.get("fill") for rect in parsed(picture).iter(f"{SVG}rect"))
    assert fills[nth_mark(0).colour] == 4


def test_nothing_read():
    assert show_reads(1, 3, []).text == "0 numbers in 0 pieces\n\nblock 0  ···"


def test_block_numbers_are_aligned():
    assert show_reads(11, 1, [10]).text.splitlines()[2:][::10] == ["block  0  ·", "block 10  #"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 8, [16]), "place 16 is outside of the pool, which has 0 to 15"),
        ((2, 8, [-1, 3]), "place -1 is outside"),
        ((2, 1000, []), "choose a larger unit"),
        ((0, 8, []), "num_blocks is 0"),
        ((65, 8, []), "num_blocks is 65"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        show_reads(*arguments)
