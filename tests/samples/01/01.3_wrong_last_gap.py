# says: First fit takes the gap with the lowest start
class FirstFit:
    def __init__(self, num_slots):
        self.num_slots = num_slots
        self.gaps = [(0, num_slots)]
        self.held = {}

    def allocate(self, length):
        if length < 1:
            raise ValueError("a length below 1")
        for gap in self.order():
            start, room = gap
            if room >= length:
                self.gaps.remove(gap)
                if room > length:
                    self.gaps.append((start + length, room - length))
                self.gaps.sort()
                self.held[start] = length
                return start
        raise MemoryError(f"no gap of {length} slots")

    def order(self):
        return self.gaps[::-1]

    def free(self, start):
        if start not in self.held:
            raise ValueError(f"nothing starts at {start}")
        self.gaps.append((start, self.held.pop(start)))
        self.merge(start)

    def merge(self, start):
        merged = []
        for gap in sorted(self.gaps):
            if merged and sum(merged[-1]) == gap[0]:
                first, room = merged.pop()
                gap = (first, room + gap[1])
            merged.append(gap)
        self.gaps = merged

    @property
    def num_free(self):
        return sum(room for _start, room in self.gaps)

    @property
    def largest_gap(self):
        return max((room for _start, room in self.gaps), default=0)
