# says: a position without a slot is an IndexError
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
        logical, offset = divmod(position, self.block_size)
        return self.block_ids[logical] * self.block_size + offset

    def slot_mapping(self, start, end):
        return [self.slot(p) for p in range(max(start, 0), min(end, self.num_slots))]

    def release(self):
        block_ids, self.block_ids = self.block_ids, []
        return block_ids

    def __len__(self):
        return len(self.block_ids)
