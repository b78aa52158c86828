"""Beam search that is watched: one question, several beams on shared blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minipaged.beam import BeamSearch
from minipaged.beam_scores import BeamSearchParams
from minipaged.config import SamplingParams
from minipaged.engine import Engine
from minipaged.trace import StepRecord
from minipaged.viz.run import Run
from minipaged.viz.state import ViewState, printable


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
        self._beams: list[dict[str, tuple[int, list[int]]]] = []

    @property
    def done(self) -> bool:
        """True when every question has its beams."""
        return self._search.done

    def step(self) -> StepRecord:
        """Run the engine for one step, and branch."""
        self._search.step()
        latest = self.trace.steps[-1]
        self.state.update(latest)
        self._beams.append(self._search.live)
        self._tell(self.state, len(self._beams))
        return latest

    def state_at(self, index: int) -> ViewState:
        """What a view knew after the record at `index`. Cost: O(records before it)."""
        state = super().state_at(index)
        self._tell(state, index + 1)
        return state

    def _tell(self, state: ViewState, num_steps: int) -> None:
        """What each beam asked, and what it had written when it was last seen alive."""
        asked = list(self.questions.values())
        seen = {i: beam for beams in self._beams[:num_steps] for i, beam in beams.items()}
        for request_id, (number, token_ids) in seen.items():
            life = state.life(request_id)
            life.question, life.text = printable(asked[number]), self._text(token_ids)

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
                lines.append(f"  {beam.score:8.4f}  {self._text(beam.token_ids)}"[:width])
            blocks.append(lines)
        return blocks

    def _text(self, token_ids: Sequence[int]) -> str:
        tokens = [token for token in token_ids if token not in self._ends]
        return printable(self._decode(tokens).decode("utf-8", "replace"))
