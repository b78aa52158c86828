"""Prefix caching by radix tree: every path from a root spells a prefix, a page at a time.

A page is the tokens of one block. A node holds a run of pages that nothing branches off inside,
and one child for each page that may follow. The tree is that of SGLang's RadixAttention
(python/sglang/srt/mem_cache/radix_cache.py) without its lock counts, its LRU heap and its splits
in match: here the pool's refcounts protect, its free queue evicts, and a match changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from minipaged.cache.hash_prefix import not_full
from minipaged.protocols import BlockPoolLike

Page = tuple[int, ...]
Key = tuple[str, str]


class Node:
    """A run of pages, or a root: one for each key, without pages and without a parent.

    pages, block_ids: the tokens of each block, and the block. start: pages on the way from the
    root to here, so that page i is entry start + i of a block table. children: by first page.
    """

    __slots__ = ("block_ids", "children", "key", "pages", "parent", "start")

    def __init__(self, key: Key, parent: Node | None = None, start: int = 0) -> None:
        self.key = key
        self.parent = parent
        self.start = start
        self.pages: list[Page] = []
        self.block_ids: list[int] = []
        self.children: dict[Page, Node] = {}

    def follow(self, index: int, page: Page) -> tuple[Node, int] | None:
        """Where `page` stands if it comes next after the first `index` pages of this node."""
        if index < len(self.pages):
            return (self, index) if self.pages[index] == page else None
        child = self.children.get(page)
        return None if child is None else (child, 0)


class RadixPrefixCache:
    """Which block holds which prefix, as a tree. No two of its blocks hold the same prefix.

    It holds no references. A block is protected while a table holds it; an idle one waits on the
    pool's free queue. Tables are freed tail first, so the queue hands out the last page of a leaf
    before the pages that it stands on, and `forget` only trims the end of a leaf.

    block_size: tokens per page. pool: is told a number that is never used twice for every known
    block (set_hash), and is asked for refcounts by evictable_tokens, protected_tokens and dump.

    Memory: about 260 bytes a known block of 16 tokens.
    """

    def __init__(self, block_size: int, pool: BlockPoolLike) -> None:
        self.block_size = block_size
        self.pool = pool
        self._roots: dict[Key, Node] = {}
        self._nodes: dict[int, Node] = {}  # known block -> the node that it is in
        self._numbers = itertools.count(1)

    def match(self, token_ids: Sequence[int], key: Key) -> list[int]:
        """Blocks of the longest known prefix, at most (len(token_ids) - 1) // block_size.

        A match that ends inside a node does not split it. Cost: O(tokens of the prefix).
        """
        found: list[int] = []
        place: tuple[Node, int] | None
        node, index = self._roots.get(key) or Node(key), 0
        for entry in range((len(token_ids) - 1) // self.block_size):
            place = node.follow(index, self._page(token_ids, entry))
            if place is None:
                break
            node, index = place
            found.append(node.block_ids[index])
            index += 1
        return found

    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        """Make entries first … last - 1 known; returns (entry, block) for those known already.

        Such a block is the tree's own for the same tokens. At once, before any block is handed
        out: put it into the table, share it, free the duplicate. The walk goes on from where
        block_ids[first - 1] stands; if that block is not known, it starts at entry 0, and entries
        before `first` may be returned too. ValueError if a block is not full, or known with other
        tokens; nothing is published then.
        Cost: O(tokens of the new blocks), and at most one split: O(pages of that node).
        """
        if first >= last:
            return []
        node = self._nodes.get(block_ids[first - 1]) if first else None
        if node is None:
            first, node = 0, self._roots.get(key) or Node(key)
        ids = block_ids[first:last]
        if last * self.block_size > len(token_ids) or len(set(ids)) != last - first:
            raise not_full(token_ids, first, last, ids, self.block_size)
        pages = [self._page(token_ids, entry) for entry in range(first, last)]
        index, swaps = first - node.start, []
        for offset, page in enumerate(pages):
            place = node.follow(index, page)
            if place is None:
                self._attach(node, index, pages[offset:], ids[offset:])
                break
            node, index = place
            known = node.block_ids[index]
            if known != ids[offset]:
                self._require_unknown(ids[offset])
                swaps.append((first + offset, known))
            index += 1
        return swaps

    def forget(self, block_id: int) -> None:
        """The block's contents are lost; ignored if it is unknown.

        Nothing behind it can be found any more, so that is forgotten with it. Cost: O(1) for the
        last page of a leaf, which is the rule; else O(what is dropped + pages of the node).
        """
        node = self._nodes.get(block_id)
        if node is None:
            return
        ids = node.block_ids
        index = len(ids) - 1 if ids[-1] == block_id else ids.index(block_id)
        for dropped in self._cut(node, index):
            del self._nodes[dropped]
            self.pool.set_hash(dropped, None)

    def known_blocks(self) -> Iterable[int]:
        """Every block in the tree."""
        return self._nodes.keys()

    def evictable_tokens(self) -> int:
        """Tokens in known blocks that no table holds. Cost: O(known blocks)."""
        idle = sum(self.pool.refcount(block_id) == 0 for block_id in self._nodes)
        return idle * self.block_size

    def protected_tokens(self) -> int:
        """Tokens in known blocks that some table holds. Cost: O(known blocks)."""
        return len(self._nodes) * self.block_size - self.evictable_tokens()

    def dump(self) -> str:
        """The tree as text: a line a node, tokens, then blocks; * marks a block that is held."""
        return "\n".join(line for root in self._roots.values() for line in self._lines(root))

    def _lines(self, root: Node) -> Iterator[str]:
        salt, adapter = root.key
        yield f"salt {salt!r}, adapter {adapter!r}"
        below = [(child, 1) for child in reversed(root.children.values())]
        while below:
            node, depth = below.pop()
            pages = [" ".join(_short([*map(str, page)], 8)) for page in node.pages]
            blocks = [f"{b}{'*' if self.pool.refcount(b) else ''}" for b in node.block_ids]
            text = f"{' | '.join(_short(pages, 6))} -> {' '.join(_short(blocks, 6))}"
            yield "  " * depth + text
            below += [(child, depth + 1) for child in reversed(node.children.values())]

    def _page(self, token_ids: Sequence[int], entry: int) -> Page:
        return tuple(token_ids[entry * self.block_size : (entry + 1) * self.block_size])

    def _attach(self, node: Node, index: int, pages: list[Page], ids: Sequence[int]) -> None:
        """Add pages that the tree lacks behind the first `index` pages of a node.

        A leaf grows at its end, so a running sequence stays one node; else there is a new child.
        """
        self._require_unknown(*ids)
        if index < len(node.pages):
            node = self._split(node, index)
        if node.parent is None or node.children:
            node = self._new_child(node, pages[0])
        node.pages += pages
        node.block_ids += ids
        for block_id in ids:
            self._nodes[block_id] = node
            self.pool.set_hash(block_id, next(self._numbers).to_bytes(8, "big"))

    def _new_child(self, node: Node, first_page: Page) -> Node:
        if node.parent is None:
            self._roots[node.key] = node
        child = Node(node.key, node, node.start + len(node.pages))
        node.children[first_page] = child
        return child

    def _split(self, node: Node, index: int) -> Node:
        """Put the first `index` pages into a node of their own, which becomes the parent."""
        parent = _parent(node)
        upper = Node(node.key, parent, node.start)
        upper.pages, node.pages = node.pages[:index], node.pages[index:]
        upper.block_ids, node.block_ids = node.block_ids[:index], node.block_ids[index:]
        upper.children[node.pages[0]] = node
        parent.children[upper.pages[0]] = upper
        node.parent, node.start = upper, node.start + index
        for block_id in upper.block_ids:
            self._nodes[block_id] = upper
        return upper

    def _cut(self, node: Node, index: int) -> list[int]:
        """Take a node's pages from `index` on, and all below them, out; returns their blocks."""
        if index == 0:
            self._unlink(node)
        dropped, below = node.block_ids[index:], [*node.children.values()]
        while below:
            child = below.pop()
            dropped += child.block_ids
            below += child.children.values()
        node.children.clear()
        del node.pages[index:], node.block_ids[index:]
        return dropped

    def _unlink(self, node: Node) -> None:
        parent = _parent(node)
        del parent.children[node.pages[0]]
        if parent.parent is None and not parent.children:
            del self._roots[parent.key]

    def _require_unknown(self, *block_ids: int) -> None:
        for block_id in block_ids:
            if block_id in self._nodes:
                raise ValueError(
                    f"block {block_id} is known with other tokens: "
                    "call forget before its slots are written again"
                )


def _parent(node: Node) -> Node:
    """The parent of a node that has pages."""
    assert node.parent is not None
    return node.parent


def _short(words: list[str], limit: int) -> list[str]:
    """At most `limit` words, the last one among them."""
    return words if len(words) <= limit else [*words[: limit - 2], "…", words[-1]]
