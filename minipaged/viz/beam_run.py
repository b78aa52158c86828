"""Beam search that is watched: one question, several beams on shared blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minipaged.beam import BeamSearch
from minipaged.beam_scores import BeamSearchParams
from minipaged.config import SamplingParams
from minipaged.engine import Engine
from minipaged.trace import StepRecord
from minipaged.viz.run import Run
from minipaged.viz.state import printable


class BeamRun(Run):
    """Searches for the likeliest answers to all questions at once; records everything.

    decode: tokens to text. ValueError, and nothing changed, for a question that cannot be served.
    """

    def __init__(
        self,
        engine: Engine,
        questions: Sequence[str],
        params: BeamSearchParams,
        *,
        eos_token_ids: Sequence[int],
        decode: Callable[[Sequence[int]], bytes],
    ) -> None:
        super().__init__(engine, questions, SamplingParams(max_tokens=params.max_tokens))
        self._to_come = []
        self._search = BeamSearch(engine, questions, params, eos_token_ids)
        self._decode = decode
        self._ends = set(eos_token_ids)

    @property
    def done(self) -> bool:
        """True when every question has its beams."""
        return self._search.done

    def step(self) -> StepRecord:
        """Run the engine for one step, and branch."""
        self._search.step()
        latest = self.trace.steps[-1]
        self.state.update(latest)
        return latest

    def close(self) -> int:
        """End what is left and stop recording; returns the number of unanswered questions."""
        left = 0 if self.done else sum(not beams for beams in self._search.found)
        self._search.close()
        self.engine.observers.remove(self._recorder)
        return left

    def answers(self, width: int) -> list[list[str]]:
        """The beams of each question, best first, with their scores."""
        blocks = []
        for question, beams in zip(self.questions.values(), self._search.found, strict=True):
            lines = [printable(question)]
            for beam in beams:
                tokens = [token for token in beam.token_ids if token not in self._ends]
                text = printable(self._decode(tokens).decode("utf-8", "replace"))
                lines.append(f"  {beam.score:8.4f}  {text}"[:width])
            blocks.append(lines)
        return blocks
