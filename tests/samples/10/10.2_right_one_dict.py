class RadixIndex:
    """No tree at all: a dict from (key, all tokens so far) to a block."""

    def __init__(self, block_size, pool):
        self.block_size, self.pool, self.known = block_size, pool, {}

    def known_blocks(self):
        return sorted(self.known.values())

    def match(self, token_ids, key):
        found = []
        for end in range(self.block_size, len(token_ids), self.block_size):
            block_id = self.known.get((key, tuple(token_ids[:end])))
            if block_id is None:
                return found
            found.append(block_id)
        return found

    def publish(self, token_ids, block_ids, first, last, key):
        swaps = []
        for entry, block_id in enumerate(block_ids[:last]):
            prefix = key, tuple(token_ids[: (entry + 1) * self.block_size])
            if prefix in self.known and self.known[prefix] != block_id:
                swaps.append((entry, self.known[prefix]))
            elif prefix not in self.known:
                self.known[prefix] = block_id
                self.pool.set_hash(block_id, repr(prefix).encode())
        return swaps

    def forget(self, block_id):
        for key, tokens in [p for p, b in self.known.items() if b == block_id]:
            behind = [p for p in self.known if p[0] == key and p[1][: len(tokens)] == tokens]
            for prefix in behind:
                self.pool.set_hash(self.known.pop(prefix), None)

    def protected_tokens(self):
        return self.block_size * len([b for b in self.known.values() if self.pool.refcount(b)])

    def evictable_tokens(self):
        return self.block_size * len([b for b in self.known.values() if not self.pool.refcount(b)])
