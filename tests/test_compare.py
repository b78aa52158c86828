"""minipaged compare: the claims, the measures, and what the command prints."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

from minipaged.compare import OPTIONS, compare
from minipaged.compare_rows import Spread, Tally
from minipaged.compare_workloads import WORKLOADS, Asked, Drawn
from minipaged.components import SCHEDULERS
from minipaged.config import SamplingParams
from minipaged.simulate import simulate
from minipaged.viz.comparison import WAITS, WORK, idle_longest, tables
from minipaged.workload import Arrival

README = Path(__file__).parent.parent / "README.md"


def call(monkeypatch, capsys, *arguments):
    """`minipaged compare …` inside this process: exit code, stdout, stderr."""
    from minipaged import cli

    monkeypatch.setattr(sys, "argv", ["minipaged", "compare", *arguments])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    return exit_.value.code, *capsys.readouterr()


def printed(monkeypatch, capsys, *arguments):
    """The rows that --json prints, by name."""
    code, out, err = call(monkeypatch, capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return {row["name"]: row for row in json.loads(out)["rows"]}


# --- the claims, as the command gives them ------------------------------------------------------


def test_claim_e2(monkeypatch, capsys):
    rows = printed(monkeypatch, capsys, "--workload", "e2")
    static, unified = rows["static"], rows["unified"]
    assert (static["steps"], static["idle_places"]) == (338, 393)
    assert f"{static['useful']:.2%}" == "70.93%"
    assert unified["steps"] == rows["orca"]["steps"] == 279
    assert f"{static['steps'] / unified['steps']:.2f}" == "1.21"
    assert static["num_outputs"] == unified["num_outputs"] == 959


def test_claim_e7(monkeypatch, capsys):
    static = printed(monkeypatch, capsys, "--workload", "e7", "--only", "static")["static"]
    assert static["idle"] == {"A": [0, 200], "B": [195, 200], "C": [150, 200]}
    assert (static["steps"], static["padding_tokens"]) == (200, 490 + 450)


def test_claim_c21(monkeypatch, capsys):
    static = printed(monkeypatch, capsys, "--workload", "c21", "--only", "static")["static"]
    assert (static["steps"], static["idle_places"]) == (500, 1200)
    assert static["useful"] == 0.4
    assert [static["idle"][name][0] for name in "ABCD"] == [450, 0, 400, 350]


# --- the measures -------------------------------------------------------------------------------


def one(asked, name, **options):
    (row,) = compare(asked, options, [name])
    return row


def test_a_latency_is_that_of_the_clock():
    """One request: its first token after the prompt's step, then a step a token."""
    row = one([Asked("a", [1] * 20, 3.0, 5, 9)], "unified")
    trace = simulate([(20, 5)])
    seconds = [record.elapsed for record in trace.steps]
    assert row.steps == 5 and row.seconds == pytest.approx(3.0 + sum(seconds))
    assert row.ttft == pytest.approx(Spread(seconds[0], seconds[0]))
    assert row.tpot.mean == pytest.approx(sum(seconds[1:]) / 4)
    assert row.gap.mean == pytest.approx(max(seconds[1:]))


def test_requests_come_at_their_second_whatever_the_steps_take():
    asked = [Asked(str(n), [5] * 4, 0.5 * n, 3, 3) for n in range(4)]
    for name in OPTIONS:
        row = one(asked, name)
        assert row.peak_running == 1 and row.seconds > 1.5  # each is done before the next comes
        assert row.ttft.mean == pytest.approx(row.ttft.p99)


def test_memory_is_used_later_never_or_out():
    """One request of 4 + 8 tokens in blocks of 1 that may write 16, by hand.

    11 slots get a token; orca reserves 4 + 16 - 1 = 19. Steps weigh by their seconds.
    """
    asked = [Asked("a", [1] * 4, 0.0, 8, 16)]
    seconds = [record.elapsed for record in simulate([(4, 8)], block_size=1).steps]
    used = sum(t * n for t, n in zip(seconds, range(4, 12), strict=True))
    total = sum(seconds)
    orca = one(asked, "orca", block_size=1).memory
    assert orca["used"] == pytest.approx(used / (19 * total))
    assert orca["later"] == pytest.approx((11 * total - used) / (19 * total))
    assert orca["never"] == pytest.approx(8 / 19) and orca["outside"] == 0
    unified = one(asked, "unified", block_size=1).memory
    assert unified == {"used": pytest.approx(1), "later": 0, "never": 0, "outside": 0}
    paged = one(asked, "unified", block_size=8).memory  # 11 of 16 slots in the end
    held = sum(t * (8 if n <= 8 else 16) for t, n in zip(seconds, range(4, 12), strict=True))
    assert paged["used"] == pytest.approx(used / held)
    assert paged["never"] == pytest.approx(sum(seconds[5:]) * 5 / held)


