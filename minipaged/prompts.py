"""How prompts, and what goes with each of them, may be given: one for all, or a list. No torch."""

from __future__ import annotations

from collections.abc import Sequence

from minipaged.config import SamplingParams

Prompt = str | Sequence[int]


def as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt, or several, as a list; a sequence of ints is one prompt."""
    if isinstance(prompts, str):
        return [prompts]
    if not isinstance(prompts, list | tuple):
        raise ValueError(f"prompts is {prompts!r:.80}: give a text, token ids, or a list of them")
    if prompts and isinstance(prompts[0], int):
        return [prompts]
    return list(prompts)


def params_for_each(
    params: SamplingParams | Sequence[SamplingParams] | None, count: int
) -> list[SamplingParams]:
    """`count` SamplingParams; None stands for the default ones."""
    if params is None or isinstance(params, SamplingParams):
        return [SamplingParams() if params is None else params] * count
    if not isinstance(params, list | tuple):
        raise ValueError(f"params is {params!r:.80}: give a SamplingParams, or one for each prompt")
    if len(params) != count:
        raise ValueError(f"{len(params)} SamplingParams for {count} prompts: give one, or {count}")
    return list(params)


def salts_for_each(salt: str | Sequence[str], count: int) -> list[str]:
    """`count` cache salts."""
    salts = [salt] * count if isinstance(salt, str) or not isinstance(salt, Sequence) else salt
    if len(salts) != count:
        raise ValueError(f"{len(salts)} cache salts for {count} prompts: give one, or {count}")
    for one in salts:
        if not isinstance(one, str):
            raise ValueError(f"cache_salt is {one!r:.80}: give a str, or one for each prompt")
    return list(salts)
