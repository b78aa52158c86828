"""What an executed notebook may store: nothing that would differ on another machine."""

from __future__ import annotations

import re

import nbformat
import pytest

from minipaged.course.dev.execute import _require_stable
from minipaged.course.dev.notebook import BuildError


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("stdout", "<object at 0x7f71308e18d0>", "prints an address, '0x7f71308e18d0'"),
        ("stdout", "it is 12:30:07", "prints a time of day"),
        ("stdout", "on 2026-11-29", "prints a date"),
        ("stdout", "/home/ada/x.py", "prints the path '/home/ada'"),
        ("stderr", "careful", "writes to stderr: 'careful'"),
    ],
)
def test_outputs_that_differ_elsewhere_are_refused(name, text, message):
    output = nbformat.v4.new_output("stream", name=name, text=text)
    cell = nbformat.v4.new_code_cell("…", id="00-code-1", outputs=[output])
    with pytest.raises(BuildError, match=f"cell 00-code-1 {re.escape(message)}"):
        _require_stable(nbformat.v4.new_notebook(cells=[cell]), ("/home/ada",))
