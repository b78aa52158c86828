"""Who reads which outputs: a step serves all requests, a caller waits for some. No torch."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult

if TYPE_CHECKING:
    from minipaged.engine import Engine


class Inboxes:
    """An observer that keeps the outputs of some requests until they are read.

    of: request id to its outputs. Whoever steps the engine fills them.
    """

    def __init__(self) -> None:
        self.of: dict[str, deque[RequestOutput]] = {}

    def open(self, request_id: str) -> None:
        """Keep this request's outputs from now on."""
        self.of[request_id] = deque()

    def event(self, kind: str, request_id: str, detail: str = "") -> None: ...

    def planned(self, engine: Engine, plan: StepPlan) -> None: ...

    def committed(
        self, engine: Engine, plan: StepPlan, result: StepResult, outputs: list[RequestOutput]
    ) -> None:
        """Sort the outputs of one step."""
        for output in outputs:
            inbox = self.of.get(output.request_id)
            if inbox is not None:
                inbox.append(output)
