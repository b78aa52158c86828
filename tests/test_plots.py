"""Plots: the numbers in the text form, the same bytes every time, and nothing global touched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from minipaged.viz import plots
from minipaged.viz.plots import bars, histogram, lines

matplotlib = pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture) -> ElementTree.Element:
    """The drawing as XML, after what holds for every plot was checked."""
    assert picture.svg.startswith("<svg ")
    root = ElementTree.fromstring(picture.svg)
    assert root.get("role") == "img" and root.find(f"{SVG}title").text == root.get("aria-label")
    assert 300 < int(root.get("width")) <= 760
    assert root.find(f".//{SVG}metadata") is None and root.find(f".//{SVG}style") is None
    assert len(picture.svg) < 60_000
    return root


def words(picture) -> list[str]:
    return [found.text for found in parsed(picture).iter(f"{SVG}text")]


SERIES = {"used": [10, 20.5, 1234], "reserved": [1, 2, 3]}


def test_bars_tell_their_numbers():
    picture = bars(["a", "b", "c"], SERIES, title="Memory <held>", ylabel="GiB")
    assert picture.text == (
        "Memory <held>\n(GiB)\n"
        "    used  reserved\n"
        "a     10         1\n"
        "b   20.5         2\n"
        "c  1,234         3"
    )
    assert {"a", "b", "c", "GiB", "Memory <held>", "used", "reserved"} <= set(words(picture))


def ends(picture) -> list[tuple[float, float]]:
    """Top and bottom of the filled bars on the page, in the order in which they were drawn."""
    found = []
    for path in parsed(picture).iter(f"{SVG}path"):
        if path.get("clip-path") and re.search("fill: (#|url)", path.get("style", "")):
            ys = [float(y) for y in re.findall(r"[ML] \S+ (\S+)", path.get("d"))]
            found.append((min(ys), max(ys)))
    return found


def heights(picture) -> list[float]:
    return [bottom - top for top, bottom in ends(picture)]


@pytest.mark.parametrize("stacked", [True, False])
def test_bars_are_as_high_as_their_numbers(stacked):
    picture = bars(["a", "b"], {"s": [4, 8], "t": [2, 6]}, stacked=stacked)
    found = heights(picture)[:4]
    assert [round(h / found[0] * 4, 1) for h in found] == [4, 8, 2, 6]
    tops, bottoms = zip(*ends(picture)[:4], strict=True)
    assert bottoms[2:] == (tops[:2] if stacked else bottoms[:2])


def test_series_differ_in_more_than_colour():
    many = {str(i): [1, 2] for i in range(8)}
    root = parsed(bars(["a", "b"], many))
    fills = {*re.findall(r"fill: url\((#\w+)\)", bars(["a", "b"], many).svg)}
    assert len(fills) == 7 and len(list(root.iter(f"{SVG}pattern"))) >= 7  # and one is plain
    styles = list(zip(plots._ORDER, plots._MARKERS, strict=True))
    assert len(set(styles)) == 8 == len({marker for _, marker in styles})
    assert len({*plots._HATCHES}) == 8


def test_lines_tell_their_numbers():
    picture = lines([1, 2, 4], {"s": [0, 0.125, 1e6]}, xlabel="size (tokens)", ylabel="waste (%)")
    assert picture.text == (
        "(waste (%))\n"
        "size (tokens)          s\n"
        "            1          0\n"
        "            2      0.125\n"
        "            4  1,000,000"
    )
    assert {"size (tokens)", "waste (%)"} <= set(words(picture))
    assert parsed(picture).get("aria-label") == "waste (%) over size (tokens)"


def test_of_many_points_twelve_are_told():
    _, *rows, note = lines(range(1000), {"s": range(1000)}, xlabel="step").text.splitlines()
    assert note == "12 of 1,000 points"
    values = [int(row.split()[0].replace(",", "")) for row in rows]
    assert len(values) == 12 and values[0] == 0 and values[-1] == 999
    assert all(row.split()[0] == row.split()[1] for row in rows)
    gaps = {b - a for a, b in pairwise(values)}
    assert gaps <= {90, 91}


def test_powers_of_two_stand_at_even_distances():
    shown = words(lines([1, 2, 4, 8], {"s": [1, 2, 3, 4]}, log_x=True))
    assert shown[:4] == ["1", "2", "4", "8"]
    with pytest.raises(ValueError, match="x holds 0, but log_x needs values above 0"):
        lines([0, 1], {"s": [1, 2]}, log_x=True)


def test_histogram_counts_by_its_edges():
    picture = histogram([0, 1, 1, 2, 2.5, 4], [0, 1, 2, 4], title="L", xlabel="length (tokens)")
    assert picture.text == (
        "L\n(count)\n"
        "length (tokens)  count\n"
        "         0 to 1      1\n"
        "         1 to 2      2\n"
        "         2 to 4      3"
    )
    found = heights(picture)
    assert [round(h / found[0]) for h in found] == [1, 2, 3]


def test_histogram_bins_of_equal_width_hold_everything():
    values = [i * i % 97 for i in range(300)]
    counts = [int(row.split()[-1]) for row in histogram(values, 7).text.splitlines()[2:]]
    width = max(values) / 7
    assert counts == [sum(min(int(v / width), 6) == place for v in values) for place in range(7)]
    assert sum(counts) == 300
    assert histogram([5, 5], 2).text.splitlines()[2:] == ["4.5 to 5      0", "5 to 5.5      2"]


def test_values_outside_the_edges_are_told():
    picture = histogram([1, 2, 30], [0, 5, 10], xlabel="length")
    assert picture.text.splitlines()[-1] == "1 value outside these bins"
    assert "length, 1 value outside these bins" in words(picture)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bars(["a"], {"s": [1, 2]}), "series 's' has 2 values, but labels has 1"),
        (lambda: lines([1, 2], {"s": [1, 2], "t": [3]}), "series 't' has 1 values, but x has 2"),
        (lambda: bars([], {"s": []}), "labels is empty"),
        (lambda: lines([1], {}), "series is empty"),
        (lambda: histogram([]), "values is empty"),
        (lambda: histogram([1], 0), "bins is 0"),
        (lambda: histogram([1], [3, 2]), r"bins is \[3, 2\]"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_two_processes_draw_the_same_bytes(tmp_path):
    code = (
        "from minipaged.viz.plots import *\n"
        "print(bars(['a', 'b'], {c: [1, 2] for c in 'uvwxy'}, title='T').svg)\n"
        "print(lines(range(40), {c: range(40) for c in 'uv'}, log_x=False).svg)\n"
        "print(histogram([1, 2, 3, 3]).svg)"
    )
    (tmp_path / "matplotlibrc").write_text(
        "font.size: 30\nsvg.fonttype: path\naxes.edgecolor: red\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, **more},
        ).stdout
        for seed, more in (("1", {}), ("2", {"MATPLOTLIBRC": str(tmp_path)}))
    ]
    assert runs[0] == runs[1] and len(runs[0]) > 10_000


def test_nothing_global_is_touched():
    code = (
        "import matplotlib, sys\n"
        "from minipaged.viz.plots import *\n"
        "matplotlib.rcParams['font.size'] = 17\n"
        "settings = lambda: {k: matplotlib.rcParams._get(k) for k in matplotlib.rcParams}\n"
        "before = settings()  # [] would choose a backend\n"
        "bars(['a'], {'s': [1]}); lines([1], {'s': [1]}); histogram([1])\n"
        "print(settings() == before, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_only_tags_are_rounded():
    picture = lines([0.12345, 0.12346], {"0.98765": [1, 2], "b": [2, 1]})
    assert "0.98765" in words(picture)
    inside = re.findall("<[^<>]+>", picture.svg)
    assert not any(re.search(r"\d\.\d{3,}", tag) for tag in inside if "matplotlib" not in tag)


def test_lines_with_both_axes_by_powers_of_two_and_marks():
    drawn = lines([1, 2, 4], {"s": [1, 8, 64]}, log_x=True, log_y=True, marks={"here": 3})
    assert ">here<" in drawn.svg.replace("> here<", ">here<")
    assert drawn.text.endswith("here at 3")
    with pytest.raises(ValueError, match="y holds 0, but log_y needs values above 0"):
        lines([1, 2], {"s": [0, 1]}, log_y=True)
