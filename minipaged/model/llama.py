"""Llama in plain torch, under Hugging Face's parameter names.

The model works on a flat run of tokens and knows nothing of batches, caches or paging: whoever
calls it passes `attend`, which gets each layer's queries, keys and values and returns what the
queries read. An engine passes one that goes through a paged pool, training a dense causal one.

Architecture: Touvron et al. 2023 (LLaMA), with RMSNorm (Zhang and Sennrich 2019), RoPE
(Su et al. 2021) and SwiGLU (Shazeer 2020); checked against transformers,
src/transformers/models/llama/modeling_llama.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from minipaged.model.llama_config import Llama3Rope, LlamaConfig

__all__ = ["Attend", "Llama", "Llama3Rope", "LlamaConfig"]

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""attend(layer, q [T, H, D], k [T, KV, D], v [T, KV, D]) -> [T, H, D], all in the model's dtype.

k and v belong to the T tokens of this call; earlier tokens are the callable's business.
"""


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, with the mean taken in float32 whatever x is."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class Rope:
    """Rotary position embedding: cos and sin of position x frequency, as a float32 table.

    Not a module, so that casting a model to 16 bit leaves the table in float32.
    """

    def __init__(self, config: LlamaConfig) -> None:
        # Hugging Face computes the table in float32, and so do we: the last bit matters to it.
        pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device="cpu")
        inv_freq = 1.0 / (config.rope_theta ** (pairs / config.head_dim))
        if config.rope_scaling is not None:
            inv_freq = stretch_frequencies(inv_freq, config.rope_scaling)
        positions = torch.arange(config.max_position_embeddings, dtype=torch.float32, device="cpu")
        angles = torch.outer(positions, inv_freq)
        self._cos, self._sin = angles.cos(), angles.sin()

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """(cos, sin) at positions [T] int64, each [T, 1, head_dim / 2] float32."""
        if self._cos.device != positions.device:
            self._cos = self._cos.to(positions.device)
            self._sin = self._sin.to(positions.device)
        return self._cos[positions].unsqueeze(1), self._sin[positions].unsqueeze(1)


def stretch_frequencies(inv_freq: Tensor, scaling: Llama3Rope) -> Tensor:
    """Llama 3.1's frequencies from the plain ones [head_dim / 2] float32.

    As in transformers, src/transformers/modeling_rope_utils.py, _compute_llama3_parameters.
    """
    turns = scaling.original_max_position_embeddings * inv_freq / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    keep = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - keep) * inv_freq / scaling.factor + keep * inv_freq


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn x [T, heads, D] by the angles of its positions, in float32; number i pairs with i + D/2.

    The pairing is Hugging Face's ("rotate half"); the original paper pairs neighbours.
    """
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)


class Attention(nn.Module):
    """The projections around attention; attention itself is the caller's."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        q_size, kv_size = config.num_heads * self.head_dim, config.num_kv_heads * self.head_dim
        bias, hidden = config.attention_bias, config.hidden_size
        self.q_proj = nn.Linear(hidden, q_size, bias=bias)
        self.k_proj = nn.Linear(hidden, kv_size, bias=bias)
        self.v_proj = nn.Linear(hidden, kv_size, bias=bias)
        self.o_proj = nn.Linear(q_size, hidden, bias=bias)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], layer: int, attend: Attend) -> Tensor:
        shape = (x.shape[0], -1, self.head_dim)
        q = rotate(self.q_proj(x).view(shape), *rope)
        k = rotate(self.k_proj(x).view(shape), *rope)
        read = attend(layer, q, k, self.v_proj(x).view(shape))
        return self.o_proj(read.reshape(x.shape[0], -1))


class MLP(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        hidden, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = nn.Linear(hidden, inner, bias=bias)
        self.up_proj = nn.Linear(hidden, inner, bias=bias)
        self.down_proj = nn.Linear(inner, hidden, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    """Attention and MLP, each normed before and added to what came in."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor], layer: int, attend: Attend) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rope, layer, attend)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Embedding, layers and last norm: what Hugging Face calls `model`."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Module):
    """A Llama causal language model over a flat run of tokens."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.rope = Rope(config)
        self.model = Decoder(config)
        self.lm_head: nn.Linear | None = None
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, token_ids: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Last hidden states [T, hidden] of token_ids [T] int64 at positions [T] int64.

        positions: each token's place in its own sequence, below max_position_embeddings.
        The tokens of several sequences may follow each other; only `attend` tells them apart.
        """
        hidden = self.model.embed_tokens(token_ids)
        rope = self.rope.at(positions)
        for index, layer in enumerate(self.model.layers):
            hidden = layer(hidden, rope, index, attend)
        return self.model.norm(hidden)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token [N, vocab] float32 from hidden states [N, hidden]."""
        head = self.model.embed_tokens if self.lm_head is None else self.lm_head
        return functional.linear(hidden, head.weight).float()
