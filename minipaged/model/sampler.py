"""From logits to tokens: greedy or by temperature, top-k and top-p, and log-probabilities.

One number in [0, 1) decides a sampled token: the token at which the cumulative probability, in
the order of token ids, passes it. That number is a hash of (seed, sample index, output index), so
a token depends neither on its neighbours in the batch nor on how often its request was preempted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from minipaged.config import MAX_LOGPROBS
from minipaged.plan import SampleSpec, TokenLogprobs


def sample(
    logits: Tensor, specs: Sequence[SampleSpec]
) -> tuple[list[int], list[TokenLogprobs | None]]:
    """One token per row of logits [N, V] float32, and its log-probabilities where asked for.

    Order as in vLLM: stop tokens are masked while min_tokens is not reached, then temperature,
    top_k, top_p. Greedy rows take the likeliest token, the lowest id of equals. Log-probabilities
    are those of the model, before any of that. logits are not changed.
    """
    _require_numbers(logits)
    allowed = _mask_stop_tokens(logits, specs)
    chosen = allowed.argmax(-1)
    random_rows = [i for i, spec in enumerate(specs) if spec.params.temperature > 0]
    if random_rows:
        index = torch.tensor(random_rows, device=logits.device)
        chosen[index] = _draw(allowed[index], [specs[i] for i in random_rows])
    return chosen.tolist(), _logprobs(logits, chosen, specs)


def _require_numbers(logits: Tensor) -> None:
    """FloatingPointError if a row's largest logit is NaN or infinite: no token follows from it."""
    finite = logits.amax(-1).isfinite()
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0])
        raise FloatingPointError(
            f"the logits of sample {row} are not finite: did attention return NaN, or read a slot "
            "that was never written?"
        )


def uniform(seed: int, sample_index: int, output_index: int) -> float:
    """The number in [0, 1) behind one sampled token: 53 bits of SHA-256 over the three."""
    text = f"{seed},{sample_index},{output_index}"
    bits = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11
    return bits * 2.0**-53


def keep_top_k(logits: Tensor, top_k: Tensor) -> Tensor:
    """logits [N, V] with all but each row's top_k [N] (1 to V) likeliest set to -inf.

    Tokens as likely as the last one kept stay too, as in vLLM.
    """
    most = int(top_k.max())
    if most == logits.shape[1] and int(top_k.min()) == most:
        return logits
    least = _largest(logits, most).gather(1, top_k[:, None] - 1)
    return logits.masked_fill(logits < least, float("-inf"))


def keep_top_p(logits: Tensor, top_p: Tensor, most: int) -> Tensor:
    """logits [N, V] with all but the smallest set that reaches top_p [N] set to -inf.

    most: how many tokens a row may still have (V, or the largest top_k), which is all that needs
    sorting. Tokens as likely as the last one kept stay too, so the set does not hang on the order
    of equals (Holtzman et al. 2019, nucleus sampling).
    """
    probs = logits.softmax(-1)
    ranked = _largest(probs, most)
    reached_before = functional.pad(ranked.cumsum(-1)[:, :-1], (1, 0))
    needed = (reached_before < top_p[:, None]).sum(-1, keepdim=True).clamp(min=1)
    return logits.masked_fill(probs < ranked.gather(1, needed - 1), float("-inf"))


def _largest(x: Tensor, most: int) -> Tensor:
    """The `most` largest values of each row, largest first; sort beats a topk of everything."""
    if most < x.shape[1]:
        return x.topk(most, dim=-1).values
    return x.sort(dim=-1, descending=True).values


def _mask_stop_tokens(logits: Tensor, specs: Sequence[SampleSpec]) -> Tensor:
    """logits without the stop tokens of rows that have fewer than min_tokens outputs."""
    rows, columns = [], []
    for row, spec in enumerate(specs):
        if spec.output_index < spec.params.min_tokens:
            ids = [token for token in spec.params.stop_token_ids if token < logits.shape[1]]
            rows += [row] * len(ids)
            columns += ids
    if not rows:
        return logits
    masked = logits.clone()
    masked[rows, columns] = float("-inf")
    return masked


def _draw(logits: Tensor, specs: Sequence[SampleSpec]) -> Tensor:
    """Sampled tokens [N] int64 of rows that all have a temperature above 0."""
    # clamped to what float32 can hold and divide by
    heat = [min(max(spec.params.temperature, 1e-30), 1e30) for spec in specs]
    temperature = torch.tensor(heat, device=logits.device)
    # The largest logit becomes 0, so that even a tiny temperature cannot overflow.
    scaled = (logits - logits.amax(-1, keepdim=True)) / temperature[:, None]
    probs = _filter(scaled, specs).softmax(-1)
    numbers = [uniform(spec.seed, spec.sample_index, spec.output_index) for spec in specs]
    return _invert(probs, torch.tensor(numbers, dtype=torch.float64, device=logits.device))


def _filter(logits: Tensor, specs: Sequence[SampleSpec]) -> Tensor:
    """top_k, then top_p. Rows without a top_k need a full sort, so they go by themselves."""
    vocab = logits.shape[1]
    limits = [min(spec.params.top_k or vocab, vocab) for spec in specs]
    limited = [i for i, limit in enumerate(limits) if limit < vocab]
    open_ended = [i for i, s in enumerate(specs) if s.params.top_p < 1 and limits[i] == vocab]
    out = logits.clone()
    for rows in (limited, open_ended):
        if rows:
            # Rounded sums may reach 1 before the last token, so 1.0 ("keep all") becomes 2.
            top_p = [p if (p := specs[i].params.top_p) < 1 else 2.0 for i in rows]
            top_k = torch.tensor([limits[i] for i in rows], device=logits.device)
            kept = keep_top_k(out[rows], top_k)
            out[rows] = keep_top_p(
                kept, torch.tensor(top_p, device=logits.device), int(top_k.max())
            )
    return out


def _invert(probs: Tensor, numbers: Tensor) -> Tensor:
    """The first token of each row whose cumulative probability exceeds the row's number."""
    cumulative = probs.double().cumsum(-1)
    total = cumulative[:, -1:]
    token = (cumulative <= numbers[:, None] * total).sum(-1)
    # A number next to 1 may round up to the total; the last token with any probability takes it.
    return token.minimum((cumulative < total).sum(-1))


def _logprobs(
    logits: Tensor, chosen: Tensor, specs: Sequence[SampleSpec]
) -> list[TokenLogprobs | None]:
    out: list[TokenLogprobs | None] = [None] * len(specs)
    rows = [i for i, spec in enumerate(specs) if spec.logprobs is not None]
    if not rows:
        return out
    index = torch.tensor(rows, device=logits.device)
    logprobs = logits[index].log_softmax(-1)
    own = logprobs.gather(1, chosen[index][:, None])
    ranks = ((logprobs > own).sum(-1) + 1).tolist()
    # always as many, because which of equals come out depends on how many are asked for
    most = min(MAX_LOGPROBS, logits.shape[1])
    values, ids = (found.tolist() for found in logprobs.topk(most, dim=-1))
    tokens, own_list = chosen[index].tolist(), own.squeeze(1).tolist()
    for at, row in enumerate(rows):
        ranked = sorted(zip(values[at], ids[at], strict=True), key=lambda pair: (-pair[0], pair[1]))
        top = tuple((token, value) for value, token in ranked[: specs[row].logprobs])
        out[row] = TokenLogprobs(tokens[at], own_list[at], ranks[at], top)
    return out
