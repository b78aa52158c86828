class FreeQueue:
    """A list for each end; what is taken out leaves a gap behind that nobody closes."""

    def __init__(self, num_blocks):
        self.back, self.front = list(range(num_blocks)), []
        self.place = {i: (self.back, i) for i in range(num_blocks)}
        self.first = 0

    def pop_head(self):
        if not self.place:
            raise IndexError("empty")
        while self.front:
            block_id = self.front.pop()
            if block_id is not None:
                del self.place[block_id]
                return block_id
        while self.back[self.first] is None:
            self.first += 1
        block_id = self.back[self.first]
        self.remove(block_id)
        return block_id

    def append(self, block_id):
        self._add(self.back, block_id)

    def prepend(self, block_id):
        self._add(self.front, block_id)

    def _add(self, log, block_id):
        if block_id in self.place:
            raise ValueError(block_id)
        self.place[block_id] = log, len(log)
        log.append(block_id)

    def remove(self, block_id):
        if block_id not in self.place:
            raise ValueError(block_id)
        log, place = self.place.pop(block_id)
        log[place] = None

    def __contains__(self, block_id):
        return block_id in self.place

    def __len__(self):
        return len(self.place)

    def __iter__(self):
        return (i for i in self.front[::-1] + self.back if i is not None)
