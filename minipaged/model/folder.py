"""Reading the small JSON files of a model folder in Hugging Face format. No torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LAYOUT = "a model folder holds config.json, tokenizer.json and model.safetensors (whole or sharded)"


def read_json(folder: Path | str, name: str) -> dict[str, Any]:
    """The object in `folder`/`name`. ValueError if it is missing or is no JSON object."""
    path = Path(folder) / name
    if not Path(folder).is_dir():
        raise ValueError(f"{folder} is not a folder: {LAYOUT}")
    if not path.is_file():
        raise ValueError(f"{path} is missing: {LAYOUT}")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON ({error}): fetch the file again") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}, but it must hold a JSON object")
    return value


def read_json_if_there(folder: Path | str, name: str) -> dict[str, Any]:
    """Like read_json, but an absent file reads as an empty object."""
    return read_json(folder, name) if (Path(folder) / name).is_file() else {}


def id_tuple(value: int | list[int] | None) -> tuple[int, ...]:
    """Token ids as a tuple; configs write one id as a number, several as a list, none as null."""
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def eos_token_ids(folder: Path | str) -> tuple[int, ...]:
    """Ids that end a text, from config.json and generation_config.json, in that order.

    Chat models name their end-of-turn token only in the second file, so both are read.
    """
    ids: dict[int, None] = {}
    for name in ("config.json", "generation_config.json"):
        found = read_json_if_there(folder, name).get("eos_token_id")
        ids |= dict.fromkeys(id_tuple(found))
    return tuple(ids)


def token_text(value: object) -> str | None:
    """A special token's text; tokenizer_config.json writes it plain or as {"content": ...}."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None
