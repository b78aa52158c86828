"""The merge of split attention against the arithmetic of torch, and of the splits themselves."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="triton has wheels for Linux only")

import torch
from grid import config
from hypothesis import given, settings
from hypothesis import strategies as st
from paged import NAN, SUMS, close, paged

from minipaged.kernels.triton_attention import merge_splits, paged_decode


def merged(parts, part_lse, starts=None, dtype=torch.float32):
    """What merge_splits writes into NaN; one query a sequence unless `starts` says otherwise."""
    _, _, heads, dim = parts.shape
    starts = torch.arange(len(parts) + 1) if starts is None else starts
    tokens = int(starts[-1])
    out, lse = torch.full((tokens, heads, dim), NAN, dtype=dtype), torch.full((tokens, heads), NAN)
    merge_splits(parts, part_lse, starts, out, lse)
    return out, lse


@settings(max_examples=15)
@given(
    st.integers(1, 2), st.integers(1, 5), st.integers(1, 3), st.sampled_from([1, 5, 32, 80]),
    st.floats(0.1, 300), st.integers(0, 2**30),
)  # fmt: skip
def test_merge_is_a_mean_by_share_of_the_weights(tokens, pieces, heads, dim, spread, seed):
    rng = torch.Generator().manual_seed(seed)
    parts = torch.randn(tokens, pieces, heads, dim, generator=rng)
    lse = torch.randn(tokens, pieces, heads, generator=rng) * spread
    empty = torch.rand(lse.shape, generator=rng) < 0.3
    lse[empty] = float("-inf")
    parts[empty] = NAN
    whole = lse.double().logsumexp(1)
    share = (lse.double() - whole[:, None]).exp().nan_to_num()
    expected = (share[..., None] * parts.double().nan_to_num()).sum(1)
    out, said = merged(parts, lse)
    close(out.double(), expected, 4 * SUMS * parts.nan_to_num().abs().max().item() + 1e-30)
    finite = whole[whole.isfinite()].abs()
    close(said.double(), whole, 4 * SUMS * max(1.0, *finite.tolist(), 0.0))


def test_rows_without_exactly_one_query_are_left_alone():
    """Four sequences with 1, 0, 2 and 1 queries: pieces by sequence, results by query."""
    parts, lse = torch.randn(4, 3, 2, 16), torch.randn(4, 3, 2)
    out, said = merged(parts, lse, starts=torch.tensor([0, 1, 1, 3, 4]))
    assert out[1:3].isnan().all() and said[1:3].isnan().all()
    whole, whole_lse = merged(parts, lse)
    assert torch.equal(out[[0, 3]], whole[[0, 3]]) and torch.equal(said[[0, 3]], whole_lse[[0, 3]])


@pytest.mark.parametrize("largest", range(4))
def test_the_largest_piece_may_come_anywhere(largest):
    """Its weight, e^200 times that of the others, must not be computed as such."""
    parts, lse = torch.randn(1, 4, 1, 16), torch.full((1, 4, 1), -100.0)
    lse[:, largest] = 100.0
    out, said = merged(parts, lse)
    assert torch.equal(out, parts[:, largest]) and said.item() == 100.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_one_piece_and_empty_ones_are_passed_on_to_the_bit(dtype):
    parts, lse = torch.full((1, 4, 3, 16), NAN), torch.full((1, 4, 3), float("-inf"))
    parts[:, 2], lse[:, 2] = torch.randn(1, 3, 16), torch.tensor([-90.0, 0.0, 88.0])
    out, said = merged(parts, lse, dtype=dtype)
    assert torch.equal(out, parts[:, 2].to(dtype)) and torch.equal(said, lse[:, 2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_any_split_gives_the_same_result_within_rounding(dtype):
    case = paged([(1, 100), (1, 16), (1, 0)], kv_heads=1, dtype=dtype)
    for size in (16, 32, 48, 112, 128):
        case.assert_right(*paged_decode(*case.inputs, split_size=size, config=config(16, True)))
