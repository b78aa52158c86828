"""A pool whose last block begins at number 2^31 or beyond, without the memory for all of it.

Only a few stretches of some kilobytes are there: that block, and the places where a reader ends up
who computes in 32 bits, asks no table, or takes a block for a slot. All between them is address
space that nobody has asked for; whoever reads there ends the process. Linux only.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import weakref
from collections.abc import Sequence
from typing import Any

DECOY = -1.0  # what stands where an offset that has wrapped around leads
STRAY = -2.0  # and where other wrong offsets do
_BYTES = 4  # of a float32
_NOWHERE = (1 << 44, 1 << 36)  # where to look for room, and in which steps
_FIXED_NOREPLACE = 0x100000
_TRIES = 64


def far_pool(
    values: Sequence[float], head_dim: int, block_size: int, block: int, written: int
) -> Any:
    """A float32 tensor [block + 1, block_size, len(values), head_dim].

    In the first `written` slots of the last block every number of KV head h is values[h], in the
    others it is NaN. The block must begin at a number from 2^31 up to 2^32. Nothing else of the
    tensor may be touched. MemoryError if the system grants no such addresses.
    """
    import torch

    row = len(values) * head_dim
    first, size = block * block_size * row, block_size * row
    if not 2**31 <= first < 2**32:
        raise ValueError(f"block {block} begins at number {first}: give one from 2^31 up to 2^32")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    stretches = sorted({first - 2**32, 0, block * row, first})
    base = _reserve(libc, stretches, size)

    def tensor(at: int, count: int) -> Any:
        memory = (ctypes.c_float * count).from_address(base + _BYTES * at)
        if count > size:
            weakref.finalize(memory, _release, libc, base, stretches, size)
        return torch.frombuffer(memory, dtype=torch.float32)

    for at in stretches:
        tensor(at, size).fill_(STRAY if at >= 0 else DECOY)
    pool = tensor(0, first + size).view(block + 1, block_size, len(values), head_dim)
    pool[block] = torch.nan
    pool[block, :written] = torch.tensor(values)[:, None]
    return pool


def _reserve(libc: Any, stretches: Sequence[int], size: int) -> int:
    """An address such that all stretches are ours."""
    start, step = _NOWHERE
    for base in itertools.islice(itertools.count(start, step), _TRIES):
        mapped = [at for at in stretches if _map(libc, base + _BYTES * at, size)]
        if len(mapped) == len(stretches):
            return base
        _release(libc, base, mapped, size)
    raise MemoryError("this system grants no addresses for a pool of 2^31 numbers")


def _map(libc: Any, address: int, size: int) -> bool:
    page = address // mmap.PAGESIZE * mmap.PAGESIZE
    length = address + _BYTES * size - page
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
    kind = mmap.PROT_READ | mmap.PROT_WRITE
    arguments = (ctypes.c_void_p(page), ctypes.c_size_t(length), kind, flags, -1)
    return libc.mmap(*arguments, ctypes.c_long(0)) == page


def _release(libc: Any, base: int, stretches: Sequence[int], size: int) -> None:
    for at in stretches:
        _unmap(libc, base + _BYTES * at, size)


def _unmap(libc: Any, address: int, size: int) -> None:
    page = address // mmap.PAGESIZE * mmap.PAGESIZE
    libc.munmap(ctypes.c_void_p(page), ctypes.c_size_t(address + _BYTES * size - page))
