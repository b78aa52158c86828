"""Several samples of one prompt, the best of them, and salts, through LLM.generate."""

from __future__ import annotations

import dataclasses

import pytest

from minipaged import LLM, SamplingParams

QUESTION = "What is a block table?"
# the tutor is so sure of itself that it takes a high temperature to get different answers
WARM = {"temperature": 4.0, "seed": 5, "max_tokens": 40}


@pytest.fixture(scope="module")
def llm():
    return LLM("tutor", block_size=16, num_blocks=300)


def assert_clean(llm):
    llm.engine.check()
    assert not llm.engine.has_unfinished_requests()
    assert llm.engine.manager.pool.num_free == llm.engine.manager.pool.num_blocks


def fields(completion):
    """What does not depend on the batch; log-probabilities do in their last bits."""
    return completion.prompt, completion.text, completion.token_ids, completion.finish_reason


def test_samples_come_in_the_order_of_their_index(llm):
    (answer,) = llm.generate(QUESTION, SamplingParams(n=4, logprobs=1, **WARM))
    (alone,) = llm.generate(QUESTION, SamplingParams(logprobs=1, **WARM))
    assert fields(answer) == fields(answer.samples[0]) == fields(alone)
    assert answer.logprobs == answer.samples[0].logprobs
    assert len({tuple(sample.token_ids) for sample in answer.samples}) == 4
    for sample in answer.samples:
        assert len(sample.logprobs) == len(sample.token_ids)
        assert [entry.token_id for entry in sample.logprobs] == sample.token_ids
        visible = sample.token_ids[:-1] if sample.finish_reason == "stop" else sample.token_ids
        text = bytes(token for token in visible if token < 256).decode(errors="replace")
        assert sample.text == text
        assert sample.times.num_outputs == len(sample.token_ids)
    fewer = llm.generate(QUESTION, SamplingParams(n=2, logprobs=1, **WARM))[0].samples
    assert list(map(fields, fewer)) == list(map(fields, answer.samples[:2]))
    assert_clean(llm)


def test_one_sample_is_a_list_of_one(llm):
    (answer,) = llm.generate(QUESTION)
    assert answer.samples == [answer]
    assert dataclasses.asdict(answer)["samples"][0]["text"] == answer.text
    assert_clean(llm)


def test_prompts_with_different_numbers_of_samples_run_together(llm):
    params = [SamplingParams(n=n, **WARM) for n in (1, 3, 2)]
    answers = llm.generate([QUESTION, "What is MQA?", "Tell me a joke."], params)
    assert [len(answer.samples) for answer in answers] == [1, 3, 2]
    for answer, one in zip(answers, params, strict=True):
        (again,) = llm.generate(answer.prompt, one)
        assert list(map(fields, again.samples)) == list(map(fields, answer.samples))
    assert_clean(llm)


def test_samples_of_unequal_length_are_all_waited_for(llm):
    params = SamplingParams(n=6, temperature=3.0, seed=1, max_tokens=120)
    (answer,) = llm.generate("What is MQA?", params)
    lengths = [len(sample.token_ids) for sample in answer.samples]
    assert len(set(lengths)) > 1 and all(sample.finish_reason for sample in answer.samples)
    assert_clean(llm)


def test_a_sample_that_is_aborted_meanwhile_is_named(llm):
    right = llm.engine.executor.execute
    calls = []

    def abort(plan):
        calls.append(plan)
        if len(calls) == 4:
            llm.engine.abort(list(llm.engine.requests))
        return right(plan)

    llm.engine.executor.execute = abort
    with pytest.raises(RuntimeError, match="was aborted"):
        llm.generate(QUESTION, SamplingParams(n=3, **WARM))
    llm.engine.executor.execute = right
    assert_clean(llm)


@pytest.mark.parametrize("params", [SamplingParams(n=2), SamplingParams(best_of=3)], ids=str)
def test_a_stream_has_one_sample(llm, params):
    with pytest.raises(ValueError, match=r"a stream gives one answer.*use generate") as caught:
        llm.stream(QUESTION, params)
    assert "\n" not in str(caught.value)
    assert_clean(llm)


