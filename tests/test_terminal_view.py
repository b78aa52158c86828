"""The terminal view and the demo show what the trace says, and leave nothing behind."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from minipaged.clock import VirtualClock
from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.trace import Event, StepRecord, Trace, Work
from minipaged.viz.demo import run_demo, telling_step
from minipaged.viz.keys import NoKeys, open_keys
from minipaged.viz.palette import COLOURS, Palette, ink_on, luminance
from minipaged.viz.panels import budget_line, shorten_ids
from minipaged.viz.pool import grid_for
from minipaged.viz.run import Run
from minipaged.viz.scenarios import DEFAULT_OPTIONS, DEFAULT_QUESTIONS
from minipaged.viz.state import ViewState, at_rest, printable
from minipaged.viz.svg import require_target
from minipaged.viz.terminal import Frame, plain
from minipaged.viz.words import counted
from minipaged.viz.wrapping import share_out, wrap

END = 256
SIZES = [(80, 24), (100, 30), (120, 36), (160, 50)]
ANSWERS = {
    "What is one?": "One is the first number that anybody counts, and " + "so on, " * 22 + "done.",
    "二是什么？": "二是一加一，也就是第二个数，写作 2。" * 4,
    "Three?": "Short.",
    "What is four?": "Four is two times two and two plus two and two to the power of two. " * 2,
    "What is five?": "Five comes after four. " * 5,
    "Who are you?": "I do not know that.",
}
OPTIONS = {**DEFAULT_OPTIONS, "block_size": 8, "num_blocks": 48}


class ByteTokenizer:
    """One token a byte; a system prompt of 24 bytes."""

    def prompt_ids(self, text: str) -> list[int]:
        return [*b"Answer briefly, please: ", *text.encode()]

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        return bytes(token for token in token_ids if token < END)


def make_engine(questions: Sequence[str] = tuple(ANSWERS), **options) -> Engine:
    """An engine over the ledger whose requests q1, q2 ... get the scripted answers."""
    config = EngineConfig.of(**{**OPTIONS, **options})
    scripts = {f"q{n}": [*ANSWERS[q].encode(), END] for n, q in enumerate(questions, 1)}
    executor = SimExecutor(
        config.cache,
        SimConfig(vocab_size=257),
        lambda i, spec, digest: scripts[i][spec.output_index],
    )
    return Engine(
        config,
        executor,
        clock=VirtualClock(),
        tokenizer=ByteTokenizer(),
        vocab_size=257,
        eos_token_ids=(END,),
    )


@pytest.fixture(scope="module")
def run() -> Run:
    """A whole run: six questions in a pool that is too small for all of them."""
    run = Run(make_engine(), list(ANSWERS), SamplingParams())
    while not run.done:
        run.step()
        run.engine.check()
    return run


@pytest.fixture(scope="module")
def moments(run: Run) -> list[tuple[StepRecord, ViewState]]:
    """Telling steps of it: the first, a late one, those with events that are rare."""
    steps = run.trace.steps
    rare = ("preempted", "finished")
    chosen = {0, 3, len(steps) // 2, len(steps) - 1, telling_step(run.trace)}
    chosen |= {i for i, s in enumerate(steps) if any(e.kind in rare for e in s.events)}
    return [(steps[i], ViewState.at(run.trace, i, run.questions)) for i in sorted(chosen)]


def drawn(renderable, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), legacy_windows=False)
    console.print(renderable, height=height, end="")
    return console.file.getvalue().rstrip("\n").split("\n")  # type: ignore[attr-defined]


def terminal(width: int = 100, height: int = 30) -> Console:
    return Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )


def printed(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined]


def assert_clean(engine: Engine) -> None:
    engine.check()
    assert engine.manager.pool.num_free == engine.manager.num_blocks
    assert not engine.requests and not engine.observers


# --- the picture ---


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_frame_fills_its_room_and_no_more(moments, width: int, height: int) -> None:
    for record, state in moments:
        lines = drawn(Frame(record, state, status="paused", hint="q quit"), width, height)
        assert len(lines) == height
        assert max(map(cell_len, lines)) <= width
        assert "paused" in lines[0] and "q quit" in lines[-1]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_frame_tells_the_facts_of_the_step(moments, width: int, height: int) -> None:
    for record, state in moments:
        text = "\n".join(drawn(Frame(record, state), width, height))
        squeezed = " ".join(text.split())
        assert f"{record.num_free} of 48 blocks free" in text
        assert f"Token budget: {record.num_tokens} of 32" in text
        assert f"step {record.step}" in text
        for row in pool_rows(record, state, width, height):
            assert row in squeezed
        for entry in state.log[-2:]:
            assert f"{state.life(entry.request_id).mark.sign} {entry.text}"[:30] in squeezed
        for request_id, table in record.tables.items():
            assert f"{record.computed[request_id]}/{record.known[request_id]}" in squeezed
            assert str(table[-1]) in squeezed


def pool_rows(record: StepRecord, state: ViewState, width: int, height: int) -> list[str]:
    """The rows of the pool as they must stand in the picture, one space between cells."""
    owner = {b: state.life(i).mark.sign for i, table in record.tables.items() for b in table}
    assert len(owner) == state.header.num_blocks - record.num_free
    body = height - (5 if height >= 28 else 4)
    columns = grid_for(state.header.num_blocks, width * 49 // 100 - 4, body).columns
    signs = [owner.get(block, "·") for block in range(state.header.num_blocks)]
    return [" ".join(signs[i : i + columns]) for i in range(0, len(signs), columns)]


def test_decodes_and_chunks_of_prompts_look_different(run: Run) -> None:
    steps = run.trace.steps
    at = next(i for i, s in enumerate(steps) if {1} < {w.num_tokens for w in s.work})
    state = ViewState.at(run.trace, at, run.questions)
    bar = budget_line(steps[at], state, 64)
    for work in steps[at].work:
        sign = state.life(work.request_id).mark.sign
        shown = f"{sign} " if work.num_tokens == 1 else f"{sign} {work.num_tokens}▒"
        assert shown in bar.plain
    assert bar.cell_len == 64


def test_a_tiny_share_of_a_large_budget_is_still_seen() -> None:
    trace = Trace(16, 100, 8192, 64)
    work = [Work(f"r{n}", 40, 1, [5]) for n in range(20)] + [Work("long", 0, 8172, [])]
    record = StepRecord(0, 0.0, 0.1, work, {}, {}, {}, [], 100)
    state = ViewState(trace)
    for item in work[:-1]:
        state.life(item.request_id).num_prompt = 40
    state.update(record)
    bar = budget_line(record, state, 60).plain
    assert len(bar) == 60
    assert bar.startswith("ABCDEFGHIJKLMNOPQRSTU 8172▒")


def test_waiting_preempted_and_finished_are_told_apart(moments) -> None:
    record, state = next(m for m in moments if any(e.kind == "preempted" for e in m[0].events))
    victim = next(e.request_id for e in record.events if e.kind == "preempted")
    sign = state.life(victim).mark.sign
    lines = drawn(Frame(record, state), 120, 36)
    assert any(f"preempted {sign}" in line for line in lines)
    assert not any(f"running {sign}" in line for line in lines)
    assert f"{sign} is preempted, frees" in "\n".join(lines)


def test_a_shared_block_is_marked() -> None:
    trace = Trace(4, 16, 8, 2)
    record = StepRecord(
        step=0,
        time=0.0,
        elapsed=0.1,
        work=[Work("x", 4, 1, [1]), Work("y", 4, 1, [2])],
        tables={"x": [3, 5], "y": [3, 6]},
        computed={"x": 4, "y": 4},
        known={"x": 5, "y": 5},
        waiting=[],
        num_free=13,
        events=[Event("admitted", "x", ""), Event("admitted", "y", "")],
    )
    state = ViewState(trace)
    state.update(record)
    text = "\n".join(drawn(Frame(record, state), 100, 30))
    assert "A+" in text and "shared" in text
    assert "...+.AB........." in plain(record, state)
    assert "+ 3 is shared by A B" in plain(record, state)


@pytest.mark.parametrize(("width", "height"), [*SIZES, (60, 18), (40, 12)])
def test_many_requests_and_a_large_pool_degrade_to_counts(width: int, height: int) -> None:
    engine = make_engine([next(iter(ANSWERS))] * 90, num_blocks=3000, max_num_seqs=70)
    run = Run(engine, [next(iter(ANSWERS))] * 90, SamplingParams())
    run.state.life("q1")
    for request_id in run.questions:
        engine.add_request(request_id, run.questions[request_id])
    run._to_come.clear()
    for _ in range(120):
        record = run.step()
    lines = drawn(Frame(record, run.state), width, height)
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width
    if height >= 24:
        assert any("blocks more" in line for line in lines)
        assert any("tables more" in line for line in lines)
        assert any("requests more" in line for line in lines)
        assert "+" in "".join(lines[:4])


# --- plain text and the state behind it ---


def test_plain_text_tells_the_same(moments) -> None:
    for record, state in moments:
        text = plain(record, state)
        assert f"{record.num_free} of 48 blocks free" in text
        assert f"{record.num_tokens} of 32 tokens" in text
        owner = {b: state.life(i).mark.sign for i, table in record.tables.items() for b in table}
        assert "".join(owner.get(block, ".") for block in range(48)) in text
        for event in record.events:
            assert f"{state.life(event.request_id).mark.sign} " in text
        for life in state.lives.values():
            assert life.question in text
            assert "".join(life.text.split()) in "".join(text.split())


def test_plain_text_is_ascii_but_for_the_texts(moments) -> None:
    for record, state in moments:
        for life in state.lives.values():
            life.question = life.text = "x"
        assert plain(record, state).isascii()


def test_the_state_adds_up(run: Run) -> None:
    state = run.state
    assert [life.text for life in state.lives.values()] == list(ANSWERS.values())
    assert {life.status for life in state.lives.values()} == {"finished"}
    assert state.num_preemptions == run.engine.metrics.num_preemptions_total > 0
    needed = sum(life.num_computed for life in state.lives.values())
    assert state.num_tokens == needed + state.num_dropped
    assert state.peak_blocks == 48 - min(step.num_free for step in run.trace.steps) > 40


def test_a_trace_from_a_file_looks_the_same(run: Run, tmp_path) -> None:
    run.trace.save(tmp_path / "trace.jsonl")
    again = Trace.load(tmp_path / "trace.jsonl")
    for index in (0, 40, 80):
        frames = [
            Frame(trace.steps[index], ViewState.at(trace, index, run.questions))
            for trace in (run.trace, again)
        ]
        assert drawn(frames[0], 100, 30) == drawn(frames[1], 100, 30)


def test_a_trace_that_begins_in_the_middle_can_be_shown(run: Run) -> None:
    late = dataclasses.replace(run.trace, steps=run.trace.steps[60:])
    state = ViewState.at(late, 0)
    assert {i for i, v in state.lives.items() if v.status == "running"} >= set(late.steps[0].tables)
    assert len(drawn(Frame(late.steps[0], state), 80, 24)) == 24


# --- the demo ---


def test_without_a_terminal_events_answers_and_summary_are_printed() -> None:
    engine, console = make_engine(), Console(width=90, file=io.StringIO())
    trace = run_demo(
        engine,
        list(ANSWERS),
        console=console,
        nearest_known=lambda q: ["Who am I?", "Who is it?"] if q == "Who are you?" else [],
    )
    text = printed(console)
    for question, answer in ANSWERS.items():
        assert f"arrives, {24 + len(question.encode())} tokens: {question}" in text
        assert "".join(answer.split()) in "".join(text.split())
    preempted = sum(e.kind == "preempted" for step in trace.steps for e in step.events)
    assert text.count("is preempted, frees") == preempted > 0
    assert f"preempted   {preempted}x" in text
    assert "384 blocks reserved, max_model_len 512 for each request" in text
    assert "Not in the model's training: Who are you?" in text and "  Who is it?" in text
    assert 5 <= text.count("  pool  ") <= 9
    assert "\x1b" not in text
    assert_clean(engine)


def test_plain_text_begins_with_what_its_signs_mean() -> None:
    engine, console = make_engine(), Console(file=io.StringIO())
    run_demo(engine, list(ANSWERS), console=console)
    head, tail = printed(console).split("\nstep ", 1)
    for sign in ("A 88/89 +1  0 1 2 3", "decode", "32 of 86 tokens", "to redo"):
        assert sign in head
    assert "  pool  " not in head and "  pool  " in tail
    assert head.isascii() and max(map(len, head.split("\n"))) <= 100


@pytest.mark.parametrize("live", [False, True])
def test_control_characters_of_a_model_or_a_question_reach_no_output(monkeypatch, live) -> None:
    question = "Who\x1b]0;x\x07?"
    monkeypatch.setitem(ANSWERS, question, "a\x1b[2Jb\x08\x0b\x7f\x9b\nc")
    engine = make_engine([question])
    console = terminal() if live else Console(width=90, file=io.StringIO())
    near = {"nearest_known": lambda _: ["is\x1b[5m known"]}
    run_demo(engine, [question], console=console, delay=0, keys=NoKeys(), **near)
    text = printed(console)
    assert "a\ufffd[2Jb\ufffd\ufffd\ufffd\ufffd\n   c\n" in text
    assert "Not in the model's training: Who\ufffd]0;x\ufffd?" in text
    assert "\x1b]" not in text and "\x1b[2J" not in text and "\x1b[5m" not in text
    assert not set("\x07\x08\x0b\x7f\x9b") & set(text)
    assert live or "\x1b" not in text


def test_one_of_a_thing_is_told_in_the_singular(monkeypatch) -> None:
    assert [counted(n, "block") for n in (0, 1, 2, 1234)] == [
        "0 blocks",
        "1 block",
        "2 blocks",
        "1,234 blocks",
    ]
    monkeypatch.setitem(ANSWERS, "One?", "1")
    engine, console = (
        make_engine(["One?"], block_size=64, num_blocks=1, max_model_len=64),
        Console(file=io.StringIO()),
    )
    trace = run_demo(engine, ["One?"], console=console, max_tokens=1)
    text = printed(console)
    for words in ("1 token in 1 step,", "of 1 block held", "1 block reserved", "hold 1 request at"):
        assert words in text
    assert not re.search(r"\b1 (tokens|blocks|requests|steps|tables)\b", text)
    state = ViewState.at(trace, 0)
    assert not re.search(r"\b1 (tokens|blocks|steps)\b", plain(trace.steps[0], state))
    assert "1 of 1 block free" in plain(at_rest(trace.steps[0], 1), state)
    picture = "\n".join(drawn(Frame(trace.steps[0], state), 80, 24))
    assert "0 of 1 block free" in picture


def test_a_failed_step_is_told_by_the_next_record() -> None:
    run = Run(make_engine(), list(ANSWERS), SamplingParams())
    real, fail_at = run.engine.executor.execute, {1, 9, 10}
    calls: list[object] = []

    def fails(plan):
        calls.append(plan)
        if len(calls) in fail_at:
            raise OSError
        return real(plan)

    run.engine.executor.execute = fails  # type: ignore[method-assign]
    while not run.done:
        try:
            run.step()
        except OSError:
            continue
    told = [entry.text for entry in run.state.log]
    assert "is preempted, frees 0 blocks" not in told and "is preempted" in told
    assert run.state.num_preemptions == run.engine.metrics.num_preemptions_total
    assert {life.status for life in run.state.lives.values()} == {"finished"}
    needed = sum(life.num_computed for life in run.state.lives.values())
    assert run.state.num_tokens == needed + run.state.num_dropped
    at = {e.step for e in run.state.log if e.text == "is preempted"}
    freed = [e.request_id for e in run.state.log if e.step == max(at) and "frees" in e.text]
    assert len(set(freed)) == len(freed) > 0


def test_later_questions_arrive_later() -> None:
    engine, console = make_engine(), Console(file=io.StringIO())
    trace = run_demo(engine, list(ANSWERS), console=console, plain=True)
    arrivals = {e.request_id: s.step for s in trace.steps for e in s.events if e.kind == "added"}
    assert [arrivals[f"q{n}"] for n in range(1, 7)] == [0, 0, 0, 0, 8, 16]


class Script:
    """Presses the given keys, one a read, then nothing; counts how often it was opened."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)
        self.opened = self.closed = 0

    def __enter__(self) -> Script:
        self.opened += 1
        return self

    def __exit__(self, *exc: object) -> None:
        self.closed += 1

    def read(self, timeout: float) -> str:
        return self.keys.pop(0) if self.keys else ""


