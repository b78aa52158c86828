"""Lesson 10: its prose says what its cells print, its oracles agree with the reference, and the
solution's index and order run a checked engine."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_driver import SCRIPTS, Driver, play

from minipaged.cache.radix_prefix import RadixPrefixCache
from minipaged.components import Components
from minipaged.config import SamplingParams
from minipaged.course import plain
from minipaged.course.catalog import catalog
from minipaged.course.checks import (
    lesson_10_answers,
    lesson_10_ideas,
    lesson_10_match,
    lesson_10_walk,
)
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.checks.lesson_10_plain import Desk, PlainIndex
from minipaged.course.fixture_pools import PlainHashPool
from minipaged.course.fixture_tree import draw_tree, plant
from minipaged.course.script import run
from minipaged.course.verdict import judge
from minipaged.sched.order import PATIENCE, WINDOW
from minipaged.simulate import simulate
from minipaged.workload import Arrival

ROOT = Path(__file__).parents[1]
STEM = "10_radix_tree"
EXERCISES = ("10.1", "10.2", "10.3", "10.4")


def prose(folder: str) -> str:
    """A source's text, line breaks and comment signs taken out."""
    text = (ROOT / folder / f"{STEM}.py").read_text(encoding="utf-8")
    return " ".join(re.findall(r"^# ?(.*)$", text, re.MULTILINE))


