"""Lesson 09: its prose says what its cells print, its oracles agree with the reference classes, and
the solution's classes run a checked engine."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.cache.hash_prefix import HashPrefixCache
from minipaged.cache.pool import BlockPool
from minipaged.components import Components
from minipaged.course import plain
from minipaged.course.catalog import catalog
from minipaged.course.checks import lesson_09_answers
from minipaged.course.checks.base import Failure, check_of
from minipaged.course.checks.lesson_09_chain import MISTAKES, Way, follow
from minipaged.course.checks.lesson_09_flaws import FLAWS
from minipaged.course.checks.lesson_09_models import IndexModel, PoolModel, came_of
from minipaged.course.expect import Raises
from minipaged.course.fixture_pools import PlainHashes, one_hash
from minipaged.course.script import Case, Operation, run
from minipaged.course.verdict import judge
from minipaged.exec.sim_exec import CostModel
from minipaged.model.tokenizer import SYSTEM_PROMPT, TutorTokenizer

ROOT = Path(__file__).parents[1]
LESSON = (ROOT / "lessons/09_prefix_hash.py").read_text(encoding="utf-8")
SOLUTION = (ROOT / "solutions/09_prefix_hash.py").read_text(encoding="utf-8")
MARKDOWN = re.findall(r"^# (?:> )?(.*)$", LESSON, re.MULTILINE)
PROSE = " ".join(MARKDOWN)
SOLUTION_PROSE = " ".join(re.findall(r"^# ?(.*)$", SOLUTION, re.MULTILINE))
IDS = ["09.1", "09.2", "09.3", "09.4"]


def outputs(path: str) -> list[str]:
    """The text of what each code cell of a stored notebook put out, in order."""
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    said = []
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        texts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell["outputs"]]
        said.append("".join("".join(text) for text in texts))
    return said


@pytest.fixture(scope="module")
def printed():
    """The lesson's outputs, found by words that stand in them."""
    said = outputs("lessons/09_prefix_hash.ipynb")

    def find(*words: str) -> str:
        (one,) = [text for text in said if all(word in text for word in words)]
        return one

    return find


def solved(exercise_id: str):
    """What the solution's cell of an exercise defines."""
    pattern = rf'# %% exercise="{re.escape(exercise_id)}"\n(.*?)\n# %% check'
    namespace: dict[str, object] = {}
    exec(re.search(pattern, SOLUTION, re.DOTALL)[1], namespace)
    return namespace[catalog().exercise(exercise_id).name]


def says(sentence: str) -> bool:
    """Whether the lesson's prose holds a sentence, however it is broken into lines."""
    return sentence in PROSE


# --- prose and cells -----------------------------------------------------------------------------


