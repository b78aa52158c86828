"""This folder is a process of its own: Triton's interpreter, and nothing that compiles.

Triton becomes one or the other when it is first imported, so the variable is set before that.
tests/test_interp.py launches it; by hand: python -m pytest tests/interp
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import pytest
import torch

NAN = float("nan")


def _poisoned(make):
    def made(*args, **kwargs):
        tensor = make(*args, **kwargs)
        return tensor.fill_(NAN) if tensor.is_floating_point() else tensor

    return made


@pytest.fixture(autouse=True)
def unwritten_memory_is_nan(monkeypatch):
    """Every number that a kernel was to write and did not shows up as NaN."""
    for owner, name in ((torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")):
        monkeypatch.setattr(owner, name, _poisoned(getattr(owner, name)))


@pytest.fixture(autouse=True)
def watched(monkeypatch):
    """No program leaves its tensors; what it reads is counted."""
    try:
        from memory import watch
    except ImportError:  # the files that need triton skip themselves
        return None
    return watch(monkeypatch)
