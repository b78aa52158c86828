"""Cases from the field about admission, limits and aborts (numbers as in the course's list)."""

from __future__ import annotations

import pytest


def solo(lab, request_id, prompt, max_tokens, **options):
    one = lab(**options)
    one.add(request_id, prompt, max_tokens)
    one.run()
    return one.outputs[request_id]


def test_case_01_a_prompt_that_can_never_fit(lab):
    engine = lab(block_size=4, num_blocks=5)
    with pytest.raises(ValueError, match=r"24 .*20"):
        engine.add("X", 24, 4)
    engine.add("B", 4, 2)
    assert engine.run(limit=10) == 2
    assert len(engine.outputs["B"]) == 2
    engine.assert_clean()


def test_case_02_prompt_fits_but_growth_does_not(lab):
    engine = lab(block_size=4, num_blocks=4)
    engine.add("A", 12, 8)
    engine.run(limit=10)
    assert len(engine.outputs["A"]) == 5
    assert engine.reasons["A"] == "length"
    assert engine.engine.metrics.num_preemptions_total == 0
    engine.assert_clean()


def test_case_03_length_edge(lab):
    engine = lab(block_size=1, num_blocks=20, max_model_len=8)
    engine.add("A", 7, 5)
    assert engine.run(limit=10) == 1
    assert len(engine.outputs["A"]) == 1
    assert engine.reasons["A"] == "length"
    assert engine.engine.metrics.peak_blocks == 7  # block size 1: blocks are slots
    with pytest.raises(ValueError, match=r"8 tokens.*max_model_len is 8"):
        engine.add("B", 8, 5)
    engine.assert_clean()


def test_case_04_empty_prompt(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("R", 5, 4)
    engine.step()
    with pytest.raises(ValueError, match="empty"):
        engine.add("E", [], 4)
    engine.run()
    assert engine.outputs["R"] == solo(lab, "R", 5, 4, block_size=4, num_blocks=8)
    engine.assert_clean()


def test_case_05_max_tokens_0_and_1(lab):
    engine = lab(block_size=4, num_blocks=8)
    with pytest.raises(ValueError, match="max_tokens is 0"):
        engine.add("Z", 4, 0)
    engine.add("A", 8, 1)
    assert engine.run() == 1
    assert len(engine.outputs["A"]) == 1
    engine.assert_clean()


def test_case_06_same_id_twice_while_live(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("A", 6, 5)
    engine.step()
    tables = {i: list(t.block_ids) for i, t in engine.engine.manager.tables.items()}
    with pytest.raises(ValueError, match="'A' is live already"):
        engine.engine.add_request("A", [1, 2, 3])
    assert {i: list(t.block_ids) for i, t in engine.engine.manager.tables.items()} == tables
    engine.run()
    assert engine.outputs["A"] == solo(lab, "A", 6, 5, block_size=4, num_blocks=8)
    engine.add("A", 6, 5)  # no longer live: the name is free again
    engine.run()
    engine.assert_clean()


def test_case_07_abort_in_any_state(lab):
    """Without the swapped request, which needs swapping."""
    engine = lab(block_size=4, num_blocks=8, max_num_seqs=1)
    engine.add("R1", 10, 9)
    engine.add("R2", 5, 9)
    engine.step()
    assert [r.request_id for r in engine.engine.scheduler.running] == ["R1"]
    assert [r.request_id for r in engine.engine.scheduler.waiting] == ["R2"]
    engine.engine.abort(["R1", "R2"])
    engine.engine.abort(["R1", "unknown"])
    assert engine.pool.num_free == 8
    engine.assert_clean()
    assert engine.step() == []


def test_case_07_abort_of_a_preempted_request(lab):
    engine = lab(block_size=4, num_blocks=4)
    engine.add("A", 7, 9)
    engine.add("B", 7, 9)
    while not engine.engine.scheduler.preempted:
        engine.step()
    assert engine.engine.requests["B"].status.value == "preempted"
    assert engine.engine.requests["B"].num_preemptions == 1
    engine.engine.abort("B")
    engine.run()
    assert engine.outputs["A"] == solo(lab, "A", 7, 9, block_size=4, num_blocks=4)
    engine.assert_clean()


def test_an_abort_during_a_step_waits_for_its_end(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("A", 6, 9)
    free_inside = []

    def abort(plan):
        engine.engine.abort("A")
        engine.engine.abort("A")
        free_inside.append(engine.pool.num_free)

    engine.executor.during = abort
    engine.step()
    assert free_inside == [6]  # the step still used its two blocks
    engine.assert_clean()


def test_an_abort_while_the_step_finishes_the_request(lab):
    engine = lab(block_size=4, num_blocks=8)
    engine.add("A", 6, 1)
    engine.executor.during = lambda plan: engine.engine.abort("A")
    engine.step()
    assert engine.reasons["A"] == "length"
    engine.assert_clean()


def test_a_prompt_that_fills_the_pool_exactly_yields_one_output(lab):
    engine = lab(block_size=4, num_blocks=4)
    engine.add("A", 16, 9)
    assert engine.run() == 1
    assert engine.reasons["A"] == "length"
    engine.assert_clean()
