"""What the attention kernels are launched with: layouts, tables, splits, runs, backends. No GPU,
and no triton in this process (tests/interp is theirs)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from itertools import product

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from minipaged.config import EngineConfig
from minipaged.kernels import reference
from minipaged.kernels.backends import TORCH, kernels_of
from minipaged.kernels.configs import decode_config, next_power_of_2, padded, prefill_config
from minipaged.kernels.fit import require_contiguous, require_fit
from minipaged.kernels.layouts import pack_k, pack_width, pool_shape, unpack_k
from minipaged.kernels.runs import independent_runs
from minipaged.kernels.splits import (
    ALMOST_FULL,
    MAX_SPLITS,
    MIN_TILES,
    PROGRAMS_PER_SM,
    choose_split_size,
    num_splits,
)

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton has wheels for Linux only"
)


# layouts


@given(
    st.integers(1, 3), st.integers(1, 7), st.integers(1, 3), st.integers(1, 5),
    st.sampled_from(DTYPES),
)  # fmt: skip
def test_packed_and_back_and_where_each_number_lies(blocks, block_size, kv, groups, dtype):
    x = pack_width(dtype)
    dim = groups * x
    pool = (
        (torch.arange(blocks * block_size * kv * dim) % 251)
        .to(dtype)
        .view(blocks, block_size, kv, dim)
    )
    packed = pack_k(pool)
    assert packed.shape == (blocks, kv, groups, block_size, x) and packed.is_contiguous()
    assert torch.equal(unpack_k(packed), pool)
    assert pool_shape(pool) == (blocks, block_size, kv, dim, 0)
    assert pool_shape(packed) == (blocks, block_size, kv, dim, x)
    # the formulas of PoolShape
    for block, i, h, d in product(*({0, size // 2, size - 1} for size in pool.shape)):
        nhd = ((block * block_size + i) * kv + h) * dim + d
        into = (((block * kv + h) * (dim // x) + d // x) * block_size + i) * x + d % x
        assert pool.flatten()[nhd] == packed.flatten()[into] == pool[block, i, h, d]


def test_sixteen_bytes_lie_side_by_side():
    assert [pack_width(dtype) for dtype in DTYPES] == [4, 8, 8]


def test_a_head_dim_that_cannot_be_packed():
    with pytest.raises(ValueError, match=r"head_dim 20 .* groups of 8 .* multiple of 8"):
        pack_k(torch.zeros(1, 4, 1, 20, dtype=torch.float16))


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (torch.zeros(2, 4, 8), r"\[2, 4, 8\] and is contiguous"),
        (torch.zeros(2, 4, 1, 8, 2, 2), "and is contiguous"),
        (torch.zeros(2, 4, 2, 8).transpose(1, 2), r"\[2, 2, 4, 8\] and is not contiguous"),
    ],
)
def test_what_is_no_pool(pool, words):
    with pytest.raises(ValueError, match=words):
        pool_shape(pool)


# configurations


@pytest.mark.parametrize("config_of", [decode_config, prefill_config])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_head_dim_up_to_256_has_a_configuration(config_of, dtype):
    for dim in range(1, 257):
        config = config_of(dim, dtype.itemsize)
        assert config.tile >= 16 and config.tile == next_power_of_2(config.tile)
        assert config.rows >= 16 and config.rows == next_power_of_2(config.rows)
        assert config.num_warps in (1, 2, 4, 8) and config.num_stages >= 1


@pytest.mark.parametrize("config_of", [decode_config, prefill_config])
@pytest.mark.parametrize(("dim", "size"), [(257, 2), (257, 4), (512, 2), (64, 8)])
def test_others_have_none(config_of, dim, size):
    with pytest.raises(ValueError, match=f"head_dim {dim} with {size} bytes .*='torch'") as caught:
        config_of(dim, size)
    assert "\n" not in str(caught.value)


def test_padding():
    assert [next_power_of_2(n) for n in (1, 2, 3, 4, 5, 80, 128, 129)] == [
        1, 2, 4, 4, 8, 128, 128, 256,
    ]  # fmt: skip
    assert [padded(n) for n in (1, 16, 17, 24, 80, 256)] == [16, 16, 32, 32, 128, 256]


# the rule for splitting


@given(
    st.integers(1, 300), st.integers(1, 16), st.integers(0, 40_000),
    st.sampled_from([16, 32, 64, 128]), st.integers(1, 200),
)  # fmt: skip
@example(1, 1, 0, 16, 1)
@example(1, 1, 10**6, 16, 132)
def test_choose_split_size(num_seqs, kv_heads, longest, tile, sms):
    size = choose_split_size(num_seqs, kv_heads, longest, tile=tile, num_sms=sms)
    pieces, programs = num_splits(longest, size), num_seqs * kv_heads
    assert size % tile == 0 and size > 0
    assert 1 <= pieces <= MAX_SPLITS
    assert (pieces - 1) * size < max(longest, 1) <= pieces * size
    if pieces > 1:
        assert size >= MIN_TILES * tile
        assert programs < ALMOST_FULL * sms
        assert programs * (pieces - 1) < PROGRAMS_PER_SM * sms  # no more than are of use
    if programs >= ALMOST_FULL * sms:
        assert pieces == 1


def test_an_idle_card_is_filled():
    """4 sequences of 8 heads on 132 multiprocessors: 9 pieces give each two programs."""
    size = choose_split_size(4, 8, 64 * 180, tile=64, num_sms=132)
    assert (size, num_splits(64 * 180, size)) == (64 * 20, 9)
    # longer ones are not cut further, short ones not below four tiles, and 106 are enough
    assert num_splits(10**6, choose_split_size(4, 8, 10**6, tile=64, num_sms=132)) == 9
    assert choose_split_size(4, 8, 64 * 12, tile=64, num_sms=132) == 4 * 64
    assert choose_split_size(4, 8, 64 * 7, tile=64, num_sms=132) == 7 * 64
    assert choose_split_size(106, 1, 10**4, tile=64, num_sms=132) == 157 * 64
    assert choose_split_size(105, 1, 10**4, tile=64, num_sms=132) < 157 * 64
    assert num_splits(10**6, choose_split_size(1, 1, 10**6, tile=64, num_sms=132)) == MAX_SPLITS


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"num_seqs": 0}, "num_seqs is 0"),
        ({"num_kv_heads": 0}, "num_kv_heads is 0"),
        ({"longest": -1}, "longest is -1"),
        ({"tile": 0}, "tile is 0"),
        ({"num_sms": 0}, "num_sms is 0"),
        ({"longest": 1.5}, "longest is 1.5"),
    ],
)
def test_split_sizes_of_nothing(changed, words):
    given = {"num_seqs": 1, "num_kv_heads": 1, "longest": 9, "tile": 16, "num_sms": 8}
    with pytest.raises(ValueError, match=words):
        choose_split_size(**{**given, **changed})


# copies


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9))
@example([(0, 1), (1, 2), (0, 1)])
@example([(0, 1), (2, 0)])
@example([(3, 3)])
def test_runs_of_copies_are_as_if_one_after_another(pairs):
    expected, pool = list(range(6)), list(range(6))
    for source, target in pairs:
        expected[target] = expected[source]
    for run in independent_runs(pairs):
        assert run
        in_order, backwards = list(pool), list(pool)
        for target, source in run.items():
            in_order[target] = in_order[source]
        for target, source in reversed(run.items()):
            backwards[target] = backwards[source]
        assert in_order == backwards
        pool = in_order
    assert pool == expected
    # a copy that touches no earlier one joins it
    if len({block for pair in pairs for block in pair}) == 2 * len(pairs):
        assert len(list(independent_runs(pairs))) == (1 if pairs else 0)


# what fits


def fit(q=(1, 6, 32), k=(3, 4, 2, 32), v=(3, 4, 2, 32), dtypes=(torch.float16,) * 3):
    q, k, v = (torch.zeros(s, dtype=d) for s, d in zip((q, k, v), dtypes, strict=True))
    require_fit(q, pool_shape(k), k.dtype, v)


def test_what_fits_and_what_does_not():
    fit()
    for heads in (7, 3, 1):
        with pytest.raises(ValueError, match=f"{heads} query heads cannot share 2 KV heads"):
            fit(q=(1, heads, 32))
    for changed in ({"q": (1, 6, 16)}, {"v": (2, 4, 2, 32)}, {"v": (3, 2, 4, 32)}):
        with pytest.raises(ValueError, match="do not fit: the pools must be equal in shape"):
            fit(**changed)
    for wrong in range(3):
        dtypes = [torch.float32 if i == wrong else torch.float16 for i in range(3)]
        with pytest.raises(ValueError, match="use one dtype for all"):
            fit(dtypes=dtypes)


def test_a_v_pool_that_is_not_contiguous():
    q, k = torch.zeros(1, 6, 32), torch.zeros(3, 4, 2, 32)
    with pytest.raises(ValueError, match=r"v_pool \[3, 4, 2, 32\] has the strides .* contiguous"):
        require_fit(q, pool_shape(k), k.dtype, torch.zeros(3, 2, 4, 32).transpose(1, 2))
    require_contiguous(q=q, k=k)


# backends


def test_backends_are_chosen_by_name():
    assert kernels_of("torch", "cpu") is TORCH
    assert TORCH.attention is reference.paged_attention
    assert EngineConfig().attention_backend == "torch"
    assert EngineConfig.of(attention_backend="triton").attention_backend == "triton"
    with pytest.raises(ValueError, match=r"attention_backend is 'x'.* choose one of torch, triton"):
        EngineConfig.of(attention_backend="x")


def said_by(code: str, interpret: str | None = None) -> str:
    """What the ValueError says that `code` raises in a process of its own."""
    environ = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    if interpret is not None:
        environ["TRITON_INTERPRET"] = interpret
    program = f"import os, sys\ntry:\n    {code}\nexcept ValueError as error:\n    print(error)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", env=environ
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, "one line, or no error"
    return done.stdout


KERNELS_OF = "from minipaged.kernels.backends import kernels_of; kernels_of('triton', '{}')"


def test_without_triton_one_line_says_what_to_do():
    said = said_by("sys.modules['triton'] = None; " + KERNELS_OF.format("cpu"))
    assert "triton cannot be imported" in said and "take attention_backend='torch'" in said
    said = said_by(
        "sys.modules['triton'] = None; from minipaged import LLM; "
        "LLM('tutor', attention_backend='triton', num_blocks=4, device='cpu')"
    )
    assert "triton cannot be imported" in said


@needs_triton
def test_without_a_gpu_one_line_says_what_to_do():
    said = said_by(KERNELS_OF.format("cpu"))
    assert "needs a GPU, and the device is cpu" in said
    assert "attention_backend='torch'" in said and "TRITON_INTERPRET=1 before Python" in said


@needs_triton
def test_the_interpreter_takes_cpu_tensors_only():
    said = said_by(KERNELS_OF.format("cuda"), interpret="1")
    assert "the device is cuda" in said and "unset it before Python starts" in said


@needs_triton
@pytest.mark.parametrize(
    ("before", "after", "advice"),
    [(None, "1", "unset TRITON_INTERPRET"), ("1", "0", "set TRITON_INTERPRET=1 before Python")],
)
def test_the_variable_must_not_change_after_the_import(before, after, advice):
    change = f"import triton; os.environ['TRITON_INTERPRET'] = '{after}'; "
    said = said_by(change + KERNELS_OF.format("cpu"), interpret=before)
    assert "TRITON_INTERPRET changed after triton was imported" in said and advice in said
