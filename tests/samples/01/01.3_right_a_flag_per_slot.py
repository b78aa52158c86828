class FirstFit:
    def __init__(self, num_slots):
        self.taken = [False] * num_slots
        self.lengths = {}

    def allocate(self, length):
        if length < 1:
            raise ValueError(f"{length} is no length")
        for start in range(len(self.taken) - length + 1):
            if not any(self.taken[start : start + length]):
                self.taken[start : start + length] = [True] * length
                self.lengths[start] = length
                return start
        raise MemoryError("no gap is large enough")

    def free(self, start):
        try:
            length = self.lengths.pop(start)
        except KeyError:
            raise ValueError(f"nothing starts at {start}") from None
        self.taken[start : start + length] = [False] * length

    @property
    def num_free(self):
        return self.taken.count(False)

    @property
    def largest_gap(self):
        runs = "".join("x" if taken else "." for taken in self.taken).split("x")
        return max(map(len, runs))
