"""Compile the kernels for a card that is not there, and report what the compiler made of them.

Triton compiles for a card by its name; the wheel brings NVIDIA's assembler and disassembler. No
driver is asked or replaced. What is seen here are the causes of a slow kernel, not its time.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minipaged.kernels.aot_read import Code, buffers, read_amd, read_nvidia
from minipaged.kernels.aot_specs import Spec
from minipaged.kernels.aot_targets import Target, require_targets


@dataclass(frozen=True, slots=True)
class Report:
    """What one kernel became on one target.

    shared: bytes of shared memory that a program asks for. buffers: see aot_read.buffers. programs:
    that a multiprocessor holds at once; None if not known. seconds: that compiling took.
    """

    spec: Spec
    target: Target
    code: Code
    shared: int
    buffers: list[tuple[int, ...]]
    programs: int | None
    seconds: float


def installed_backends() -> set[str]:
    """The backends of the installed Triton, as GPUTarget names them: "cuda", "hip".

    ValueError if there is no Triton, or if this process has it as an interpreter.
    """
    try:
        import triton
        from triton.backends import backends
    except ImportError as error:
        raise ValueError(
            f"compiling kernels needs triton, which cannot be imported ({error}): it has wheels "
            "for Linux only"
        ) from None
    from minipaged.kernels.triton_launch import INTERPRETED

    if INTERPRETED or triton.knobs.runtime.interpret:
        raise ValueError(
            "TRITON_INTERPRET is set, and the interpreter and the compiler do not live in one "
            "process: unset it before Python starts"
        )
    names = {"nvidia": "cuda", "amd": "hip"}
    return {names.get(name, name) for name in backends}


def targets_of(names: list[str]) -> list[Target]:
    """The targets with these names; ValueError for one that the installed Triton has not."""
    return require_targets(names, installed_backends())


def compile_for(spec: Spec, target: Target, *, hints: bool = True) -> Report:
    """Compile one kernel, afresh, and read what came out. Needs no card; 0.1 to 3 s.

    hints: tell the compiler which arguments are multiples of 16, as a launch does. Without, it
    must load number by number: to show what the hints are worth. ValueError as installed_backends.
    """
    installed_backends()
    import triton
    from triton.backends.compiler import GPUTarget

    with tempfile.TemporaryDirectory(prefix="minipaged-aot-") as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        begin = time.perf_counter()
        made = triton.compile(
            _source(spec, hints),
            target=GPUTarget(target.backend, target.arch, target.warp_size),
            options=spec.options,
        )
        seconds = time.perf_counter() - begin
        code = _read(made, Path(folder))
    shared, warps = made.metadata.shared, made.metadata.num_warps
    programs = target.programs(code.registers, shared, warps)
    return Report(spec, target, code, shared, buffers(made.asm["ttgir"]), programs, seconds)


def _source(spec: Spec, hints: bool) -> Any:
    """The kernel with the types, constants and hints of a launch."""
    from triton.compiler import ASTSource

    kernel = _kernel(spec.kernel)
    names = list(kernel.arg_names)
    at = {name: (i,) for i, name in enumerate(names)}
    aligned = spec.aligned(names) if hints else []
    return ASTSource(
        kernel,
        signature=spec.types(names),
        constexprs={at[name]: value for name, value in spec.constants.items()},
        attrs={at[name]: [["tt.divisibility", 16]] for name in aligned},
    )


def _kernel(name: str) -> Any:
    from minipaged.kernels.triton_decode import decode_kernel
    from minipaged.kernels.triton_merge import merge_kernel
    from minipaged.kernels.triton_prefill import prefill_kernel
    from minipaged.kernels.triton_store import copy_kernel, write_kernel

    return {
        "decode": decode_kernel,
        "merge": merge_kernel,
        "prefill": prefill_kernel,
        "store": write_kernel,
        "copy": copy_kernel,
    }[name]


def _read(made: Any, folder: Path) -> Code:
    if "amdgcn" in made.asm:
        return read_amd(made.asm["amdgcn"])
    binary = folder / "kernel.cubin"
    binary.write_bytes(made.asm["cubin"])
    from triton import knobs

    command = [knobs.nvidia.cuobjdump.path, "-res-usage", "-sass", str(binary)]
    return read_nvidia(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
