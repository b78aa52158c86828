# says: Your code raised MemoryError (not the built-in one)
class MemoryError(Exception):
    pass


class FirstFit:
    def __init__(self, num_slots):
        self.num_slots, self.held = num_slots, {}

    def allocate(self, length):
        if length < 1:
            raise ValueError(length)
        gap = 0
        for start in [*sorted(self.held), self.num_slots]:
            if start - gap >= length:
                self.held[gap] = length
                return gap
            gap = start + self.held.get(start, 0)
        raise MemoryError(length)

    def free(self, start):
        if start not in self.held:
            raise ValueError(start)
        del self.held[start]

    @property
    def num_free(self):
        return self.num_slots - sum(self.held.values())

    @property
    def largest_gap(self):
        starts = sorted(self.held)
        ends = [0, *(start + self.held[start] for start in starts)]
        return max(b - a for a, b in zip(ends, [*starts, self.num_slots]))
