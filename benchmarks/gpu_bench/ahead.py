"""Compiling kernels on all cores before they are needed: one after another would take the time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from gpu_bench.clocks import Call
from minipaged.kernels import triton_attention, triton_backend
from minipaged.kernels.triton_launch import INTERPRETED

LAUNCHED = (
    (triton_attention, "decode_kernel"),
    (triton_attention, "merge_kernel"),
    (triton_attention, "prefill_kernel"),
    (triton_backend, "write_kernel"),
    (triton_backend, "copy_kernel"),
)
"""Where the launching functions find their kernels."""


def compile_ahead(calls: Iterable[Call]) -> None:
    """Make the calls with launches that compile and do not run; what they return means nothing.

    Does nothing in the interpreter, or with a Triton that cannot compile in threads. What fails
    to compile fails again, and is named, when it is launched.
    """
    if INTERPRETED:
        return
    try:
        from triton.runtime._async_compile import AsyncCompileMode
    except ImportError:
        return
    with (
        ThreadPoolExecutor(os.cpu_count()) as workers,
        _only_compiling(),
        contextlib.suppress(Exception),
        AsyncCompileMode(workers, ignore_errors=True),
    ):
        for call in calls:
            with contextlib.suppress(Exception):
                call()


@contextlib.contextmanager
def _only_compiling() -> Iterator[None]:
    kernels = [(module, name, getattr(module, name)) for module, name in LAUNCHED]
    try:
        for module, name, kernel in kernels:
            setattr(module, name, _Warmup(kernel))
        yield
    finally:
        for module, name, kernel in kernels:
            setattr(module, name, kernel)


class _Warmup:
    """Stands in for a kernel: kernel[grid](...) compiles."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: tuple[int, ...]) -> Call:
        return partial(self._kernel.warmup, grid=grid)
