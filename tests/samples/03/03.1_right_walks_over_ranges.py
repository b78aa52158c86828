class BlockTable:
    """Keeps a range of slots for each block, and looks a position up by walking over them."""

    def __init__(self, block_size):
        self.block_size = block_size
        self.ranges = []

    @property
    def block_ids(self):
        return [slots.start // self.block_size for slots in self.ranges]

    @property
    def num_slots(self):
        return sum(map(len, self.ranges))

    def append_blocks(self, block_ids):
        for block_id in block_ids:
            first = block_id * self.block_size
            self.ranges.append(range(first, first + self.block_size))

    def slot(self, position):
        left = position
        for slots in self.ranges:
            if 0 <= left < len(slots):
                return slots[left]
            left -= len(slots)
        raise IndexError(f"no slot for position {position}")

    def slot_mapping(self, start, end):
        return list(map(self.slot, range(start, end)))

    def release(self):
        given = self.block_ids
        self.ranges.clear()
        return given

    def __len__(self):
        return len(self.ranges)
