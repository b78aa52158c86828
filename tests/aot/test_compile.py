"""What is compiled is what a launch would run, and compiling leaves nothing behind."""

from __future__ import annotations

import warnings

import pytest
import torch
import triton

from minipaged.kernels import triton_attention, triton_backend
from minipaged.kernels.aot import compile_for, targets_of
from minipaged.kernels.aot_specs import BLOCK_SIZE, KV_HEADS, Spec
from minipaged.kernels.aot_targets import TARGETS
from minipaged.kernels.layouts import pack_k
from minipaged.kernels.meta import AttentionMeta


class Recorder:
    """In a kernel's place: keeps what it is launched with."""

    def __init__(self, kernel) -> None:
        self.names, self.launches = kernel.arg_names, []

    def __getitem__(self, grid):
        return lambda *args, **options: self.launches.append(
            (dict(zip(self.names, args, strict=False)), options)
        )


@pytest.fixture
def recorders(monkeypatch):
    found = {}
    for module in (triton_attention, triton_backend):
        for name in [name for name in vars(module) if name.endswith("_kernel")]:
            found[name.removesuffix("_kernel")] = recorder = Recorder(getattr(module, name))
            monkeypatch.setattr(module, name, recorder)
    found["store"] = found.pop("write")
    return found


TYPES = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.int64: "*i64",
}


def as_type(argument) -> str:
    if isinstance(argument, torch.Tensor):
        return TYPES[argument.dtype]
    return "i32" if isinstance(argument, int) else "fp32"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    ("dim", "group", "packed"), [(64, 1, False), (80, 24, True), (256, 4, False)]
)
def test_a_launch_has_the_types_and_constants_of_its_spec(recorders, dtype, dim, group, packed):
    made = getattr(torch, dtype)
    v_pool = torch.zeros(40, BLOCK_SIZE, KV_HEADS, dim, dtype=made)
    k_pool = pack_k(v_pool) if packed else v_pool.clone()
    q = torch.zeros(2, KV_HEADS * group, dim, dtype=made)
    meta = AttentionMeta(
        torch.tensor([0, 1, 2]), torch.tensor([300, 5]), torch.arange(40).view(2, 20)
    )
    triton_attention.paged_decode(q, k_pool, v_pool, meta, split_size=64)
    triton_attention.paged_decode(q, k_pool, v_pool, meta, split_size=640)
    triton_attention.paged_prefill(q, k_pool, v_pool, meta)
    k = torch.zeros(2, KV_HEADS, dim, dtype=made)
    triton_backend.write_kv(k, k, k_pool, v_pool, torch.arange(2))
    triton_backend.copy_blocks(v_pool, [(0, 1)])

    for split in (True, False):
        args, options = recorders["decode"].launches[0 if split else 1]
        expect(Spec("decode", dtype, dim, group, packed, split), args, options)
    for kernel in ("merge", "prefill", "store", "copy"):
        (launch,) = recorders[kernel].launches
        expect(Spec(kernel, dtype, dim, group, packed), *launch)


def expect(spec, args, options):
    names = [*args, *spec.constants]
    assert {name: as_type(value) for name, value in args.items()} == {
        name: kind for name, kind in spec.types(names).items() if kind != "constexpr"
    }
    assert options == {**spec.constants, **spec.options}
    for name in spec.aligned(list(args)):
        value = args[name]
        at = value.data_ptr() if isinstance(value, torch.Tensor) else value
        assert at % 16 == 0, name


def test_no_driver_is_asked_or_replaced_and_nothing_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))
    before = dict(vars(triton.runtime.driver))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = compile_for(Spec("merge", "float16", 64), TARGETS["sm_80"])
    assert vars(triton.runtime.driver) == before
    assert list(tmp_path.iterdir()) == [] and triton.knobs.cache.dir == str(tmp_path)
    assert report.seconds > 0


def test_amd_tells_less():
    (target,) = targets_of(["gfx942"])
    report = compile_for(Spec("merge", "float16", 128), target)
    assert report.code.async_loads is None and report.programs is None
    assert report.code.registers > 0 and report.code.spills == 0


def test_a_name_is_compiled_once_and_an_unknown_one_is_refused():
    assert [target.name for target in targets_of(["sm_90", "sm_90"])] == ["sm_90"]
    with pytest.raises(ValueError, match=r"'sm_1'.*compiles for sm_80, sm_86.*gfx942"):
        targets_of(["sm_1"])