def test_a_free_block_is_out_only_if_nothing_but_its_place_is_wrong():
    """Of 8 slots in a row A, B, C, D hold 2 each; A and C end, and E needs 4."""
    asked = [Asked(n, [1] * (3 - k), 0.0, k, k) for n, k in zip("ABCD", (1, 2, 1, 2), strict=True)]
    asked.append(Asked("E", [1] * 4, 0.0, 1, 1))
    options = {"block_size": 1, "num_blocks": 8}
    orca = one(asked, "orca", **options)
    assert orca.steps == 3
    # the steps take nearly the same time: 8 slots held; then 4 held and 4 out; then 4 held
    assert orca.memory["outside"] == pytest.approx(4 / (8 + 8 + 4), rel=0.01)
    assert one(asked, "static", **options).memory["outside"] == 0
    assert one(asked, "unified", **options).memory["outside"] == 0
    asked[-1] = Asked("E", [1] * 5, 0.0, 1, 1)
    assert one(asked, "orca", **options).memory["outside"] == 0  # it needs more than is free


class Slots:
    """An observer that counts, slot by slot, what the tables hold and what has a token in it."""

    def __init__(self):
        self.used = self.held = 0.0

    def event(self, kind, request_id, detail=""):
        pass

    def planned(self, engine, plan):
        manager = engine.manager
        self.now = (set(), {block for t in manager.tables.values() for block in t.block_ids})
        for name, request in manager.requests.items():
            end = request.num_computed_tokens + request.num_inflight_tokens
            self.now[0].update(manager.tables[name].slot_mapping(0, end))

    def committed(self, engine, plan, result, outputs):
        self.used += len(self.now[0]) * result.elapsed
        self.held += len(self.now[1]) * engine.manager.block_size * result.elapsed


def test_shared_blocks_count_once(lab):
    engine, tally, slots = (
        lab(block_size=4, num_blocks=60, enable_prefix_caching="hash"),
        Tally(),
        Slots(),
    )
    engine.engine.observers += [tally, slots]
    for name in "ABC":
        engine.add(name, [*range(1, 17), ord(name)], 30)
        engine.step()
    engine.run()
    row = tally.row("hash", engine.engine)
    assert row.hit_tokens == 32
    assert row.memory["used"] == pytest.approx(slots.used / slots.held)
    assert sum(row.memory.values()) == pytest.approx(1)


def test_a_wait_counts_from_the_request_not_from_the_step_that_notices_it():
    asked = [Asked("a", [1] * 20, 0.0, 5, 5), Asked("b", [2], 0.001, 1, 1)]
    row = one(asked, "unified")
    seconds = [
        record.elapsed
        for record in simulate(
            [
                Arrival("a", [1] * 20, SamplingParams(max_tokens=5), 0),
                Arrival("b", [2], SamplingParams(max_tokens=1), 1),
            ]
        ).steps
    ]
    assert row.ttft.p99 == pytest.approx(seconds[0] + seconds[1] - 0.001)
    assert row.gap.mean == row.gap.p99 > 0  # b wrote one token and has no gap
    assert one(asked[1:], "unified").gap is None and one(asked[1:], "unified").tpot is None


def test_what_is_computed_again_after_preemption_is_counted():
    asked = [Asked(n, [1] * 8, 0.0, 12, 12) for n in "AB"]
    row = one(asked, "unified", block_size=4, num_blocks=7)
    trace = simulate([(8, 12), (8, 12)], block_size=4, num_blocks=7)
    computed = sum(record.num_tokens for record in trace.steps)
    assert row.preemptions == 1 and row.recomputed_tokens == computed - 2 * 19 > 0
    assert one(asked, "orca", block_size=4, num_blocks=7).recomputed_tokens == 0


def test_the_bound_of_an_answer_costs_memory_only_where_it_is_reserved():
    work = Drawn(requests=12, output_len=(4, 8))
    tight, loose = work(), Drawn(requests=12, output_len=(4, 8), max_tokens=400)()
    assert [a[:4] for a in tight] == [a[:4] for a in loose]
    rows = [compare(asked, {"num_blocks": 200}, ["orca", "unified"]) for asked in (tight, loose)]
    assert rows[0][1].steps == rows[1][1].steps
    assert rows[0][0].peak_running == 12 > rows[1][0].peak_running
    assert rows[1][0].memory["never"] > 0.5 > rows[0][0].memory["never"]


# --- what the named workloads show --------------------------------------------------------------


def test_long_prompts_stall_nobody_but_with_prompts_first():
    work = WORKLOADS["long-prompts"]
    rows = {row.name: row for row in compare(work.make(), work.options)}
    assert rows["prefill-first"].gap.p99 > 5 * rows["unified"].gap.p99
    assert rows["static"].padding_tokens > 100_000


def test_a_shared_prefix_is_found_and_waits_are_shorter():
    work = WORKLOADS["shared-prefix"]
    rows = {row.name: row for row in compare(work.make(), work.options)}
    for name in ("unified + hash", "unified + radix"):
        assert rows[name].hit_tokens == 95 * 1024
        assert rows[name].ttft.mean < rows["unified"].ttft.mean / 2
    assert rows["unified"].hit_tokens == 0


