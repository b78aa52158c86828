"""Read what a compiler made: machine code and its resources, as figures.

What the text of a card's machine code looks like: CUDA Binary Utilities, "Instruction Set
Reference"; LLVM, "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

import re
from typing import NamedTuple

_INSTRUCTION = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)[ \t]*([^;\n]*);", re.MULTILINE
)
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+)")
_BUFFERS = re.compile(r"local_alloc : .*?memdesc<([0-9x]+)x\w+, [^>]*mutable>")


class Instruction(NamedTuple):
    """address: in bytes from the kernel's start. operation: LDGSTS.E.BYPASS.128, say."""

    address: int
    operation: str
    operands: str


class Code(NamedTuple):
    """Figures of one compiled kernel; None for what its machine code does not tell.

    registers: of a thread. stack: bytes that a thread keeps in memory. spills: instructions that
    move registers there and back (for AMD, registers that are moved). async_loads: copies from
    memory to shared memory, 16 bytes a thread, that the main loop starts and does not wait for.
    scalar_loads: loads of a single 16-bit number.
    """

    registers: int
    stack: int
    spills: int
    async_loads: int | None
    scalar_loads: int


def instructions(sass: str) -> list[Instruction]:
    """The instructions in what `cuobjdump -sass` prints."""
    found = _INSTRUCTION.findall(sass)
    return [Instruction(int(at, 16), operation, rest.strip()) for at, operation, rest in found]


def loops(code: list[Instruction]) -> list[list[Instruction]]:
    """Each stretch from an address to a branch back to it, in the order of the branches."""
    found = []
    for i, one in enumerate(code):
        target = re.search(r"0x([0-9a-f]+)", one.operands)
        if not one.operation.startswith("BRA") or target is None:
            continue
        start = int(target[1], 16)
        if start < one.address:
            found.append([other for other in code[: i + 1] if other.address >= start])
    return found


def count(pattern: str, code: list[Instruction]) -> int:
    """Instructions whose operation matches a regular expression from its beginning."""
    return sum(bool(re.match(pattern, one.operation)) for one in code)


def read_nvidia(printed: str) -> Code:
    """Figures from what `cuobjdump -res-usage -sass` prints. ValueError if there is no kernel.

    The main loop is the one that starts most of the asynchronous copies.
    """
    code, sizes = instructions(printed), _RESOURCES.search(printed)
    if sizes is None or not code:
        raise ValueError("cuobjdump printed no kernel: is the installed triton whole?")
    return Code(
        registers=int(sizes[1]),
        stack=int(sizes[2]),
        spills=count(r"(STL|LDL)\b", code),
        async_loads=max((count(ASYNC_LOAD, loop) for loop in loops(code)), default=0),
        scalar_loads=count(SCALAR_LOAD, code),
    )


ASYNC_LOAD = r"LDGSTS\b.*\.128"
SCALAR_LOAD = r"LDG\b.*\.[US]16\b"


def read_amd(assembly: str) -> Code:
    """Figures from AMD's assembly text. ValueError if there is no kernel in it."""

    def metadata(name: str) -> int:
        found = re.search(rf"^\s*(?:- )?\.{name}:\s+(\d+)", assembly, re.MULTILINE)
        if found is None:
            raise ValueError(f"the assembly does not say {name}: is the installed triton whole?")
        return int(found[1])

    loads = re.findall(r"^\s*(?:global|buffer|flat)_load_(?:u?short|d16)", assembly, re.MULTILINE)
    return Code(
        registers=metadata("vgpr_count"),
        stack=metadata("private_segment_fixed_size"),
        spills=metadata("vgpr_spill_count"),
        async_loads=None,
        scalar_loads=len(loads),
    )


def buffers(ttgir: str) -> list[tuple[int, ...]]:
    """The shapes of the buffers that the loop writes ahead: (stages, keys, head_dim) for K and V.

    From Triton's GPU dialect, where software pipelining has given each such buffer its stages.
    """
    return [tuple(map(int, shape.split("x"))) for shape in _BUFFERS.findall(ttgir)]
