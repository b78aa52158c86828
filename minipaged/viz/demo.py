"""The demo: questions are asked, an engine answers them, and everything inside it is shown.

With a terminal a live view that can be paused and stepped, else plain text. It works on any
engine that has a tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from minipaged.engine import Engine
from minipaged.trace import Trace
from minipaged.viz.beam_run import BeamRun
from minipaged.viz.keys import Keys, open_keys
from minipaged.viz.live import watch
from minipaged.viz.plain import LEGEND, snapshot, told
from minipaged.viz.run import Run
from minipaged.viz.scenarios import SCENARIOS, Scenario
from minipaged.viz.state import printable
from minipaged.viz.summary import summary
from minipaged.viz.svg import require_target, save_svg
from minipaged.viz.terminal import Frame

PICTURE = (124, 31)  # columns and lines of a recorded picture


def run_demo(
    engine: Engine,
    questions: Sequence[str],
    *,
    console: Console,
    delay: float = 0.05,
    record: Path | None = None,
    plain: bool = False,
    show: Scenario = SCENARIOS["mixed"],
    max_tokens: int | None = None,
    tokenizer: Any = None,
    nearest_known: Callable[[str], list[str]] | None = None,
    keys: Keys | None = None,
) -> Trace:
    """Ask, watch, and sum up. The engine is left without requests, however it ends.

    console: where to show it; the live view needs a terminal. delay: seconds between steps of
    the live view. record: save a telling moment there as SVG. plain: text even in a terminal.
    show: the scenario, for its sampling parameters and the moments of arrival; max_tokens replaces
    the one it names. tokenizer: needed by a scenario of beams only. nearest_known: for a question
    the ones like it that the model was trained on, [] if it was trained on this very one. keys: key
    presses; the terminal's own if None. ValueError, before anything is done, for a question that
    the engine can never serve and for a place where no picture can be saved. KeyboardInterrupt goes
    on to the caller, after all is told and saved.
    """
    if record is not None:
        require_target(record)
    run = _make_run(engine, questions, show, max_tokens, tokenizer)
    interrupt: KeyboardInterrupt | None = None
    try:
        if plain or not console.is_terminal:
            _print_run(run, console, show.about)
        else:
            watch(run, console, keys or open_keys(), delay)
    except KeyboardInterrupt as error:
        interrupt = error  # asked to stop: what there is is still worth telling
    finally:
        stopped = run.close()
    _print_end(run, console, stopped, nearest_known)
    if record is not None and run.trace.steps:
        _save_picture(run, record)
        _say(console, f"saved {record}")
    if interrupt is not None:
        raise interrupt
    return run.trace


def _make_run(
    engine: Engine, questions: Sequence[str], show: Scenario, max_tokens: int | None, tokenizer: Any
) -> Run:
    limit = show.params.max_tokens if max_tokens is None else max_tokens
    if show.beams is None:
        params = replace(show.params, max_tokens=limit)
        return Run(engine, questions, params, first=show.first, every=show.every)
    return BeamRun(
        engine,
        questions,
        show.beams if max_tokens is None else replace(show.beams, max_tokens=max_tokens),
        eos_token_ids=tokenizer.eos_token_ids,
        decode=tokenizer.decode_bytes,
    )


def _print_run(run: Run, console: Console, about: str) -> None:
    """Events as they happen, and snapshots at growing distances: about eight in 400 steps."""
    _say(console, f"{about}\n\n{LEGEND}\n")
    due = gap = 5
    while not run.done:
        latest = run.step()
        for entry in run.state.log[-len(latest.events) :] if latest.events else ():
            _say(console, told(entry, run.state))
        if latest.step >= due:
            _say(console, f"\n{snapshot(latest, run.state)}\n")
            gap = gap * 8 // 5
            due = latest.step + gap


def _print_end(
    run: Run,
    console: Console,
    stopped: int,
    nearest_known: Callable[[str], list[str]] | None,
) -> None:
    """All answers, the summary, and where the model was asked what it does not know."""
    for lines in run.answers(console.width):
        _say(console, "\n" + "\n".join(lines))
    if stopped:
        _say(console, f"\nStopped. Questions without a full answer: {stopped}")
    _say(console, "\n" + "\n".join(summary(run.state, run.engine.max_model_len)))
    for question in run.questions.values():
        near = nearest_known(question) if nearest_known else []
        if near:
            _say(console, f"\nNot in the model's training: {printable(question)}\nIt does know:")
            _say(console, "\n".join(f"  {printable(known)}" for known in near))


def _say(console: Console, text: str) -> None:
    """Print as it is: no markup, no wrapping, "?" for what the output's encoding lacks."""
    text = text.encode(console.encoding, "replace").decode(console.encoding)
    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _save_picture(run: Run, path: Path) -> None:
    index = telling_step(run.trace)
    columns, lines = PICTURE
    frame = Frame(run.trace.steps[index], run.state_at(index))
    title = f"minipaged demo, step {run.trace.steps[index].step} of {len(run.trace.steps)}"
    save_svg(frame, path, width=columns, height=lines, title=title)


def telling_step(trace: Trace) -> int:
    """The index of a moment worth a picture: much runs, and at best somebody is preempted."""

    def score(index: int) -> tuple[bool, int, int]:
        record = trace.steps[index]
        preempted = any(event.kind == "preempted" for event in record.events)
        return preempted, len(record.tables) * sum(record.known.values()), record.num_tokens

    return max(range(len(trace.steps)), key=score)
