"""Cases from the field about chunks, budgets and preemption (numbers as in the course's list)."""

from __future__ import annotations


def test_case_16_resume_recomputes_prompt_and_outputs(lab):
    engine = lab(block_size=4, num_blocks=4)
    engine.add("A", 7, 8)
    engine.add("B", 5, 8)
    while not engine.engine.scheduler.preempted:
        engine.step()
    request = engine.engine.requests["B"]
    kept = list(engine.outputs["B"])
    assert request.num_computed_tokens == 0 and kept
    while "B" not in engine.work(-1):
        engine.step()
    assert engine.work(-1)["B"] == (0, 5 + len(kept))
    item = next(i for i in engine.executor.plans[-1].items if i.request_id == "B")
    assert item.sample.output_index == len(kept)
    engine.run()
    alone = lab(block_size=4, num_blocks=40)
    alone.add("B", 5, 8)
    alone.run()
    assert engine.outputs["B"] == alone.outputs["B"]
    engine.assert_clean()


def test_case_16_with_its_own_numbers(lab):
    """Prompt 5, three outputs, preempted: the next pass is over 8 tokens and draws output 4."""
    engine = lab(block_size=1, num_blocks=40)
    engine.add("A", 5, 6)
    for _ in range(3):
        engine.step()
    scheduler = engine.engine.scheduler
    scheduler._preempt(engine.engine.requests["A"])
    engine.step()
    assert engine.work(-1)["A"] == (0, 8)
    assert engine.executor.plans[-1].items[0].sample.output_index == 3  # counted from 0
    engine.run()
    alone = lab(block_size=1, num_blocks=40)
    alone.add("A", 5, 6)
    alone.run()
    assert engine.outputs["A"] == alone.outputs["A"]


def test_case_17_a_one_token_last_chunk_is_not_a_decode(lab):
    engine = lab(block_size=4, num_blocks=8, max_num_batched_tokens=8)
    engine.add("A", 9, 3)
    assert engine.step() == []
    assert engine.work(0) == {"A": (0, 8)}
    assert len(engine.step()) == 1
    assert engine.work(1) == {"A": (8, 1)}
    assert engine.run() == 2
    engine.assert_clean()


def test_case_18_budget_below_the_number_of_decodes(lab):
    """Three one-token prompts under a budget of 2: the third waits for a place in the budget."""
    engine = lab(block_size=4, num_blocks=30, max_num_batched_tokens=2)
    for name in "ABC":
        engine.add(name, 1, 4)
    engine.run(limit=20)
    for plan in engine.executor.plans:
        assert 1 <= plan.num_tokens <= 2
    assert all(len(tokens) == 4 for tokens in engine.outputs.values())
    engine.assert_clean()


def test_case_18_three_decodes_when_the_budget_shrinks(lab):
    """Three requests decode already when the budget becomes 2: first come, first served."""
    engine = lab(block_size=4, num_blocks=30, max_num_batched_tokens=3)
    for name in "ABC":
        engine.add(name, 1, 6)
    engine.step()
    assert len(engine.engine.scheduler.running) == 3
    object.__setattr__(engine.engine.scheduler.config, "max_num_batched_tokens", 2)
    engine.run(limit=30)
    for plan in engine.executor.plans[1:]:
        assert 1 <= plan.num_tokens <= 2
    assert all(len(tokens) == 6 for tokens in engine.outputs.values())
    engine.assert_clean()


def test_case_18_a_chunk_fills_the_rest_of_the_budget(lab):
    engine = lab(block_size=4, num_blocks=30, max_num_batched_tokens=8)
    engine.add("A", 1, 9)
    engine.add("B", 1, 9)
    engine.step()
    engine.add("P", 10, 2)
    engine.step()
    assert engine.work(1) == {"A": (1, 1), "B": (1, 1), "P": (0, 6)}


def test_case_19_decodes_behind_a_long_prefill(lab):
    engine = lab(block_size=4, num_blocks=30, max_num_batched_tokens=4)
    engine.add("D", 1, 9)
    engine.step()
    engine.add("P", 12, 1)
    for _ in range(4):
        engine.step()
    for step in range(4):
        assert engine.work(1 + step) == {"D": (1 + step, 1), "P": (3 * step, 3)}
    assert len(engine.outputs["D"]) == 5
    assert len(engine.outputs["P"]) == 1


def test_no_admission_in_a_preempting_step(lab):
    engine = lab(block_size=4, num_blocks=4)
    engine.add("A", 7, 9)
    engine.add("B", 7, 9)
    engine.step()
    engine.add("C", 1, 1)
    seen = False
    while engine.engine.has_unfinished_requests():
        engine.step()
        if engine.engine.scheduler.preempted:
            seen = True
            assert set(engine.work(-1)) == {"A"}
    assert seen
    engine.assert_clean()


def test_a_preempted_request_waits_in_front(lab):
    engine = lab(block_size=4, num_blocks=4, max_num_seqs=2)
    engine.add("A", 7, 9)
    engine.add("B", 7, 9)
    engine.add("C", 1, 1)
    while not engine.engine.scheduler.preempted:
        engine.step()
    assert [r.request_id for r in engine.engine.scheduler.waiting] == ["B", "C"]


def test_admission_needs_blocks_for_all_known_tokens(lab):
    """Ten tokens need three blocks; two are free, and the first chunk would need only one."""
    engine = lab(block_size=4, num_blocks=4, max_num_batched_tokens=5)
    engine.add("A", 4, 4)
    engine.step()
    engine.step()
    assert engine.pool.num_free == 2
    engine.add("B", 10, 2)
    engine.step()
    assert set(engine.work(-1)) == {"A"}
    engine.run()
    engine.assert_clean()


def test_watermark_and_headroom_gate_admission_only(lab):
    for option in ("watermark_blocks", "admission_headroom"):
        engine = lab(block_size=4, num_blocks=5, **{option: 2})
        engine.add("A", 6, 6)  # nothing runs: admitted although only three blocks stay free
        engine.add("B", 6, 2)  # needs 2 + 2 of the 3 free blocks: has to wait
        engine.step()
        assert set(engine.work(0)) == {"A"}
        engine.run()
        assert engine.engine.metrics.num_preemptions_total == 0
        engine.assert_clean()


def test_watermark_does_not_stop_growth(lab):
    engine = lab(block_size=4, num_blocks=3, watermark_blocks=3)
    engine.add("A", 4, 8)
    engine.run()
    assert len(engine.outputs["A"]) == 8
    engine.assert_clean()
