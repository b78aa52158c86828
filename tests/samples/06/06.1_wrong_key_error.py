# says: must be refused with a RuntimeError
class RequestState:
    """Where a request is: WAITING, RUNNING, PREEMPTED, SWAPPED or FINISHED.

    Attributes: request_id, state, num_preemptions.
    """

    def __init__(self, request_id):
        """A new request waits."""
        self.request_id = request_id
        self.state = "WAITING"
        self.num_preemptions = 0
        self.legal = {
            "WAITING": ["RUNNING", "FINISHED"],
            "RUNNING": ["PREEMPTED", "SWAPPED", "FINISHED"],
            "PREEMPTED": ["RUNNING", "FINISHED"],
            "SWAPPED": ["RUNNING", "PREEMPTED", "FINISHED"],
            "FINISHED": [],
        }

    @property
    def holds_blocks(self):
        """True in the one state in which a request may hold blocks."""
        return self.state == "RUNNING"

    def move_to(self, state):
        """Change the state. RuntimeError, and nothing changed, if the move is not legal."""
        if self.legal[state] is None or state not in self.legal[self.state]:
            legal = ", ".join(self.legal[self.state]) or "none"
            raise RuntimeError(
                f"request {self.request_id} cannot go from {self.state} to {state}; "
                f"states that it may go to: {legal}"
            )
        if self.state == "RUNNING" and state != "FINISHED":
            self.num_preemptions += 1
        self.state = state
