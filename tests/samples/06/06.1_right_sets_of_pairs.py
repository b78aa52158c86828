class RequestState:
    """The moves as a set of pairs."""

    MOVES = {
        *((old, "FINISHED") for old in ("WAITING", "RUNNING", "PREEMPTED", "SWAPPED")),
        *((old, "RUNNING") for old in ("WAITING", "PREEMPTED", "SWAPPED")),
        *((old, "PREEMPTED") for old in ("RUNNING", "SWAPPED")),
        ("RUNNING", "SWAPPED"),
    }

    def __init__(self, request_id):
        self.request_id = request_id
        self.past = ["WAITING"]

    @property
    def state(self):
        return self.past[-1]

    @property
    def num_preemptions(self):
        pairs = zip(self.past, self.past[1:])
        return sum(old == "RUNNING" and new != "FINISHED" for old, new in pairs)

    @property
    def holds_blocks(self):
        return self.state == "RUNNING"

    def move_to(self, state):
        if (self.state, state) in self.MOVES:
            self.past.append(state)
            return
        to = sorted(new for old, new in self.MOVES if old == self.state)
        raise RuntimeError(f"{self.request_id} is {self.state} and not to be {state}, only {to}")
