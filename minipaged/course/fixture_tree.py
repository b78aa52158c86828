"""A radix tree that a script may plant, and how it reads one back.

Standard library only: this runs in the learner's process too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Node:
    """A node of a radix tree, with the attributes of the class Node that lesson 10 gives."""

    def __init__(
        self,
        pages: Sequence[tuple[int, ...]] = (),
        block_ids: Sequence[int] = (),
        parent: Any = None,
    ) -> None:
        self.pages, self.block_ids = list(pages), list(block_ids)
        self.parent = parent
        self.children: dict[tuple[int, ...], Any] = {}


def plant(outline: Sequence[Any], parent: Any = None) -> Node:
    """A tree from nested lists: [pages, block ids, [a list like this one for each child]]."""
    pages, block_ids, children = outline
    node = Node(pages, block_ids, parent)
    for child in children:
        node.children[child[0][0]] = plant(child, node)
    return node


def draw_tree(node: Any, depth: int = 0) -> list[str]:
    """The nodes below one as lines: pages, then blocks. What does not fit together is named."""
    lines = []
    for page, child in sorted(node.children.items()):
        pages = " | ".join(" ".join(map(str, tokens)) for tokens in child.pages)
        line = f"{'  ' * depth}{pages} -> {' '.join(map(str, child.block_ids))}"
        if not child.pages or child.pages[0] != page:
            line += f" (stands under page {page})"
        if child.parent is not node:
            line += " (its parent is another node)"
        lines += [line, *(draw_tree(child, depth + 1) if depth < 8 else ["…"])]
    return lines
