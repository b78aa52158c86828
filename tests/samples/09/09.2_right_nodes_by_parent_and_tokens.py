class HashIndex:
    """Numbers prefixes instead of hashing them: the number of one and the next tokens give one."""

    def __init__(self, block_size, pool, hash_function=None):
        self.size, self.pool = block_size, pool
        self.numbers, self.holders, self.number_of = {}, {}, {}

    def walk(self, token_ids, key, entries):
        node = key
        for entry in range(entries):
            step = (node, tuple(token_ids[entry * self.size : (entry + 1) * self.size]))
            node = self.numbers.setdefault(step, len(self.numbers))
            yield entry, node

    def match(self, token_ids, key):
        found = []
        for _, node in self.walk(token_ids, key, (len(token_ids) - 1) // self.size):
            if not self.holders.get(node):
                break
            found.append(next(iter(self.holders[node])))
        return found

    def publish(self, token_ids, block_ids, first, last, key):
        for entry, node in self.walk(token_ids, key, last):
            if entry >= first and block_ids[entry] not in self.number_of:
                self.number_of[block_ids[entry]] = node
                self.holders.setdefault(node, {})[block_ids[entry]] = True
                self.pool.set_hash(block_ids[entry], f"prefix {node}")
        return []

    def forget(self, block_id):
        node = self.number_of.pop(block_id, None)
        if node is not None:
            del self.holders[node][block_id]
            self.pool.set_hash(block_id, None)

    def known_blocks(self):
        return sorted(self.number_of)
