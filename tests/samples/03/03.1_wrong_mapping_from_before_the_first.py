# says: A negative position counts from the end here
class BlockTable:
    def __init__(self, block_size):
        self.block_size, self.block_ids = block_size, []

    @property
    def num_slots(self):
        return len(self.block_ids) * self.block_size

    def append_blocks(self, block_ids):
        self.block_ids.extend(block_ids)

    def slot(self, position):
        if not 0 <= position < self.num_slots:
            raise IndexError(position)
        return self._slot(position)

    def _slot(self, position):
        logical, offset = divmod(position, self.block_size)
        return self.block_ids[logical] * self.block_size + offset

    def slot_mapping(self, start, end):
        return [self._slot(position) for position in range(start, end)]

    def release(self):
        block_ids, self.block_ids = self.block_ids, []
        return block_ids

    def __len__(self):
        return len(self.block_ids)
