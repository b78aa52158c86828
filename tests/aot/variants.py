"""The kernels that the tests compile, and each compiled once."""

from __future__ import annotations

import functools

import pytest

from minipaged.kernels.aot import Report, compile_for, targets_of
from minipaged.kernels.aot_specs import Spec, specs

CARDS = ("sm_80", "sm_90")
SLOW = [pytest.mark.slow]


@functools.cache
def compiled(spec: Spec, card: str, hints: bool = True) -> Report:
    """Each variant once, whatever looks at it."""
    (target,) = targets_of([card])
    return compile_for(spec, target, hints=hints)


def variants(*kernels: str) -> list:
    """Parameters (spec, card): of what `bench kernels` shows half on each card, so that each row of
    the tables is seen on both; all others are marked slow."""
    part = specs(kernels)
    quick = {(spec, CARDS[(n + n // 2) % 2]) for n, spec in enumerate(part)}
    return [
        pytest.param(spec, card, id=_name(spec, card), marks=[] if (spec, card) in quick else SLOW)
        for card in CARDS
        for spec in specs(kernels, full=True)
    ]


def _name(spec: Spec, card: str) -> str:
    layout, pieces = ("NHD", "packed")[spec.packed], ("whole", "split")[spec.split]
    return f"{card}-{spec.kernel}-{spec.dtype}-{spec.head_dim}-x{spec.group}-{layout}-{pieces}"
