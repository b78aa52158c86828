"""The model and its loader against transformers, on random tiny models."""

import dataclasses
import json

import pytest
import torch
import transformers

from minipaged.model.llama import Llama, Llama3Rope, LlamaConfig
from minipaged.model.loader import load_llama, save_llama
from minipaged.model.tutor.verify import dense_causal

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SHAPES = {
    "gqa_3_to_1": {},
    "no_gqa_tied": {"num_key_value_heads": 6, "tie_word_embeddings": True},
    "wide_heads_and_biases": {"head_dim": 20, "attention_bias": True, "mlp_bias": True},
    "llama3_rope": {"rope_parameters": LLAMA3},
}


def hf_model(**options):
    """A random model; weights wide enough that every part shows in the logits."""
    shape = {
        "vocab_size": 97,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "eos_token_id": 1,
        "bos_token_id": 0,
    }
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**(shape | options))
    model = transformers.LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def our_logits(model: Llama, ids: torch.Tensor) -> torch.Tensor:
    """Logits of ids [B, L], through the flat interface -> [B, L, vocab]."""
    positions = torch.arange(ids.shape[1]).repeat(len(ids))
    with torch.inference_mode():
        hidden = model(ids.flatten(), positions, dense_causal(len(ids)))
        return model.logits(hidden).view(*ids.shape, -1)


@pytest.mark.parametrize("options", SHAPES.values(), ids=SHAPES)
def test_logits_equal_transformers(tmp_path, options):
    theirs = hf_model(**options)
    theirs.save_pretrained(tmp_path)
    ours = load_llama(tmp_path, torch.float32)
    ids = torch.randint(0, 97, (2, 200))
    with torch.inference_mode():
        expected = theirs(ids).logits
    assert expected.std() > 0.3
    torch.testing.assert_close(our_logits(ours, ids), expected, rtol=1e-4, atol=2e-4)


def test_sharded_folder_equals_whole(tmp_path):
    theirs = hf_model()
    theirs.save_pretrained(tmp_path / "whole")
    theirs.save_pretrained(tmp_path / "sharded", max_shard_size="60KB")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 2
    whole = load_llama(tmp_path / "whole").state_dict()
    sharded = load_llama(tmp_path / "sharded").state_dict()
    assert whole.keys() == sharded.keys() == theirs.state_dict().keys()
    assert all(torch.equal(whole[name], sharded[name]) for name in whole)


def test_what_we_save_transformers_loads(tmp_path):
    config = LlamaConfig(97, 48, 80, 2, 6, 2, 8, tie_word_embeddings=True, eos_token_ids=(5, 6))
    torch.manual_seed(1)
    ours = Llama(config)
    save_llama(ours, tmp_path, torch.float32)
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert theirs.config.eos_token_id == [5, 6]
    ids = torch.randint(0, 97, (1, 50))
    with torch.inference_mode():
        torch.testing.assert_close(our_logits(ours, ids), theirs(ids).logits)


def test_half_precision_weights_are_cast_and_rope_stays_float32(tmp_path):
    hf_model().half().save_pretrained(tmp_path)
    stored, wide = load_llama(tmp_path), load_llama(tmp_path, torch.float32)
    assert stored.model.norm.weight.dtype == torch.float16
    assert wide.model.norm.weight.dtype == torch.float32
    assert torch.equal(stored.model.norm.weight.float(), wide.model.norm.weight)
    assert stored.to(torch.bfloat16).rope.at(torch.arange(3))[0].dtype == torch.float32


def test_config_reads_both_generations_of_config_json():
    base = LlamaConfig(97, 48, 80, 2, 6, 2, 8, rope_theta=500.0, eos_token_ids=(3,), bos_token_id=2)
    assert LlamaConfig.from_hf(base.to_hf()) == base
    old = base.to_hf() | {"rope_theta": 500.0, "rope_parameters": None, "head_dim": None}
    assert LlamaConfig.from_hf(old | {"eos_token_id": [3]}) == base
    llama3 = dataclasses.replace(base, rope_scaling=Llama3Rope(8.0, 1.0, 4.0, 64))
    assert LlamaConfig.from_hf(llama3.to_hf()) == llama3
    assert LlamaConfig.from_hf(old | {"rope_scaling": LLAMA3}) == llama3


def test_kv_bytes_per_token_of_known_models():
    llama3_8b = LlamaConfig(128256, 4096, 14336, 32, 32, 8, 128)
    smollm2 = LlamaConfig(49152, 576, 1536, 30, 9, 3, 64)
    assert llama3_8b.kv_bytes_per_token(2) == 128 * 1024
    assert smollm2.kv_bytes_per_token(2) == 22.5 * 1024


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "mamba"}, "model_type 'mamba'"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope type 'yarn'"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 4.0}}, "lacks low_freq_factor"),
        ({"vocab_size": None}, "lacks vocab_size"),
        ({"num_key_value_heads": 4}, "num_heads is 6"),
        ({"head_dim": 7}, "head_dim is 7"),
    ],
)
def test_unsupported_configs_are_refused(change, message):
    good = LlamaConfig(97, 48, 80, 2, 6, 2, 8).to_hf()
    with pytest.raises(ValueError, match=message):
        LlamaConfig.from_hf(good | change)


def test_end_tokens_come_from_both_files(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps(LlamaConfig(97, 48, 80, 2, 6, 2, 8, eos_token_ids=(1,)).to_hf())
    )
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [1, 9]}')
    assert LlamaConfig.from_folder(tmp_path).eos_token_ids == (1, 9)


def break_config(folder):
    (folder / "config.json").unlink()


def break_weights(folder):
    (folder / "model.safetensors").unlink()


def truncate_weights(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:5000])


def change_config(**options):
    def change(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | options))

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_config, "config.json is missing: a model folder holds"),
        (break_weights, "neither model.safetensors nor"),
        (truncate_weights, "cannot be read"),
        (change_config(num_hidden_layers=4), "lacks 9 tensors, the first of them model.layers.3"),
        (change_config(num_hidden_layers=2), "unexpected tensor model.layers.2"),
        (change_config(intermediate_size=81), r"has shape .*80.* asks for .*81"),
    ],
)
def test_damaged_folders_are_named(tmp_path, damage, message):
    hf_model().save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_llama(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    hf_model().save_pretrained(tmp_path, max_shard_size="60KB")
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(ValueError, match=f"{shard.name} is missing"):
        load_llama(tmp_path)
