"""Claims and cases that the course refers to by id: what they say, and what is so. No torch.

A claim (E1, C4) is a figure or a statement that two texts on serving make; `holds` is what comes
out when it is recomputed or examined. A case (1 to 50) is a situation that a public tracker
reports, reduced to small numbers with a right answer.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

CLAIMS = Path(__file__).with_name("claims.toml")
CASES = Path(__file__).with_name("cases.toml")


class ReferencesError(ValueError):
    """claims.toml or cases.toml contradicts itself; the message says where and what to mend."""


@dataclass(frozen=True, slots=True)
class Claim:
    """says: what is claimed. holds: what is so, with the right figures."""

    id: str
    says: str
    holds: str


@dataclass(frozen=True, slots=True)
class FieldCase:
    """sources: where it was reported, such as "vllm#3347". story: the situation and the right
    answer. Sizes are in tokens and blocks; `bs` is the block size."""

    number: int
    title: str
    sources: tuple[str, ...]
    story: str


def claim(claim_id: str) -> Claim:
    """The claim with this id, such as "E1"; ValueError names those that exist."""
    for one in all_claims():
        if one.id == claim_id:
            return one
    known = " and ".join(
        _range([one.id for one in all_claims() if one.id.startswith(kind)]) for kind in "EC"
    )
    raise ValueError(f"there is no claim {claim_id!r}; there are {known}")


def case(number: int) -> FieldCase:
    """The case with this number; ValueError names those that exist."""
    for one in all_cases():
        if type(number) is int and one.number == number:
            return one
    known = _range([str(one.number) for one in all_cases()])
    raise ValueError(f"there is no case {number!r}; there are {known}")


@functools.cache
def all_claims() -> tuple[Claim, ...]:
    """Every claim, in order (read once, then kept)."""
    return read_claims(CLAIMS)


@functools.cache
def all_cases() -> tuple[FieldCase, ...]:
    """Every case, in order (read once, then kept)."""
    return read_cases(CASES)


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The [[claim]] entries of a file; ReferencesError says what to mend."""
    entries = _read(path, "claim", Claim)
    for entry in entries:
        if not re.fullmatch(r"[EC][1-9]\d?", str(entry["id"])):
            raise ReferencesError(f"{path.name}: id is {entry['id']!r}: give one such as 'E3'")
    _require_unique(path, [entry["id"] for entry in entries])
    return tuple(Claim(**entry) for entry in entries)


def read_cases(path: Path) -> tuple[FieldCase, ...]:
    """The [[case]] entries of a file; ReferencesError says what to mend."""
    entries = _read(path, "case", FieldCase)
    for entry in entries:
        if type(entry["number"]) is not int or entry["number"] < 1:
            raise ReferencesError(
                f"{path.name}: number is {entry['number']!r}: give a whole number from 1 on"
            )
        if not (entry["sources"] and all(isinstance(s, str) for s in entry["sources"])):
            raise ReferencesError(
                f"{path.name}, case {entry['number']}: sources is {entry['sources']!r}: give where "
                "it was reported, such as ['vllm#3347']"
            )
    _require_unique(path, [entry["number"] for entry in entries])
    return tuple(FieldCase(**{**e, "sources": tuple(e["sources"])}) for e in entries)


def _read(path: Path, table: str, cls: type[Any]) -> list[dict[str, Any]]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReferencesError(f"{path.name} is not valid TOML in UTF-8: {error}") from None
    names = [field.name for field in fields(cls)]
    entries = data.get(table, [])
    for number, entry in enumerate(entries, 1):
        where = f"{path.name}, {table} number {number}"
        if set(entry) != set(names):
            raise ReferencesError(
                f"{where} has {', '.join(entry)}: it needs exactly {', '.join(names)}"
            )
        for name, value in entry.items():
            if isinstance(value, str) and not value.strip():
                raise ReferencesError(f"{where}: {name} is {value!r}: write a sentence")
    return entries


def _require_unique(path: Path, names: Sequence[Any]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ReferencesError(
                f"{path.name}: two entries are called {name!r}: give one another name"
            )


def _range(names: Sequence[str]) -> str:
    return f"{names[0]}–{names[-1]}" if names else "none"
