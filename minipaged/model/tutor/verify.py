"""Does a model give every answer of the corpus, and with how much to spare?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from minipaged.model.llama import Attend, Llama
from minipaged.model.tutor.corpus import Pair
from minipaged.model.tutor.examples import Batch, collate, encode


class Report(NamedTuple):
    """wrong: pairs not reproduced. smallest_margin: in logits, over all answer positions.

    tightest: the pair that holds the smallest margin.
    """

    num_pairs: int
    wrong: list[Pair]
    smallest_margin: float
    tightest: Pair


def dense_causal(size: int) -> Attend:
    """Plain causal attention over `size` rows of equal length that lie flat one after another."""

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        group = q.shape[1] // k.shape[1]
        q, k, v = (x.view(size, -1, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(0, 1)

    return attend


def answer_logits(model: Llama, batch: Batch) -> Tensor:
    """Logits [A, vocab] float32 before every answer token of the batch."""
    hidden = model(batch.token_ids, batch.positions, dense_causal(batch.size))
    return model.logits(hidden[batch.rows])


def margins(logits: Tensor, targets: Tensor) -> Tensor:
    """By how many logits each target [A] leads its best rival [A] float32; below 0 it loses."""
    column = targets.unsqueeze(1)
    rival = logits.scatter(1, column, float("-inf")).amax(1)
    return logits.gather(1, column).squeeze(1) - rival


@torch.inference_mode()
def verify(model: Llama, pairs: Sequence[Pair]) -> Report:
    """Check all pairs with the right answer so far as input.

    If the likeliest next token is right at every position, greedy decoding, which then feeds
    itself the same tokens, gives the answer exactly; and the other way round.
    """
    wrong: list[Pair] = []
    smallest, tightest = float("inf"), pairs[0]
    for pair in pairs:
        batch = collate([encode(pair.question, pair.answer)])
        lead = margins(answer_logits(model, batch), batch.targets).min().item()
        if lead <= 0:
            wrong.append(pair)
        if lead < smallest:
            smallest, tightest = lead, pair
    return Report(len(pairs), wrong, smallest, tightest)
