# says: in both directions
class FreeQueue:
    """Head and tail kept apart, None at the ends."""

    def __init__(self, num_blocks):
        self.after = {i: i + 1 for i in range(num_blocks - 1)}
        self.before = {i: i - 1 for i in range(1, num_blocks)}
        self.head, self.tail = (0, num_blocks - 1) if num_blocks else (None, None)
        self.queued = set(range(num_blocks))

    def pop_head(self):
        if self.head is None:
            raise IndexError("empty")
        block_id = self.head
        self.remove(block_id)
        return block_id

    def append(self, block_id):
        if block_id in self.queued:
            raise ValueError("queued already")
        self.queued.add(block_id)
        if self.tail is None:
            self.head = block_id
        else:
            self.after[self.tail] = block_id
            self.before[block_id] = self.tail
        self.tail = block_id

    def prepend(self, block_id):
        if block_id in self.queued:
            raise ValueError("queued already")
        self.queued.add(block_id)
        if self.head is None:
            self.tail = block_id
        else:
            self.before[self.head] = block_id
            self.after[block_id] = self.head
        self.head = block_id

    def remove(self, block_id):
        if block_id not in self.queued:
            raise ValueError("not queued")
        self.queued.remove(block_id)
        before, after = self.before.pop(block_id, None), self.after.pop(block_id, None)
        if before is None:
            self.head = after
            self.before.pop(after, None)
        else:
            self.after[before] = after
        if after is None:
            self.tail = before
            self.after.pop(before, None)
        if before is None:
            self.before.pop(after, None)

    def __contains__(self, block_id):
        return block_id in self.queued

    def __len__(self):
        return len(self.queued)

    def __iter__(self):
        block_id = self.head
        while block_id is not None:
            yield block_id
            block_id = self.after.get(block_id)
