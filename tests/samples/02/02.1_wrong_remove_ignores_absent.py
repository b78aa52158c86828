# says: remove refuses an id that is not queued
class FreeQueue:
    """Ids of free blocks, the next one to be handed out first."""

    def __init__(self, num_blocks):
        """All ids 0 … num_blocks - 1 are queued, in this order."""
        self.sentinel = num_blocks
        self.next_of = [*range(1, num_blocks + 1), 0]
        self.prev_of = [num_blocks, *range(num_blocks)]
        self.size = num_blocks

    def _link(self, block_id, before):
        """Put an id that is not queued right behind `before`."""
        if block_id in self:
            raise ValueError(f"block {block_id} is queued already")
        behind = self.next_of[before]
        self.prev_of[block_id], self.next_of[block_id] = before, behind
        self.next_of[before] = self.prev_of[behind] = block_id
        self.size += 1

    def _unlink(self, block_id):
        """Take out an id that is queued."""
        before, behind = self.prev_of[block_id], self.next_of[block_id]
        self.next_of[before], self.prev_of[behind] = behind, before
        self.next_of[block_id] = self.prev_of[block_id] = None
        self.size -= 1

    def pop_head(self):
        """Take out the first id and return it. IndexError if there is none."""
        if self.size == 0:
            raise IndexError("the free queue is empty")
        block_id = self.next_of[self.sentinel]
        self._unlink(block_id)
        return block_id

    def append(self, block_id):
        """Queue an id last. ValueError if it is queued already."""
        self._link(block_id, self.prev_of[self.sentinel])

    def prepend(self, block_id):
        """Queue an id first. ValueError if it is queued already."""
        self._link(block_id, self.sentinel)

    def remove(self, block_id):
        """Take out this id, wherever it stands. ValueError if it is not queued."""
        if block_id not in self:
            return
        self._unlink(block_id)

    def __contains__(self, block_id):
        """Whether the id is queued; False for an id that does not exist."""
        return 0 <= block_id < self.sentinel and self.next_of[block_id] is not None

    def __len__(self):
        """How many ids are queued."""
        return self.size

    def __iter__(self):
        """The ids from first to last. Only checks and pictures ask; it may visit them all."""
        block_id = self.next_of[self.sentinel]
        while block_id != self.sentinel:
            yield block_id
            block_id = self.next_of[block_id]