def mean(completion):
    return sum(entry.logprob for entry in completion.logprobs) / len(completion.logprobs)


@pytest.mark.parametrize(("n", "best_of"), [(1, 5), (3, 5), (5, 5)])
def test_best_of_gives_the_likeliest_per_token_first(llm, n, best_of):
    (every,) = llm.generate(QUESTION, SamplingParams(n=best_of, logprobs=0, **WARM))
    (best,) = llm.generate(QUESTION, SamplingParams(n=n, best_of=best_of, **WARM))
    right = sorted(every.samples, key=mean, reverse=True)[:n]
    assert [sample.token_ids for sample in best.samples] == [s.token_ids for s in right]
    assert best.token_ids == right[0].token_ids and best.text == right[0].text
    assert best.times is not None
    assert best.logprobs == [] and all(sample.logprobs == [] for sample in best.samples)
    (told,) = llm.generate(QUESTION, SamplingParams(n=n, best_of=best_of, logprobs=2, **WARM))
    assert all(len(entry.top) == 2 for entry in told.logprobs)
    assert told.token_ids == best.token_ids
    assert_clean(llm)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 3, "best_of": 2}, "best_of is 2, but it must be an integer from 3 to 64"),
        ({"best_of": 65}, "best_of is 65"),
        ({"best_of": True}, "best_of is True"),
        ({"best_of": 2.0}, "best_of is 2.0"),
    ],
)
def test_what_best_of_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        SamplingParams(**options)


def test_best_of_takes_places_and_is_for_generate_alone():
    llm = LLM("tutor", num_blocks=40, max_num_seqs=3)
    with pytest.raises(ValueError, match=r"best_of is 4, but max_num_seqs is 3"):
        llm.generate(QUESTION, SamplingParams(best_of=4))
    with pytest.raises(ValueError, match=r"prompt 1: n is 4, but max_num_seqs is 3"):
        llm.generate([QUESTION] * 2, [SamplingParams(), SamplingParams(n=4)])
    with pytest.raises(ValueError, match=r"best_of is 2.*use LLM.generate"):
        llm.engine.add_request("a", QUESTION, SamplingParams(best_of=2))
    assert_clean(llm)


def test_salts_keep_prompts_apart_in_the_cache():
    llm = LLM("tutor", block_size=4, num_blocks=200, enable_prefix_caching=True)
    first = llm.generate(QUESTION, cache_salt="a")[0].text
    hits = llm.engine.metrics.prefix_cache_hits_total
    assert llm.generate(QUESTION, cache_salt="b")[0].text == first
    assert llm.engine.metrics.prefix_cache_hits_total == hits
    assert llm.generate(QUESTION, cache_salt="a")[0].text == first
    assert llm.engine.metrics.prefix_cache_hits_total > hits
    hits = llm.engine.metrics.prefix_cache_hits_total
    llm.generate([QUESTION] * 2, cache_salt=["c", "d"])
    assert llm.engine.metrics.prefix_cache_hits_total == hits
    assert "".join(llm.stream(QUESTION, cache_salt="c")) == first
    assert llm.engine.metrics.prefix_cache_hits_total > hits


@pytest.mark.parametrize(
    ("salt", "words"),
    [
        (None, "cache_salt is None"),
        (7, "cache_salt is 7"),
        (["a"], "1 cache salts for 2 prompts"),
        (["a", 7], "cache_salt is 7"),
    ],
)
def test_what_is_no_salt_is_refused_before_anything_runs(llm, salt, words):
    with pytest.raises(ValueError, match=words):
        llm.generate([QUESTION] * 2, cache_salt=salt)
    assert_clean(llm)


def test_samples_interrupted_leave_nothing(llm, monkeypatch):
    calls = []

    def interrupt(plan):
        calls.append(plan)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return right(plan)

    right = llm.engine.executor.execute
    monkeypatch.setattr(llm.engine.executor, "execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        llm.generate(QUESTION, SamplingParams(n=3, best_of=4, **WARM))
    monkeypatch.undo()
    assert_clean(llm)
