"""The kernels as compilers see them: machine code read, programs counted, the command's refusals.

Compiling needs Triton as a compiler, which is another process than its interpreter: tests/aot.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minipaged.kernels.aot_read import (
    ASYNC_LOAD,
    buffers,
    count,
    instructions,
    loops,
    read_amd,
    read_nvidia,
)
from minipaged.kernels.aot_specs import DTYPES, HEAD_DIMS, Spec, specs
from minipaged.kernels.aot_targets import TARGETS, require_targets

HERE = Path(__file__).parent
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton has wheels for Linux only"
)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env={**clean, **environment}
    )


@needs_triton
@pytest.mark.parametrize("tier", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_every_shipped_kernel_compiles_to_what_it_should(tier, tmp_path):
    done = run(
        "-m", "pytest", str(HERE / "aot"), "-q", "-n0", "-m", tier, TRITON_CACHE_DIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout.splitlines()[-1]


def test_plain_pytest_does_not_collect_them():
    others = f"--ignore-glob={HERE}/test_*"
    done = run("-m", "pytest", str(HERE), "-q", "-n0", "--collect-only", others)
    assert "no tests collected" in done.stdout.splitlines()[-1]


COMMAND = ("-m", "minipaged.cli", "bench", "kernels")


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        ([], {}, "needs a GPU and is done by benchmarks/gpu_kernels.py"),
        (["--aot", "--kernel", "x"], {}, "no kernel 'x': choose from decode, merge, prefill"),
        pytest.param(
            ["--aot", "--target", "sm_1"], {}, "'sm_1': the installed Triton compiles for sm_80",
            marks=needs_triton,
        ),
        pytest.param(
            ["--aot"], {"TRITON_INTERPRET": "1"}, "unset it before Python starts",
            marks=needs_triton,
        ),
    ],
)  # fmt: skip
def test_the_command_refuses_in_one_line(arguments, environment, words):
    done = run(*COMMAND, *arguments, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_without_triton_the_command_says_so():
    code = (
        "import sys; sys.modules['triton'] = None; sys.argv[1:] = ['bench', 'kernels', '--aot']; "
        "from minipaged.cli import main; main()"
    )
    done = run("-c", code)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "compiling kernels needs triton, which cannot be imported" in done.stderr


@needs_triton
def test_the_command_prints_a_table_and_json():
    part = (*COMMAND, "--aot", "--kernel", "copy", "--target", "gfx942")
    done = run(*part, "--target", "sm_90")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout and max(map(len, done.stdout.splitlines())) <= 100
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("copy ")]
    assert [row[:3] for row in rows[: len(rows) // 2]] == [
        row[:3] for row in rows[len(rows) // 2 :]
    ]
    assert rows[-1][:3] == ["copy", "bf16", "256"] and rows[0][-4:-1] == ["-", "-", "0"]
    found = run(*part, "--json")
    assert found.stdout.count('"target": "gfx942"') == len(rows) // 2


def test_importing_the_command_loads_no_torch():
    done = run("-c", "import minipaged.cli, sys; print({'torch', 'triton'} & set(sys.modules))")
    assert done.stdout.strip() == "set()"


PRINTED = """
 Function decode_kernel:
  REG:96 STACK:8 SHARED:1024 LOCAL:0
        /*0000*/                   LDG.E.U16 R1, desc[UR4][R2.64] ;       /* 0x00000a00ff017b82 */
        /*0010*/              @!P0 LDGSTS.E.BYPASS.128 [R83], [R2.64] ;   /* 0x000e620000002500 */
        /*0020*/                   LDGSTS.E.BYPASS.128 [R83+0x80], [R2] ; /* 0x000e620000002500 */
        /*0030*/                   LDGSTS.E.BYPASS.128 [R84], [R2] ;      /* 0x000e620000002500 */
        /*0040*/                   LDGSTS.E.64 [R84], [R2] ;              /* 0x000e620000002500 */
        /*0050*/                   STL [R1], R7 ;                         /* 0x000e620000002500 */
        /*0060*/               @P0 BRA 0x20 ;                             /* 0x000e620000002500 */
        /*0070*/                   LDL R7, [R1] ;                         /* 0x000e620000002500 */
        /*0080*/                   BRA 0xa0 ;                             /* 0x000e620000002500 */
        /*0090*/                   BRA 0x90;                              /* 0x000e620000002500 */
