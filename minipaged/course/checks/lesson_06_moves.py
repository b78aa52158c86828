"""06.1: the moves of a request as pairs of letters, done rightly or with one flaw.

IDEAS says what is behind each flaw.
"""

from __future__ import annotations

STATES = ("WAITING", "RUNNING", "PREEMPTED", "SWAPPED", "FINISHED")
MOVES = frozenset("WR WF RP RS RF PR PF SR SP SF".split())  # from and to, by first letters


class PlainState:
    """The states done plainly. flaw: the one thing that is done wrongly, "" for none."""

    def __init__(self, request_id: str, flaw: str = "") -> None:
        self.request_id, self.flaw = request_id, flaw
        self.state, self.num_preemptions = "WAITING", 0

    @property
    def holds_blocks(self) -> bool:
        """Only a running request has blocks of the device."""
        wrong: dict[str, tuple[str, ...]] = {
            "not finished": ("RUNNING", "WAITING", "PREEMPTED", "SWAPPED"),
            "swapped holds": ("RUNNING", "SWAPPED"),
            "waiting holds": ("RUNNING", "WAITING"),
        }
        return self.state in wrong.get(self.flaw, ("RUNNING",))

    def move_to(self, state: str) -> None:
        """Change the state, or raise."""
        move = self.state[0] + state[:1]
        if not self.may(move, state):
            if self.flaw == "changes first":
                self.state = state
            raise RuntimeError(f"{self.request_id} {self.state} {state} {' '.join(STATES)}")
        self.num_preemptions += self.counts(move)
        self.state = state

    def may(self, move: str, state: str) -> bool:
        """Whether a move is legal."""
        if self.flaw.startswith("allows "):
            return move in MOVES or move == self.flaw[-2:]
        if self.flaw.startswith("refuses "):
            return move in MOVES and move != self.flaw[-2:] and state in STATES
        return (move in MOVES or (self.flaw == "stays" and move[0] == move[1])) and state in STATES

    def counts(self, move: str) -> bool:
        """Whether a move costs the request its place."""
        if self.flaw == "counts twice":
            return move in ("RP", "RS", "SP")
        if self.flaw == "counts recompute only":
            return move in ("RP", "SP")
        if self.flaw == "counts the way to PREEMPTED from RUNNING":
            return move == "RP"
        if self.flaw == "counts returns":
            return move in ("PR", "SR")
        if self.flaw == "counts ends":
            return move in ("RP", "RS", "RF")
        return move in ("RP", "RS")


IDEAS = {
    "allows WP": "A request that waits has no blocks and no place: it cannot be preempted.",
    "allows WS": "A request that waits has computed nothing that could be swapped out.",
    "allows PW": (
        "A preempted request does not become WAITING. It stands in the same line, but its state "
        "says that it has been there before; it comes back by RUNNING."
    ),
    "allows RW": (
        "A request that loses its blocks becomes PREEMPTED, not WAITING: it has tokens that its "
        "user has seen, and goes to the front of the line."
    ),
    "allows PS": "A preempted request has no keys and values left that could be swapped out.",
    "stays": "A move to the state that a request is in already is none, and it is not in the list.",
    "refuses WF": "A request that waits can be ended as well: its user has gone away.",
    "refuses PF": "A preempted request can be ended as well: its user has gone away.",
    "refuses SF": "A swapped request can be ended as well: its user has gone away.",
    "refuses SP": (
        "SWAPPED to PREEMPTED is legal: the copy on the host is given up, and the request will be "
        "computed again."
    ),
    "refuses SR": "SWAPPED to RUNNING is legal: the blocks are copied back and it goes on.",
    "refuses PR": "PREEMPTED to RUNNING is legal: this is how a victim comes back.",
    "changes first": "A refusal has changed nothing: look whether the move is legal, then change.",
    "counts twice": (
        "SWAPPED to PREEMPTED is no second loss: the request lost its place when it was swapped "
        "out, and only its copy on the host goes now."
    ),
    "counts recompute only": (
        "Whoever is swapped out has lost the place: count the moves that begin in RUNNING."
    ),
    "counts the way to PREEMPTED from RUNNING": (
        "Whoever is swapped out has lost the place as well as whoever is preempted."
    ),
    "counts returns": "The place is lost when the request leaves RUNNING, not when it comes back.",
    "counts ends": "A request that has ended has not lost its place: it needs none any more.",
    "waiting holds": "Blocks are handed out when a request is admitted: WAITING holds none.",
    "not finished": "Blocks go back to the pool when a request is preempted: PREEMPTED holds none.",
    "swapped holds": "SWAPPED holds blocks of the host's pool, and none of the device's.",
}
