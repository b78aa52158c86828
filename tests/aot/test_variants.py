"""What must hold of every kernel that ships, on an A100 and an H100."""

from __future__ import annotations

import pytest
from variants import compiled, variants

from minipaged.kernels.aot_specs import KERNELS
from minipaged.kernels.splits import PROGRAMS_PER_SM

ALL = pytest.mark.parametrize(("spec", "card"), variants(*KERNELS))
ATTENTION = pytest.mark.parametrize(("spec", "card"), variants("decode", "prefill"))
DECODE = pytest.mark.parametrize(("spec", "card"), variants("decode"))

MOST_REGISTERS = {4: 255, 8: 128}
"""Of a thread, by warps: 65,536 registers of a multiprocessor hold two programs then."""

MOST_SHARED = {"sm_80": 82_944, "sm_90": 115_712}
"""Bytes of a program: half of 164 and of 228 KiB, less 1 KiB that the driver takes for each."""


@ALL
def test_nothing_spills(spec, card):
    code = compiled(spec, card).code
    assert (code.stack, code.spills) == (0, 0), spec


@ALL
def test_no_number_of_16_bits_is_loaded_by_itself(spec, card):
    assert compiled(spec, card).code.scalar_loads == 0, spec


@ATTENTION
def test_registers_leave_room_for_two_programs(spec, card):
    report = compiled(spec, card)
    warps = spec.chosen.num_warps
    assert report.code.registers <= MOST_REGISTERS[warps], spec
    assert MOST_REGISTERS[warps] == report.target.most_registers(PROGRAMS_PER_SM, warps)


@ATTENTION
def test_shared_memory_leaves_room_for_two_programs(spec, card):
    report = compiled(spec, card)
    assert report.shared <= MOST_SHARED[card], spec
    assert MOST_SHARED[card] == report.target.most_shared(PROGRAMS_PER_SM)
    assert report.programs >= PROGRAMS_PER_SM, spec


@DECODE
def test_the_decode_loop_copies_16_bytes_at_a_time_ahead(spec, card):
    """One copy a thread for each 16 bytes of the next tile's K and V."""
    report = compiled(spec, card)
    config, constants = spec.chosen, spec.constants
    itemsize = 4 if spec.dtype == "float32" else 2
    tile_bytes = 2 * config.tile * constants["DIM"] * itemsize
    assert report.code.async_loads == tile_bytes // (16 * 32 * config.num_warps), spec


@DECODE
def test_decode_keeps_all_stages_but_one_in_buffers(spec, card):
    report = compiled(spec, card)
    config = spec.chosen
    one = (config.num_stages - 1, config.tile, spec.constants["DIM"])
    assert report.buffers == [one, one], spec
