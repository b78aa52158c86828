# says: The table was not asked
class BlockTable:
    def __init__(self, block_size):
        self.block_size = block_size
        self.block_ids = []

    @property
    def num_slots(self):
        return len(self.block_ids) * self.block_size

    def append_blocks(self, block_ids):
        self.block_ids.extend(block_ids)

    def slot(self, position):
        if position < 0 or position >= self.num_slots:
            raise IndexError(position)
        logical, offset = divmod(position, self.block_size)
        return logical * self.block_size + offset

    def slot_mapping(self, start, end):
        return [self.slot(p) for p in range(start, end)]

    def release(self):
        released = self.block_ids
        self.block_ids = []
        return released

    def __len__(self):
        return len(self.block_ids)
