"""A Llama with random weights in a folder, for cards that no model was brought to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Shape:
    """Sizes of a Llama, as its config.json names them."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    max_position_embeddings: int = 4096


ONE_BILLION = Shape(32_000, 2048, 8192, 16, 32, 8)
"""The layers of Llama-3.2-1B (with a smaller vocabulary, not tied): 1.1 billion parameters."""

TINY = Shape(300, 32, 64, 2, 4, 2, 128)


def write_random_llama(folder: Path, shape: Shape, dtype: torch.dtype, device: str) -> int:
    """Write config.json, weights and a tokenizer that gives every id some text; -> parameters.

    Weights are normal with a standard deviation of 1 / sqrt(hidden_size), so that attention has a
    say in the logits, and embeddings are not tied: tied, the likeliest next token of a random
    model is the token itself, whatever attention reads.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    std = shape.hidden_size**-0.5
    config = LlamaConfig(
        **vars(shape),
        tie_word_embeddings=False,
        initializer_range=std,
        eos_token_id=None,
        bos_token_id=None,
        dtype=str(dtype).removeprefix("torch."),
    )
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=std)
    finally:
        torch.set_default_dtype(before)
    model.save_pretrained(folder)
    _write_tokenizer(folder, shape.vocab_size)
    return sum(parameter.numel() for parameter in model.parameters())


def _write_tokenizer(folder: Path, vocab_size: int) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = letters + [f"word{number}" for number in range(len(letters), vocab_size)]
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
