"""10.1 match_with_split(root, pages): scripts that plant a tree, look for pages, draw the tree.

The oracle walks with _match below. Each wrong idea is the same walk with one thing done wrongly;
the one that gives the learner's answer is the one that is named.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Check, Failure
from minipaged.course.checks.lesson_10_ideas import idea_behind
from minipaged.course.fixture_tree import PlainNode
from minipaged.course.script import Case, Operation, run

Page = tuple[int, ...]
Outline = list[Any]


def _match(root: PlainNode, pages: Sequence[Page], flaw: str = "") -> tuple[PlainNode, list[int]]:
    """The node where the known part of `pages` ends, and its blocks from the root on."""
    found: list[int] = []
    node = root
    while len(found) < len(pages):
        child = node.children.get(pages[len(found)])
        if child is None:
            break
        same = _common(child.pages, pages[len(found) :])
        is_part = same < len(child.pages)
        if is_part and flaw == "whole nodes":
            break
        found += child.block_ids if flaw == "all blocks" else child.block_ids[:same]
        node = child
        if is_part and flaw != "no split":
            node = _split(child, same, flaw)
        if is_part or flaw == "one level":
            break
    return node, found


def _common(a: Sequence[Page], b: Sequence[Page]) -> int:
    """Pages that two runs have in common from the start."""
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return same


def _split(node: PlainNode, index: int, flaw: str) -> PlainNode:
    """A new node above `node` takes its first `index` pages; returns it, or the wrong thing."""
    above, first = node.parent, node.pages[0]
    upper = PlainNode(node.pages[:index], node.block_ids[:index], above)
    lower = node
    if flaw == "lower is new":
        lower = PlainNode(node.pages, node.block_ids)
        lower.children, node.children = node.children, {}
        for child in lower.children.values():
            child.parent = lower
        upper = node
        upper.pages, upper.block_ids = node.pages[:index], node.block_ids[:index]
    if flaw == "children above":
        upper.children, lower.children = lower.children, {}
        for child in upper.children.values():
            child.parent = upper
    lower.pages = lower.pages[index:]
    if flaw != "blocks stay":
        lower.block_ids = lower.block_ids[index:]
    if flaw != "lower lost":
        upper.children[first if flaw == "old key" else lower.pages[0]] = lower
    if flaw != "old parent":
        lower.parent = upper
    if flaw != "not below":
        above.children[first] = upper
    return lower if flaw == "returns lower" else upper


IDEAS = {
    "whole nodes": (
        "Only whole nodes count here. A match can end inside a node: the pages before that place "
        "are known as well."
    ),
    "no split": (
        "The match ends inside a node, but no node ends there: split the node, so that its upper "
        "part is a node of its own, and return that one."
    ),
    "all blocks": (
        "All blocks of the last node were returned, those behind the place where the match ends "
        "too. They hold other tokens."
    ),
    "one level": "The walk stops at the first node. Behind its last page, go on to its children.",
    "lower lost": (
        "The lower half is lost: nobody leads to it any more. The upper half is its parent now and "
        "must have it as a child."
    ),
    "lower is new": (
        "The node that was there must keep the lower half, and the upper half be the new node. "
        "Whoever holds the old node stands for all tokens up to its end, and that must stay so."
    ),
    "children above": (
        "The children of a node that is split follow its last page. They belong to the lower half."
    ),
    "blocks stay": "Pages and blocks go together: split both lists at the same place.",
    "old key": (
        "A child stands under its own first page. The lower half begins with another page now."
    ),
    "old parent": "The lower half has a new parent: the upper half.",
    "not below": (
        "The old parent still leads to the lower half. It must lead to the upper one, under the "
        "same first page."
    ),
    "returns lower": "Returned was the lower half. The match ends where the upper half ends.",
}
RULE = (
    "The known part ends behind the last page that the tree has. Its blocks are returned from the "
    "root on, with the node in which that page is the last one."
)
NOT_SPLIT = (
    "A tree is only changed where a match ends inside a node. A match that ends behind a node's "
    "last page, or finds nothing, leaves it as it was."
)
RETURNS = "Return two things, the node and the list of blocks: return node, block_ids."


def explain(failure: Failure) -> str:
    """The wrong idea that gives the same answer, else the rule for what was asked."""
    operation = failure.operation
    if failure.fault and (operation.target in ("", "found") or operation.keep):
        is_kept = picture(failure.case, failure.number) == picture(failure.case, failure.number + 1)
        return RETURNS if operation.target == "found" else NOT_SPLIT if is_kept else RULE
    ideas = [(functools.partial(_match, flaw=flaw), says) for flaw, says in IDEAS.items()]
    said = idea_behind(failure, _match, ideas)
    if said:
        return said
    if operation.target == "draw_tree" and type(failure.got) is list:
        return RULE if failure.expected != _planted(failure.case) else NOT_SPLIT
    return RULE


def picture(case: Case, number: int) -> str:
    """The tree before an operation, as it should be."""
    if number == 0:
        return ""
    look = Operation((plain.Kept("root"),), "draw_tree")
    before = (*case.operations[:number], look)
    lines = plain.decode(run(before, _match)[-1].value)
    return "\n".join(lines) or "a root without children"


def _planted(case: Case) -> list[str]:
    look = Operation((plain.Kept("root"),), "draw_tree")
    lines: list[str] = plain.decode(run((case.operations[0], look), _match)[-1].value)
    return lines


def _oracle(case: Case) -> list[Any]:
    seen = zip(run(case.operations, _match), case.operations, strict=True)
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

    root, trunk = PlainNode(), draw(3)
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


def _insert(root: PlainNode, pages: list[Page], ids: Any) -> None:
    """Put a sequence into a tree: split where it leaves it, and a child for the rest."""
    node, found = _match(root, pages)
    rest = pages[len(found) :]
    if rest:
        node.children[rest[0]] = PlainNode(rest, [next(ids) for _ in rest], node)


def _outline(node: PlainNode) -> Outline:
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
