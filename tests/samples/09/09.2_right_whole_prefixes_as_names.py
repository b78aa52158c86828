import hashlib


class HashIndex:
    def __init__(self, block_size, pool, hash_function=None):
        self.size, self.pool = block_size, pool
        self.names = {}

    def match(self, token_ids, key):
        found = []
        for end in range(self.size, len(token_ids), self.size):
            name = (key, tuple(token_ids[:end]))
            blocks = [block_id for block_id, other in self.names.items() if other == name]
            if not blocks:
                return found
            found.append(blocks[0])
        return found

    def publish(self, token_ids, block_ids, first, last, key):
        for entry in range(first, last):
            name = (key, tuple(token_ids[: (entry + 1) * self.size]))
            if self.names.setdefault(block_ids[entry], name) == name:
                digest = hashlib.sha256(repr(name).encode()).digest()
                self.pool.set_hash(block_ids[entry], digest)
        return []

    def forget(self, block_id):
        if self.names.pop(block_id, None) is not None:
            self.pool.set_hash(block_id, None)

    def known_blocks(self):
        return sorted(self.names)
