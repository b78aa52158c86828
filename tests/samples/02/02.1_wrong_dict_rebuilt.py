# says: steps mean a search through the queue, or a shift of all that stands behind
class FreeQueue:
    def __init__(self, num_blocks):
        self.ids = dict.fromkeys(range(num_blocks))

    def pop_head(self):
        if not self.ids:
            raise IndexError("no free block")
        block_id = next(iter(self.ids))
        del self.ids[block_id]
        return block_id

    def append(self, block_id):
        if block_id in self.ids:
            raise ValueError(f"{block_id} is queued")
        self.ids[block_id] = None

    def prepend(self, block_id):
        if block_id in self.ids:
            raise ValueError(f"{block_id} is queued")
        self.ids = {block_id: None, **self.ids}

    def remove(self, block_id):
        if block_id not in self.ids:
            raise ValueError(f"{block_id} is not queued")
        del self.ids[block_id]

    def __contains__(self, block_id):
        return block_id in self.ids

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        yield from self.ids
