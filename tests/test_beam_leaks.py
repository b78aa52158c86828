"""Nothing is left of a beam search that was interrupted; and the two calls that beams live by."""

from __future__ import annotations

import pytest
from test_beam_engine import assert_clean, engine_of, finish, right, told

from minipaged import LLM, BeamSearchParams, SamplingParams
from minipaged.beam import beam_search
from minipaged.exec.sim_exec import SimExecutor

WIDE = BeamSearchParams(beam_width=4, max_tokens=12, ignore_eos=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("call", ["execute", "fork", "exchange_last_token", "abort"])
@pytest.mark.parametrize("number", [0, 1, 7])
def test_an_interruption_anywhere_leaves_nothing(call, number, error):
    engine = engine_of(block_size=4, num_blocks=40)
    engine.add_request("mine", [1, 2, 3], SamplingParams(max_tokens=30, ignore_eos=True))
    owner = engine.executor if call == "execute" else engine
    inner, calls = getattr(owner, call), []

    def interrupt(*args, **options):
        calls.append(args)
        if len(calls) == number + 1:
            raise error
        return inner(*args, **options)

    setattr(owner, call, interrupt)
    with pytest.raises(error):
        beam_search(engine, [[1, 2], [3]], WIDE)
    assert list(engine.requests) == ["mine"]
    finish(engine)


def test_an_interruption_right_after_a_fork_leaves_nothing():
    engine = engine_of(block_size=4, num_blocks=40)
    inner = engine.fork

    def interrupt(*args, **options):
        inner(*args, **options)
        raise KeyboardInterrupt

    engine.fork = interrupt
    with pytest.raises(KeyboardInterrupt):
        beam_search(engine, [[1, 2], [3]], WIDE)
    assert_clean(engine)


def test_an_abort_from_outside_is_named():
    engine = engine_of(block_size=4, num_blocks=40)

    def abort(plan):
        if plan.step == 5:
            engine.abort(list(engine.requests)[1:2])

    engine.executor.during = abort
    with pytest.raises(RuntimeError, match=r"beam .* was aborted"):
        beam_search(engine, [[1, 2]], WIDE)
    assert_clean(engine)


def test_an_executor_without_log_probabilities_is_named():
    engine = engine_of(block_size=4, num_blocks=40)
    engine.executor._sample = SimExecutor._sample.__get__(engine.executor)
    with pytest.raises(RuntimeError, match="reports no log-probabilities"):
        beam_search(engine, [[1, 2]], WIDE)
    assert_clean(engine)


def test_an_interrupted_search_of_an_llm_leaves_nothing():
    llm = LLM("tutor", block_size=16, num_blocks=100)
    calls, right_step = [], llm.engine.executor.execute

    def interrupt(plan):
        calls.append(plan)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return right_step(plan)

    llm.engine.executor.execute = interrupt
    with pytest.raises(KeyboardInterrupt):
        llm.beam_search(["What is MQA?", "Tell me a joke."], WIDE)
    assert_clean(llm.engine)


@pytest.mark.parametrize(
    ("prompts", "params", "words"),
    [
        (None, None, "prompts is None"),
        (["x", " "], None, "prompt 1: the prompt is empty"),
        ("x", SamplingParams(), "params is SamplingParams"),
        ("x", BeamSearchParams(max_tokens=2000), r"needs \d+ blocks \(4 beams of \d+\)"),
    ],
)
def test_what_an_llm_refuses(prompts, params, words):
    llm = LLM("tutor", block_size=16, num_blocks=100)
    with pytest.raises(ValueError, match=words) as caught:
        llm.beam_search(prompts, params)
    assert "\n" not in str(caught.value)
    assert_clean(llm.engine)


def test_no_text_is_made_of_beams_and_other_requests_keep_theirs():
    llm = LLM("tutor", block_size=16, num_blocks=200)
    expected = llm.generate("What is MQA?")[0].text
    stream = llm.stream("What is MQA?")
    text = next(stream)
    fed, push = [], llm.engine._text_of
    llm.engine._text_of = lambda request, new: (fed.append(push(request, new)), fed[-1])[1]
    llm.beam_search("Tell me a joke.", BeamSearchParams(max_tokens=20))
    assert text + "".join(stream) == expected
    assert len("".join(fed)) < len(expected)


def running(**options):
    """An engine between two steps: request "a" has the tokens 1 to 6 and one output."""
    engine = engine_of(**{"block_size": 4, "num_blocks": 40, **options})
    engine.add_request("a", [1, 2, 3, 4, 5, 6], SamplingParams(max_tokens=5, ignore_eos=True))
    engine.step()
    return engine


def test_the_last_token_can_be_exchanged_until_it_is_computed():
    engine = running()
    engine.exchange_last_token("a", 9)
    request = engine.requests["a"]
    assert request.token_ids == [1, 2, 3, 4, 5, 6, 9]
    engine.step()
    after = right([1, 2, 3, 4, 5, 6, 9], BeamSearchParams(1, 1, ignore_eos=True))
    assert request.token_ids[7:] == after[0][0]
    finish(engine)


@pytest.mark.parametrize("caching", ["off", "hash", "radix"])
@pytest.mark.parametrize("prompt", [[3], [1, 2, 3], [1, 2, 3, 4]])
@pytest.mark.parametrize("twins", [0, 1])
def test_a_token_taken_back_comes_again(caching, prompt, twins):
    engine = engine_of(block_size=4, num_blocks=40, enable_prefix_caching=caching)
    engine.add_request("a", prompt, SamplingParams(max_tokens=9, ignore_eos=True))
    engine.step()
    if twins:
        engine.fork("a", "b")
    tokens = {name: list(engine.requests[name].token_ids) for name in engine.requests}
    while engine.requests:
        outputs = engine.step()
        for output in outputs:
            tokens[output.request_id] += output.new_token_ids
            if output.request_id in engine.requests and len(tokens[output.request_id]) % 3:
                before = list(engine.requests[output.request_id].token_ids)
                assert engine.take_back_last_token(output.request_id) == before[-1]
                assert engine.times[output.request_id].num_outputs == len(before) - 1 - (
                    engine.requests[output.request_id].num_prompt_tokens
                )
                (again,) = (o for o in engine.step() if o.request_id == output.request_id)
                assert again.new_token_ids == before[-1:]
                break
    assert_clean(engine)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e.exchange_last_token("b", 1), "'b' .* no live request"),
        (lambda e: e.exchange_last_token("a", 999), "token 999 is not a token id"),
        (lambda e: e.take_back_last_token("b"), "'b' .* no live request"),
        (lambda e: e.take_back_last_token("c"), "'c' .* has no output"),
    ],
)
def test_what_cannot_be_exchanged_or_taken_back(call, words):
    engine = running()
    engine.fork("a", "c")
    before = {name: list(one.token_ids) for name, one in engine.requests.items()}
    with pytest.raises(ValueError, match=words):
        call(engine)
    assert before == {name: one.token_ids for name, one in engine.requests.items()}
    finish(engine)


def test_neither_is_possible_during_a_step():
    engine = running()
    errors = []

    def during(plan):
        for call in (lambda: engine.exchange_last_token("a", 1), engine_take):
            with pytest.raises(ValueError, match="a step is under way") as caught:
                call()
            errors.append(caught)

    def engine_take():
        return engine.take_back_last_token("a")

    engine.executor.during = during
    engine.step()
    assert len(errors) == 2


def test_what_has_become_text_cannot_be_exchanged_or_taken_back():
    llm = LLM("tutor", num_blocks=40)
    llm.engine.add_request("a", "What is MQA?", SamplingParams(max_tokens=4))
    llm.engine.step()
    for call in (lambda: llm.engine.exchange_last_token("a", 65), llm_take(llm)):
        with pytest.raises(ValueError, match=r"its text is given out.*with_text=False"):
            call()
    finish(llm.engine)


def llm_take(llm):
    return lambda: llm.engine.take_back_last_token("a")


def test_told_and_right_are_not_empty():
    engine = engine_of(block_size=4, num_blocks=40)
    (beams,) = beam_search(engine, [[1, 2]], WIDE)
    assert told(beams) == right([1, 2], WIDE) and len(beams) == 4
