class Block:
    def __init__(self):
        self.holders, self.known_by = 0, None


class CachingPool:
    def __init__(self, num_blocks, make_queue):
        self.blocks = [Block() for _ in range(num_blocks)]
        self.free_queue = make_queue(num_blocks)

    @property
    def num_blocks(self):
        return len(self.blocks)

    @property
    def num_free(self):
        return sum(block.holders == 0 for block in self.blocks)

    def refcount(self, block_id):
        return self.blocks[block_id].holders

    def block_hash(self, block_id):
        return self.blocks[block_id].known_by

    def set_hash(self, block_id, block_hash):
        self.blocks[block_id].known_by = block_hash

    def share(self, block_ids):
        if any(block_id not in range(self.num_blocks) for block_id in block_ids):
            raise ValueError("there is no such block")
        for block_id in block_ids:
            if block_id in self.free_queue:
                self.free_queue.remove(block_id)
            self.blocks[block_id].holders += 1

    def allocate(self, count):
        return self.take([], count)

    def free(self, block_ids):
        for block_id in set(block_ids):
            holders = self.blocks[block_id].holders if block_id in range(self.num_blocks) else 0
            if block_ids.count(block_id) > holders:
                raise ValueError("freed more often than it is held")
        for block_id in block_ids[::-1]:
            block = self.blocks[block_id]
            block.holders -= 1
            if block.holders:
                continue
            if block.known_by is None:
                self.free_queue.prepend(block_id)
            else:
                self.free_queue.append(block_id)

    def take(self, hits, num_new):
        needed = num_new + len([hit for hit in hits if hit in self.free_queue])
        if needed > self.num_free:
            raise MemoryError("too few free blocks")
        self.share(hits)
        new = [self.free_queue.pop_head() for _ in range(num_new)]
        for block_id in new:
            self.blocks[block_id].holders, self.blocks[block_id].known_by = 1, None
        return hits + new
