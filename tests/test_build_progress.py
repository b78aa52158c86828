"""What `minipaged dev build` shows while it builds."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from minipaged.commands.telling import telling


def test_building_tells_a_plain_line_for_each_file_outside_of_a_terminal(capsys):
    with telling(Console(file=io.StringIO(), force_terminal=False)) as report:
        report("lessons/00_tour.ipynb", 1, 2)
        report("solutions/00_tour.ipynb", 2, 2)
    assert capsys.readouterr().out == "lessons/00_tour.ipynb\nsolutions/00_tour.ipynb\n"


def test_building_shows_a_bar_in_a_terminal(capsys):
    paper = io.StringIO()
    with telling(Console(file=paper, force_terminal=True, width=80)) as report:
        report("lessons/00_tour.ipynb", 1, 2)
        report("solutions/00_tour.ipynb", 2, 2)
    assert "2/2" in paper.getvalue()
    assert capsys.readouterr().out == ""
    nothing = io.StringIO()
    with telling(Console(file=nothing, force_terminal=True, width=80)):
        pass
    assert "None" not in nothing.getvalue()


def test_a_bar_of_a_build_that_fails_is_not_full():
    paper = io.StringIO()
    console = Console(file=paper, force_terminal=True, width=80)
    with pytest.raises(ValueError), telling(console) as report:
        report("lessons/00_tour.ipynb", 1, 2)
        raise ValueError
    assert "0/2" in paper.getvalue()
    assert "2/2" not in paper.getvalue()
