# says: More was published than was asked for.
import hashlib
import random


def digest_of(text):
    """64 hex digits for a text."""
    return hashlib.sha256(text.encode()).hexdigest()


class HashIndex:
    def __init__(self, block_size, pool, hash_function=digest_of):
        self.block_size, self.pool = block_size, pool
        self.hash_function = hash_function
        self.root = f"{random.SystemRandom().getrandbits(128):032x}"
        self.blocks = {}
        self.of = {}

    def _tokens(self, token_ids, entry):
        start = entry * self.block_size
        return str(list(token_ids[start : start + self.block_size]))

    def match(self, token_ids, key):
        hits, parent = [], self.root + repr(key)
        for entry in range((len(token_ids) - 1) // self.block_size):
            text = parent + self._tokens(token_ids, entry)
            parent = self.hash_function(text)
            found = [b for b in self.blocks.get(parent, []) if self.of[b] == text]
            if not found:
                break
            hits.append(found[0])
        return hits

    def publish(self, token_ids, block_ids, first, last, key):
        parent = self.root + repr(key)
        for entry in range(last + 1):
            text = parent + self._tokens(token_ids, entry)
            parent = self.hash_function(text)
            b = block_ids[entry]
            if entry >= first and b not in self.of:
                self.blocks.setdefault(parent, []).append(b)
                self.of[b] = text
                self.pool.set_hash(b, parent)
        return []

    def forget(self, block_id):
        if block_id in self.of:
            text = self.of.pop(block_id)
            self.blocks[self.hash_function(text)].remove(block_id)
            self.pool.set_hash(block_id, None)

    def known_blocks(self):
        return sorted(self.of)