def test_quitting_half_way_aborts_cleanly() -> None:
    engine, console = make_engine(), terminal()
    keys = Script(*[""] * 30, "q")
    trace = run_demo(engine, list(ANSWERS), console=console, delay=0, keys=keys)
    assert 25 <= len(trace.steps) <= 31
    assert (keys.opened, keys.closed) == (1, 1)
    text = printed(console)
    assert "\x1b[?1049h" in text and "\x1b[?1049l" in text  # the second screen, and back
    assert "Stopped. Questions without a full answer: 5" in text
    assert "(aborted)" in text
    assert_clean(engine)


def test_pausing_stepping_and_speed_keys() -> None:
    engine, console = make_engine(), terminal()
    keys = Script(" ", "", "n", "right", "-", "+", "x", " ", "q")
    trace = run_demo(engine, list(ANSWERS), console=console, delay=0.001, keys=keys)
    assert len(trace.steps) == 4
    assert "paused" in printed(console)
    assert_clean(engine)


def test_the_live_view_to_its_end() -> None:
    some = list(ANSWERS)[2:4]
    engine, console = make_engine(some), terminal(80, 24)
    run_demo(engine, some, console=console, delay=0, keys=NoKeys(), max_tokens=20)
    text = printed(console)
    assert "all done" in text and "Short." in text and "hits its limit" in text
    assert "What is four?  (cut: 20 tokens)" in text
    assert_clean(engine)


