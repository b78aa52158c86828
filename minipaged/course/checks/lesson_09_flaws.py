"""Indices with one flaw each. An answer that equals that of one of them is told by its flaw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipaged.course.checks.lesson_09_models import IndexModel, Key


class _OwnTokensOnly(IndexModel):
    def name(self, token_ids: Sequence[int], entry: int, key: Key, first: int = 0) -> Any:
        size = self.block_size
        return key, tuple(token_ids[entry * size : (entry + 1) * size])


class _ChainFromFirst(IndexModel):
    def name(self, token_ids: Sequence[int], entry: int, key: Key, first: int = 0) -> Any:
        size = self.block_size
        return key, tuple(token_ids[first * size : (entry + 1) * size])


class _NoKey(IndexModel):
    def name(self, token_ids: Sequence[int], entry: int, key: Key, first: int = 0) -> Any:
        return super().name(token_ids, entry, ("", ""))


class _JoinedKey(IndexModel):
    def name(self, token_ids: Sequence[int], entry: int, key: Key, first: int = 0) -> Any:
        return super().name(token_ids, entry, ("".join(key), ""))


class _JoinedTokens(IndexModel):
    def name(self, token_ids: Sequence[int], entry: int, key: Key, first: int = 0) -> Any:
        return key, entry, "".join(map(str, token_ids[: (entry + 1) * self.block_size]))


class _NotCompared(IndexModel):
    def name(self, token_ids: Sequence[int], entry: int, key: Key, first: int = 0) -> Any:
        right = super().name(token_ids, entry, key)
        return right if self.hash_function is None else self.hash_function("")


class _WholePrompt(IndexModel):
    def limit(self, token_ids: Sequence[int]) -> int:
        return len(token_ids) // self.block_size


class _OverGaps(IndexModel):
    def match(self, token_ids: Sequence[int], key: Key) -> list[int]:
        names = [self.name(token_ids, entry, key) for entry in range(self.limit(token_ids))]
        return [self.blocks_of[name][0] for name in names if self.blocks_of.get(name)]


class _AllThatIsFull(IndexModel):
    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        return super().publish(token_ids, block_ids, first, len(token_ids) // self.block_size, key)


class _OneTooMany(IndexModel):
    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        return super().publish(token_ids, block_ids, first, min(last + 1, len(block_ids)), key)


class _OnceOnly(IndexModel):
    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        for entry in range(first, last):
            if self.name(token_ids, entry, key) not in self.blocks_of:
                super().publish(token_ids, block_ids, entry, entry + 1, key)
        return []


class _ListedTwice(IndexModel):
    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        for entry in range(first, last):
            name = self.name(token_ids, entry, key)
            self.name_of[block_ids[entry]] = name
            self.blocks_of.setdefault(name, []).append(block_ids[entry])
            self.pool.set_hash(block_ids[entry], "known")
        return []


class _StillFound(IndexModel):
    def forget(self, block_id: int) -> None:
        if self.name_of.pop(block_id, None):
            self.pool.set_hash(block_id, None)


class _NewestServes(IndexModel):
    def match(self, token_ids: Sequence[int], key: Key) -> list[int]:
        found = super().match(token_ids, key)
        return [self.blocks_of[self.name_of[block_id]][-1] for block_id in found]


class _NoTwins(IndexModel):
    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        for entry in range(first, last):
            if not self.blocks_of.get(self.name(token_ids, entry, key)):
                super().publish(token_ids, block_ids, entry, entry + 1, key)
        return []


class _ForgetsTwins(IndexModel):
    def forget(self, block_id: int) -> None:
        name = self.name_of.get(block_id)
        super().forget(block_id)
        self.blocks_of.pop(name, None)


class _SilentPublish(IndexModel):
    def publish(
        self, token_ids: Sequence[int], block_ids: Sequence[int], first: int, last: int, key: Key
    ) -> list[tuple[int, int]]:
        pool, self.pool = self.pool, _Deaf()
        came = super().publish(token_ids, block_ids, first, last, key)
        self.pool = pool
        return came


class _SilentForget(IndexModel):
    def forget(self, block_id: int) -> None:
        pool, self.pool = self.pool, _Deaf()
        super().forget(block_id)
        self.pool = pool


class _Deaf:
    def set_hash(self, block_id: int, block_hash: Any) -> None:
        return None


TOO_MUCH = (
    "More was published than was asked for. Whoever calls knows what is computed: the entries from "
    "first to last - 1, and no others."
)
FLAWS: tuple[tuple[type[IndexModel], str], ...] = (
    (
        _NotCompared,
        "A hit is believed because its hash is the same. Two different blocks can have one hash: "
        "keep what was hashed and compare it before you believe a hit.",
    ),
    (
        _NoKey,
        "Blocks of different keys are mixed up: the key has to be in the first block's hash, and "
        "through the chain in every other.",
    ),
    (
        _JoinedKey,
        "Salt and adapter run into each other: keep the two strings of the key apart.",
    ),
    (
        _JoinedTokens,
        "The tokens run into each other: keep them apart with a separator.",
    ),
    (
        _OwnTokensOnly,
        "A block is known by its own tokens alone. Its keys and values depend on everything before "
        "it: let the hash of the block in front stand in the hash.",
    ),
    (
        _ChainFromFirst,
        "The chain begins anew at `first`. It has to go on from the hash of the block in front, "
        "which is known already.",
    ),
    (
        _WholePrompt,
        "Every token of the prompt was found, so none is left to compute, and nothing says which "
        "token comes next. Leave at least one, so the last block of such a prompt.",
    ),
    (
        _OverGaps,
        "The look-up went on behind a block that is not known. It ends there: the request would "
        "take the blocks for one stretch from its beginning.",
    ),
    (_AllThatIsFull, TOO_MUCH),
    (_OneTooMany, TOO_MUCH),
    (
        _NoTwins,
        "The second block with the same tokens was not made known. It is a twin: it holds the same "
        "and serves once the first is gone.",
    ),
    (
        _OnceOnly,
        "The block was not made known, because a block with the same contents was known once. That "
        "one has been forgotten: nothing of it may stay behind.",
    ),
    (
        _ListedTwice,
        "A forgotten block was found. It had been published twice and was noted twice, but "
        "forgotten once: a block that is known already stays as it is.",
    ),
    (
        _StillFound,
        "A forgotten block was found. forget has to take it out of everything that match looks at.",
    ),
    (
        _NewestServes,
        "Of several blocks with the same contents the one published first is to be returned.",
    ),
    (
        _ForgetsTwins,
        "With one block its twin was forgotten too. The twin still holds these tokens.",
    ),
    (
        _SilentPublish,
        "The pool was not told that the block is known (set_hash), so it would hand it out first.",
    ),
    (
        _SilentForget,
        "The pool was not told that the block is known no more (set_hash with None).",
    ),
)
