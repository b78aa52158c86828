"""Prefix caching by hash: a flat index from chained block hashes to blocks.

A block's hash covers the hash of the block before it, so it stands for the whole prefix up to the
block's end, and a look-up is one dictionary access a block. The chain is that of vLLM
(hash_block_tokens in vllm/v1/core/kv_cache_utils.py, the map in vllm/v1/core/block_pool.py); what
was hashed is compared here on every hit, which vLLM leaves to the strength of the hash.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Callable, Iterable, Sequence

from minipaged.protocols import BlockPoolLike

Link = tuple[bytes, bytes]  # a block's hash, and what was hashed


def sha256(data: bytes) -> bytes:
    """The 32 bytes of SHA-256."""
    return hashlib.sha256(data).digest()


class HashPrefixCache:
    """Which block holds which prefix, by hash(parent hash, tokens of the block).

    The first block has no parent: the index's root and the key stand in its place. The root is
    random, so that nobody can work out hashes beforehand and no two processes share them. A block
    with the hash of an older one is kept beside it and serves once that one is forgotten.

    block_size: tokens per block. pool: learns every known block's hash (set_hash).
    root: fixed bytes instead of random ones, for tests. hash_function: bytes to bytes. A weak one
    costs hits and never gives a wrong one as long as a block is forgotten before the blocks of
    the prefix that it stands on, which is what freeing tables tail first brings about.

    Memory: about 460 bytes a known block of 16 tokens.
    """

    def __init__(
        self,
        block_size: int,
        pool: BlockPoolLike,
        *,
        root: bytes | None = None,
        hash_function: Callable[[bytes], bytes] = sha256,
    ) -> None:
        self.block_size = block_size
        self.pool = pool
        self._root = secrets.token_bytes(32) if root is None else root
        self._hash = hash_function
        self._pack = struct.Struct(f"<{block_size}q").pack
        # hash -> what was hashed, and the blocks that hold it; the first of them serves
        self._entries: dict[bytes, tuple[bytes, list[int]]] = {}
        self._hashes: dict[int, bytes] = {}  # known block -> hash

    def match(self, token_ids: Sequence[int], key: tuple[str, str]) -> list[int]:
        """Blocks of the longest known prefix, at most (len(token_ids) - 1) // block_size.

        Cost: one hash for each block found and one for the first that is not.
        """
        links: list[Link] = []
        found: list[int] = []
        for number in range((len(token_ids) - 1) // self.block_size):
            self.extend_links(links, token_ids, number + 1, key)
            found += self.match_links(links[number:])
            if len(found) == number:
                break
        return found

    def match_links(self, links: Iterable[Link]) -> list[int]:
        """match for a sequence that begins with these links. No hash; O(blocks found)."""
        entries, found = self._entries, []
        for block_hash, data in links:
            entry = entries.get(block_hash)
            if entry is None or entry[0] != data:
                break
            found.append(entry[1][0])
        return found

    def publish(
        self,
        token_ids: Sequence[int],
        block_ids: Sequence[int],
        first: int,
        last: int,
        key: tuple[str, str],
    ) -> list[tuple[int, int]]:
        """Make entries first … last - 1 known; there is never anything to swap: returns [].

        The chain goes on from the hash of block_ids[first - 1]; if that block is not known, all
        entries before `first` are published too. A block whose hash already stands for other
        tokens (a collision) stays unknown, and so do those behind it. ValueError if a block is
        not full, or known with other tokens; nothing changes then. Cost: one hash a block.
        """
        if first >= last:
            return []
        parent = self._hashes.get(block_ids[first - 1]) if first else None
        if parent is None:
            first = 0
        ids = block_ids[first:last]
        if last * self.block_size > len(token_ids) or len(set(ids)) != last - first:
            raise not_full(token_ids, first, last, ids, self.block_size)
        # of the blocks before `first` only the last one's hash is asked for
        links = [(parent, b"")] * first if parent is not None else []
        self.extend_links(links, token_ids, last, key)
        self.publish_links(links[first:], ids)
        return []

    def publish_links(self, links: Sequence[Link], block_ids: Sequence[int]) -> None:
        """publish, for full blocks with these links. No hash; O(blocks)."""
        hashes, entries = self._hashes, self._entries
        if not hashes.keys().isdisjoint(block_ids):
            self._require_same(links, block_ids)
        for (block_hash, data), block_id in zip(links, block_ids):  # noqa: B905 (as fast as can be)
            entry = entries.get(block_hash)
            if entry is None:
                entries[block_hash] = (data, [block_id])
            elif entry[0] != data:
                break
            elif block_id not in hashes:
                entry[1].append(block_id)
            else:
                continue
            hashes[block_id] = block_hash
            self.pool.set_hash(block_id, block_hash)

    def extend_links(
        self, links: list[Link], token_ids: Sequence[int], num_full: int, key: tuple[str, str]
    ) -> None:
        """Bring a list of the links of a sequence's first blocks to `num_full` of them.

        Who keeps it spares the hashing in every later match and publish, as vLLM's requests do
        with their block_hashes. Cost: one hash for each link added.
        """
        size = self.block_size
        parent = links[-1][0] if links else self._start(key)
        for start in range(len(links) * size, num_full * size, size):
            data = parent + self._pack(*token_ids[start : start + size])
            parent = self._hash(data)
            links.append((parent, data))

    def forget(self, block_id: int) -> None:
        """The block's contents are lost; ignored if it is unknown. Cost: O(its duplicates)."""
        block_hash = self._hashes.pop(block_id, None)
        if block_hash is None:
            return
        self.pool.set_hash(block_id, None)
        _, holders = self._entries[block_hash]
        holders.remove(block_id)
        if not holders:
            del self._entries[block_hash]

    def known_blocks(self) -> Iterable[int]:
        """Every published block that was not forgotten, duplicates included."""
        return self._hashes.keys()

    def _start(self, key: tuple[str, str]) -> bytes:
        """What stands before the first block's tokens. ascii() keeps ("X", "") and ("", "X") apart.

        Tokens have a fixed length, so no two keys and token lists give the same bytes.
        """
        return self._root + ascii(key).encode()

    def _require_same(self, links: Sequence[Link], block_ids: Sequence[int]) -> None:
        """ValueError if a block is known by another hash than the one it is to have."""
        for (block_hash, _), block_id in zip(links, block_ids, strict=True):
            if self._hashes.get(block_id, block_hash) != block_hash:
                raise ValueError(
                    f"block {block_id} is known with other tokens: "
                    "call forget before its slots are written again"
                )


def not_full(
    token_ids: Sequence[int], first: int, last: int, block_ids: Sequence[int], block_size: int
) -> ValueError:
    """What either index raises for entries that are not full, or a block that stands twice."""
    return ValueError(
        f"entries {first} to {last - 1} cannot be published: they need {last * block_size} "
        f"tokens and {last - first} different blocks, the sequence has {len(token_ids)} and "
        f"{list(block_ids)}"
    )
