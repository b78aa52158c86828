# says: a search through the queue
from collections import deque


class FreeQueue:
    def __init__(self, num_blocks):
        self.ids = deque(range(num_blocks))
        self.queued = set(range(num_blocks))

    def pop_head(self):
        block_id = self.ids.popleft()
        self.queued.discard(block_id)
        return block_id

    def append(self, block_id):
        if block_id in self.queued:
            raise ValueError(block_id)
        self.ids.append(block_id)
        self.queued.add(block_id)

    def prepend(self, block_id):
        if block_id in self.queued:
            raise ValueError(block_id)
        self.ids.appendleft(block_id)
        self.queued.add(block_id)

    def remove(self, block_id):
        self.ids.remove(block_id)
        self.queued.discard(block_id)

    def __contains__(self, block_id):
        return block_id in self.queued

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids)
