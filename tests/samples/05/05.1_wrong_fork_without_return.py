# says: fork returns the new table itself
class ForkingTable:
    def __init__(self, block_size):
        self.block_size = block_size
        self.block_ids = []

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
        return [self.slot(position) for position in range(start, end)]

    def release(self):
        released, self.block_ids = self.block_ids, []
        return released

    def __len__(self):
        return len(self.block_ids)

    def fork(self):
        twin = ForkingTable(self.block_size)
        twin.append_blocks(self.block_ids)

    def replace(self, entry, block_id):
        old = self.block_ids[entry]
        self.block_ids[entry] = block_id
        return old

    def write(self, position, pool):
        entry = position // self.block_size
        if entry == len(self.block_ids):
            self.append_blocks(pool.allocate(1))
            return None
        old = self.block_ids[entry]
        if pool.refcount(old) > 1:
            new = pool.allocate(1)[0]
            self.replace(entry, new)
            pool.free([old])
            return old, new
        return None
