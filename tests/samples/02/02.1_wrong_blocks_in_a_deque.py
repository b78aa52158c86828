# says: a search through the queue
from collections import deque


class Block:
    def __init__(self, block_id):
        self.block_id = block_id
        self.is_queued = True


class FreeQueue:
    def __init__(self, num_blocks):
        self.blocks = [Block(i) for i in range(num_blocks)]
        self.queue = deque(self.blocks)

    def pop_head(self):
        if not self.queue:
            raise IndexError("empty")
        block = self.queue.popleft()
        block.is_queued = False
        return block.block_id

    def _take(self, block_id):
        if block_id in self:
            raise ValueError(block_id)
        self.blocks[block_id].is_queued = True
        return self.blocks[block_id]

    def append(self, block_id):
        self.queue.append(self._take(block_id))

    def prepend(self, block_id):
        self.queue.appendleft(self._take(block_id))

    def remove(self, block_id):
        if block_id not in self:
            raise ValueError(block_id)
        self.queue.remove(self.blocks[block_id])
        self.blocks[block_id].is_queued = False

    def __contains__(self, block_id):
        return 0 <= block_id < len(self.blocks) and self.blocks[block_id].is_queued

    def __len__(self):
        return len(self.queue)

    def __iter__(self):
        return (block.block_id for block in self.queue)
