"""The shape of a Llama model, read from and written to a Hugging Face config.json. No torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minipaged.model.folder import eos_token_ids, id_tuple, read_json
from minipaged.require import require_int, require_real


@dataclass(frozen=True, slots=True)
class Llama3Rope:
    """RoPE scaling of Llama 3.1: slow rotations are stretched by `factor`, fast ones kept.

    Wavelengths (in tokens) above original_max_position_embeddings / low_freq_factor are slow,
    those below original_max_position_embeddings / high_freq_factor fast, between them it blends.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int

    def __post_init__(self) -> None:
        require_real("factor", self.factor, 1.0, "Llama 3.1 uses 8")
        require_real("low_freq_factor", self.low_freq_factor, 1e-6, "Llama 3.1 uses 1")
        require_int(
            "original_max_position_embeddings",
            self.original_max_position_embeddings,
            1,
            "the context length before the stretch, such as 8192",
        )
        if not self.low_freq_factor < self.high_freq_factor:
            raise ValueError(
                f"high_freq_factor is {self.high_freq_factor}, but it must be above "
                f"low_freq_factor ({self.low_freq_factor}): Llama 3.1 uses 4 and 1"
            )


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """Sizes of one model; names as in Hugging Face, except num_layers, num_heads, num_kv_heads.

    head_dim: numbers per head (even, because RoPE turns pairs).
    rope_theta: base of the rotary frequencies. rope_scaling: None or Llama 3.1's.
    eos_token_ids: tokens that end a text. dtype: the type that the weights are stored in.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    max_position_embeddings: int = 2048
    eos_token_ids: tuple[int, ...] = ()
    bos_token_id: int | None = None
    rope_scaling: Llama3Rope | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in _SIZES:
            require_int(name, getattr(self, name), 1, "check the model's config.json")
        require_real("rope_theta", self.rope_theta, 1.0, "10000 is usual")
        require_real("rms_norm_eps", self.rms_norm_eps, 0.0, "1e-5 is usual")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads is {self.num_heads}, but it must be a multiple of num_kv_heads "
                f"({self.num_kv_heads}): every KV head serves a group of equal size"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.head_dim}, but RoPE needs an even number")

    def kv_bytes_per_token(self, dtype_bytes: int) -> int:
        """Bytes of KV cache that one token takes in all layers; the 2 is keys and values.

        2 x layers x KV heads x head_dim x bytes of an element: 131,072 for Llama-3-8B in 16 bit.
        """
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * dtype_bytes

    @classmethod
    def from_folder(cls, folder: Path | str) -> LlamaConfig:
        """Read `folder`/config.json, and end-of-text ids from generation_config.json as well."""
        config = cls.from_hf(read_json(folder, "config.json"))
        return dataclasses.replace(config, eos_token_ids=eos_token_ids(folder))

    @classmethod
    def from_hf(cls, hf: Mapping[str, Any]) -> LlamaConfig:
        """Read the object in a config.json, as transformers 4 or 5 writes it.

        Raises ValueError naming what is missing, unsupported or out of range.
        """
        _require("model_type", hf.get("model_type"), ("llama",))
        _require("hidden_act", hf.get("hidden_act", "silu"), ("silu",))
        missing = [name for name in _HF_REQUIRED if hf.get(name) is None]
        if missing:
            raise ValueError(f"config.json lacks {', '.join(missing)}: is it a model's config?")
        for name in _HF_REQUIRED:
            require_int(name, hf[name], 1, "check the model's config.json")
        heads = hf["num_attention_heads"]
        rope_theta, rope_scaling = _rope(hf)
        return cls(
            vocab_size=hf["vocab_size"],
            hidden_size=hf["hidden_size"],
            intermediate_size=hf["intermediate_size"],
            num_layers=hf["num_hidden_layers"],
            num_heads=heads,
            num_kv_heads=hf.get("num_key_value_heads") or heads,
            head_dim=hf.get("head_dim") or hf["hidden_size"] // heads,
            rope_theta=rope_theta,
            rms_norm_eps=hf.get("rms_norm_eps", 1e-6),
            tie_word_embeddings=hf.get("tie_word_embeddings", False),
            max_position_embeddings=hf.get("max_position_embeddings", 2048),
            eos_token_ids=id_tuple(hf.get("eos_token_id")),
            bos_token_id=hf.get("bos_token_id"),
            rope_scaling=rope_scaling,
            attention_bias=hf.get("attention_bias", False),
            mlp_bias=hf.get("mlp_bias", False),
            dtype=hf.get("dtype") or hf.get("torch_dtype") or "float32",
        )

    def to_hf(self) -> dict[str, Any]:
        """The config.json of this model in transformers 5's form; from_hf reads it back."""
        rope: dict[str, Any] = {"rope_type": "default", "rope_theta": self.rope_theta}
        if self.rope_scaling is not None:
            rope |= dataclasses.asdict(self.rope_scaling) | {"rope_type": "llama3"}
        eos = self.eos_token_ids
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_layers,
            "num_attention_heads": self.num_heads,
            "num_key_value_heads": self.num_kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "rope_parameters": rope,
            "rms_norm_eps": self.rms_norm_eps,
            "tie_word_embeddings": self.tie_word_embeddings,
            "max_position_embeddings": self.max_position_embeddings,
            "eos_token_id": None if not eos else eos[0] if len(eos) == 1 else list(eos),
            "bos_token_id": self.bos_token_id,
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "dtype": self.dtype,
        }


_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "max_position_embeddings",
)
_HF_REQUIRED = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
)


def _require(name: str, value: object, supported: tuple[str, ...]) -> None:
    if value not in supported:
        raise ValueError(
            f"config.json has {name} {value!r}, but only {', '.join(supported)} is supported: "
            "choose a Llama-shaped model"
        )


def _rope(hf: Mapping[str, Any]) -> tuple[float, Llama3Rope | None]:
    """(rope_theta, scaling) from `rope_parameters` (transformers 5) or the two older fields."""
    rope = hf.get("rope_parameters") or hf.get("rope_scaling") or {}
    if not isinstance(rope, Mapping):
        raise ValueError(f"config.json's RoPE settings are {rope!r}, but must be an object")
    theta = rope.get("rope_theta") or hf.get("rope_theta") or 10000.0
    kind = rope.get("rope_type") or rope.get("type") or "default"
    _require("rope type", kind, ("default", "llama3"))
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError(
            f"config.json has partial_rotary_factor {rope['partial_rotary_factor']}, but only 1 "
            "is supported: choose a model that rotates whole heads"
        )
    if kind == "default":
        return theta, None
    names = [field.name for field in dataclasses.fields(Llama3Rope)]
    if lacking := [name for name in names if name not in rope]:
        raise ValueError(f"config.json's llama3 RoPE lacks {', '.join(lacking)}: fetch it again")
    return theta, Llama3Rope(**{name: rope[name] for name in names})
