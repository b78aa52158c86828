"""A beam search without any cache, for the tests of the real one, and a ledger with odds.

`search` knows whole sequences and whole distributions only. It was written from the rules, not
from minipaged/beam_scores.py, and it is slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from minipaged.exec.sim_exec import SimExecutor
from minipaged.plan import TokenLogprobs

Odds = Callable[[list[list[int]]], list[list[float]]]
Found = tuple[list[int], float, float]  # tokens, sum of log-probabilities, score


def search(
    odds: Odds,
    prompt: Sequence[int],
    *,
    width: int,
    max_tokens: int,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
    eos: Sequence[int] = (),
) -> list[Found]:
    """odds: sequences -> for each the log-probability of every token that may follow."""
    prompt, alive, ended = list(prompt), [((), 0.0)], []
    how_many = (1 + max(1, len(eos))) * width
    for made in range(1, max_tokens + 1):
        rows = odds([prompt + list(tokens) for tokens, _ in alive])
        pairs = [
            (total + row[token], number, token)
            for number, ((_, total), row) in enumerate(zip(alive, rows, strict=True))
            for token in range(len(row))
        ]
        pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
        best = [((*alive[n][0], token), total) for total, n, token in pairs[:how_many]]
        over = [made == max_tokens or tokens[-1] in eos for tokens, _ in best]
        for (tokens, total), is_over in list(zip(best, over, strict=True))[:width]:
            if is_over:
                ended.append((list(tokens), total, total / made**length_penalty))
        ended = sorted(ended, key=lambda one: one[2], reverse=True)[:width]
        alive = [one for one, is_over in zip(best, over, strict=True) if not is_over][:width]
        if not alive:
            break
        if len(ended) == width:
            hope = max_tokens if early_stopping == "never" and length_penalty > 0 else made
            if early_stopping is True or alive[0][1] / hope**length_penalty <= ended[-1][2]:
                break
    return ended


VOCAB = 11
EOS = 0


def ledger_odds(sequences: list[list[int]]) -> list[list[float]]:
    """What BeamLedger says about the token after each sequence, from the tokens alone."""
    rows = []
    for tokens in sequences:
        digest = 0
        for position, token in enumerate(tokens):
            entry = hash((token, position, digest)) % ((1 << 61) - 1)
            digest = (digest + entry * (2 * position + 1)) % ((1 << 61) - 1)
        rows.append(_spread(digest))
    return rows


def _spread(digest: int) -> list[float]:
    weights = [hash((digest, token)) % 1009 + 1 for token in range(VOCAB)]
    return [math.log(weight / sum(weights)) for weight in weights]


class BeamLedger(SimExecutor):
    """A ledger executor that draws the likeliest token and reports log-probabilities.

    They are a function of what stands in the slots, so a wrong block table changes the beams.
    """

    check = staticmethod(lambda: None)
    during = None

    def execute(self, plan):
        self.check()
        if self.during is not None:
            self.during(plan)
        return super().execute(plan)

    def _sample(self, request_id, spec, digest, result):
        row = _spread(digest)
        ranked = sorted(range(VOCAB), key=lambda token: (-row[token], token))
        result.token_ids[request_id] = [ranked[0]]
        if spec.num_samples > 1:
            result.forks[request_id] = [ranked[0]] * (spec.num_samples - 1)
        if spec.logprobs is not None:
            top = tuple((token, row[token]) for token in ranked[: spec.logprobs])
            result.logprobs[request_id] = [TokenLogprobs(ranked[0], row[ranked[0]], 1, top)]
