"""The plain-text pictures of a step, as notebooks store them."""

from __future__ import annotations

from minipaged.trace import Recorder, StepRecord, Work
from minipaged.viz.palette import Palette
from minipaged.viz.text import block_tables, pool_grid, step_picture


def record(tables: dict[str, list[int]], num_free: int) -> StepRecord:
    return StepRecord(
        step=3,
        time=0.0,
        elapsed=0.0,
        work=[Work("a", 4, 2, []), Work("b", 7, 1, [9])],
        tables=tables,
        computed={"a": 4, "b": 7},
        known={"a": 6, "b": 8},
        waiting=["c"],
        num_free=num_free,
    )


def test_every_block_is_one_sign():
    text = pool_grid(record({"a": [0, 2], "b": [1, 7]}, 6), Palette(), columns=8)
    assert text == "0  A B A · · · · B\n8  · ·"


def test_a_shared_block_counts_once_and_is_marked():
    text = pool_grid(record({"a": [0, 1], "b": [0, 2]}, 1), Palette())
    assert text == "0  + A B ·"


def test_tables_count_the_tokens_of_this_step():
    text = block_tables(record({"a": [0, 2], "b": [1, 7]}, 6), 4, Palette())
    assert text == ("A     6 tokens,  2 empty  [0, 2]\nB     8 tokens,  0 empty  [1, 7]")


def test_the_picture_of_a_real_step_adds_up(lab):
    made = lab(block_size=4, num_blocks=16)
    recorder = Recorder(made.engine)
    made.engine.observers.append(recorder)
    made.add("r1", 9, max_tokens=3)
    made.add("r2", 4, max_tokens=2)
    made.run()
    palette = Palette()
    first, last = (
        step_picture(r, 4, palette) for r in recorder.trace.steps[:: len(recorder.trace.steps) - 1]
    )
    assert first == (
        "step 0   tokens computed: 13   requests running: 2, waiting: 0   blocks free: 12\n\n"
        " 0  A A A B · · · · · · · · · · · ·\n\n"
        "A     9 tokens,  3 empty  [0, 1, 2]\n"
        "B     4 tokens,  0 empty  [3]"
    )
    assert "tokens computed: 1   requests running: 1, waiting: 0" in last
