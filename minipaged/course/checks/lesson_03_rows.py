"""A pool as a plain list of rows, one a slot: writing to it and reading from it, without torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from minipaged.course.plain import Array

Row = list[float]


def rows_of(pool: Array, lead: int = 2) -> list[Row]:
    """The array's numbers, cut into rows; the first `lead` dimensions count the rows.

    A pool [num_blocks, block_size, heads, dim] gives a row a slot.
    """
    width = math.prod(pool.shape[lead:])
    numbers = list(pool.numbers())
    return [numbers[start : start + width] for start in range(0, len(numbers), width)]


def array_of(like: Array, shape: Iterable[int], rows: Iterable[Row]) -> Array:
    """Rows as an array with the dtype of another one."""
    return Array.of(like.dtype, shape, [number for row in rows for number in row])


def ints(array: Array) -> list[int]:
    """The numbers of an array of whole numbers."""
    return [int(number) for number in array.numbers()]


def put(pool: Array, slots: Array, new: Array) -> Array:
    """The pool after row i of `new` went to slot slots[i]."""
    rows = rows_of(pool)
    for slot, row in zip(ints(slots), rows_of(new, 1), strict=True):
        rows[slot] = row
    return array_of(pool, pool.shape, rows)


def gather(pool: Array, table: Array, num_tokens: int) -> Array:
    """The rows of num_tokens tokens: block after block of the table, until there are enough."""
    size = pool.shape[1]
    read: list[Row] = []
    for block in ints(table):
        read += rows_of(pool)[block * size : (block + 1) * size] if len(read) < num_tokens else []
    return read_array(pool, read[:num_tokens])


def read_array(pool: Array, read: Sequence[Row]) -> Array:
    """What was read, as [tokens, heads, dim]."""
    return array_of(pool, (len(read), *pool.shape[2:]), read)
