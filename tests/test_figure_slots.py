"""Pictures of a stretch of memory: used, reserved and free."""

from __future__ import annotations

from collections import Counter

import pytest
from drawings import SVG, parsed, words

from minipaged.viz.figures import show_slots
from minipaged.viz.palette import nth_mark


def test_slots_used_reserved_and_free():
    picture = show_slots(20, [(0, 6, "A", 4), (8, 10, "B", 5)], columns=10, title="One row")
    facts = "20 slots: 9 used, 7 reserved but empty, 4 free"
    assert picture.text == (
        f"One row\n\n{facts}\n\n"
        " 0  AAAA--··BB\n"
        "10  BBB-----··\n\n"
        "A  from 0: 6 reserved, 4 used\n"
        "B  from 8: 10 reserved, 5 used"
    )
    assert words(picture)[:2] == ["One row", facts]
    widths = Counter()
    for rect in parsed(picture).iter(f"{SVG}rect"):
        widths[rect.get("fill")] += float(rect.get("width"))
    assert widths[nth_mark(0).colour] == 4 * 20 and widths[nth_mark(1).colour] == 5 * 20


def test_memory_without_spans_is_free():
    assert show_slots(3, []).text == "3 slots: 0 used, 0 reserved but empty, 3 free\n\n0  ···"


def test_a_name_stands_where_it_fits():
    shown = words(show_slots(64, [(0, 40, "first", 30), (40, 24, "second", 3)]))
    assert "first" in shown and "second" not in shown and "B" in shown


@pytest.mark.parametrize(
    ("total", "spans", "message"),
    [
        (10, [(0, 11, "A", 1)], "A reserves 11 units from 0 on, but the memory has the units 0 to"),
        (10, [(-1, 2, "A", 1)], "A reserves 2 units from -1 on"),
        (10, [(3, 4, "B", 1), (0, 4, "A", 1)], "B begins at 3, inside the reservation of A"),
        (10, [(0, 4, "A", 5)], "A uses 5 of its 4 units"),
        (5000, [], "total is 5000, but 64 columns show 1 to 4096 units"),
        (0, [], "total is 0"),
    ],
)
def test_spans_that_cannot_be_are_named(total, spans, message):
    with pytest.raises(ValueError, match=message):
        show_slots(total, spans)


def test_a_letter_has_the_same_colour_in_every_picture():
    from minipaged.viz.palette import nth_mark

    late = show_slots(32, [(0, 8, "C", 8), (8, 8, "A", 8)])
    for number in (0, 2):
        assert nth_mark(number).colour in late.svg
    assert nth_mark(1).colour not in late.svg