def test_an_interrupt_goes_on_after_the_summary_and_an_error_at_once(tmp_path) -> None:
    for error in (KeyboardInterrupt, OSError):
        engine, console = make_engine(), terminal()
        real, calls = engine.executor.execute, []

        def fails(plan, real=real, calls=calls, error=error):
            calls.append(plan)
            if len(calls) == 9:
                raise error
            return real(plan)

        engine.executor.execute = fails  # type: ignore[method-assign]
        picture = tmp_path / f"{error.__name__}.svg"
        with pytest.raises(error):
            run_demo(engine, list(ANSWERS), console=console, delay=0, keys=NoKeys(), record=picture)
        asked_to = error is KeyboardInterrupt
        assert ("contiguous" in printed(console)) == asked_to
        assert picture.exists() == asked_to
        assert "\x1b[?1049l" in printed(console)
        assert_clean(engine)


def test_what_cannot_work_is_refused_before_anything_is_done(tmp_path) -> None:
    engine, console = make_engine(), Console(file=io.StringIO())
    with pytest.raises(ValueError, match="max_model_len"):
        run_demo(engine, ["Three?", "x" * 600], console=console)
    with pytest.raises(ValueError, match="no folder"):
        run_demo(engine, ["Three?"], console=console, record=tmp_path / "none" / "a.svg")
    assert printed(console) == ""
    assert_clean(engine)


