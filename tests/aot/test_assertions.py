"""What the assertions of test_variants.py look for is found where it is: each of them can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
from variants import compiled

from minipaged.kernels.aot_specs import Spec
from minipaged.kernels.configs import KernelConfig

DECODE = Spec("decode", "bfloat16", 128)


def test_without_hints_the_decode_loads_number_by_number():
    report = compiled(replace(DECODE, head_dim=64), "sm_90", hints=False)
    assert report.code.scalar_loads > 0
    assert report.code.async_loads == 0


def test_a_large_tile_of_float32_spills():
    config = KernelConfig(tile=32, num_warps=4, num_stages=2)
    code = compiled(Spec("decode", "float32", 128, config=config), "sm_90").code
    assert code.stack > 0 and code.spills > 0


def test_eight_warps_with_many_registers_leave_room_for_one_program():
    config = KernelConfig(tile=64, num_warps=8, num_stages=3, rows=64)
    report = compiled(Spec("prefill", "bfloat16", 128, 24, config=config), "sm_80")
    assert report.code.registers > 128 and report.programs == 1


def test_a_large_tile_takes_too_much_shared_memory():
    config = KernelConfig(tile=128, num_warps=4, num_stages=3)
    report = compiled(replace(DECODE, config=config), "sm_80")
    assert report.shared > report.target.most_shared(2) and report.programs == 1


@pytest.mark.parametrize("carry", [True, False])
def test_only_slots_looked_up_ahead_give_two_buffers(carry):
    """Else a stage goes to the block ids, which K and V must wait for: one buffer is left."""
    config = KernelConfig(tile=64, num_warps=4, num_stages=3, carry=carry)
    buffers = compiled(replace(DECODE, config=config), "sm_80").buffers
    assert buffers == ([(2, 64, 128)] * 2 if carry else [(1, 64), *[(1, 64, 128)] * 2])


def test_one_stage_copies_nothing_ahead():
    config = KernelConfig(tile=64, num_warps=4, num_stages=1)
    report = compiled(replace(DECODE, config=config), "sm_90")
    assert report.code.async_loads == 0 and report.buffers == []
