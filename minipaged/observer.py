"""What watches an engine: told of every event, of each plan before it runs, of what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult

if TYPE_CHECKING:
    from minipaged.engine import Engine


class Observer(Protocol):
    """Something that watches an engine, such as trace.Recorder."""

    def event(self, kind: str, request_id: str, detail: str = "") -> None: ...

    def planned(self, engine: Engine, plan: StepPlan) -> None: ...

    def committed(
        self, engine: Engine, plan: StepPlan, result: StepResult, outputs: list[RequestOutput]
    ) -> None: ...
