"""The watch over addresses sees what it is there for."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch
import triton
import triton.language as tl
from paged import guarded


@triton.jit
def shift(x, y, by, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i + by))


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("how", ["read", "written"])
def test_one_number_outside_is_seen(how, by):
    x, y = guarded((17,), torch.float32), guarded((16,), torch.float32)
    shift[(1,)](x, y, 1, N=16)
    near = (x[:16], y) if how == "read" else (x, y[:15])
    with pytest.raises(Exception, match=f"1 numbers outside of all tensors would be {how}"):
        shift[(1,)](*near, by if how == "read" else 0, N=16)
