"""Which kernels are compiled to be looked at: the shapes that models have, as a launch makes them.

A launch turns tensors into types and constants; here the same functions (constants.py, configs.py)
are given the shapes alone. Of all shapes the default takes a part: every row of the tables with few
and with many query heads, as registers depend on these, and the other values in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from minipaged.kernels import constants
from minipaged.kernels.configs import KernelConfig, decode_config, prefill_config
from minipaged.kernels.layouts import PACK_BYTES, PoolShape

KERNELS = ("decode", "merge", "prefill", "store", "copy")
HEAD_DIMS = (64, 80, 128, 256)
FEW_HEADS = (1, 4, 8)
MANY_HEADS = 24
DTYPES = {"float16": 2, "bfloat16": 2, "float32": 4}
"""Bytes of a number."""

KV_HEADS = 8
BLOCK_SIZE = 16

_IN_TRITON = {"float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32"}
_TYPES = {
    **dict.fromkeys(("q", "k_pool", "v_pool", "k", "v", "source", "target", "out"), "dtype"),
    **dict.fromkeys(("block_tables", "seq_lens", "query_start_loc", "slot_mapping"), "*i64"),
    **dict.fromkeys(("tile_seq", "tile_first", "source_ids", "target_ids"), "*i64"),
    **dict.fromkeys(("parts", "part_lse", "lse"), "*fp32"),
    **dict.fromkeys(("split_size", "table_width", "num_splits"), "i32"),
    "scale": "fp32",
}
# Triton looks whether a launch's pointers and integers are multiples of 16. A split is whole tiles;
# a table may have any width, and the ids of a copy are two rows of one small tensor.
_ANY_MULTIPLE = {"table_width", "num_splits", "scale", "source_ids", "target_ids"}


@dataclass(frozen=True, slots=True)
class Spec:
    """One kernel as it is compiled for one shape.

    kernel: one of KERNELS. group: query heads that share a KV head. packed: K's layout. split: the
    decode writes pieces for the merge. config: in place of the shipped table's. What a kernel does
    not depend on is ignored.
    """

    kernel: str
    dtype: str
    head_dim: int
    group: int = 4
    packed: bool = False
    split: bool = False
    config: KernelConfig | None = None

    @property
    def shape(self) -> PoolShape:
        """A pool's shape; a kernel does not depend on how many blocks there are."""
        x = PACK_BYTES // DTYPES[self.dtype] if self.packed else 0
        return PoolShape(1, BLOCK_SIZE, KV_HEADS, self.head_dim, x)

    @property
    def chosen(self) -> KernelConfig | None:
        """The configuration that it is compiled with; None for a kernel without a table."""
        tables = {"decode": decode_config, "prefill": prefill_config}
        if self.config is not None or self.kernel not in tables:
            return self.config
        return tables[self.kernel](self.head_dim, DTYPES[self.dtype])

    @property
    def constants(self) -> dict[str, Any]:
        """The kernel's compile-time parameters."""
        if self.kernel == "merge":
            return constants.merge_constants(self.head_dim)
        if self.kernel == "store":
            return constants.pool_constants(self.shape)
        if self.kernel == "copy":
            return constants.copy_constants(BLOCK_SIZE * KV_HEADS * self.head_dim)
        config = self._config()
        if self.kernel == "decode":
            rows = constants.decode_rows(self.group)
        else:
            rows = constants.prefill_rows(self.group, config)
        return {**rows, **constants.attention_constants(self.shape, self.group, config)}

    @property
    def options(self) -> dict[str, Any]:
        """What Triton's compiler is told."""
        fixed = {
            "merge": constants.MERGE_OPTIONS,
            "store": constants.WRITE_OPTIONS,
            "copy": constants.COPY_OPTIONS,
        }
        return fixed.get(self.kernel) or constants.attention_options(self._config())

    def types(self, names: list[str]) -> dict[str, str]:
        """The type of each parameter, as Triton writes it; constants are "constexpr"."""
        own = _IN_TRITON[self.dtype]
        types = {name: own if kind == "dtype" else kind for name, kind in _TYPES.items()}
        if self.kernel == "decode" and self.split:
            types["out"] = "*fp32"
        return {name: "constexpr" if name in self.constants else types[name] for name in names}

    def aligned(self, names: list[str]) -> list[str]:
        """The parameters that are multiples of 16 in every launch."""
        return [name for name in names if name not in self.constants and name not in _ANY_MULTIPLE]

    def _config(self) -> KernelConfig:
        assert self.chosen is not None
        return self.chosen


def specs(kernels: tuple[str, ...] = KERNELS, *, full: bool = False) -> list[Spec]:
    """What to compile of these kernels, in the order of KERNELS. full: every combination.

    ValueError for a kernel that there is not.
    """
    for kernel in kernels:
        if kernel not in KERNELS:
            raise ValueError(f"there is no kernel {kernel!r}: choose from {', '.join(KERNELS)}")
    return [spec for kernel in KERNELS if kernel in kernels for spec in _of(kernel, full)]


def _of(kernel: str, full: bool) -> list[Spec]:
    shapes = list(product(HEAD_DIMS, DTYPES))
    layouts = (False,) if kernel in ("merge", "copy") else (False, True)
    if kernel not in ("decode", "prefill"):
        every = [Spec(kernel, dtype, dim, packed=x) for (dim, dtype), x in product(shapes, layouts)]
        return every if full else every[:: len(every) // len(HEAD_DIMS) - 1]
    if not full:
        return _part(kernel)
    groups = (*FEW_HEADS, MANY_HEADS)
    splits = (False, True) if kernel == "decode" else (False,)
    return [
        Spec(kernel, dtype, dim, group, packed, split)
        for (dim, dtype), group, packed, split in product(shapes, groups, layouts, splits)
    ]


def _part(kernel: str) -> list[Spec]:
    """Every row of the tables with few and with many heads; dtypes, layouts and splits in turn."""
    chosen: list[Spec] = []
    for i, dim in enumerate(HEAD_DIMS):
        narrow = ("float16", "bfloat16")[i % 2]
        for dtype, heads in product((narrow, "float32"), (FEW_HEADS[i % 3], MANY_HEADS)):
            number = len(chosen)
            split = kernel == "decode" and bool(number // 2 % 2)
            chosen.append(Spec(kernel, dtype, dim, heads, bool((number + i) % 2), split))
    # 80 shares its rows with 128: one of each dtype will do
    return [spec for n, spec in enumerate(chosen) if spec.head_dim != 80 or n % 4 in (0, 3)]
