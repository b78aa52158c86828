"""The engine: what a step reports, refusals that change nothing, faults that lose nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minipaged.cache.manager import InvariantError
from minipaged.clock import VirtualClock
from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.sim_exec import SimConfig, SimExecutor
from minipaged.request import Request, RequestStatus
from minipaged.sched.scheduler import Scheduler
from minipaged.sched.victim import last_admitted


class Bytes:
    """A byte tokenizer; ids from 256 on are special and have no text."""

    def prompt_ids(self, text):
        return list(text.encode())

    def decode_bytes(self, token_ids):
        return bytes(t for t in token_ids if t < 256)


class Scripted(SimExecutor):
    """An executor whose "model" recites a text, whatever it is asked."""

    def __init__(self, text: bytes | list[int]) -> None:
        cache = EngineConfig.of(num_blocks=64).cache
        super().__init__(cache, SimConfig(), lambda i, spec, digest: text[spec.output_index])


def scripted(text, **params):
    config = EngineConfig.of(num_blocks=64, max_model_len=500)
    engine = Engine(config, Scripted(text), tokenizer=Bytes(), eos_token_ids=(257,))
    engine.add_request("a", "hi", SamplingParams(**params))
    pieces, outputs = [], []
    while engine.has_unfinished_requests():
        for output in engine.step():
            pieces.append(output.new_text)
            outputs.append(output)
    engine.check()
    return pieces, outputs


def test_streamed_text_never_splits_a_character():
    text = "块表 ≤ å 🙂 end"
    pieces, outputs = scripted([*text.encode(), 257])
    assert "".join(pieces) == text
    assert "\ufffd" not in "".join(pieces)
    assert all(piece == "" or piece in text for piece in pieces)
    assert outputs[-1].finish_reason == "stop"
    assert outputs[-1].new_token_ids == [257]


def test_an_unfinished_character_is_shown_as_a_replacement_at_the_end():
    pieces, outputs = scripted("块块".encode(), max_tokens=4)
    assert "".join(pieces) == "块\ufffd"
    assert outputs[-1].finish_reason == "length"


def test_a_stop_string_ends_the_text_before_itself():
    pieces, outputs = scripted(b"one two STOP three", stop=("STOP",))
    assert "".join(pieces) == "one two "
    assert outputs[-1].finish_reason == "stop"
    assert len(outputs) == len("one two STOP")


def test_what_looked_like_a_stop_string_comes_out_later():
    pieces, _ = scripted([*b"STO STOX", 257], stop=("STOP",))
    assert "".join(pieces) == "STO STOX"
    assert "STO" not in pieces[:3]


def test_what_is_held_back_comes_out_at_the_end():
    pieces, _ = scripted(b"abST", stop=("STOP",), max_tokens=4)
    assert "".join(pieces) == "abST"


def test_min_tokens_holds_for_stop_strings():
    pieces, _ = scripted([*b"STOP go STOP", 257], stop=("STOP",), min_tokens=6)
    assert "".join(pieces) == "STOP go "


@pytest.mark.parametrize(("min_tokens", "text"), [(5, "ab"), (6, "abSTOP")])
def test_a_stop_string_may_begin_but_not_end_within_min_tokens(min_tokens, text):
    """As for stop tokens: the first min_tokens outputs end nothing, the next one may."""
    pieces, _ = scripted([*b"abSTOP", 257], stop=("STOP",), min_tokens=min_tokens)
    assert "".join(pieces) == text


def test_a_stop_token_of_the_request_has_no_text():
    pieces, outputs = scripted(b"abcdef", stop_token_ids=(ord("d"),))
    assert "".join(pieces) == "abc"
    assert outputs[-1].finish_reason == "stop"


def test_a_stop_string_in_the_last_allowed_token_counts_as_stop():
    pieces, outputs = scripted(b"abSTOP", stop=("STOP",), max_tokens=6)
    assert "".join(pieces) == "ab"
    assert outputs[-1].finish_reason == "stop"


@pytest.mark.parametrize(
    ("prompt", "params", "words"),
    [
        ("", {}, "the prompt is empty"),
        ([], {}, "the prompt is empty"),
        ([1, 99999], {}, "prompt token 99999 is not a token id: give ints, 0 to 299"),
        ([1, -1], {}, "prompt token -1"),
        ([1, 2.0], {}, "prompt token 2.0"),
        ([1] * 500, {}, "max_model_len is 500"),
    ],
)
def test_a_refused_prompt_changes_nothing(prompt, params, words):
    config = EngineConfig.of(num_blocks=64, max_model_len=500)
    engine = Engine(config, Scripted(b"abc"), tokenizer=Bytes(), vocab_size=300)
    with pytest.raises(ValueError, match=words):
        engine.add_request("a", prompt, SamplingParams(**params))
    assert not engine.requests and not engine.times and not engine.has_unfinished_requests()
    engine.check()


def test_text_needs_a_tokenizer():
    engine = Engine(EngineConfig.of(num_blocks=64, max_model_len=500), Scripted(b"abc"))
    with pytest.raises(ValueError, match="no tokenizer"):
        engine.add_request("a", "text")
    with pytest.raises(ValueError, match="use stop_token_ids"):
        engine.add_request("a", [1], SamplingParams(stop="x"))


def test_an_executor_that_fails_loses_nothing(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("A", 6, 5)
    engine.add("B", 3, 5)
    engine.step()

    def fail(plan):
        raise OSError("the card fell off the bus")

    engine.executor.during = fail
    with pytest.raises(OSError, match="fell off"):
        engine.engine.step()
    engine.engine.check()
    assert [r.request_id for r in engine.engine.scheduler.waiting] == ["A", "B"]
    engine.executor.during = None
    engine.run()
    for name, length in (("A", 6), ("B", 3)):
        alone = lab(block_size=4, num_blocks=8)
        alone.add(name, length, 5)
        alone.run()
        assert engine.outputs[name] == alone.outputs[name]
    engine.assert_clean()
    engine.step()
    assert len(engine.executor.rows) == 0


def test_an_executor_that_forgets_a_token_loses_nothing(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("A", 6, 5)
    engine.executor._choose = lambda request_id, spec, digest: 7
    right, engine.executor.execute = engine.executor.execute, None
    engine.executor.execute = lambda plan: replace(right(plan), token_ids={})
    with pytest.raises(RuntimeError, match="no token for request 'A'"):
        engine.engine.step()
    engine.engine.check()
    engine.executor.execute = right
    engine.run()
    assert engine.outputs["A"] == [7] * 5
    engine.assert_clean()


def test_an_abort_counts_although_the_step_fails(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("A", 6, 5)

    def fail(plan):
        engine.engine.abort("A")
        raise OSError("gone")

    engine.executor.during = fail
    with pytest.raises(OSError, match="gone"):
        engine.engine.step()
    engine.assert_clean()


def test_check_finds_a_request_in_the_wrong_queue(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("A", 6, 5)
    engine.step()
    request = engine.engine.scheduler.running.pop()
    with pytest.raises(InvariantError, match="do not hold each request once"):
        engine.engine.check()
    request.move_to(RequestStatus.PREEMPTED)
    engine.engine.scheduler.waiting.append(request)
    with pytest.raises(InvariantError, match="running requests and block tables differ"):
        engine.engine.check()


def test_a_scheduler_that_plans_nothing_is_stopped(lab):
    parts = replace(Components(), admission=lambda config: lambda needed, free: False)
    engine = lab(components=parts, block_size=4, num_blocks=8)
    engine.add("A", 4, 3)
    engine.run()  # nothing runs, so the gate is not asked
    engine.assert_clean()

    class Lazy(type(engine.engine.scheduler)):
        def _schedule_waiting(self, plan):
            return

    lazy = lab(components=replace(Components(), scheduler=Lazy), block_size=4, num_blocks=8)
    lazy.add("A", 4, 3)
    with pytest.raises(RuntimeError, match="planned nothing although 0 requests run and 1 wait"):
        lazy.step()


def test_a_victim_that_was_planned_already_gives_everything_back(lab):
    """The first admitted is the victim: its item and its budget return to the step."""
    parts = replace(Components(), victim=lambda running, needy: running[0])
    engine = lab(components=parts, block_size=4, num_blocks=4, max_num_batched_tokens=16)
    engine.add("A", 5, 9)
    engine.add("B", 7, 9)
    while not engine.engine.scheduler.preempted:
        engine.step()
    assert set(engine.work(-1)) == {"B"}
    engine.run()
    for name, length in (("A", 5), ("B", 7)):
        alone = lab(block_size=4, num_blocks=4)
        alone.add(name, length, 9)
        alone.run()
        assert engine.outputs[name] == alone.outputs[name]
    engine.assert_clean()


def test_a_replaced_victim_policy_is_what_runs(lab):
    asked = []

    def victim(running, needy):
        asked.append((len(running), needy.request_id))
        return last_admitted(running, needy)

    engine = lab(components=replace(Components(), victim=victim), block_size=4, num_blocks=4)
    engine.add("A", 7, 9)
    engine.add("B", 7, 9)
    engine.run()
    assert asked == [(2, "A")]


def test_places_for_later_parts_refuse_to_be_filled():
    for name in ("draft",):
        with pytest.raises(ValueError, match=f"{name} cannot be replaced"):
            replace(Components(), **{name: object()})


def test_only_legal_transitions():
    request = Request("a", [1], SamplingParams())
    with pytest.raises(RuntimeError, match="cannot go from waiting to preempted"):
        request.move_to(RequestStatus.PREEMPTED)
    assert request.status is RequestStatus.WAITING
    request.move_to(RequestStatus.RUNNING)
    request.move_to(RequestStatus.PREEMPTED)
    request.move_to(RequestStatus.RUNNING)
    request.move_to(RequestStatus.FINISHED)
    for status in RequestStatus:
        with pytest.raises(RuntimeError, match="legal next states: none"):
            request.move_to(status)


def test_derived_seeds_depend_on_id_and_engine_seed_only():
    def seeds(engine_seed, names):
        config = EngineConfig.of(num_blocks=64, max_model_len=500, seed=engine_seed)
        engine = Engine(config, Scripted(b"abc"), clock=VirtualClock())
        for name in names:
            engine.add_request(name, [1])
        return {name: engine.requests[name].seed for name in names}

    assert seeds(0, "ab") == {k: v for k, v in seeds(0, "bca").items() if k in "ab"}
    assert seeds(0, "a") != seeds(1, "a")
    assert len(set(seeds(0, "abc").values())) == 3


class Watcher:
    """An observer that calls a function at one moment."""

    def __init__(self, moment, call):
        self.moment, self.call = moment, call

    def event(self, kind, request_id, detail=""):
        if self.moment == kind:
            self.call(request_id)

    def planned(self, engine, plan):
        if self.moment == "planned":
            self.call(plan)

    def committed(self, engine, plan, result, outputs):
        if self.moment == "committed":
            self.call(outputs)


def pressed(lab):
    """Three requests in a pool that is too small for them."""
    engine = lab(block_size=4, num_blocks=6, max_num_batched_tokens=8)
    for name, prompt, outputs in (("A", 7, 12), ("B", 7, 12), ("C", 3, 8)):
        engine.add(name, prompt, outputs)
    return engine


def solo_outputs(lab):
    alone = {}
    for name, prompt, outputs in (("A", 7, 12), ("B", 7, 12), ("C", 3, 8)):
        one = lab(block_size=4, num_blocks=6)
        one.add(name, prompt, outputs)
        one.run()
        alone[name] = one.outputs[name]
    return alone


@pytest.mark.parametrize("moment", ["planned", "preempted"])
def test_an_observer_that_fails_at_any_step_loses_nothing(lab, moment):
    """Ctrl-C in the live view, say. Rows that the executor never got must not be taken for sent."""
    alone, failures = solo_outputs(lab), 0
    for fatal in range(40):
        engine, calls = pressed(lab), []

        def interrupt(_, calls=calls, fatal=fatal):
            calls.append(1)
            if len(calls) == fatal + 1:
                raise KeyboardInterrupt

        engine.engine.observers.append(Watcher(moment, interrupt))
        while engine.engine.has_unfinished_requests():
            try:
                engine.step()
            except KeyboardInterrupt:
                failures += 1
                engine.engine.check()
        assert engine.outputs == alone
        engine.assert_clean()
    assert failures > 1


def test_a_policy_that_fails_loses_nothing(lab):
    alone = solo_outputs(lab)
    for fatal in range(3):
        calls = []

        def victim(running, needy, calls=calls, fatal=fatal):
            calls.append(1)
            if len(calls) == fatal + 1:
                raise OSError("no opinion")
            return running[-1]

        engine = lab(
            components=replace(Components(), victim=victim),
            block_size=4,
            num_blocks=6,
            max_num_batched_tokens=8,
        )
        for name, prompt, outputs in (("A", 7, 12), ("B", 7, 12), ("C", 3, 8)):
            engine.add(name, prompt, outputs)
        while engine.engine.has_unfinished_requests():
            try:
                engine.step()
            except OSError:
                engine.engine.check()
        assert len(calls) > fatal
        assert engine.outputs == alone
        engine.assert_clean()


def test_a_victim_that_does_not_run_is_named(lab):
    stranger = Request("stranger", [1], SamplingParams())
    engine = lab(
        components=replace(Components(), victim=lambda running, needy: stranger),
        block_size=4,
        num_blocks=4,
    )
    engine.add("A", 7, 9)
    engine.add("B", 7, 9)
    with pytest.raises(ValueError, match="chose Request\\('stranger'"):
        engine.run()
    engine.engine.abort(["A", "B"])
    engine.assert_clean()


@pytest.mark.parametrize("moment", ["planned", "finished", "aborted", "committed"])
def test_an_abort_from_a_callback_waits_for_the_end_of_the_step(lab, moment):
    engine = pressed(lab)
    engine.engine.observers.append(Watcher(moment, lambda _: engine.engine.abort(["A", "B", "C"])))
    if moment == "aborted":
        engine.step()
        engine.engine.abort("C")
    engine.run(limit=60)
    engine.assert_clean()
    alone = solo_outputs(lab)
    assert all(alone[name][: len(got)] == got for name, got in engine.outputs.items())


def test_a_tokenizer_that_fails_leaves_no_dead_request():
    class Broken(Bytes):
        def decode_bytes(self, token_ids):
            raise KeyError("no such token")

    engine = Engine(
        EngineConfig.of(num_blocks=64, max_model_len=500), Scripted(b"ab"), tokenizer=Broken()
    )
    for name in "AB":
        engine.add_request(name, [1], SamplingParams(max_tokens=1))
    with pytest.raises(KeyError, match="no such token"):
        engine.step()
    assert not engine.has_unfinished_requests() and not engine.times and not engine._live.streams
    engine.check()


def test_a_scheduler_that_only_preempts_is_stopped(lab):
    class Fickle(Scheduler):
        def _schedule_waiting(self, plan):
            super()._schedule_waiting(plan)
            while self.running:
                self._preempt(self.running[-1])
            plan.items.clear()

    engine = lab(components=replace(Components(), scheduler=Fickle), block_size=4, num_blocks=8)
    engine.add("A", 4, 3)
    with pytest.raises(RuntimeError, match="it would spin for ever"):
        engine.run(limit=5)


def test_a_commit_that_returns_the_running_list_itself_drops_nobody(lab):
    class Shares(Scheduler):
        def commit(self, plan, result):
            changed = super().commit(plan, result)
            return changed if len(changed) != len(self.running) else self.running

    engine = lab(components=replace(Components(), scheduler=Shares), block_size=4, num_blocks=20)
    for name in "AB":
        engine.add(name, 4, 3)
    engine.run()
    assert [len(engine.outputs[name]) for name in "AB"] == [3, 3]


def test_the_budget_of_a_victim_goes_to_the_next(lab):
    """C's chunk is 2 only because A's token, planned and taken back, is in the budget again."""
    parts = replace(Components(), victim=lambda running, needy: running[0])
    engine = lab(components=parts, block_size=2, num_blocks=9, max_num_batched_tokens=3)
    for name, prompt, outputs in (("A", 5, 12), ("B", 2, 11), ("C", 10, 3)):
        engine.add(name, prompt, outputs)
    while not engine.engine.scheduler.preempted:
        engine.step()
    assert engine.work(-1) == {"B": (4, 1), "C": (3, 2)}


def test_two_stop_strings_cut_before_the_first():
    pieces, _ = scripted(b"say END or STOP now", stop=("STOP", "END"))
    assert "".join(pieces) == "say "
    pieces, _ = scripted([*b"a ENX b STOX", 257], stop=("STOP", "END"))
    assert "".join(pieces) == "a ENX b STOX"
    pieces, _ = scripted(b"abEND", stop=("STOP", "END"))
    assert "".join(pieces) == "ab"


def test_arrival_and_queue_times_and_nothing_kept(lab):
    engine = lab(block_size=4, num_blocks=8, max_num_seqs=1)
    engine.add("A", 4, 3)
    engine.engine.add_request("B", [5], SamplingParams(max_tokens=1), arrival_time=-1.0)
    engine.outputs["B"] = []
    last = {}
    while engine.engine.has_unfinished_requests():
        last |= {output.request_id: output for output in engine.step() if output.finished}
    assert last["A"].times.queue_time == 0
    assert last["B"].times.arrival == -1.0
    assert last["B"].times.queue_time == pytest.approx(1.0 + last["A"].times.last_token)
    assert not engine.engine._live.streams and not engine.engine.times


def test_check_finds_a_waiting_request_that_says_it_runs(lab):
    engine = lab(block_size=4, num_blocks=8, max_num_seqs=1)
    engine.add("A", 4, 3)
    engine.add("B", 4, 3)
    engine.step()
    engine.engine.requests["B"].status = RequestStatus.RUNNING
    with pytest.raises(InvariantError, match="waiting holds another status"):
        engine.engine.check()
