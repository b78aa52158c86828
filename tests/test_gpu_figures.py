"""What the GPU scripts compute and how they time, with figures worked out by hand."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from minipaged.kernels import configs
from minipaged.kernels.configs import KernelConfig

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from gpu_bench import clocks, figures, report
from gpu_bench.figures import Heads

SHIPPED = KernelConfig(tile=64, num_warps=4, num_stages=3)
OTHER = replace(SHIPPED, tile=32)


def test_bytes_moved_by_hand():
    # 2 sequences of 20 and 1 keys, 2 KV heads of 8 numbers of 2 bytes: K and V 2 * 21 * 2 * 8 * 2;
    # q and output 2 * 2 * 4 * 8 * 2; blocks of 16: 2 + 1 entries of 8 bytes
    heads = Heads(query=4, kv=2, dim=8)
    assert figures.bytes_moved(heads, [20, 1], 16, 2) == 1344 + 256 + 24
    assert figures.bytes_moved(heads, [], 16, 2) == 0
    # Llama-3-8B, 64 sequences at 4k in 16 bits: 1 GiB of keys and values
    big = figures.bytes_moved(Heads(32, 8, 128), [4096] * 64, 16, 2)
    assert big == 2**30 + 2 * 64 * 32 * 128 * 2 + 64 * 256 * 8


def test_rates_and_working_sets_by_hand():
    assert figures.gb_per_s(3_000_000, 2000.0) == 1.5  # 3 MB in 2 ms
    assert figures.rotations(4 * 2**20, 50 * 2**20) == 50  # 200 MiB at 4 MiB each
    assert figures.rotations(3 * 2**20, 50 * 2**20) == 67
    assert figures.rotations(2**30, 50 * 2**20) == 1
    assert figures.rotations(1, 50 * 2**20) == 128  # no more than that
    assert figures.rotations(100, 0) == 1  # a CPU has no L2 that is asked for


@pytest.mark.parametrize(
    ("pieces", "longest", "size"), [(1, 1000, 1024), (3, 1000, 384), (16, 1000, 64), (99, 1000, 64)]
)
def test_split_sizes_are_whole_tiles(pieces, longest, size):
    assert figures.split_size_of(pieces, longest, 64) == size
    assert -(-longest // size) <= pieces


def test_heads_are_read_or_refused():
    assert Heads.parse("32/8/128") == (32, 8, 128)
    for text in ("32/8", "a/b/c", "33/8/128", "0/1/2"):
        with pytest.raises(ValueError, match=f"--shape is '{text}'"):
            Heads.parse(text)


def test_the_fastest_over_all_shapes_is_chosen():
    # 80/100 and 60/50: the geometric mean of 0.8 and 1.2 is sqrt(0.96) = 0.9798
    times = {SHIPPED: {"a": 100.0, "b": 50.0}, OTHER: {"a": 80.0, "b": 60.0}}
    choice = figures.choose(times, SHIPPED)
    assert (choice.config, choice.measured) == (OTHER, 2)
    assert choice.ratio == pytest.approx(math.sqrt(0.96))


def test_a_gain_within_the_noise_changes_nothing():
    times = {SHIPPED: {"a": 100.0}, OTHER: {"a": 98.0}}
    assert figures.choose(times, SHIPPED).config == SHIPPED
    assert figures.choose(times, SHIPPED, margin=0.01).config == OTHER


def test_a_variant_that_lacks_a_shape_does_not_compete():
    times = {SHIPPED: {"a": 100.0, "b": 50.0}, OTHER: {"a": 1.0}}
    assert figures.choose(times, SHIPPED) == (SHIPPED, 1.0, 1)


def test_if_the_shipped_one_does_not_run_the_fastest_is_chosen():
    third = replace(OTHER, tile=128)
    choice = figures.choose({OTHER: {"a": 2.0}, third: {"a": 1.0}}, SHIPPED)
    assert (choice.config, choice.measured) == (third, 2)
    assert math.isnan(choice.ratio)
    assert figures.choose({}, SHIPPED).config == SHIPPED


def test_a_table_is_printed_as_configs_holds_it():
    for name in ("_DECODE", "_PREFILL"):
        table = getattr(configs, name)
        text = figures.table_text(name, {key: (config, "remark") for key, config in table.items()})
        scope: dict = {"KernelConfig": KernelConfig}
        exec(text, scope)
        assert scope[name] == table
        source = Path(configs.__file__).read_text(encoding="utf-8")
        plain = figures.table_text(name, {key: (config, "") for key, config in table.items()})
        assert all(line in source for line in plain.splitlines() if "Config" in line)
    assert figures.config_text(replace(SHIPPED, carry=False, rows=32)).endswith(
        "carry=False, rows=32)"
    )


def test_a_configuration_fits_a_cell():
    assert figures.short_text(SHIPPED) == "tile 64, warps 4, stages 3"
    told = figures.short_text(replace(SHIPPED, carry=False, rows=32))
    assert told == "tile 64, warps 4, stages 3, no carry, rows 32"


def test_neighbours_differ_in_one_figure():
    found = figures.neighbours(SHIPPED, {"carry": (True, False), "tile": (32, 64)})
    assert found == [SHIPPED, replace(SHIPPED, carry=False), OTHER]


def test_a_section_says_what_its_time_did_not_allow():
    ticks = iter([0.0, 1.0, 5.0])
    section = report.Section("a", "A", "", seconds=2.0, now=lambda: next(ticks))
    section.begin()
    assert not section.over("first")
    assert section.over("second")
    assert section.left_out == ["second (time)"]
    assert not report.Section("a", "A", "", seconds=None).over("anything")


# the clock, with a card that counts what is asked of it


class FakeCuda:
    """A card on which a call takes 2 ms, and launching costs 1 ms more; replays launch once."""

    def __init__(self, captures: bool = True) -> None:
        self.now, self.captures, self.capturing, self.log = 0.0, captures, False, []
        self.stream = "default"

    def current_stream(self) -> str:
        return self.stream

    def set_stream(self, stream: str) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        assert not self.capturing
        self.log.append("synchronize")

    def Event(self, enable_timing: bool):  # noqa: N802
        assert enable_timing
        event = SimpleNamespace(at=None)
        event.record = lambda: setattr(event, "at", self.now)
        event.elapsed_time = lambda other: other.at - event.at
        return event

    def CUDAGraph(self):  # noqa: N802
        graph = SimpleNamespace(calls=0)
        graph.replay = lambda: setattr(self, "now", self.now + 1 + 2 * graph.calls)
        return graph

    def graph(self, graph):
        return Capture(self, graph)

    def call(self, name: str) -> None:
        self.log.append(name)
        if self.capturing:
            self.capturing.calls += 1
        else:
            self.now += 3


class Capture:
    def __init__(self, card: FakeCuda, graph) -> None:
        self.card, self.graph = card, graph

    def __enter__(self) -> None:
        self.card.stream = "capture"
        if not self.card.captures:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        self.card.capturing = self.graph

    def __exit__(self, *_) -> None:
        self.card.capturing, self.card.stream = False, "default"


def test_the_clock_takes_calls_in_turn_and_divides_a_graph_by_them():
    card = FakeCuda()
    calls = [lambda: card.call("a"), lambda: card.call("b")]
    timing = clocks.CudaClock(card, seconds=10).measure(calls, reps=20)
    assert timing == (3000.0, 2500.0, 20, "")  # ms in us; (1 + 2 * 2) / 2
    assert (timing.best, timing.by) == (2500.0, "graph")
    made = [name for name in card.log if name != "synchronize"]
    assert made == ["a", "b", "a", *["a", "b"] * 10, "a", "b"]  # warm, first, reps, capture


def test_without_a_graph_the_clock_says_why():
    card = FakeCuda(captures=False)
    timing = clocks.CudaClock(card, seconds=10).measure([lambda: card.call("a")])
    assert (timing.graph, timing.best, timing.by) == (None, 3000.0, "eager")
    assert card.stream == "default"
    assert timing.remark == (
        "no graph: RuntimeError: operation not permitted when stream is capturing"
    )


def test_slow_calls_get_fewer_repetitions():
    card = FakeCuda()
    clock = clocks.CudaClock(card, seconds=0.015)  # five calls of 3 ms
    assert clock.measure([lambda: card.call("a")], reps=20).reps == 5
    assert clocks.CudaClock(card, seconds=0.001).measure([lambda: card.call("a")]).reps == 3
