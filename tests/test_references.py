"""Claims and cases: all are there, each can be looked up, and the figures in them are right."""

from __future__ import annotations

import dataclasses
import random

import pytest

from minipaged.course import references
from minipaged.course.references import all_cases, all_claims, case, claim


def test_every_claim_and_case_is_there_and_says_something():
    wanted = [f"E{n}" for n in range(1, 8)] + [f"C{n}" for n in range(1, 25)]
    assert [one.id for one in all_claims()] == wanted
    assert [one.number for one in all_cases()] == list(range(1, 51))
    for one in all_claims():
        assert claim(one.id) is one
        assert len(one.says) > 20
        assert len(one.holds) > 10
    for one in all_cases():
        assert case(one.number) is one
        assert len(one.title) > 5
        assert len(one.story) > 40
        assert one.sources
        assert all(source.count("#") == 1 for source in one.sources)


def test_entries_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        claim("E1").says = "nothing"
    with pytest.raises(dataclasses.FrozenInstanceError):
        case(10).title = "nothing"


@pytest.mark.parametrize("unknown", ["E8", "C0", "C25", "c1", "", "E1 "])
def test_an_unknown_claim_names_those_that_exist(unknown):
    with pytest.raises(ValueError, match=r"there is no claim '.*'; there are E1–E7 and C1–C24"):
        claim(unknown)


@pytest.mark.parametrize("unknown", [0, 51, -1])
def test_an_unknown_case_names_those_that_exist(unknown):
    with pytest.raises(ValueError, match=rf"there is no case {unknown}; there are 1–50"):
        case(unknown)


@pytest.mark.parametrize("unknown", ["10", 10.0, True, None])
def test_a_case_is_asked_for_by_a_whole_number(unknown):
    with pytest.raises(ValueError, match="there is no case"):
        case(unknown)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[claim]]\nid = "X1"\nsays = "a"\nholds = "b"\n', "id is 'X1'"),
        ('[[claim]]\nid = "E1"\nsays = "a"\n', "needs exactly id, says, holds"),
        ('[[claim]]\nid = "E1"\nsays = "a"\nholds = "b"\nmore = 1\n', "needs exactly"),
        ('[[claim]]\nid = "E1"\nsays = "a"\nholds = " "\n', "holds is ' '"),
        ('[[claim]]\nid = "E2"\nsays = "a"\nholds = "b"\n' * 2, "two entries are called 'E2'"),
        ("[[claim", "not valid TOML"),
    ],
)
def test_a_broken_file_says_what_to_mend(tmp_path, text, message):
    path = tmp_path / "claims.toml"
    path.write_text(text)
    with pytest.raises(references.ReferencesError) as caught:
        references.read_claims(path)
    assert message in str(caught.value)
    assert "claims.toml" in str(caught.value)


# the figures, computed once more


def test_fragmentation_figures():
    rng = random.Random(2026)
    lengths = [rng.randint(40, 600) for _ in range(100)]
    used, reserved, blocks = sum(lengths), 100 * 2048, sum(-(-n // 16) for n in lengths)
    contiguous, tail = reserved - used, blocks * 16 - used
    assert_says(
        claim("E1"),
        f"{reserved:,}", f"{used:,}", f"{contiguous:,}", f"{used / reserved:.2%}",
        f"{blocks:,}", f"{blocks * 16:,}", f"{tail} ", f"{used / (blocks * 16):.2%}",
        f"{reserved / (blocks * 16):.2f}",
    )  # fmt: skip


def test_batching_figures():
    rng = random.Random(42)
    lengths = [rng.randint(10, 120) for _ in range(16)]
    static = sum(max(lengths[i : i + 4]) for i in range(0, 16, 4))
    slots = [0] * 4
    for length in lengths:
        slots[slots.index(min(slots))] += length
    continuous, idle = max(slots), static * 4 - sum(lengths)
    assert_says(
        claim("E2"),
        " ".join(map(str, lengths)), f"{static} steps", f"{idle} ",
        f"{sum(lengths) / (4 * static):.2%}", f"{continuous} steps", f"{static - continuous} ",
        f"{static / continuous:.2f}", f"{-(-sum(lengths) // 4)}",
    )  # fmt: skip


def test_arithmetic_figures():
    assert_says(claim("E3"), f"{142 * 16 + 37 % 16}")
    models = [(32, 32), (40, 40), (32, 8), (80, 8)]
    per_token = [2 * layers * heads * 128 * 2 for layers, heads in models]
    assert_says(claim("E4"), *(f"{n:,}" for n in per_token))
    assert_says(claim("E5"), f"{8192 * per_token[0] // 2**30} GiB", "64 GiB")
    assert_says(claim("E6"), f"{-(-4000 // 512)} chunks", f"{4000 % 512}")
    assert_says(claim("E7"), f"{200 - 5} of 200")
    assert_says(claim("C1"), f"{per_token[1]:,}", f"{54e9 / (per_token[1] * 2048):.1f}")
    mean, square = 250, sum(n * n for n in range(50, 451)) / 401
    assert_says(claim("C2"), f"{square / (2 * 2048 * mean):.1%}")
    assert_says(claim("C3"), f"{400 / 4096:.2%}")
    parameters = [6.738e9, 13.016e9, 8.030e9, 70.554e9]
    for kv, size in zip(per_token, parameters, strict=True):
        swap, recompute = 2e6 * kv / 32e9, 2e6 * size / 500e12  # ms, swap there and back
        assert_says(claim("C4"), f"{swap:.1f} against {recompute:.3g}")
    assert_says(claim("C6"), f"{16384 * per_token[3] / 1e9:.2f} GB")
    assert_says(claim("C7"), f"{989 / 3.35:.0f}", f"{128 / (989 / 3.35):.0%}")
    assert_says(claim("C11"), f"{1e18 / 2**65:.1%}")
    assert_says(claim("C21"), f"{1 - 800 / 2000:.1%}")
    assert_says(claim("C22"), f"{280 / 42:.2f}")
    assert_says(claim("C23"), "108 of 128", f"{108 / 128:.0%}")


def assert_says(one, *figures: str) -> None:
    for figure in figures:
        assert figure in one.holds, f"{one.id} does not say {figure}: {one.holds}"
