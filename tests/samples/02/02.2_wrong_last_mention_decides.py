# says: from the end of the list to its beginning
class BlockPool:
    def __init__(self, num_blocks, make_queue):
        self.num_blocks = num_blocks
        self.free_queue = make_queue(num_blocks)
        self.counts = [0] * num_blocks

    @property
    def num_free(self):
        return len(self.free_queue)

    def refcount(self, block_id):
        return self.counts[block_id]

    def block_hash(self, block_id):
        return None

    def allocate(self, count):
        if count > self.num_free:
            raise MemoryError
        block_ids = [self.free_queue.pop_head() for _ in range(count)]
        for block_id in block_ids:
            self.counts[block_id] = 1
        return block_ids

    def share(self, block_ids):
        if not all(0 <= b < self.num_blocks for b in block_ids):
            raise ValueError(block_ids)
        for block_id in block_ids:
            if self.counts[block_id] == 0:
                self.free_queue.remove(block_id)
            self.counts[block_id] += 1

    def free(self, block_ids):
        drops = {b: list(block_ids).count(b) for b in block_ids}
        if any(not 0 <= b < self.num_blocks or n > self.counts[b] for b, n in drops.items()):
            raise ValueError(block_ids)
        for block_id in block_ids:
            self.counts[block_id] -= 1
        for block_id in dict.fromkeys(reversed(block_ids)):
            if self.counts[block_id] == 0:
                self.free_queue.prepend(block_id)
