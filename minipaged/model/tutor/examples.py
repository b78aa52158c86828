"""Training examples of the tutor: pairs as token ids, in padded batches of similar length."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from minipaged.model.tokenizer import END, TutorTokenizer
from minipaged.model.tutor.corpus import Pair
from minipaged.model.tutor.strays import strays


class Example(NamedTuple):
    """A whole exchange as ids; the answer and its end token start at `answer_start`."""

    token_ids: list[int]
    answer_start: int


class Batch(NamedTuple):
    """B examples of like length, padded at the end to L inputs each; A answer tokens in all.

    token_ids, positions: [B * L] int64. rows: [A] int64, the inputs whose next token belongs to an
    answer. targets: [A] int64, those next tokens.
    """

    size: int
    token_ids: Tensor
    positions: Tensor
    rows: Tensor
    targets: Tensor


_TOKENIZER = TutorTokenizer()


def encode(question: str, answer: str) -> Example:
    """The prompt exactly as generate() feeds it, then the answer and the end token."""
    prompt = _TOKENIZER.prompt_ids(question)
    return Example([*prompt, *_TOKENIZER.encode(answer), END], len(prompt))


def careless(question: str, rng: random.Random) -> str:
    """The question as somebody in a hurry types it: no capitals, no question mark, or neither."""
    text = question.lower() if rng.random() < 0.7 else question
    return text.rstrip("?!.？！。 ") if rng.random() < 0.7 else text


def epochs(
    pairs: Sequence[Pair],
    batch_size: int,
    careless_share: float,
    seed: int,
    stray_share: float = 0.0,
) -> Iterator[Batch]:
    """All pairs in shuffled batches, epoch after epoch without end, the same for the same seed.

    careless_share: the share of questions that are fed as `careless` makes them.
    stray_share: how many new `strays` an epoch brings, as a share of the pairs.
    """
    rng = random.Random(seed)
    while True:
        asked = [*pairs, *strays(pairs, round(stray_share * len(pairs)), rng)]
        examples = [_example(pair, careless_share, rng) for pair in asked]
        # The jitter lets neighbours in length meet in ever new batches.
        examples.sort(key=lambda example: len(example.token_ids) + rng.uniform(-16, 16))
        starts = list(range(0, len(examples), batch_size))
        rng.shuffle(starts)
        for start in starts:
            yield collate(examples[start : start + batch_size])


def _example(pair: Pair, careless_share: float, rng: random.Random) -> Example:
    hurried = rng.random() < careless_share
    return encode(careless(pair.question, rng) if hurried else pair.question, pair.answer)


def collate(examples: Sequence[Example]) -> Batch:
    """One padded batch of the examples. The last token is only ever a target, so L is one less."""
    length = max(len(example.token_ids) for example in examples) - 1
    flat: list[int] = []
    rows: list[int] = []
    targets: list[int] = []
    for number, (ids, start) in enumerate(examples):
        inputs = ids[:-1]
        rows += range(number * length + start - 1, number * length + len(inputs))
        targets += ids[start:]
        flat += inputs + [END] * (length - len(inputs))
    return Batch(
        size=len(examples),
        token_ids=torch.tensor(flat),
        positions=torch.arange(length).repeat(len(examples)),
        rows=torch.tensor(rows),
        targets=torch.tensor(targets),
    )
