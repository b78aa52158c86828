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
from minipaged.sched.policy import last_admitted


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
    for name in ("prefix_cache", "draft"):
        with pytest.raises(ValueError, match=f"{name} cannot be replaced"):
            replace(Components(), **{name: object()})
    with pytest.raises(ValueError, match="recompute only"):
        replace(Components(), preemption=lambda request, blocks: "swap")


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