def outputs(folder: str) -> list[str]:
    """What each code cell of a stored notebook printed or shows as text."""
    notebook = json.loads((ROOT / folder / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(map(_text, cell["outputs"])) for cell in cells]


def _text(output: dict) -> str:
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")))


def solution() -> dict:
    """What the given and the solved cells define."""
    notebook = json.loads((ROOT / "solutions" / f"{STEM}.ipynb").read_text(encoding="utf-8"))
    defined: dict = {}
    for cell in notebook["cells"]:
        if cell["id"].startswith(("ex-", "10-given")):
            exec("".join(cell["source"]), defined)
    return defined


SOLVED = solution()


class Ordered(RadixPrefixCache):
    """The reference with its blocks in the order that scripts ask for."""

    def known_blocks(self):
        return sorted(super().known_blocks())


# --- prose and cells -----------------------------------------------------------------------------


def test_the_tree_is_told_as_it_is_drawn():
    text = prose("lessons")
    hashes, tree, inside, pages, split, half = outputs("lessons")[:6]
    assert hashes.count("hash ") == 9 and "nine, as many as blocks" in text
    drawn = re.split(r"after .*:\n", tree)[1:]
    assert "One, three, five." in text
    assert [len(lines.splitlines()) for lines in drawn] == [1, 3, 5]
    assert "on block 2 follow 3 and 6" in text
    assert "    3 -> 2\n      4 | 5 | 6 -> 3 4 5\n      9 | 9 -> 6 7\n" in drawn[2]
    assert inside == "[0, 1, 2, 3]\n"
    assert "None, and no error; then one page." in text
    assert pages.startswith("three tokens find []\n")
    assert "\n  1 2 3 4 -> 0\nqueue 1 2 3 0\n" in pages
    assert "6 and 2, in all 8" in text
    assert "protected 6 evictable 2\nMemoryError: 3 blocks asked for, but only 2" in split
    assert half.endswith("protected 3 evictable 5\n")


def test_eviction_and_twins_are_told_as_they_happen():
    text = prose("lessons")
    picture, evicted, twins = outputs("lessons")[6:9]
    assert "A frees 3 and 2" in text and "Then B frees 5, 4, 1 and 0" in text
    assert "free queue, next first: [3, 2]\n" in picture
    assert picture.rstrip().endswith("free queue, next first: [3, 2, 5, 4, 1, 0]")
    assert re.findall(r"block (\d) is handed out", evicted) == ["3", "2", "5", "4"]
    assert "A's blocks 0 and 1 stand in it" in text and "blocks 3 and 4 are free again" in text
    assert "hash  step 1: {'A': [0, 1, 2], 'B': [3, 4, 5]}, 6 free" in twins
    assert "radix step 1: {'A': [0, 1, 2], 'B': [0, 1, 5]}, 8 free" in twins


def test_the_conversation_and_the_orders_are_told_as_they_are_printed():
    text = prose("lessons")
    talk, orders, guard, sliders = outputs("lessons")[9:]
    assert re.search(r"^hash +2560 +800 ", talk, re.MULTILINE)
    assert re.search(r"^radix +2560 +800 ", talk, re.MULTILINE)
    assert talk.count("same words: True") == 3
    steps = [int(n) for n in re.findall(r"(\d+) steps", talk)]
    assert "one and a half times as many steps" in text
    assert talk.count("one match of 14 pages") == 2
    assert 1.4 < steps[1] / steps[0] < 1.6
    assert "20 · 64 = 1,280" in text and "From nothing to 1,216" in text
    assert orders == "fcfs     found     0, computed  1992\nlpm      found  1216, computed   776\n"
    assert "1,216 in place of 1,280" in text
    assert re.findall(r"find +(\d+), Z waits +(\d+)", guard) == [
        ("0", "3"),
        ("1280", "107"),
        ("1216", "35"),
    ]
    assert f"passed over so often ({PATIENCE} times in" in text
    assert "32 steps on top of the 3" in text and 3 + 4 * PATIENCE == 35
    assert re.search(r"fcfs +160 +1,832", sliders)
    assert f"(the first {WINDOW})" in text
    assert WINDOW >= 24  # all that wait in the lesson are looked at


def test_in_a_large_pool_the_order_of_arrival_finds_all():
    lesson: dict = {"random": random}
    source = (ROOT / "lessons" / f"{STEM}.py").read_text(encoding="utf-8")
    for code in re.split(r"^# %%.*$", source, flags=re.MULTILINE):
        if "def request(" in code:
            exec(code.split("twins =")[0], lesson)
        if "def prompts(" in code:
            exec(code.split("for order in")[0], lesson)

    def found(order, num_blocks):
        options = {"num_blocks": num_blocks, "max_num_seqs": 2}
        _, seen = lesson["serve"](lesson["interleaved"], order, **options)
        return {name: hits for name, (hits, _) in seen.items()}

    text = prose("lessons")
    assert "From 21 on. The four beginnings are 16 blocks" in text
    assert sum(found("fcfs", 21).values()) == 1280 > sum(found("fcfs", 20).values())
    one_page_less = [name for name, hits in found("fcfs", 20).items() if hits == 48]
    assert {name[0] for name in one_page_less} == {"A", "C"}
    assert "Longest match finds 64 less with 21 blocks, and with 32" in text
    for num_blocks in (21, 24, 32):
        by_name = found("lpm", num_blocks)
        assert sum(by_name.values()) == 1280 - 64
        assert by_name["D0"] == by_name["D1"] == 0


def test_the_lesson_is_short_enough():
    assert len(prose("lessons").split()) <= 2500


def test_the_solution_runs_as_its_prose_says():
    talk, tutor, order, faults = outputs("solutions")[-4:]
    found = re.findall(r"(\d+) blocks, (\w+) +found +(\d+), evicted +(\d+), same words: True", talk)
    assert len(found) == 6
    by_name = {(blocks, name): (int(f), int(e)) for blocks, name, f, e in found}
    assert by_name["300", "hash"] == by_name["300", "yours"] == (2560, 0)
    assert by_name["40", "yours"][0] == by_name["40", "hash"][0] < 2560
    assert 0 < by_name["40", "yours"][1] < by_name["40", "hash"][1]
    assert re.search(r"^[1-9]\d* of \d+ prompt tokens found .* class RadixIndex$", tutor, re.M)
    assert tutor.endswith("same texts as the reference: True\n")
    assert re.findall(r"find +(\d+), Z waits +(\d+)", order) == [
        ("0", "3"),
        ("1216", "35"),
        ("1280", "107"),
    ]
    assert re.search(r"LosesHalf: found (\d+), same words: True\n    every check passed", faults)
    assert re.search(r"NeverForgets: found 2560, same words: False\n    pool and prefix", faults)


# --- oracles -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_the_indexs_oracle_equals_the_reference(seed):
    check = check_of(catalog().exercise("10.2"))
    cases = check.hidden(seed)
    seen = [run(case.operations, Ordered) for case in cases]
    assert [v.problem for v in judge(check, cases, seen, "RadixIndex") if not v.passed] == []


def test_the_visible_cases_are_those_of_the_reference():
    check = check_of(catalog().exercise("10.2"))
    seen = [run(case.operations, Ordered) for case in check.visible()]
    assert all(v.passed for v in judge(check, check.visible(), seen, "RadixIndex"))


PAGES = st.lists(st.tuples(st.integers(0, 2)), min_size=1, max_size=6)


@given(st.lists(PAGES, max_size=5), PAGES)
def test_the_walks_oracle_finds_what_was_put_in(sequences, asked):
    root, ids, known = plant([[], [], []]), iter(range(100)), {}
    for pages in sequences:
        lesson_10_match._insert(root, pages, ids)
    for pages in sequences:
        _, blocks = SOLVED["match_with_split"](root, pages)
        assert len(blocks) == len(pages)
        for end, block_id in enumerate(blocks, 1):
            assert known.setdefault(tuple(pages[:end]), block_id) == block_id
    node, blocks = SOLVED["match_with_split"](root, asked)
    wanted = [known[tuple(asked[:end])] for end in range(1, 7) if tuple(asked[:end]) in known]
    assert blocks == wanted[: len(asked)]
    assert node is root if not blocks else node.block_ids[-1] == blocks[-1]
    assert not any("(" in line for line in draw_tree(root))


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_the_solution_passes_visible_and_hidden_cases(exercise_id):
    exercise = catalog().exercise(exercise_id)
    check = check_of(exercise)
    for cases in (check.visible(), *map(check.hidden, range(5))):
        seen = [run(case.operations, SOLVED[exercise.name]) for case in cases]
        assert all(v.passed for v in judge(check, cases, seen, exercise.name))


@pytest.mark.parametrize("exercise_id", ["10.1", "10.2"])
def test_every_failure_has_a_rule_and_a_picture(exercise_id):
    """Whichever operation fails first, a rule is named, and it quotes no number of the case."""
    check = check_of(catalog().exercise(exercise_id))
    for case in check.visible():
        expected = iter(check.oracle(case))
        for number, operation in enumerate(case.operations):
            want = None if operation.keep else next(expected)
            if number % 3 == 1 and number > 3:
                continue
            for got, fault in ((None, ""), (None, "KeyError"), ([99], "")):
                rule = check.explain(Failure(case, number, want, got, fault))
                assert rule
                assert not re.search(r"\d", rule.replace("above 0", "").replace("- 1)", ""))
            assert bool(check.picture(case, number)) == (number >= int(exercise_id == "10.2") + 1)


def test_no_wrong_idea_gives_the_right_answers():
    for exercise_id, ideas in (
        (
            "10.1",
            [lambda r, p, f=f: lesson_10_walk.match(r, p, f) for f in lesson_10_walk.IDEAS],
        ),
        ("10.2", [idea for idea, _ in lesson_10_ideas.MISTAKES]),
    ):
        check = check_of(catalog().exercise(exercise_id))
        cases = check.visible()
        for idea in ideas:
            seen = [run(case.operations, idea) for case in cases]
            assert not all(v.passed for v in judge(check, cases, seen, "it")), idea


def test_the_questions_are_answered_by_the_engine():
    right = {question.letter: question.answer for question in lesson_10_answers.QUESTIONS}
    desk = Desk(16, 8)
    desk.run(*range(48))
    assert 16 * len(desk.match(range(48))) == right["a"]
    driver = Driver(RadixPrefixCache, 20, 1)
    for tokens in ([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 9], [1, 2, 3, 4, 5, 0]):
        driver.run(tokens)
    assert len(driver.cache.dump().splitlines()) - 1 == right["b"]
    desk = Desk(1, 20)
    desk.compute(desk.start(range(1, 9)))
    desk.run(1, 2, 3, 9, 9, 9, 9)
    assert [desk.index.protected_tokens(), desk.index.evictable_tokens()] == right["c"]
    pool = PlainHashPool(5)
    pool.allocate(5)
    pool.share([0, 1])
    for block_id in range(5):
        pool.set_hash(block_id, b"known")
    pool.free([0, 1, 2])
    pool.free([0, 1, 3, 4])
    assert list(pool.free_queue) == right["d"]
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    twins = [Arrival(name, [*range(80)], params, 0) for name in "AB"]
    held = []
    for kind in ("hash", "radix"):
        tables = simulate(twins, enable_prefix_caching=kind).steps[1].tables
        held.append(len({block_id for table in tables.values() for block_id in table[:5]}))
    assert held == right["e"]
    assert right["f"] == PATIENCE


# --- the tree and the queue ----------------------------------------------------------------------


@settings(deadline=None)
@given(SCRIPTS, st.integers(1, 3), st.integers(4, 12))
def test_on_the_queue_every_block_stands_behind_all_blocks_below_it(script, size, num_blocks):
    def after(driver):
        place = {block_id: i for i, block_id in enumerate(driver.pool.free_queue)}

        def visit(node, above):
            for block_id in node.block_ids:
                if block_id in place:
                    assert all(place[a] > place[block_id] for a in above if a in place)
                else:
                    assert not any(a in place for a in above)
                above = [*above, block_id]
            for child in node.children.values():
                visit(child, above)

        for root in driver.cache._roots.values():
            visit(root, [])

    play(Driver(RadixPrefixCache, num_blocks, size), script, after)


# --- the learner's parts in the engine -----------------------------------------------------------


@settings(deadline=None)
@given(SCRIPTS, st.integers(1, 3), st.integers(4, 12))
def test_the_solutions_index_finds_what_the_reference_finds(script, size, num_blocks):
    def played(make):
        driver = Driver(make, num_blocks, size)
        found = play(driver, script, lambda driver: driver.check_known())
        return found, sorted(driver.cache.known_blocks()), list(driver.pool.free_queue)

    assert played(SOLVED["RadixIndex"]) == played(RadixPrefixCache) == played(PlainIndex)


def test_the_solutions_index_runs_a_checked_engine(lab):
    def served(components):
        made = lab(components=components, block_size=4, num_blocks=14, max_num_seqs=3)
        for name, prompt, output in (("a", 8, 12), ("b", 5, 20), ("c", 11, 7), ("d", 3, 16)):
            made.add(name, prompt, output)
        made.run()
        made.assert_clean()
        return made.outputs

    yours = replace(Components(), prefix_cache=SOLVED["RadixIndex"])
    assert served(yours) == served(Components())


class Order:
    """The engine's order, made of the solution's pick_next."""

    def __init__(self):
        self.passed, self.first, self.chosen = 0, None, None

    def __call__(self, waiting, manager):
        line = {request.request_id: request for request in waiting}
        first = next(iter(line))
        if first != self.first:
            self.first, self.passed = first, 0
        elif self.chosen not in line:
            self.passed += 1
        lengths = {name: len(manager.prefix.match(one)) for name, one in line.items()}
        self.chosen = SOLVED["pick_next"](list(line), lengths, self.passed, PATIENCE)
        return line[self.chosen]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(8, 20))
def test_the_solutions_order_is_the_engines(groups, num_blocks):
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    arrivals = [
        Arrival(str(i), [*range(100 * g, 100 * g + 12), 1000 + i], params, i // 2)
        for i, g in enumerate(groups)
    ]

    def served(**order):
        options = {"num_blocks": num_blocks, "block_size": 4, "max_num_seqs": 1}
        trace = simulate(arrivals, enable_prefix_caching="radix", **options, **order)
        return [(record.tables, record.waiting) for record in trace.steps]

    assert served(components=replace(Components(), order=Order())) == served(order="lpm")


def test_scripts_draw_what_they_planted():
    outline = [[], [], [[[(1,), (2,)], [7, 8], [[[(3,)], [9], []]]]]]
    root = plant(outline)
    assert draw_tree(root) == ["1 | 2 -> 7 8", "  3 -> 9"]
    root.children[(1,)].children[(3,)].parent = root
    assert draw_tree(root)[1] == "  3 -> 9 (its parent is another node)"
    root.children[(5,)] = root.children.pop((1,))
    assert draw_tree(root)[0] == "1 | 2 -> 7 8 (stands under page (5,))"
    assert plain.same(plain.decode(plain.encode(draw_tree(root))), draw_tree(root))
