# says: a search through the queue
class FreeQueue:
    def __init__(self, num_blocks):
        self.ids = list(range(num_blocks))

    def pop_head(self):
        return self.ids.pop(0)

    def append(self, block_id):
        if block_id in self.ids:
            raise ValueError(block_id)
        self.ids.append(block_id)

    def prepend(self, block_id):
        if block_id in self.ids:
            raise ValueError(block_id)
        self.ids.insert(0, block_id)

    def remove(self, block_id):
        self.ids.remove(block_id)

    def __contains__(self, block_id):
        return block_id in self.ids

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids)