def test_a_picture_that_cannot_be_saved_is_refused_before_anything_is_done(tmp_path) -> None:
    engine, console = make_engine(), Console(file=io.StringIO())
    folder = tmp_path / "folder.svg"
    folder.mkdir()
    for record, why in (
        (folder, "folder.svg': that is a folder: give a file in it"),
        (Path(), "'.': that is a folder: give a file in it"),
        (tmp_path / "a.png", "a.png': .* end in .svg"),
        (tmp_path / "picture", "picture': .* end in .svg"),
        (tmp_path / "none" / "a.svg", "there is no folder .*none: make it"),
        (tmp_path / f"{'x' * 300}.svg", "x.svg': .+: choose another"),
    ):
        with pytest.raises(ValueError, match=why) as caught:
            run_demo(engine, ["Three?"], console=console, record=record)
        assert "\n" not in str(caught.value)
    assert printed(console) == ""
    assert list(tmp_path.iterdir()) == [folder]
    assert_clean(engine)


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_picture_in_a_closed_place_is_refused(tmp_path) -> None:
    old = tmp_path / "old.svg"
    old.write_text("old")
    old.chmod(0o444)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    for path in (old, closed / "new.svg"):
        with pytest.raises(ValueError, match=r"Permission denied: choose another"):
            require_target(path)


