"""Every setting refuses what it cannot mean, in one line that names value, limit and remedy."""

from __future__ import annotations

import pytest

from minipaged.config import CacheConfig, EngineConfig, SamplingParams, SchedulerConfig
from minipaged.exec.sim_exec import CostModel, SimConfig
from minipaged.workload import SyntheticWorkload


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (
            CacheConfig,
            {"block_size": 0},
            "block_size is 0, but it must be an integer of at least 1",
        ),
        (CacheConfig, {"block_size": True}, "block_size is True"),
        (CacheConfig, {"block_size": 16.0}, "block_size is 16.0"),
        (CacheConfig, {"num_blocks": -1}, "num_blocks is -1"),
        (CacheConfig, {"num_blocks": 10**10}, "from 1 to 16777216"),
        (SyntheticWorkload, {"requests": 10**9}, "from 1 to 1000000"),
        (CacheConfig, {"gpu_memory_utilization": 1.5}, "at most 1"),
        (CacheConfig, {"gpu_memory_utilization": float("nan")}, "nan"),
        (SchedulerConfig, {"max_num_seqs": 0}, "max_num_seqs is 0"),
        (SchedulerConfig, {"max_num_batched_tokens": 0}, "max_num_batched_tokens is 0"),
        (SchedulerConfig, {"watermark_blocks": -1}, "watermark_blocks is -1"),
        (SchedulerConfig, {"admission_headroom": -1}, "admission_headroom is -1"),
        (SimConfig, {"vocab_size": 0}, "vocab_size is 0"),
        (CacheConfig, {"num_host_blocks": -1}, "num_host_blocks is -1"),
        (CostModel, {"peak_flops": 0}, "peak_flops is 0"),
        (CostModel, {"overhead_s": -1}, "overhead_s is -1"),
        (EngineConfig, {"max_model_len": 1}, "max_model_len is 1"),
        (EngineConfig, {"device": "tpu"}, "choose one of auto, cpu, cuda"),
        (SamplingParams, {"temperature": -0.1}, "temperature is -0.1"),
        (SamplingParams, {"temperature": float("inf")}, "temperature is inf"),
        (SamplingParams, {"temperature": "hot"}, "temperature is 'hot'"),
        (SamplingParams, {"top_p": 0}, "top_p is 0"),
        (SamplingParams, {"top_k": -1}, "top_k is -1"),
        (SamplingParams, {"max_tokens": 4, "min_tokens": 5}, "an integer from 0 to 4"),
        (SamplingParams, {"stop": ("a", "")}, "non-empty"),
        (SamplingParams, {"stop": None}, "stop is None"),
        (SamplingParams, {"stop_token_ids": 5}, "stop_token_ids is 5"),
        (SamplingParams, {"ignore_eos": "no"}, "ignore_eos is 'no'"),
        (EngineConfig, {"cache": None}, "cache is None"),
        (EngineConfig, {"scheduler": {"a": 1}}, "must be a SchedulerConfig"),
        (SamplingParams, {"stop_token_ids": (-3,)}, "stop_token_ids is -3"),
        (SamplingParams, {"logprobs": 21}, "from 0 to 20"),
        (SamplingParams, {"seed": -1}, "seed is -1"),
        (SyntheticWorkload, {"requests": 0}, "requests is 0"),
        (SyntheticWorkload, {"prompt_len": (5, 4)}, "prompt_len HI is 4"),
        (SyntheticWorkload, {"arrival_rate": -1}, "arrival_rate is -1"),
    ],
)
def test_bad_values_are_refused(make, options, words):
    with pytest.raises(ValueError, match=words) as caught:
        make(**options)
    assert "\n" not in str(caught.value)


def test_flat_options_find_their_place():
    config = EngineConfig.of(block_size=4, max_num_seqs=3, seed=7)
    assert (config.cache.block_size, config.scheduler.max_num_seqs, config.seed) == (4, 3, 7)
    assert EngineConfig.of(cache=CacheConfig(num_blocks=9), block_size=2).cache.num_blocks == 9
    with pytest.raises(ValueError, match="did you mean 'block_size'"):
        EngineConfig.of(blok_size=4)


def test_one_stop_string_is_a_list_of_one():
    assert SamplingParams(stop="end").stop == ("end",)
    assert SamplingParams(stop=["a", "b"]).stop == ("a", "b")
