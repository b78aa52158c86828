"""Our scheduler makes the steps of vLLM's own scheduler core (0.32), one by one.

The figures were read off vLLM's Scheduler and KVCacheManager, driven without a model on the same
workload (prefix caching off, everything arriving at step 0). The hash is over the whole list of
[tokens scheduled, requests running] per step.
"""

from __future__ import annotations

import pytest

from minipaged.bench import run_scheduler
from minipaged.config import EngineConfig
from minipaged.workload import SyntheticWorkload

ORACLE = {
    # name: requests, blocks, max_num_seqs, budget -> steps, tokens, preemptions, peaks, hash
    "A": ((256, 8192, 64, 2048), (356, 51_570, 0, 803, 64, "8931bbaa55939501")),
    "B": ((256, 400, 64, 2048), (581, 61_478, 72, 400, 49, "d6fb9f0b14d02d6f")),
    "D": ((1024, 8192, 256, 8192), (351, 206_967, 0, 3180, 256, "3dc23d5ed9443782")),
}
NAMES = ("steps", "scheduled_tokens", "preemptions", "peak_blocks", "peak_running", "steps_hash")


@pytest.mark.parametrize("workload", ORACLE)
def test_the_same_steps_as_vllm(workload):
    (requests, blocks, seqs, budget), expected = ORACLE[workload]
    config = EngineConfig.of(
        block_size=16, num_blocks=blocks, max_num_seqs=seqs, max_num_batched_tokens=budget
    )
    arrivals = SyntheticWorkload(requests=requests).arrivals()
    report = run_scheduler(config, arrivals).report()
    assert tuple(report[name] for name in NAMES) == expected
