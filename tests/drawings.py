"""Looking into a hand-made drawing: helpers of the picture tests."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from minipaged.viz import figure_svg
from minipaged.viz.figures import Picture

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: Picture) -> ElementTree.Element:
    """The drawing as XML, after what holds for every drawing was checked."""
    root = ElementTree.fromstring(picture.svg)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    title = root.find(f"{SVG}title")
    assert title is not None and title.text and root.get("aria-label") == title.text
    assert float(root.get("width")) <= figure_svg.MAX_WIDTH
    ground = root.find(f"{SVG}rect")
    assert ground.get("fill") == "#ffffff" and ground.get("width") == root.get("width")
    return root


def words(picture: Picture) -> list[str]:
    return [found.text for found in parsed(picture).iter(f"{SVG}text")]


def fills(picture: Picture) -> Counter[str]:
    return Counter(found.get("fill") for found in parsed(picture).iter(f"{SVG}rect"))


def free_boxes(picture: Picture) -> int:
    return sum(p.get("d").count("z") for p in parsed(picture).iter(f"{SVG}path"))
