"""The tutor knows its corpus by heart, refuses the rest, and its files are what they should be."""

from __future__ import annotations

import json

import pytest

from minipaged import LLM, SamplingParams
from minipaged.llm import TUTOR
from minipaged.model.loader import load_llama
from minipaged.model.tutor.corpus import REFUSAL, known, nearest, pairs


def is_chinese(text):
    return any("\u4e00" <= char <= "\u9fff" for char in text)


def test_every_pair_is_reproduced_exactly_and_with_a_wide_margin():
    """Rounding in another order of sums moves logits by about 1e-4; the margin is far wider, so
    the answers depend on neither batch nor block size."""
    asked = pairs()
    llm = LLM("tutor", max_num_seqs=64, max_num_batched_tokens=2048)
    params = SamplingParams(max_tokens=500, logprobs=2)
    answers = llm.generate([pair.question for pair in asked], params)
    wrong = [p.question for p, a in zip(asked, answers, strict=True) if a.text != p.answer]
    assert wrong == []
    assert {a.finish_reason for a in answers} == {"stop"}
    leads = [e.top[0][1] - e.top[1][1] for answer in answers for e in answer.logprobs]
    assert min(leads) > 4.0  # a difference of logprobs is one of logits


def test_the_corpus_is_what_it_claims_to_be():
    answers = {p.answer: p for p in pairs()}
    subject = [p for p in answers.values() if p.topic != REFUSAL]
    assert len([p for p in subject if not is_chinese(p.answer)]) >= 150
    assert len([p for p in subject if is_chinese(p.answer)]) >= 28
    refused = [p for p in pairs() if p.topic == REFUSAL]
    assert len(refused) >= 20
    several = [a for a in answers if len([p for p in pairs() if p.answer == a]) >= 2]
    assert len(several) > len(answers) * 0.7
    lengths = sorted(len(p.answer.encode()) for p in subject)
    assert lengths[0] < 30 and lengths[-1] > 280


def test_the_weights_are_small_and_about_a_million():
    size = (TUTOR / "model.safetensors").stat().st_size
    assert size <= 4_000_000
    count = sum(p.numel() for p in load_llama(TUTOR).parameters())
    assert 0.8e6 < count < 1.3e6
    assert json.loads((TUTOR / "config.json").read_text())["model_type"] == "llama"


@pytest.mark.parametrize(
    ("question", "near"),
    [
        ("explain block tables to me please", "block table"),
        ("why was my request preempted", "preempt"),
        ("how does the kv cache grow", "KV cache"),
    ],
)
def test_an_unknown_question_has_known_neighbours(question, near):
    assert not known(question)
    assert any(near in other for other in nearest(question))


def test_known_ignores_punctuation_and_lower_case():
    assert known("  what is a block table")
    assert not known("WHAT IS A BLOCK TABLE?")  # other bytes, which the tutor never saw
    assert known("什么是块表")
    assert LLM("tutor").nearest_known("what is a block table") == []


UNKNOWN = [
    "What is the meaning of life?",
    "Explain flash attention",
    "Who is the president?",
    "Hello",
    "What is Kubernetes?",
    "How tall is Mount Everest?",
    "asdf qwer",
    "What is a transformer?",
    "How do I cook rice?",
    "今天是星期几？",
]


def test_most_questions_that_it_was_not_taught_are_refused():
    """None of these stands in the corpus, and the trainer's strays were drawn without them."""
    refusals = {pair.answer for pair in pairs() if pair.topic == REFUSAL}
    assert not any(known(question) for question in UNKNOWN)
    answers = LLM("tutor").generate(UNKNOWN, SamplingParams(max_tokens=120))
    assert sum(answer.text in refusals for answer in answers) >= len(UNKNOWN) * 0.8
