"""Prefix caching by radix tree: every path from a root spells a prefix, a page at a time.

A page is the tokens of one block. A node holds a run of pages that nothing branches off inside,
and one child for each page that may follow. The tree is that of SGLang's RadixAttention
(python/sglang/srt/mem_cache/radix_cache.py) without its lock counts, its LRU heap and its splits
in match: here the pool's refcounts protect, its free queue evicts, and a match changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from minipaged.protocols import BlockPoolLike

Page = tuple[int, ...]
Key = tuple[str, str]


class Node:
    """A run of pages. A root, one for each key, has none.

    pages, block_ids: the tokens of each block, and the block. start: pages on the way from the
    root to here; page i is entry start + i of a block table. children: by their first page.
    """

    __slots__ = ("block_ids", "children", "key", "pages", "parent", "start")

    def __init__(self, key: Key, parent: Node | None, start: int) -> None:
        self.key = key
        self.parent = parent
        self.start = start
        self.pages: list[Page] = []
        self.block_ids: list[int] = []
        self.children: dict[Page, Node] = {}

    def common(self, pages: Iterable[Page], index: int = 0) -> int:
        """How many of `pages` equal this node's pages from `index` on, one after another."""
        count = 0
        for own, page in zip(itertools.islice(self.pages, index, None), pages, strict=False):
            if own != page:
                break
            count += 1
        return count


class RadixPrefixCache:
    """Which block holds which prefix, as a tree. No two of its blocks hold the same prefix.

    It holds no references. A block is protected while a table holds it; an idle one waits on the
    pool's free queue. Tables are freed tail first, so the queue hands out a leaf's last page
    before the pages that it stands on, and `forget` only ever trims a leaf's end.

    block_size: tokens per page. pool: is told a number that is never used twice for every known
    block (set_hash), and is asked for refcounts by the two *_tokens methods.
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
        limit = (len(token_ids) - 1) // self.block_size
        found: list[int] = []
        node = self._roots.get(key)
        while node is not None and len(found) < limit:
            node = node.children.get(self._page(token_ids, len(found)))
            if node is None:
                break
            count = node.common(self._pages(token_ids, len(found), limit))
            found += node.block_ids[:count]
            if count < len(node.pages):
                break
        return found

    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        """Make entries first … last - 1 known; returns (entry, block) for those known already.

        Such a block is the tree's own for the same tokens: put it into the table at once, share
        it, free the duplicate. The walk goes on from where block_ids[first - 1] stands; if that
        block is not known, it starts at entry 0, and entries before `first` may be returned too.
        ValueError if the blocks are not full, or if one is known with other tokens.
        Cost: O(tokens of the new blocks), and at most one split: O(pages of that node).
        """
        self._require_full(token_ids, block_ids, last)
        if first >= last:
            return []
        node = self._nodes.get(block_ids[first - 1]) if first else None
        if node is None:
            first, node = 0, self._roots.get(key) or Node(key, None, 0)
        pages = list(self._pages(token_ids, first, last))
        node, swaps = self._descend(node, first, pages, block_ids)
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
        for dropped in _cut(node, index):
            del self._nodes[dropped]
            self.pool.set_hash(dropped, None)
        if not node.pages:
            self._unlink(node)

    def known_blocks(self) -> Iterable[int]:
        """Every block in the tree."""
        return self._nodes.keys()