"""


def test_machine_code_is_read():
    code = read_nvidia(PRINTED)
    assert code == (96, 8, 2, 2, 1)  # one of the three copies of 16 bytes is before the loop
    (loop,) = loops(instructions(PRINTED))
    assert [one.address for one in loop] == [0x20, 0x30, 0x40, 0x50, 0x60]
    assert count(ASYNC_LOAD, loop) == 2
    with pytest.raises(ValueError, match="printed no kernel"):
        read_nvidia("")


def test_assembly_of_amd_is_read():
    text = """
        global_load_ushort v1, v[2:3], off
        global_load_dwordx4 v[4:7], v[2:3], off
    .private_segment_fixed_size: 16
    .vgpr_count:     192
    .vgpr_spill_count: 4
    """
    assert read_amd(text) == (192, 16, 4, None, 1)
    with pytest.raises(ValueError, match="does not say vgpr_count"):
        read_amd("")


def test_buffers_are_read():
    text = """
    %q = ttg.local_alloc %q_1 : (tensor<16x128xbf16, #b>) -> !ttg.memdesc<16x128xbf16, #s, #smem>
    %k = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xbf16, #shared, #smem, mutable> loc(#l)
    """
    assert buffers(text) == [(2, 64, 128)]


def test_programs_of_a_multiprocessor_by_hand():
    card = TARGETS["sm_80"]  # 65,536 registers in four quarters, 164 KiB = 167,936 bytes
    # 100 registers are 104 of a thread, 3,328 of a warp: 4 warps in a quarter of 16,384, 16 in all
    assert card.programs(100, 0, 4) == 4
    assert card.programs(100, 0, 8) == 2
    # two of 82,944 + 1,024 bytes are 167,936, and one byte more is too much
    assert card.programs(32, 82_944, 4) == 2
    assert card.programs(32, 82_945, 4) == 1
    assert card.programs(16, 0, 1) == 32
    assert TARGETS["sm_86"].programs(32, 100 * 1024, 4) == 0
    assert TARGETS["gfx942"].programs(32, 65_536, 4) is None
    assert TARGETS["gfx942"].programs(32, 65_537, 4) == 0


@pytest.mark.parametrize("name", [name for name in TARGETS if name.startswith("sm")])
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("programs", [1, 2, 3])
def test_limits_are_the_last_that_fit(name, warps, programs):
    card = TARGETS[name]
    registers, shared = card.most_registers(programs, warps), card.most_shared(programs)
    assert card.programs(registers, shared, warps) >= programs
    assert card.programs(registers, shared + 1, warps) < programs
    if registers < 248:
        assert card.programs(registers + 1, shared, warps) < programs


def test_targets_of_backends_that_are_not_installed_are_unknown():
    with pytest.raises(ValueError, match="'gfx942': the installed Triton compiles for sm_80"):
        require_targets(["gfx942"], {"cuda"})


def test_the_part_has_every_row_of_the_tables_with_few_and_many_heads():
    for kernel in ("decode", "prefill"):
        part, full = specs((kernel,)), specs((kernel,), full=True)
        assert set(part) < set(full) and len(set(full)) == len(full)
        rows = {spec.chosen for spec in full}
        for many in (False, True):
            assert {spec.chosen for spec in part if (spec.group == 24) is many} == rows
        for field in ("head_dim", "dtype", "group", "packed", "split"):
            assert {getattr(spec, field) for spec in part} == {getattr(s, field) for s in full}
    assert {(s.head_dim, s.dtype) for s in specs(full=True)} == {
        (dim, dtype) for dim in HEAD_DIMS for dtype in DTYPES
    }


def test_a_decode_in_pieces_writes_float32():
    names = ["q", "out", "scale", "TILE"]
    whole, split = (Spec("decode", "float16", 64, split=split) for split in (False, True))
    assert whole.types(names) == {
        "q": "*fp16",
        "out": "*fp16",
        "scale": "fp32",
        "TILE": "constexpr",
    }
    assert split.types(names)["out"] == "*fp32"
    assert split.aligned([*names, "table_width"]) == ["q", "out"]
