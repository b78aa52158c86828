"""Pictures of blocks: well-formed, readable, and saying what the trace says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from drawings import SVG, fills, free_boxes, parsed, words

from minipaged.simulate import simulate
from minipaged.trace import Event, StepRecord, Trace, Work
from minipaged.viz import figure_svg
from minipaged.viz.figure_parts import SHARED_MARK
from minipaged.viz.figures import Picture, show_pool, show_slots, show_step, side_by_side
from minipaged.viz.palette import COLOURS, DARK, ink_on, luminance, nth_mark


@pytest.fixture(scope="module")
def trace():
    """Five requests that do not fit: growth, preemption, scattered blocks."""
    return simulate([(9, 30), (4, 20), (30, 12), (6, 40), (12, 30)], block_size=4, num_blocks=20)


def test_every_step_says_what_the_trace_says(trace):
    for index, record in enumerate(trace.steps):
        picture = show_step(trace, index)
        shown = words(picture)
        held = {b for table in record.tables.values() for b in table}
        free = trace.num_blocks - len(held)
        count = sum(work.num_tokens for work in record.work)
        assert shown[:2] == [f"step {index}", f"{count} token{'s' * (count != 1)} computed"]
        state = f"{len(record.tables)} running, {len(record.waiting)} waiting"
        assert shown[2] == f"{state}, {free} of 20 blocks free"
        assert free_boxes(picture) == free
        assert f"blocks free: {free}" in picture.text
        work = {w.request_id: w.start_position + w.num_tokens for w in record.work}
        for name, table in record.tables.items():
            empty = 4 * len(table) - work[name]
            line = (
                f"{name}  {work[name]:>4} tokens, {empty:>2} empty  [{', '.join(map(str, table))}]"
            )
            assert line in picture.text
            assert any(re.fullmatch(f"\\s*{work[name]} tokens,\\s+{empty} empty", w) for w in shown)
            # its letter once for each block, and once before its row
            told = shown[: next((i for i, w in enumerate(shown) if w.startswith("waiting")), None)]
            assert told.count(name) == len(table) + 1


def test_what_happened_is_told(trace):
    told = [show_step(trace, i).text.splitlines()[-1] for i in range(len(trace.steps))]
    assert told[0] == "A B C D E added and admitted"
    happened = Counter(event.kind for s in trace.steps for event in s.events)
    assert happened["preempted"] and happened["finished"] == 5
    assert sum("preempted" in line for line in told) > 0
    assert sum(line.count("finished (length)") for line in told) > 0


def test_letters_do_not_depend_on_the_step_that_is_drawn():
    trace = simulate([(4, 2), (4, 9)], block_size=4)
    last = show_step(trace, len(trace.steps) - 1)
    assert "A" not in words(last) and words(last).count("B") == 1 + 3


def test_blocks_are_as_full_as_they_are_drawn():
    trace = simulate([(5, 2)], block_size=4, num_blocks=4)
    mark = nth_mark(0)
    picture = show_step(trace, 0)
    # block 0 in pool, row and letter box are solid; block 1 holds one token of four
    assert fills(picture)[mark.colour] == 3
    pale = figure_svg.tint(mark.colour)
    parts = [r for r in parsed(picture).iter(f"{SVG}rect") if r.get("fill") == pale]
    assert float(parts[0].get("width")) == (figure_svg.CELL - 4) / 4
    assert len(parts) == 2  # in the pool and in the row


def record(tables, **more):
    """A record of requests whose blocks of 4 are full."""
    return StepRecord(
        7, 0.0, 0.0, [], tables, {i: 4 * len(t) for i, t in tables.items()}, {}, [], 2, **more
    )


def test_shared_blocks_copies_and_waiting_are_marked():
    step = record({"x": [0, 1], "y": [0, 2]}, copies=[(1, 2)])
    step.waiting, step.events = ["z"], [Event("added", "z", "")]
    picture = show_step(Trace(4, 5, 8, 8, [step]), 0)
    shown = words(picture)
    assert shown.count("+") == 1 and fills(picture)[SHARED_MARK.colour] == 1
    assert shown.count("0+") == 2 and "1+" not in shown
    assert picture.text.splitlines()[2] == "0  + B C · ·"  # z came first
    assert picture.text.splitlines()[-1] == "A added, block 1 copied to 2"


def test_a_large_step_stays_within_the_page():
    tables = {f"r{i}": list(range(i * 60, i * 60 + 60)) for i in range(50)}
    step = record(tables)
    step.waiting = [f"w{i}" for i in range(300)]
    step.num_free = 5000 - 3000
    picture = show_step(Trace(4, 5000, 8, 8, [step]), 0)
    shown = words(picture)
    assert "… and 3,720 more blocks" in shown and "… and 10 more requests" in shown
    assert "… 13 more …" in shown and "… 253 more …" in shown
    assert picture.text.count("240 tokens") == 50  # the text form leaves nothing out


@pytest.mark.parametrize("step", [-1, 99, 1.0, True, "0"])
def test_a_step_out_of_range_is_named(trace, step):
    with pytest.raises(ValueError, match=rf"step is {step!r}, but the trace has \d+ steps: choose"):
        show_step(trace, step)
    with pytest.raises(ValueError, match="has 0 steps: there is nothing to show"):
        show_step(Trace(4, 4, 4, 4), 0)


def test_a_pool_and_its_queue():
    picture = show_pool(
        16, {"A": [0, 3, 4], "B": [0, 7]}, queue=iter([5, 2]), title="After a <fork> & more"
    )
    assert picture.text == (
        "After a <fork> & more\n\n"
        " 0  + · · A A · · B · · · · · · · ·\n\n"
        "A  [0, 3, 4]\n"
        "B  [0, 7]\n"
        "free queue, next first: [5, 2]"
    )
    shown = words(picture)
    assert shown[0] == "After a <fork> & more" and shown[-2:] == ["5", "2"]
    assert free_boxes(picture) == 12
    assert parsed(picture).get("aria-label") == "After a <fork> & more: 12 of 16 blocks free"


def test_long_names_get_letters_and_stand_beside_them():
    picture = show_pool(6, {"system": [0], "me": [3, 1]}, columns=4)
    assert picture.text == "0  A B · B\n4  · ·\n\nA  system  [0]\nB  me      [3, 1]"
    assert {"system", "A", "B"} <= set(words(picture))


def test_names_of_one_letter_are_kept():
    assert show_pool(3, {"C": [0], "A": [2]}).text.startswith("0  C · A\n")


@pytest.mark.parametrize(
    ("held", "queue", "message"),
    [
        ({"A": [0, 16]}, (), "A holds block 16, but this pool of 16 has the blocks 0 to 15"),
        ({"A": [-1]}, (), "A holds block -1, but"),
        ({}, [3, 20], "the queue holds block 20, but"),
        ({"A": [1.0]}, (), r"A holds block 1\.0, but"),
    ],
)
def test_a_block_out_of_range_is_named(held, queue, message):
    with pytest.raises(ValueError, match=message):
        show_pool(16, held, queue=queue)


def test_columns_are_limited():
    with pytest.raises(ValueError, match="columns is 0: choose from 1 to 32"):
        show_pool(4, {}, columns=0)
    with pytest.raises(ValueError, match="columns is 300: choose from 1 to 256"):
        show_slots(4, [], columns=300)


def test_side_by_side_keeps_all_and_wraps():
    one, two = show_pool(12, {"A": [1]}, title="a & b"), show_pool(12, {"A": [1, 2]})
    wide = show_pool(32, {}, columns=32, title="wide")
    picture = side_by_side(one, two, wide)
    assert picture.text == "\n\n".join(p.text for p in (one, two, wide))
    inner = parsed(picture).findall(f".//{SVG}svg")
    places = [(float(e.get("x")), float(e.get("y"))) for e in inner]
    height = max(float(e.get("height")) for e in inner[:2])
    assert places == [(0, 0), (float(inner[0].get("width")), 0), (0, height)]
    assert parsed(picture).get("aria-label").startswith("a & b: 11 of 12 blocks free; a pool:")
    nested = side_by_side(picture, one)
    assert len(parsed(nested).findall(f".//{SVG}svg")) == 5
    with pytest.raises(ValueError, match="at least one picture"):
        side_by_side()
    with pytest.raises(ValueError, match="begin with <svg"):
        side_by_side(Picture("", "only text"))


def test_a_picture_is_both_forms_in_a_notebook(trace):
    picture = show_step(trace, 0)
    assert repr(picture) == str(picture) == picture.text
    bundle = {"image/svg+xml": picture.svg, "text/plain": picture.text}
    assert picture._repr_mimebundle_() == bundle


def contrast(one: str, two: str) -> float:
    """WCAG 2 contrast ratio of two colours."""
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_ink_can_be_read_on_every_fill():
    for colour in (*COLOURS, SHARED_MARK.colour):
        assert contrast(colour, ink_on(colour)) >= 4.5
        assert contrast(figure_svg.tint(colour), DARK) >= 4.5
        assert contrast(figure_svg.shade(colour), figure_svg.GROUND) >= 3
    assert SHARED_MARK.ink == ink_on(SHARED_MARK.colour)
    assert contrast(figure_svg.DIM, figure_svg.GROUND) >= 4.5


def test_every_ink_in_a_drawing_stands_on_its_own_fill(trace):
    """A letter's ink against the last box that was drawn under it."""
    for index in range(0, len(trace.steps), 5):
        boxes = []
        for element in parsed(show_step(trace, index)).iter():
            if element.tag == f"{SVG}rect":
                boxes.append(element)
            elif element.tag == f"{SVG}text" and element.get("text-anchor") == "middle":
                x, y = float(element.get("x")), float(element.get("y")) - 4
                under = [b for b in boxes if covers(b, x, y)]
                assert contrast(element.get("fill", DARK), under[-1].get("fill")) >= 4.5


def covers(box, x, y):
    left, top = float(box.get("x", 0)), float(box.get("y", 0))
    right, bottom = left + float(box.get("width")), top + float(box.get("height"))
    return left <= x <= right and top <= y <= bottom


def test_two_processes_draw_the_same_bytes():
    code = (
        "from minipaged.simulate import simulate\n"
        "from minipaged.viz.figures import *\n"
        "trace = simulate([(9, 30), (4, 20), (30, 12)], block_size=4, num_blocks=12)\n"
        "print(side_by_side(*(show_step(trace, i) for i in range(9))).svg)\n"
        "print(show_slots(9, [(0, 3, 'A', 1)]).svg, show_pool(9, {'ab': [1]}, queue=[3]).svg)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] and len(runs[0]) > 10_000


def test_works_of_a_step_count_towards_its_tokens():
    step = StepRecord(0, 0.0, 0.0, [Work("a", 4, 2, [])], {"a": [0, 1]}, {"a": 4}, {}, [], 2)
    shown = words(show_step(Trace(4, 4, 8, 8, [step]), 0))
    assert "2 tokens computed" in shown and "\xa0\xa0\xa06 tokens,\xa0\xa02 empty" in shown
