"""Reading and writing a Llama in a Hugging Face folder: config.json and safetensors files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from minipaged.model.folder import LAYOUT, read_json
from minipaged.model.llama import Llama
from minipaged.model.llama_config import LlamaConfig

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


class _SkipInit(TorchFunctionMode):
    """No random initial weights: each would be replaced at once, and drawing them on the meta
    device makes torch load its compiler, which takes longer than loading a small model."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def load_llama(
    folder: Path | str, dtype: torch.dtype | None = None, device: torch.device | str = "cpu"
) -> Llama:
    """The model in `folder`, in evaluation mode, its weights cast to dtype (None: as stored).

    Reads tensor by tensor, so memory holds one copy of the weights and one tensor more.
    Raises ValueError naming the file or tensor that is missing, unexpected or of another shape.
    """
    config = LlamaConfig.from_folder(folder)
    with torch.device("meta"), _SkipInit():
        model = Llama(config)
    wanted = dict(model.named_parameters())
    target = dtype or _stored_dtype(config)
    for name, stored in _tensors(Path(folder)):
        if _is_known_extra(name, config):
            continue
        _require_fits(name, stored, wanted)
        _put(model, name, stored.to(device=device, dtype=target))
        del wanted[name]
    if wanted:
        raise ValueError(
            f"{folder} lacks {len(wanted)} tensors, the first of them {min(wanted)}: the weights "
            "do not belong to config.json, or a shard is missing"
        )
    return model.eval().requires_grad_(False)


def save_llama(model: Llama, folder: Path | str, dtype: torch.dtype) -> None:
    """Write `folder`/config.json and model.safetensors (cast to dtype); transformers loads it."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    config = dataclasses.replace(model.config, dtype=str(dtype).removeprefix("torch."))
    text = json.dumps(config.to_hf(), indent=2)
    (target / "config.json").write_text(text + "\n", encoding="utf-8")
    tensors = {name: p.detach().to(dtype).contiguous() for name, p in model.named_parameters()}
    (target / WHOLE).write_bytes(save(tensors, metadata={"format": "pt"}))


def _stored_dtype(config: LlamaConfig) -> torch.dtype:
    found = getattr(torch, config.dtype, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ValueError(f"config.json has dtype {config.dtype!r}: ask for float32 instead")
    return found


def _tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of every weight in the folder, read one at a time."""
    for file in _weight_files(folder):
        if not file.is_file():
            raise ValueError(f"{file} is missing: {LAYOUT}")
        try:
            with safe_open(file, framework="pt", device="cpu") as opened:
                for name in opened.keys():  # noqa: SIM118 (safe_open is no mapping)
                    yield name, opened.get_tensor(name)
        except SafetensorError as error:
            raise ValueError(f"{file} cannot be read ({error}): fetch the file again") from None


def _weight_files(folder: Path) -> list[Path]:
    if (folder / WHOLE).is_file():
        return [folder / WHOLE]
    if not (folder / INDEX).is_file():
        raise ValueError(f"{folder} holds neither {WHOLE} nor {INDEX}: {LAYOUT}")
    weight_map = read_json(folder, INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"{folder / INDEX} holds no weight_map: fetch the file again")
    return [folder / name for name in sorted(set(weight_map.values()))]


def _is_known_extra(name: str, config: LlamaConfig) -> bool:
    """Tensors that some checkpoints carry although they follow from the others or the config."""
    tied_copy = config.tie_word_embeddings and name == "lm_head.weight"
    return tied_copy or name.endswith("rotary_emb.inv_freq")


def _require_fits(name: str, stored: Tensor, wanted: Mapping[str, nn.Parameter]) -> None:
    if name not in wanted:
        raise ValueError(
            f"unexpected tensor {name}: config.json describes a model without it (or the file "
            "holds it twice); the weights belong to another model"
        )
    if stored.shape != wanted[name].shape:
        raise ValueError(
            f"tensor {name} has shape {list(stored.shape)}, but config.json asks for "
            f"{list(wanted[name].shape)}: the weights belong to another model"
        )


def _put(model: Llama, name: str, tensor: Tensor) -> None:
    """Replace the placeholder parameter `name` by one that holds `tensor`."""
    module_name, _, parameter = name.rpartition(".")
    setattr(model.get_submodule(module_name), parameter, nn.Parameter(tensor))
