"""`minipaged mine`: the engine on all own parts, over the ledger first, then over the tutor.

Own parts and the reference serve the same requests. The ledger checks every invariant of the cache
after every step, in milliseconds and without a model; the tutor then writes real text. What fails
is blamed on the parts that fail alone, each tried with the reference for all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.course import mine, needs
from minipaged.course.catalog import Exercise
from minipaged.course.checks.base import check_of
from minipaged.course.learner.blame import attempt
from minipaged.course.learner.desk import Desk
from minipaged.course.mine import Part
from minipaged.course.sandbox import NoAnswer, limits_for, observe
from minipaged.course.submission import SubmissionError
from minipaged.course.verdict import judge
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.viz.words import counted
from minipaged.workload import SyntheticWorkload, replay

if TYPE_CHECKING:
    from minipaged.output import RequestOutput

QUESTIONS = ("What is a block table?", "What is preemption?", "What is a slot?")
FEW_WORDS = {"What is a slot?": 10}  # and tokens, for kernels that Triton interprets
_LENGTH = 512  # more than any answer of the tutor has
NOT_ASKED = (
    "The engine calls what it needs of a part; what else an exercise asks for is for `minipaged "
    "check`."
)
# room to swap to and marks to heed, so that parts which decide about them have something to decide
_PRESSURE: dict[str, Any] = {"num_host_blocks": 12, "low_water_blocks": 1, "high_water_blocks": 4}
_VOCABULARY = 1000
_MAX_STEPS = 5000
_LEDGER_SECONDS, _TUTOR_SECONDS = 10.0, 120.0  # of one run; the reference takes 0.1 and 2


@dataclass(slots=True)
class LedgerRun:
    """What one run over the ledger came to. tokens: of each request, in order."""

    tokens: dict[str, list[int]] = field(default_factory=dict)
    steps: int = 0
    preemptions: int = 0


def choose(desk: Desk, without: Collection[str]) -> list[Part]:
    """One part per field of Components that the course builds: the latest own one, else the
    reference. without: ids of exercises whose own part is left out.

    ValueError for an id that fills no field; OwnPartError for a cell that cannot be run.
    """
    fields = _fields(desk)
    known = [exercise.id for group in fields.values() for exercise in group]
    for exercise_id in without:
        if exercise_id not in known:
            raise ValueError(f"{exercise_id!r} fills no part of the engine: {', '.join(known)} do")
    return [_latest(desk, group, without) for group in fields.values()]


def latest_of(desk: Desk, component: str, without: Collection[str]) -> Part:
    """The latest own part of one field, else the reference; as choose."""
    return _latest(desk, _fields(desk)[component], without)


def _fields(desk: Desk) -> dict[str, list[Exercise]]:
    """The exercises that fill each field of Components, in order."""
    fields: dict[str, list[Exercise]] = {}
    for exercise in desk.course.catalog.exercises:
        if exercise.component:
            fields.setdefault(exercise.component, []).append(exercise)
    return fields


def _latest(desk: Desk, group: Sequence[Exercise], without: Collection[str]) -> Part:
    for exercise in reversed(group):
        if exercise.needs and not _is_begun(desk, exercise):
            continue  # only an own kernel is worth the seconds that Triton takes to load
        if exercise.id not in without and not _what_lacks(desk, exercise):
            passes = passes_check(desk, exercise)
            part = mine.load(desk, exercise, passes=passes)
            if part.is_own:
                return replace(part, passes=passes)
    plain = [exercise for exercise in group if not exercise.needs]
    return mine.reference(desk.course, (plain or group)[-1])


def passes_check(desk: Desk, exercise: Exercise) -> bool:
    """Whether the learner's cell passes the visible cases of its check; nothing is recorded.

    Cost: a process start, none while the cell is as it was handed out.
    """
    try:
        source = desk.source(exercise)
        if source == desk.course.stub(exercise):
            return False
        check = check_of(exercise)
        cells = [*desk.course.given(exercise), (exercise.solution_cell, source)]
        cases = check.visible()
        seen = observe(cells, exercise.name, cases, limits_for(check))
    except (SubmissionError, NoAnswer):
        return False
    return all(verdict.passed for verdict in judge(check, cases, seen, exercise.name))


def report(desk: Desk, parts: Sequence[Part], without: Collection[str]) -> list[str]:
    """Component, part, whose it is, exercise, and whether its check passes: a line each. Then what
    is left to say before the parts run."""
    rows = [("component", "part", "whose", "exercise", "check")]
    failing = []
    for part in parts:
        exercise = part.exercise
        note, check = _why_reference(desk, exercise, without), ""
        if part.is_own:
            note, check = "", "passes" if part.passes else "FAILS"
            failing += [exercise.id] if check == "FAILS" else []
        whose = "yours" if part.is_own else "reference"
        rows.append((exercise.component or "", exercise.name, whose, exercise.id + note, check))
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, wide)).rstrip() for row in rows]
    lines += [
        f"{exercise_id} fails its check, whatever the engine makes of it: "
        f"`minipaged check {exercise_id}` says where."
        for exercise_id in failing
    ]
    lines += [*_lost_cells(desk, parts, without), *_in_notebooks(desk)]
    if not any(part.is_own for part in parts):
        return [*lines, "", _none(desk, parts, without)]
    return [*lines, NOT_ASKED, ""]


def _lost_cells(desk: Desk, parts: Sequence[Part], without: Collection[str]) -> list[str]:
    """How to have a cell back that is not in its notebook any more."""
    lost = [
        part.exercise.id for part in parts if not part.is_own and part.exercise.id not in without
    ]
    return [
        f"The cell of {exercise_id} is not in its notebook: `minipaged reset {exercise_id}` puts "
        "it back as it was handed out."
        for exercise_id in lost
        if _what_lacks(desk, desk.course.catalog.exercise(exercise_id)) == "no cell"
    ]


def _in_notebooks(desk: Desk) -> list[str]:
    """The solved exercises that fill no part of the engine."""
    done = desk.place.progress().done
    solved = [e.id for e in desk.course.catalog.exercises if e.id in done and not e.component]
    return [f"Used in the notebooks only: {', '.join(solved)}."] if solved else []


def _none(desk: Desk, parts: Sequence[Part], without: Collection[str]) -> str:
    """Why nothing is run."""
    left_out = [desk.course.catalog.exercise(exercise_id) for exercise_id in without]
    if any(_is_begun(desk, exercise) for exercise in left_out):
        return "All of your parts are left out, so there is nothing to run."
    first = f"{parts[0].exercise.id} {parts[0].exercise.name}" if parts else "coming"
    return f"None of them is yours yet. The first that you can build is {first}."


def _why_reference(desk: Desk, exercise: Exercise, without: Collection[str]) -> str:
    if exercise.id in without:
        return " (left out)"
    return f" ({_what_lacks(desk, exercise) or 'not solved'})"


def _what_lacks(desk: Desk, exercise: Exercise) -> str:
    """ "no notebook", "no cell", "needs Triton", or "" if there is something to look at."""
    if needs.lacking(exercise.needs):
        return "needs Triton"
    if not desk.notebook(exercise).exists():
        return "no notebook"
    try:
        return "" if desk.has_cell(exercise) else "no cell"
    except SubmissionError:  # a notebook that cannot be read: loading the part says why
        return ""


def _is_begun(desk: Desk, exercise: Exercise) -> bool:
    try:
        return desk.source(exercise) != desk.course.stub(exercise)
    except SubmissionError:
        return False


def over_the_ledger(parts: Sequence[Part]) -> list[str]:
    """Serve a small workload with preemptions, checked at every step; PartFailure if it fails."""
    expected = _serve(Components())

    def run(some: Sequence[Part]) -> LedgerRun:
        came = _serve(_components(some))
        wrong = [name for name, tokens in expected.tokens.items() if came.tokens[name] != tokens]
        if wrong:
            raise AssertionError(
                f"{len(wrong)} of {len(expected.tokens)} requests got other tokens than with the "
                f"reference: a request has read what another one wrote, or its own was lost"
            )
        return came

    done = attempt(run, parts, "over the ledger", _LEDGER_SECONDS)
    return [
        f"over the ledger: {len(done.tokens)} requests, {done.steps} steps, {done.preemptions} "
        "preemptions; every invariant held after every step, and every token is the reference's"
    ]


def over_the_tutor(parts: Sequence[Part]) -> list[str]:
    """Answer a few questions with the model, as with the reference; PartFailure if it fails."""
    has_kernel = any(part.is_own and part.exercise.needs for part in parts)
    asked = FEW_WORDS if has_kernel else dict.fromkeys(QUESTIONS, _LENGTH)
    expected = _answers((), asked)

    def run(some: Sequence[Part]) -> list[str]:
        texts = _answers(some, asked)
        for question, right, text in zip(asked, expected, texts, strict=False):
            if text != right:
                raise AssertionError(
                    f"{question!r} is answered with another text than with the reference: "
                    f"{text[:80]!r}"
                )
        return texts

    texts = attempt(run, parts, "over the tutor", _TUTOR_SECONDS)
    size = sum(map(len, texts))
    return [
        f"over the tutor: {counted(len(texts), 'answer')}, {size} characters, the same as with the "
        "reference. On your parts it says:",
        f"  {next(iter(asked))}",
        f"  {texts[0]}",
    ]


def _components(parts: Sequence[Part]) -> Components:
    own = {part.exercise.component or "": part.value for part in parts if part.is_own}
    return replace(Components(), **own)


def _serve(components: Components) -> LedgerRun:
    """One run over the ledger; whatever is wrong with a part raises, with the step in a note."""
    config = EngineConfig.of(
        block_size=4,
        num_blocks=24,
        max_num_seqs=6,
        max_num_batched_tokens=24,
        max_model_len=90,
        **_PRESSURE,
    )
    workload = SyntheticWorkload(30, (1, 40), (4, 40), 0.5, vocabulary=(1, _VOCABULARY))
    executor = SimExecutor(config.cache, SimConfig(vocab_size=_VOCABULARY))
    engine = Engine(config, executor, components=components, vocab_size=_VOCABULARY)
    run = LedgerRun({arrival.request_id: [] for arrival in workload.arrivals()})
    try:
        engine.check()
        for outputs in replay(engine, workload.arrivals()):
            _collect(run, outputs)
            engine.check()
            if run.steps > _MAX_STEPS:
                raise AssertionError(f"still running after {_MAX_STEPS} steps")
    except BaseException as error:
        error.add_note(f"at step {run.steps + 1}")
        raise
    run.preemptions = engine.metrics.num_preemptions_total
    return run


def _collect(run: LedgerRun, outputs: Sequence[RequestOutput]) -> None:
    run.steps += 1
    for output in outputs:
        run.tokens[output.request_id] += output.new_token_ids


def _answers(parts: Sequence[Part], asked: Mapping[str, int]) -> list[str]:
    """What the tutor says with these parts, in a pool so small that requests are preempted.

    asked: tokens at most for each question. On the CPU, as the checks are: on a card a near tie of
    two tokens may go the other way without any fault.
    """
    from minipaged.llm import LLM

    own = _components(parts)
    llm = LLM("tutor", components=own, device="cpu", block_size=16, num_blocks=32, **_PRESSURE)
    params = [SamplingParams(max_tokens=most) for most in asked.values()]
    return [answer.text for answer in llm.generate(list(asked), params)]
