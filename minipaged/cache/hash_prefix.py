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


def sha256(data: bytes) -> bytes:
    """The 32 bytes of SHA-256."""
    return hashlib.sha256(data).digest()


class HashPrefixCache:
    """Which block holds which prefix, by hash(parent hash, tokens of the block).

    The first block has no parent: the index's root and the key stand in its place. The root is
    random, so that nobody can work out hashes beforehand and no two processes share them. Block b
    of n equal blocks is kept beside the first one and serves once that is forgotten.

    block_size: tokens per block. pool: learns every known block's hash (set_hash).
    root: fixed bytes instead of random ones, for tests. hash_function: bytes to bytes. A weak one
    costs hits and never gives a wrong one as long as a block is forgotten before the blocks of
    the prefix that it stands on, which is what freeing tables tail first brings about.

    Memory: about 500 bytes a known block of 16 tokens.
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
        self._contents: dict[bytes, bytes] = {}  # hash -> what was hashed
        self._holders: dict[bytes, list[int]] = {}  # hash -> blocks; the first one serves
        self._hashes: dict[int, bytes] = {}  # known block -> hash

    def match(self, token_ids: Sequence[int], key: tuple[str, str]) -> list[int]:
        """Blocks of the longest known prefix, at most (len(token_ids) - 1) // block_size.

        Cost: one hash for each block found and one for the first that is not.
        """
        size, contents, parent = self.block_size, self._contents, self._start(key)
        found: list[int] = []
        for start in range(0, (len(token_ids) - 1) // size * size, size):
            data = parent + self._pack(*token_ids[start : start + size])
            parent = self._hash(data)
            if contents.get(parent) != data:
                break
            found.append(self._holders[parent][0])
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
        tokens (a collision) stays unknown, and so do those behind it. ValueError if the blocks
        are not full, or if one is known with other tokens. Cost: one hash a block.
        """
        _require_full(token_ids, block_ids, last, self.block_size)
        if first >= last:
            return []
        parent = self._hashes.get(block_ids[first - 1]) if first else None
        if parent is None:
            first, parent = 0, self._start(key)
        size = self.block_size
        for start, block_id in enumerate(block_ids[first:last], first):
            start *= size
            data = parent + self._pack(*token_ids[start : start + size])
            parent = self._hash(data)
            if not self._add(block_id, parent, data):
                break
        return []

    def forget(self, block_id: int) -> None:
        """The block's contents are lost; ignored if it is unknown. Cost: O(its duplicates)."""
        block_hash = self._hashes.pop(block_id, None)
        if block_hash is None:
            return
        self.pool.set_hash(block_id, None)
        holders = self._holders[block_hash]
        holders.remove(block_id)
        if not holders:
            del self._holders[block_hash], self._contents[block_hash]

    def known_blocks(self) -> Iterable[int]:
        """Every published block that was not forgotten, duplicates included."""
        return self._hashes.keys()

    def _start(self, key: tuple[str, str]) -> bytes:
        """What stands before the first block's tokens. ascii() keeps ("X", "") and ("", "X") apart.

        Tokens have a fixed length, so no two keys and token lists give the same bytes.
        """
        return self._root + ascii(key).encode()

    def _add(self, block_id: int, block_hash: bytes, data: bytes) -> bool:
        """Know a block by its hash. False if the hash stands for something else."""
        if self._contents.setdefault(block_hash, data) != data:
            return False
        known = self._hashes.setdefault(block_id, block_hash)
        if known is block_hash:
            self._holders.setdefault(block_hash, []).append(block_id)
            self.pool.set_hash(block_id, block_hash)
        elif known != block_hash:
            raise ValueError(
                f"block {block_id} is known with other tokens: "
                "call forget before its slots are written again"
            )
        return True


def _require_full(
    token_ids: Sequence[int], block_ids: Sequence[int], last: int, block_size: int
) -> None:
    """ValueError unless there are `last` blocks and tokens to fill them."""
    if last > len(block_ids):
        raise ValueError(f"entries 0 to {last - 1} need {last} blocks; the table has {len(block_ids)}")
    if last * block_size > len(token_ids):
        raise ValueError(
            f"entries 0 to {last - 1} need {last * block_size} tokens; the sequence has "
            f"{len(token_ids)}: publish full blocks only"
        )
