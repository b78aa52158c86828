"""10.1 match_with_split(root, pages): scripts that plant a tree, look for pages, draw the tree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check
from minipaged.course.checks.lesson_10_walk import Page, explain, match, picture
from minipaged.course.fixture_tree import Node
from minipaged.course.script import Case, Operation, run

Outline = list[Any]


def _oracle(case: Case) -> list[Any]:
    seen = zip(run(case.operations, match), case.operations, strict=True)
    return [plain.decode(one.value) for one, operation in seen if not operation.keep]


ONE = [[(n,) for n in range(1, 7)], [10, 11, 12, 13, 14, 15], []]
THREE = [
    [(1,), (2,), (3,)],
    [10, 11, 12],
    [[[(4,), (5,), (6,)], [13, 14, 15], []], [[(9,), (9,)], [16, 17], []]],
]
PAIRS = [[(1, 2), (3, 4), (5, 6)], [7, 2, 5], [[[(7, 8)], [0], []]]]


def visible() -> list[Case]:
    """Each end that a match can have, and what a split must keep."""
    return [
        _case("an empty tree", "Nothing is known yet.", [], _find(1, 2)),
        _case("a whole node", "All six pages are known.", [ONE], _find(1, 2, 3, 4, 5, 6)),
        _case(
            "and more behind it",
            "Six pages are known, the seventh is not.",
            *([ONE], _find(1, 2, 3, 4, 5, 6, 7)),
        ),
        _case(
            "on to the children",
            "The tree of the lesson after two sequences. The match goes through two nodes.",
            *([THREE], _find(1, 2, 3, 9, 9, 5), _find(1, 2, 3, 4, 5, 6)),
        ),
        _case(
            "between a node and its children",
            "Three pages are the first node; none of its children begins with the fourth.",
            *([THREE], _find(1, 2, 3, 7), _find(7, 1)),
        ),
        _case(
            "inside a node",
            "Three of six pages are the same: the node is split there.",
            *([ONE], _find(1, 2, 3, 7), _find(1, 2, 3, 7)),
        ),
        _case(
            "the pages asked for end first",
            "Four pages are asked for, and the node goes on. Then all six.",
            *([ONE], _find(1, 2, 3, 4), _find(1, 2, 3, 4, 5, 6)),
        ),
        _case(
            "a node with children is split",
            "The match ends inside the first node, which has two children.",
            *([THREE], _find(1, 5), _find(1, 2, 3, 4, 5, 6)),
        ),
        _case(
            "pages of two tokens",
            "A page counts only if all its tokens are the same.",
            *([PAIRS], _find((1, 2), (3, 9)), _find((1, 2), (3, 4), (5, 6), (7, 8))),
        ),
        _case(
            "somebody holds the node",
            "Before the match, a request has got hold of the node that will be split. Afterwards "
            "it must still stand at the end of the same six pages.",
            [ONE],
            [Operation(((1,),), "children", how="item", keep="held")],
            _find(1, 2, 8),
            [
                Operation((), "held", "pages", how="get"),
                Operation((), "held", "block_ids", how="get"),
            ],
            before=[Operation((), "root", "children", how="get", keep="children")],
        ),
    ]


def hidden(seed: int) -> list[Case]:
    """12 trees of random sequences, four matches in each."""
    rng = random.Random(f"10.1/{seed}")
    return [_hidden_case(rng) for _ in range(12)]


def _hidden_case(rng: random.Random) -> Case:
    """A trunk with branches, most of them at its end, and somebody who holds its first node."""
    size, ids = rng.randrange(1, 4), iter(rng.sample(range(100), 60))

    def draw(least: int) -> list[Page]:
        count = rng.randrange(least, least + 4)
        return [tuple(rng.randrange(2) for _ in range(size)) for _ in range(count)]

    root, trunk = Node(), draw(3)
    _insert(root, trunk, ids)
    for cut in (len(trunk), len(trunk), rng.randrange(len(trunk)), 0):
        _insert(root, trunk[:cut] + draw(1), ids)
    cuts = rng.sample(range(1, len(trunk) + 1), 3)
    asked = [_find(*trunk[:cut], *draw(0)) for cut in cuts]
    hold = Operation((trunk[0],), "children", how="item", keep="held")
    look = [Operation((), "held", name, how="get") for name in ("pages", "block_ids")]
    before = [Operation((), "root", "children", how="get", keep="children"), hold]
    parts = [part for find in asked for part in (find, look)]
    return _case("hidden", "A tree of other sequences.", _outline(root)[2], *parts, before=before)


def _insert(root: Node, pages: list[Page], ids: Any) -> None:
    """Put a sequence into a tree: split where it leaves it, and a child for the rest."""
    node, found = match(root, pages)
    rest = pages[len(found) :]
    if rest:
        node.children[rest[0]] = Node(rest, [next(ids) for _ in rest], node)


def _outline(node: Node) -> Outline:
    return [node.pages, node.block_ids, [_outline(child) for child in node.children.values()]]


def _find(*pages: int | Page) -> list[Operation]:
    """Look for pages (a number is a page of one token), then at all that came of it."""
    asked = [page if type(page) is tuple else (page,) for page in pages]
    return [
        Operation((plain.Kept("root"), asked), keep="found"),
        Operation((1,), "found", how="item"),
        Operation((plain.Kept("root"),), "draw_tree"),
        Operation((0,), "found", how="item", keep="node"),
        Operation((), "node", "pages", how="get"),
    ]


def _case(
    name: str,
    story: str,
    children: list[Outline],
    *parts: list[Operation],
    before: Sequence[Operation] = (),
) -> Case:
    made = Operation(([[], [], children],), "plant", keep="root")
    return Case(name, story, (made, *before, *(o for part in parts for o in part)))


CHECK = Check(visible, hidden, _oracle, explain=explain, picture=picture)