def test_looking_whether_a_picture_can_be_saved_changes_nothing(tmp_path) -> None:
    old, link = tmp_path / "old.SVG", tmp_path / "link.svg"
    old.write_text("old")
    require_target(old)
    require_target(tmp_path / "new.svg")
    if sys.platform != "win32":
        link.symlink_to(tmp_path / "later.svg")
        require_target(link)
        assert link.is_symlink() and not link.exists()
    assert old.read_text() == "old" and not (tmp_path / "new.svg").exists()


def test_a_recorded_picture_is_valid_and_the_same_every_time(tmp_path) -> None:
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        console = Console(file=io.StringIO())
        trace = run_demo(make_engine(), list(ANSWERS), console=console, record=file)
    assert files[0].read_bytes() == files[1].read_bytes()
    root = ET.parse(files[0]).getroot()
    texts = ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]
    step = trace.steps[telling_step(trace)]
    assert any(event.kind == "preempted" for event in step.events)
    assert f"minipaged\xa0demo,\xa0step\xa0{step.step}\xa0of\xa0{len(trace.steps)}" in texts
    assert "二是什么？" in texts
    assert "http" not in files[0].read_text("utf-8").replace(
        "http://www.w3.org/2000/svg", ""
    ).replace("https://www.textualize.io", "")