def test_the_share_that_is_computed_twice():
    assert says("3,000 of 3,030, or 99.0 %. Whole blocks only: with blocks of 16 those are 187")
    assert says("2,992 tokens")
    assert f"{3000 / 3030:.1%}" == "99.0%"
    assert (3000 // 16, 3000 // 16 * 16) == (187, 2992)


def test_the_run_is_told_as_it_goes():
    code = LESSON.split("# %%\n")[1].split("# %% [markdown]")[0]
    namespace: dict[str, object] = {}
    exec(code, namespace)
    trace = namespace["trace"]
    assert says("Their tables begin with A's blocks 0, 1 and 2")
    assert says("B computes 5 tokens of 17 and C one of 13")
    tables = trace.steps[2].tables
    assert all(tables[name][:3] == [0, 1, 2] for name in "ABC")
    work = {w.request_id: w for w in trace.steps[2].work}
    assert (work["B"].num_tokens, trace.steps[2].known["B"]) == (5, 17)
    assert (work["C"].num_tokens, trace.steps[2].known["C"]) == (1, 13)
    assert says("Step on to 10: the others have left, all blocks were free, and D still begins")
    assert list(trace.steps[10].tables) == ["D"]
    assert trace.steps[10].tables["D"][:3] == [0, 1, 2]
    assert trace.steps[10].work[0].start_position == 12


def test_an_index_without_parents_gives_a_wrong_answer(printed):
    table = re.findall(r"^(.{11})(.)  table (.*)  tokens (.*)$", printed("own tokens"), re.M)
    got = {(name.strip(), who): (blocks, tokens) for name, who, blocks, tokens in table}
    right = got["no cache", "B"][1]
    assert says("C's prompt is B's, so its answer must be B's. With this index it is another one.")
    assert says("C's table is `[2, 1, 4]`")
    assert got["own tokens", "C"][0] == "[2, 1, 4]"
    assert got["own tokens", "C"][1] != right
    others = [key for key in got if key != ("own tokens", "C")]
    assert len(others) == 5
    assert {got[key][1] for key in others} == {right}


def test_keys_of_whole_prefixes_are_long():
    assert says("16 · 256 · 257 / 2 = 526,336 tokens for 4,096")
    assert sum(range(16, 4097, 16)) == 526_336 == 16 * 256 * 257 // 2


def test_equal_blocks_have_different_hashes(printed):
    hashes = re.findall(r"hash (\w{16})…", printed("block 3: 9 9 9 9"))
    assert len(hashes) == len(set(hashes)) == 4


def test_the_birthday_bound(printed):
    assert says("2⁶⁵ is 3.7 · 10¹⁹")
    assert f"{2**65:.1e}" == "3.7e+19"
    assert says("10⁹ blocks two of them agree with probability 2.7 %")
    assert says("With all 256 bits it is 4.3 · 10⁻⁶⁰")
    rows = printed("256 bits").splitlines()
    assert rows[0].endswith("10^9 blocks 2.7e-02")
    assert rows[2].endswith("10^9 blocks 4.3e-60")
    assert says("2³² tries, about 4 · 10⁹")
    assert 2**32 // 10**9 == 4


def test_only_one_pair_of_salt_and_adapter_finds_it(printed):
    assert [line[-3:] for line in printed("adapter 'X'").splitlines()] == ["[0]", " []", " []"]


def test_when_a_block_is_known(printed):
    text = printed("A  step 0")
    found = re.findall(r"^(\w)  step (\d): found (\d), computed (\d)$", text, re.MULTILINE)
    assert found == [tuple("A009"), tuple("B009"), tuple("C181"), tuple("D244")]
    assert says("A and B find nothing")
    assert says("C finds 8. Not 9")
    assert says("D asks for 8 tokens, and 8 are known. It finds 4.")


def test_the_order_of_reuse(printed):
    assert printed("after A has finished").endswith("[3, 5, 6, 7, 2, 1, 0]")
    assert says("3 comes first")
    assert says("Of A's prefix block 2 goes before 1 and 0")


def test_a_preempted_request_finds_its_own(printed):
    off, on = printed("B comes back").splitlines()
    assert off.split()[4:] == "0 found, 17 computed; 62 tokens computed in all".split()
    assert on.split()[4:] == "12 found, 5 computed; 50 tokens computed in all".split()
    assert says("These 12 are not counted in `prefix_cache_hits_total`")


def test_its_own_blocks_are_not_counted_as_hits(lab):
    made = lab(enable_prefix_caching="hash", block_size=4, num_blocks=9)
    made.add("a", 10, 14)
    made.add("b", 10, 14)
    made.run()
    metrics = made.engine.metrics
    assert metrics.num_preemptions_total > 0
    assert metrics.prefix_cache_hits_total == 0


def test_what_it_costs(printed):
    lines = printed("fewest free blocks").splitlines()
    assert says("in a pool of 16 blocks that is too small for all of them at once")
    without, with_it = lines[0].split()[-2:]
    assert without == with_it
    assert lines[1].split()[-2:] == ["0", "0"]
    assert lines[2].endswith("True")
    took = re.search(r"a block: (\d+) µs to publish, (\d+) µs to compute", printed("to publish"))
    assert int(took[1]) < int(took[2]) == round(1e6 * 16 * 16.06e9 / 989e12)


def test_what_it_saves(printed):
    rows = [line.split() for line in printed("TTFT of A and B").splitlines()[1:]]
    table = {(int(r[0]), int(r[1])): (r[2], r[-2]) for r in rows}
    assert table[3000, 30] == ("99.0%", "86%")
    assert says("In the first line the prefix is 99.0 % of the prompt, and only 86 % of the time")
    assert says("so 38 tokens are computed")
    assert says("the model's weights still have to be read once, which takes longer than that")
    assert 3030 - 2992 == 38
    cost = CostModel()
    reading = cost.weight_bytes / cost.memory_bandwidth
    assert reading > 38 * cost.flop_per_token / cost.peak_flops
    assert table[8000, 500] == ("94.1%", "93%")
    assert says("With 500 behind 8,000 TTFT falls by 93 %")
    assert says("30 tokens behind 3,000, and 12,000 to 3,429 behind 8,000")
    assert (table[8000, 12000][0], table[8000, 3429][0]) == ("40.0%", "70.0%")
    assert (table[8000, 12000][1], table[8000, 3429][1]) == ("40%", "69%")


def test_tokens_computed_in_the_interactive_part(printed):
    rows = [line.split() for line in printed("shared beginning").splitlines()]
    assert says("100 + 7 · 4 = 128")
    hash_row = next(row for row in rows if row and row[0] == "hash")
    assert hash_row[1:] == ["128", str(8 * 20 + 8)]


def test_the_lesson_is_short_enough():
    assert len(PROSE.split()) <= 2500


def test_the_solution_runs_as_its_prose_says():
    def says(words: str) -> bool:
        return words in SOLUTION_PROSE

    said = outputs("solutions/09_prefix_hash.ipynb")
    (parts,) = [text for text in said if "calls of your index" in text]
    assert re.search(r"'forgotten blocks': [1-9]", parts)
    assert parts.count("True") == 2
    without, with_yours = map(int, re.search(r"with yours: (\d+) (\d+)", parts).groups())
    assert with_yours < without
    (tutor,) = [text for text in said if "tokens found" in text]
    assert "208 of 352 tokens found" in tutor
    assert tutor.endswith("same texts as the reference: True\n")
    assert says("It puts the same 70 tokens before every question: a mark, a system prompt of 68")
    shared = TutorTokenizer().prompt_ids("a")[:-2]
    assert (len(shared), len(SYSTEM_PROMPT)) == (70, 68)
    assert shared == TutorTokenizer().prompt_ids("b")[:-2]
    assert says("4 whole blocks of the 70 tokens are 64, and three questions find them: 192")
    assert says("The other 16")
    assert 192 + 16 == 208
    (weak,) = [text for text in said if text.startswith("tokens computed:")]
    assert with_yours < int(weak.split()[2]) < without
    assert weak.endswith("True\n")
    (parents,) = [text for text in said if "NoParent" in text]
    right, wrong = (re.findall(r"\[[^]]*\]", line) for line in parents.splitlines())
    assert right[0] == right[1] == wrong[0] != wrong[1]
    (early,) = [text for text in said if "TooEarly" in text]
    tokens = re.findall(r"\[[^]]*\]", early)
    assert tokens[0] == tokens[1] != tokens[2]
    assert "InvariantError" in early


def test_a_known_block_takes_400_to_500_bytes():
    import tracemalloc

    assert says("400 to 500 bytes a known block here, beside the 2 MiB")
    pool, block_ids = BlockPool(4096), list(range(4096))
    tracemalloc.start()
    index = HashPrefixCache(16, pool)
    index.publish(range(16 * 4096), block_ids, 0, 4096, ("", ""))
    size = tracemalloc.get_traced_memory()[0] / 4096
    tracemalloc.stop()
    assert 380 < size < 520


def test_what_is_lost_of_prompts_that_never_repeat():
    pool = BlockPool(8)
    index = HashPrefixCache(4, pool)
    for first in (10, 20, 30):
        block_ids = pool.allocate(2)
        index.publish(range(first, first + 8), block_ids, 0, 2, ("", ""))
        pool.free(block_ids)
    num_free = pool.num_free
    handed_out = pool.allocate(5)
    known = [i for i in range(8) if pool.block_hash(i) is not None]
    (asked,) = [q for q in lesson_09_answers.QUESTIONS if q.letter == "g"]
    assert asked.answer == [num_free, 6 - len(known)]
    assert not set(known) & set(handed_out)


# --- oracles -------------------------------------------------------------------------------------

TOKENS = st.lists(st.sampled_from([1, 2, 12]), max_size=9)
KEYS = st.sampled_from([("", ""), ("X", ""), ("", "X")])


@given(st.lists(TOKENS, min_size=2, max_size=2), st.integers(1, 4), st.lists(KEYS, min_size=2))
def test_digests_are_equal_exactly_if_the_prefixes_are(prompts, size, keys):
    one, other = (follow(Way(), p, size, k) for p, k in zip(prompts, keys[:2], strict=True))
    for number, (a, b) in enumerate(zip(one, other, strict=False), 1):
        same = keys[0] == keys[1] and prompts[0][: number * size] == prompts[1][: number * size]
        assert (a == b) == same


def test_every_mistake_of_the_chain_is_told_apart_by_the_visible_cases():
    """No two ways give the same digests in all of them, and none gives the right ones."""
    calls = [o.args for case in check_of(catalog().exercise("09.1")).visible() for o in case[2]]
    ways = [Way(), *(way for way, _ in MISTAKES)]
    came = [str([follow(way, *args) for args in calls]) for way in ways]
    assert len(set(came)) == len(ways)


class Reference(HashPrefixCache):
    """The reference with texts for hashes, and its known blocks in order."""

    def __init__(self, block_size, pool, hash_function=None):
        weak = {} if hash_function is None else {"hash_function": lambda data: b"one"}
        super().__init__(block_size, pool, **weak)

    def known_blocks(self):
        return sorted(super().known_blocks())


def assert_same(exercise_id: str, cases: list[Case], subject: type) -> None:
    """The oracle expects of scripts exactly what a class does."""
    exercise = catalog().exercise(exercise_id)
    seen = [run(case.operations, subject) for case in cases]
    for verdict in judge(check_of(exercise), cases, seen, exercise.name):
        assert verdict.passed, verdict.problem


@given(st.integers(0, 10_000))
def test_the_indexs_oracle_equals_the_reference(seed):
    assert_same("09.2", check_of(catalog().exercise("09.2")).hidden(seed), Reference)


def test_the_reference_passes_the_visible_cases():
    assert_same("09.2", check_of(catalog().exercise("09.2")).visible(), Reference)


POOL_CALLS = st.one_of(
    st.tuples(st.just("allocate"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["share", "free"]), st.lists(st.integers(-1, 5), max_size=4)),
    st.tuples(st.just("set_hash"), st.integers(0, 4), st.sampled_from(["h", None])),
)


@given(st.lists(POOL_CALLS, max_size=25))
def test_the_pools_oracle_equals_the_reference(calls):
    operations = [Operation((5, plain.Kept("PlainQueue")), keep="pool")]
    for method, *args in calls:
        operations += [
            Operation(tuple(args), "pool", method),
            Operation((), "pool", "free_queue", how="list"),
            Operation((), "pool", "num_free", how="get"),
        ]
        operations += [
            Operation((block_id,), "pool", look)
            for block_id in range(5)
            for look in ("refcount", "block_hash")
        ]
    assert_same("09.3", [Case("random", "", tuple(operations))], BlockPool)


@given(st.integers(0, 10_000))
def test_take_is_share_and_allocate_or_nothing(seed):
    """On the reference pool: what a take of the hidden scripts leaves behind."""
    for case in check_of(catalog().exercise("09.3")).hidden(seed)[:4]:
        expected = iter(came_of(case.operations, PoolModel))
        pool = BlockPool(case.operations[0].args[0])
        for operation in case.operations[1:]:
            want = next(expected)
            if operation.method == "take" and not isinstance(want, Raises):
                hits, count = operation.args
                pool.share(hits)
                assert [*hits, *pool.allocate(count)] == want
            elif operation.method in ("allocate", "free", "set_hash") and want.__class__ != Raises:
                assert getattr(pool, operation.method)(*operation.args) == want
            elif operation.how == "list":
                assert list(pool.free_queue) == want


@pytest.mark.parametrize("exercise_id", IDS)
def test_the_solution_passes_visible_and_hidden_cases(exercise_id):
    check = check_of(catalog().exercise(exercise_id))
    for cases in (check.visible(), *map(check.hidden, range(5))):
        assert_same(exercise_id, cases, solved(exercise_id))


@pytest.mark.parametrize(("flaw", "sentence"), FLAWS, ids=lambda one: getattr(one, "__name__", ""))
def test_every_flaw_is_found_and_named(flaw, sentence):
    exercise = catalog().exercise("09.2")
    check = check_of(exercise)
    cases = check.visible()
    seen = [run(case.operations, flaw) for case in cases]
    rules = [v.problem.rule for v in judge(check, cases, seen, exercise.name) if v.problem]
    assert rules
    assert sentence in rules


@pytest.mark.parametrize("exercise_id", IDS[:3])
def test_every_failure_has_a_rule_that_quotes_no_case(exercise_id):
    check = check_of(catalog().exercise(exercise_id))
    for case in [*check.visible(), *check.hidden(3)[:4]]:
        expected = iter(check.oracle(case))
        for number, operation in enumerate(case.operations):
            want = None if operation.keep else next(expected)
            for fault in ("", "KeyError"):
                rule = check.explain(Failure(case, number, want, None, fault))
                assert rule
                assert not re.search(r"\d", re.sub(r"lesson 02|last - 1|64 hex", "", rule))


def test_hidden_scripts_hit_and_refuse_often_enough():
    hits = [v for v in values("09.2") if type(v) is list and v]
    refused = [v for v in values("09.3") if isinstance(v, Raises)]
    assert len(hits) > 100
    assert len(refused) > 10


def values(exercise_id: str) -> list[object]:
    check = check_of(catalog().exercise(exercise_id))
    return [value for case in check.hidden(0) for value in check.oracle(case)]


def test_two_indices_do_not_share_their_hashes():
    known = []
    for _ in range(2):
        pool = PlainHashes()
        solved("09.2")(4, pool).publish([1, 2, 3, 4], [0], 0, 1, ("", ""))
        known.append(pool.block_hash(0))
    assert known[0] != known[1]


def test_the_model_never_hits_wrongly_under_one_hash():
    index = IndexModel(2, PlainHashes(), one_hash)
    index.publish([1, 2], [0], 0, 1, ("", ""))
    assert index.match([3, 4, 5], ("", "")) == []


# --- the learner's parts in the engine -----------------------------------------------------------


def served(lab, components, **options):
    """Requests that begin alike, on a small pool; every step is checked."""
    made = lab(components=components, block_size=4, num_blocks=12, **options)
    for number, tail in enumerate((2, 5, 3, 9, 1, 6)):
        prompt = [*range(100, 109), *range(10 * number, 10 * number + tail)]
        made.add(str(number), prompt, 7)
        made.step()
        made.step()
    made.run()
    made.assert_clean()
    return made


def test_the_solutions_classes_run_a_checked_engine(lab):
    parts = replace(Components(), prefix_cache=solved("09.2"), block_pool=solved("09.3"))
    mine = served(lab, parts)
    reference = served(lab, Components(), enable_prefix_caching="hash")
    cold = served(lab, Components())
    assert mine.outputs == cold.outputs
    assert [p.items for p in mine.executor.plans] == [p.items for p in reference.executor.plans]
    assert mine.engine.metrics.prefix_cache_hits_total > 0
