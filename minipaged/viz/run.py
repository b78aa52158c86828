"""A run that is watched: questions on their way through an engine, and the record of it."""

from __future__ import annotations

from collections.abc import Sequence

from minipaged.config import SamplingParams
from minipaged.engine import Engine
from minipaged.request import SAMPLE_MARK
from minipaged.trace import Recorder, StepRecord
from minipaged.viz.plain import answer
from minipaged.viz.state import ViewState, at_rest


class Run:
    """Asks the `first` questions at once and one more every `every` steps; records everything.

    ValueError, and nothing changed, for a question that the engine can never serve.
    """

    def __init__(
        self,
        engine: Engine,
        questions: Sequence[str],
        params: SamplingParams,
        *,
        first: int = 4,
        every: int = 8,
    ) -> None:
        for question in questions:
            engine.check_prompt(question, params)
        self.engine = engine
        self.questions = {f"q{n}": text for n, text in enumerate(questions, 1)}
        self._params = params
        self._first, self._every = first, every
        self._to_come = list(self.questions)
        self._recorder = Recorder(engine)
        self._steps = 0
        engine.observers.append(self._recorder)
        self.trace = self._recorder.trace
        self.state = ViewState(self.trace, self.questions)

    @property
    def done(self) -> bool:
        """True when every question has its answer."""
        return not self._to_come and not self.engine.has_unfinished_requests()

    def step(self) -> StepRecord:
        """Let in whoever arrives now, and run the engine for one step."""
        while self._to_come and self._is_due():
            request_id = self._to_come.pop(0)
            self.engine.add_request(request_id, self.questions[request_id], self._params)
        self.engine.step()
        self._steps += 1
        latest = self.trace.steps[-1]
        self.state.update(latest)
        return latest

    def rest(self) -> StepRecord:
        """The engine now, between two steps."""
        return at_rest(self.trace.steps[-1], self.engine.manager.pool.num_free)

    def state_at(self, index: int) -> ViewState:
        """What a view knew after the record at `index`. Cost: O(records before it)."""
        return ViewState.at(self.trace, index, self.questions)

    def answers(self, width: int) -> list[list[str]]:
        """What came of each request, as lines of at most `width` columns."""
        return [answer(life, width) for life in self.state.lives.values()]

    def close(self) -> int:
        """Abort what is left and stop recording; returns the number of unanswered questions."""
        before = set(self.engine.requests)
        self.engine.abort(self.questions)
        gone = before - set(self.engine.requests)
        self.engine.observers.remove(self._recorder)
        for sequence_id in gone:  # no step follows whose record would tell of it
            self.state.life(sequence_id).status = "aborted"
        return len({i.partition(SAMPLE_MARK)[0] for i in gone}) + len(self._to_come)

    def _is_due(self) -> bool:
        number = len(self.questions) - len(self._to_come)
        idle = not self.engine.has_unfinished_requests()
        return idle or self._steps >= self._every * (number - self._first + 1)