def test_an_output_without_chinese_gets_question_marks() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="cp1252", newline=""), width=90)
    run_demo(make_engine(), list(ANSWERS), console=console)
    console.file.flush()
    assert b"B  ?????  (done: " in raw.getvalue()


def test_the_default_questions_are_in_the_tutors_corpus() -> None:
    from minipaged.model.tutor.corpus import known

    assert len(DEFAULT_QUESTIONS) == 8
    assert all(map(known, DEFAULT_QUESTIONS))


# --- the small parts ---


def test_marks_are_stable_readable_and_distinct() -> None:
    palette = Palette()
    marks = [palette[f"r{n}"] for n in range(200)]
    assert [palette[f"r{n}"] for n in reversed(range(200))] == marks[::-1]
    assert len(set(marks)) == 200
    assert "".join(mark.sign for mark in marks[:8]) == "ABCDEFGH"
    for colour in COLOURS:
        own, ink = sorted((luminance(colour), luminance(ink_on(colour))))
        assert (ink + 0.05) / (own + 0.05) >= 4.5  # WCAG 2, level AA


@pytest.mark.parametrize("width", [5, 12, 40])
def test_wrapped_lines_fit_and_lose_nothing(width: int) -> None:
    for text in [*ANSWERS.values(), "averyveryverylongword " * 3, "a\n\nb", "KV 缓存：键（key）。"]:
        lines = wrap(text, width)
        assert max(map(cell_len, lines)) <= width
        assert "".join("".join(lines).split()) == "".join(text.split())
        assert not any(line.startswith(("，", "。")) for line in lines if width > 5)
    assert wrap("", width) == []


def test_room_is_shared_fairly() -> None:
    assert share_out([3, 1, 5], 20, [True, True, True]) == [3, 1, 5]
    assert share_out([9, 9, 9], 7, [False, True, False]) == [1, 5, 1]
    assert share_out([4, 4], 1, [False, True]) == [0, 1]
    assert share_out([4, 4], 0, [True, True]) == [0, 0]
    assert share_out([], 5, []) == []


def test_long_tables_keep_their_end() -> None:
    assert shorten_ids([1, 2, 3], 5) == "1 2 3"
    assert shorten_ids(list(range(30)), 20) == "0 1 … 25 26 27 28 29"
    assert shorten_ids(list(range(30)), 4) == "… 29"
    assert shorten_ids(list(range(30)), 1) == "…"


def test_control_characters_cannot_take_over_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\r\nc") == "a\ufffd[2Jb\ufffd\ufffd\nc"


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
def test_keys_are_read_one_by_one_and_the_terminal_is_put_back(monkeypatch) -> None:
    import termios

    master, slave = os.openpty()
    with os.fdopen(slave, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        before = termios.tcgetattr(slave)
        with open_keys() as keys:
            os.write(master, b" n\x1b[C\x1bOC+q")
            assert [keys.read(1.0) for _ in range(6)] == [" ", "n", "right", "right", "+", "q"]
            assert keys.read(0.0) == ""
        assert termios.tcgetattr(slave) == before
    os.close(master)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert isinstance(open_keys(), NoKeys)
