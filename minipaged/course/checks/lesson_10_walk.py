"""10.1 match_with_split: the walk done plainly, its wrong ideas, and what is told of an answer.

Each wrong idea is the same walk with one thing done wrongly; the one that gives the learner's
answer is the one that is named.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from minipaged.course import plain
from minipaged.course.checks.base import Failure
from minipaged.course.checks.lesson_10_ideas import idea_behind
from minipaged.course.fixture_tree import Node
from minipaged.course.script import Case, Operation, run

Page = tuple[int, ...]


def match(root: Node, pages: Sequence[Page], flaw: str = "") -> tuple[Node, list[int]]:
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


def _split(node: Node, index: int, flaw: str) -> Node:
    """A new node above `node` takes its first `index` pages; returns it, or the wrong thing."""
    above, first = node.parent, node.pages[0]
    upper = Node(node.pages[:index], node.block_ids[:index], above)
    lower = node
    if flaw == "lower is new":
        lower = Node(node.pages, node.block_ids)
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
    "one level": (
        "Behind the first node nothing more was found. Behind its last page, go on to its "
        "children, and compare each with the pages that come next, not with the first ones."
    ),
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
ORDER = "First the node, then the list of its blocks: return node, block_ids."
NO_NODE = (
    "What was returned first is not a node. Return the node itself; one that is made in a helper, "
    "as in split, must be returned by the helper too."
)
NO_CHILD = (
    "A page need not lead anywhere: where a node has no child for the next page, the walk ends, "
    "without an exception."
)
NODE = (
    "A node has pages and block_ids (two lists of the same length), a parent, and children: a dict "
    "from the first page of a child to the child."
)
PLACE = (
    "The node is split at another place than the one where the match ends. The upper half takes "
    "the pages that agree, the lower half all others."
)


def explain(failure: Failure) -> str:
    """The wrong idea that gives the same answer, else the rule for what was asked."""
    operation = failure.operation
    if failure.fault and (operation.target in ("", "found") or operation.keep):
        return _after_a_fault(failure)
    if failure.fault and operation.target == "node":
        return NO_NODE
    if operation.target == "found" and type(failure.got) is plain.Other:
        return ORDER
    ideas = [(functools.partial(match, flaw=flaw), says) for flaw, says in IDEAS.items()]
    said = idea_behind(failure, match, ideas)
    if said:
        return said
    if operation.target == "draw_tree" and type(failure.got) is list:
        planted = _tree(failure.case, 1)
        if failure.expected == planted:
            return NOT_SPLIT
        return PLACE if len(failure.got) == len(failure.expected) else RULE
    return RULE


def _after_a_fault(failure: Failure) -> str:
    """What is said of an exception: by the place where it came up, then by its kind."""
    if failure.operation.target == "found":
        return RETURNS
    if failure.fault in ("AttributeError", "NameError", "TypeError"):
        return NODE
    if failure.fault == "KeyError":
        return NO_CHILD
    is_kept = _tree(failure.case, failure.number) == _tree(failure.case, failure.number + 1)
    return NOT_SPLIT if is_kept else RULE


def picture(case: Case, number: int) -> str:
    """The tree before an operation; behind a match that changed it, also that before the match."""
    if number == 0:
        return ""
    empty = ["a root without children"]
    now = _tree(case, number) or empty
    matches = [n for n, one in enumerate(case.operations[:number]) if one.keep == "found"]
    then = _tree(case, matches[-1]) or empty if matches else now
    if then == now:
        return "\n".join(now)
    return "\n".join(["before the match:", *then, "after it:", *now])


def _tree(case: Case, number: int) -> list[str]:
    """The tree before an operation, as it should be."""
    look = Operation((plain.Kept("root"),), "draw_tree")
    lines: list[str] = plain.decode(run((*case.operations[:number], look), match)[-1].value)
    return lines
