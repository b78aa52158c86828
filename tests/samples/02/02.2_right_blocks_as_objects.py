class Block:
    def __init__(self, block_id):
        self.block_id = block_id
        self.holders = 0


class BlockPool:
    """Blocks as objects; a dry run on a copy of the counts decides before anything changes."""

    def __init__(self, num_blocks, make_queue):
        self.blocks = {i: Block(i) for i in range(num_blocks)}
        self.free_queue = make_queue(num_blocks)

    @property
    def num_blocks(self):
        return len(self.blocks)

    @property
    def num_free(self):
        return sum(block.holders == 0 for block in self.blocks.values())

    def refcount(self, block_id):
        return self.blocks[block_id].holders

    def block_hash(self, block_id):
        """None yet."""

    def allocate(self, count):
        if self.num_free < count:
            raise MemoryError("too few free blocks")
        taken = []
        while len(taken) < count:
            taken.append(self.free_queue.pop_head())
            self.blocks[taken[-1]].holders += 1
        return taken

    def share(self, block_ids):
        chosen = self._find(block_ids)
        for block in chosen:
            if not block.holders:
                self.free_queue.remove(block.block_id)
            block.holders += 1

    def free(self, block_ids):
        chosen = self._find(block_ids)
        left = {block.block_id: block.holders for block in chosen}
        for block in chosen:
            left[block.block_id] -= 1
        if any(holders < 0 for holders in left.values()):
            raise ValueError("double free")
        while chosen:
            block = chosen.pop()
            block.holders -= 1
            if not block.holders:
                self.free_queue.prepend(block.block_id)

    def _find(self, block_ids):
        if any(block_id not in self.blocks for block_id in block_ids):
            raise ValueError("no such block")
        return [self.blocks[block_id] for block_id in block_ids]
