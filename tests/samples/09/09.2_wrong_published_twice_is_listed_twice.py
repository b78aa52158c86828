# says: It had been published twice and was noted twice
import hashlib
import random


def digest_of(text):
    """64 hex digits for a text."""
    return hashlib.sha256(text.encode()).hexdigest()


class HashIndex:
    """Which block holds which prefix."""

    def __init__(self, block_size, pool, hash_function=digest_of):
        """Nothing is known yet. hash_function: from a text to a text."""
        self.block_size, self.pool = block_size, pool
        self.hash_function = hash_function
        self.root = f"{random.SystemRandom().getrandbits(128):032x}"
        self.hashed = {}  # hash -> the text that was hashed
        self.holders = {}  # hash -> blocks, in the order in which they were published
        self.hash_of = {}  # block -> hash

    def match(self, token_ids, key):
        """A list of the blocks that hold the longest known prefix, the first one first."""
        found, before = [], self.root + repr(key)
        for entry in range((len(token_ids) - 1) // self.block_size):
            text = before + self._tokens(token_ids, entry)
            before = self.hash_function(text)
            if self.hashed.get(before) != text:
                break
            found.append(self.holders[before][0])
        return found

    def publish(self, token_ids, block_ids, first, last, key):
        """Make entries first … last - 1 of a block table known: they are full and computed.

        token_ids and block_ids are those of the whole sequence. Returns [].
        """
        before = self.hash_of.get(block_ids[first - 1]) if first else self.root + repr(key)
        for entry in range(first, last if before else first):
            text = before + self._tokens(token_ids, entry)
            before = self.hash_function(text)
            if self.hashed.setdefault(before, text) != text:
                break  # a collision: this block stays unknown, and so do those behind it
            self.hash_of[block_ids[entry]] = before
            self.holders.setdefault(before, []).append(block_ids[entry])
            self.pool.set_hash(block_ids[entry], before)
        return []

    def forget(self, block_id):
        """The pool has handed this block out again: its contents are lost."""
        block_hash = self.hash_of.pop(block_id, None)
        if block_hash is None:
            return
        self.pool.set_hash(block_id, None)
        self.holders[block_hash].remove(block_id)
        if not self.holders[block_hash]:
            del self.holders[block_hash], self.hashed[block_hash]

    def known_blocks(self):
        """A list of every known block, in ascending order."""
        return sorted(self.hash_of)

    def _tokens(self, token_ids, entry):
        """The tokens of one entry of a block table, as text. Yours to use or to delete."""
        start = entry * self.block_size
        return str(list(token_ids[start : start + self.block_size]))
