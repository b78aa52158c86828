"""Lesson 05: its oracles agree with the engine's own pool, manager and beam search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.beam_scores import BeamScores, BeamSearchParams
from minipaged.cache.manager import KVManager
from minipaged.cache.pool import BlockPool
from minipaged.config import SamplingParams
from minipaged.course.checks import lesson_05_answers, lesson_05_beams, lesson_05_sums
from minipaged.course.checks.lesson_05_plain import PlainForking
from minipaged.course.fixture_pools import PlainPool
from minipaged.request import Request

# the pool of the fixtures


def outcome_of(call, *args):
    try:
        return call(*args)
    except (MemoryError, ValueError) as error:
        return type(error)


pool_scripts = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(0, 4)),
        st.tuples(st.just("share"), st.lists(st.integers(-1, 5), max_size=3)),
        st.tuples(st.just("free"), st.lists(st.integers(-1, 5), max_size=4)),
    ),
    max_size=14,
)


@given(pool_scripts)
def test_the_plain_pool_counts_as_the_references(script):
    """Which ids are handed out differs: the lowest here, those freed last there."""
    plain_pool, pool = PlainPool(5), BlockPool(5)
    same: dict[int, int] = {}  # from the plain pool's ids to the other's
    for method, arg in script:
        known = arg if method == "allocate" else [i for i in arg if i in same or not 0 <= i < 5]
        theirs = known if method == "allocate" else [same.get(i, i) for i in known]
        mine = outcome_of(getattr(plain_pool, method), known)
        other = outcome_of(getattr(pool, method), theirs)
        if isinstance(mine, list):
            same.update(zip(mine, other, strict=True))
        else:
            assert mine == other
        assert plain_pool.num_free == pool.num_free
        for ours, there in list(same.items()):
            assert plain_pool.refcount(ours) == pool.refcount(there)
            if not plain_pool.refcount(ours):
                del same[ours]  # free: from here on the two may hand out different ones


@pytest.mark.parametrize("block_id", [-1, 3])
def test_the_plain_pool_knows_no_other_block(block_id):
    pool = PlainPool(3)
    for call in (lambda: pool.refcount(block_id), lambda: pool.share([0, block_id])):
        with pytest.raises(ValueError, match=f"block {block_id} is none of the 3"):
            call()
    assert pool.num_free == 3


# the checks against the engine's manager


actions = st.lists(
    st.tuples(st.sampled_from(["fork", "write", "end"]), st.integers(0, 99)), max_size=20
)


@given(st.integers(1, 5), st.integers(1, 9), st.integers(4, 14), actions)
def test_the_plain_table_copies_when_the_manager_does(size, tokens, num_blocks, script):
    """The same forks and writes on plain tables and on requests of a manager."""
    manager, pool = KVManager(num_blocks, size), PlainPool(num_blocks)
    if manager.blocks_for(tokens) > num_blocks:
        return
    first, table = Request("0", [], SamplingParams()), PlainForking(size)
    compute(manager, first, tokens)
    for position in range(tokens):
        table.write(position, pool)
    pairs, name = [(first, table)], 0
    for action, number in script:
        if not pairs:
            break
        request, table = pairs[number % len(pairs)]
        if action == "fork":
            name += 1
            child = Request(str(name), [], SamplingParams())
            manager.fork(request, child)
            pool.share(table.block_ids)
            pairs.append((child, table.fork()))
        elif action == "end":
            manager.release(request)
            pool.free(table.release())
            pairs.remove((request, table))
        else:
            copied = compute(manager, request, 1)
            before = list(table.block_ids)
            moved = outcome_of(
                table.write, request.num_computed_tokens - (copied is not None), pool
            )
            if copied is None:
                assert moved is MemoryError and table.block_ids == before
            else:
                assert len(copied) == (moved is not None)
        manager.check()
        assert pool.num_free == manager.pool.num_free
        assert shapes(t.block_ids for _, t in pairs) == shapes(
            manager.tables[r.request_id].block_ids for r, _ in pairs
        )


def compute(manager, request, num_tokens):
    """Grow by tokens, as a step would: the copies, or None if it was refused."""
    if manager.grow(request, num_tokens) is None:
        return None
    request.num_computed_tokens += num_tokens
    request.num_inflight_tokens = 0
    return manager.take_copies()


def shapes(tables):
    """Tables with their ids replaced by the order of their first appearance."""
    seen: dict[int, int] = {}
    return [[seen.setdefault(block_id, len(seen)) for block_id in ids] for ids in tables]


@given(st.integers(1, 70), st.integers(1, 6), st.sampled_from([1, 2, 3, 4, 16]))
def test_what_a_fork_costs_is_what_the_engine_counts(prompt_len, n, size):
    manager = KVManager(prompt_len + n + 6, size)
    requests = [Request(str(k), [], SamplingParams()) for k in range(n)]
    compute(manager, requests[0], prompt_len)
    for child in requests[1:]:
        manager.fork(requests[0], child)
    copies = sum(len(compute(manager, request, 1)) for request in requests)
    held = manager.num_blocks - manager.pool.num_free
    assert lesson_05_sums.played(prompt_len, n, size) == (copies, held)


eighths = st.integers(-40, -1).map(lambda k: k / 8)


@given(st.data(), st.integers(1, 4))
def test_a_beam_step_is_that_of_the_engine(data, width):
    """Three steps; ties stand in the order of beams, then of tokens, in both."""
    params = BeamSearchParams(beam_width=width, max_tokens=4, ignore_eos=True)
    scores, beams = BeamScores(params, (), 4), [([], 0.0)]
    for _ in range(3):
        num_candidates = scores.num_candidates
        rows = [
            data.draw(
                st.dictionaries(st.integers(0, 30), eighths, min_size=num_candidates, max_size=12)
            )
            for _ in beams
        ]
        tops = [sorted(row.items(), key=lambda pair: (-pair[1], pair[0])) for row in rows]
        parents = scores.advance([tuple(top[:num_candidates]) for top in tops])
        step = lesson_05_beams.best(beams, rows, width)
        assert [parent for parent, _, _ in step] == list(parents)
        beams = [([*beams[p][0], token], total) for p, token, total in step]
        assert [beam.token_ids for beam in scores.live] == [tokens for tokens, _ in beams]


def test_the_answers_are_right_by_the_engine():
    right = {question.letter: question.answer for question in lesson_05_answers.QUESTIONS}
    assert (right["b"][0], right["a"]) == lesson_05_sums.played(50, 5, 16)
    assert right["b"][1] == lesson_05_sums.played(48, 5, 16)[0]
    assert right["c"] * 2**20 == right["b"][0] * 16 * 131_072
    parents = [2, 0, 2, 2]
    assert right["d"] == [len(parents) - len(set(parents)), 4 - len(set(parents))]
    manager = KVManager(64, 16)
    requests = [Request(str(k), [], SamplingParams()) for k in range(4)]
    compute(manager, requests[0], 100)
    for child in requests[1:]:
        manager.fork(requests[0], child)
    for _ in range(49):
        for request in requests:
            compute(manager, request, 1)
    assert right["e"] == 100 * manager.num_saved_blocks / manager.num_entries