def test_mixed_chats_lose_most_memory_to_reservations():
    work = WORKLOADS["mixed"]
    rows = {row.name: row for row in compare(work.make(), work.options)}
    assert all(row.num_outputs == rows["static"].num_outputs for row in rows.values())
    assert rows["static"].steps > rows["orca"].steps > 2 * rows["unified"].steps
    assert rows["orca"].memory["outside"] > 0.1 and rows["static"].memory["outside"] == 0
    assert rows["unified"].memory["used"] > 0.95 and rows["unified"].preemptions
    assert rows["orca"].memory["never"] > 0.5


def test_every_scheduler_that_can_be_chosen_has_a_row():
    chosen = {option.options.get("scheduler", "unified") for option in OPTIONS.values()}
    assert chosen == set(SCHEDULERS)
    assert all(option.help for option in OPTIONS.values())


# --- what is printed ----------------------------------------------------------------------------


def text_of(rows, width):
    console = Console(width=width, record=True, file=io.StringIO())
    for table in tables(rows, width):
        console.print(table)
    return console.export_text()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_table_fits_and_loses_nothing(width):
    rows = compare(WORKLOADS["e7"].make(), WORKLOADS["e7"].options)
    text = text_of(rows, width)
    assert max(map(len, text.splitlines())) <= width and "…" not in text
    for column in (*WORK, *WAITS):
        assert all(line in text for line in column.heading.splitlines())
    count = text.count("unified + radix")
    assert count == {60: 4, 80: 2, 100: 2, 200: 1}[width]
    assert text.count("940") == 1  # the padding


def test_the_command_says_what_it_shows(monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "--workload", "e7")
    assert (code, err) == (0, "")
    assert "the place of B idles longest, 195 of the 200 steps of its batch" in out
    assert max(map(len, out.splitlines())) <= 100
    for name, option in OPTIONS.items():
        assert f"{name:16}  {option.help}" in out
    assert idle_longest(compare(WORKLOADS["e7"].make(), {}, ["unified"])) == ""


def test_the_readme_shows_what_is_printed(monkeypatch, capsys):
    _, out, _ = call(monkeypatch, capsys)
    lines = [line.split() for line in out.splitlines()]
    (shown,) = re.findall(r"```\n( +time .*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(shown.splitlines()) >= 2 + 4
    assert all(line.split() in lines for line in shown.splitlines())
    rows = {row.name: row for row in compare(WORKLOADS["mixed"].make(), WORKLOADS["mixed"].options)}
    assert rows["static"].memory["never"] > 2 / 3
    assert rows["unified"].peak_running >= 3 * rows["orca"].peak_running


def test_ways_to_preempt_side_by_side():
    work = WORKLOADS["thrash"]
    rows = {row.name: row for row in compare(work.make(), work.options)}
    came = {name: (row.preemptions, row.recomputed_tokens) for name, row in rows.items()}
    assert came["chunk"] == (3, 21) and came["unified"] == (1, 11)  # case 15
    for name in ("chunk + headroom", "chunk + marks", "chunk + back-off"):
        assert came[name] == (1, 11)
    assert came["unified + swap"] == came["unified + auto"] == (1, 0)
    assert rows["unified + swap"].swapped_tokens > 0 == rows["unified"].swapped_tokens


def test_under_pressure_each_option_changes_what_is_redone():
    work = WORKLOADS["pressure"]
    names = ["unified", "unified + hash", "unified + swap", "chunk", "chunk + back-off"]
    redone = {row.name: row.recomputed_tokens for row in compare(work.make(), work.options, names)}
    assert redone["unified + swap"] == 0 < redone["unified + hash"] < redone["unified"]
    assert redone["unified"] < redone["chunk + back-off"] < redone["chunk"]


def test_options_change_the_workload(monkeypatch, capsys):
    words = "--requests 5 --output-len 3 3 --prompt-len 4 4 --arrival-rate 0 --only unified"
    rows = printed(monkeypatch, capsys, *words.split())
    assert list(rows) == ["unified"]
    assert rows["unified"]["steps"] == 3 and rows["unified"]["num_outputs"] == 15
    again = printed(monkeypatch, capsys, *words.split(), "--max-num-seqs", "2")
    assert again["unified"]["steps"] == 9 and again["unified"]["peak_running"] == 2


def test_a_plot_is_saved(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "compare.svg"
    code, out, _ = call(monkeypatch, capsys, "--workload", "c21", "--plot", str(path))
    svg = path.read_text(encoding="utf-8")
    assert code == 0 and "static" in out
    assert svg.startswith("<svg") and svg.count("prefill-first") >= 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workload", "e3"], "there is no workload 'e3': choose from e2, e7, c21, mixed"),
        (["--workload", "e2", "--requests", "3"], "workload 'e2' is fixed, but requests is given"),
        (["--only", "orka"], "there is no row 'orka': choose from static, orca"),
        (["--requests", "0"], "requests is 0"),
        (["--max-tokens", "5"], "max_tokens is 5"),
        (["--num-blocks", "1"], "the whole pool has 16"),
        (["--arrival-rate", "-1"], "arrival_rate is -1"),
        (["--plot", "picture.png"], "let the name end in .svg"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(monkeypatch, capsys, arguments, words):
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err and err.count("\n") == 1
