"""A tokenizer.json from Hugging Face, with exact bytes for every token. No torch.

Needs the `tokenizers` package: pip install "minipaged[models]".
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from minipaged.model.chat import ChatTemplate
from minipaged.model.folder import eos_token_ids, read_json, read_json_if_there, token_text


class HFTokenizer:
    """The tokenizer in a model folder, of either byte-level BPE (GPT-2) or SentencePiece style.

    chat_template: the folder's own, or None. With one, prompt_ids puts the text into it as the
    user's only turn, which is what an instruction model was trained on; without, the text is
    encoded with the special tokens that tokenizer.json adds (often a begin token).
    """

    def __init__(self, folder: Path | str) -> None:
        """Raises ValueError if a file is missing or the token style is neither of the two."""
        definition = read_json(folder, "tokenizer.json")
        self._tokenizer = _tokenizers().Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        self._to_bytes = _token_style(definition.get("decoder"))
        self._added = {entry["id"]: entry for entry in definition.get("added_tokens", [])}
        self._known: dict[int, bytes] = {}
        self.chat_template = ChatTemplate.from_folder(folder)
        self.eos_token_ids = self._find_eos(folder)

    @property
    def vocab_size(self) -> int:
        """Ids that have a text, added tokens included; a model's embedding may hold more rows."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str) -> list[int]:
        """The ids of `text` alone, without any special token around it."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def prompt_ids(self, text: str) -> list[int]:
        """The ids of a prompt: `text` in the chat template, else with tokenizer.json's specials."""
        if self.chat_template is not None:
            return self.encode(self.chat_template.render(text))
        return self._tokenizer.encode(text, add_special_tokens=True).ids

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        """The exact bytes of the ids; special tokens and ids without a text give none.

        A SentencePiece text begins with a space of its own; it is kept, so that pieces can be
        joined whatever the cut.
        """
        return b"".join(self._bytes_of(token) for token in token_ids)

    def _bytes_of(self, token_id: int) -> bytes:
        found = self._known.get(token_id)
        if found is None:
            found = self._known[token_id] = self._look_up(token_id)
        return found

    def _look_up(self, token_id: int) -> bytes:
        if entry := self._added.get(token_id):
            return b"" if entry["special"] else entry["content"].encode()
        token = self._tokenizer.id_to_token(token_id)
        return b"" if token is None else self._to_bytes(token)

    def _find_eos(self, folder: Path | str) -> tuple[int, ...]:
        text = token_text(read_json_if_there(folder, "tokenizer_config.json").get("eos_token"))
        own = None if text is None else self._tokenizer.token_to_id(text)
        ids = dict.fromkeys(eos_token_ids(folder))
        return tuple(ids if own is None else ids | {own: None})


class ByteLevel:
    """Token to bytes for byte-level BPE: every byte is written as one printable character."""

    def __init__(self) -> None:
        self._byte_of = {char: byte for byte, char in enumerate(_byte_alphabet())}

    def __call__(self, token: str) -> bytes:
        return bytes(self._byte_of[char] for char in token)


class SentencePiece:
    """Token to bytes for SentencePiece: a mark stands for a space, <0xE2> for a single byte."""

    _BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def __call__(self, token: str) -> bytes:
        if found := self._BYTE.fullmatch(token):
            return bytes([int(found[1], 16)])
        return token.replace(self._mark, " ").encode()


def _byte_alphabet() -> Iterator[str]:
    """The character of each byte 0 to 255: itself where printable, else one from 256 upwards.

    As in GPT-2, src/encoder.py, bytes_to_unicode.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(256, 512))
    for byte in range(256):
        yield chr(byte if byte in printable else next(spare))


def _token_style(decoder: Any) -> ByteLevel | SentencePiece:
    """How token strings spell bytes, told from the decoder in tokenizer.json."""
    steps = _steps(decoder)
    kinds = [step.get("type") for step in steps]
    if "ByteLevel" in kinds:
        return ByteLevel()
    for step in steps:
        if step["type"] == "Metaspace":
            return SentencePiece(step.get("replacement", "▁"))
        if step["type"] == "Replace" and step.get("content") == " ":
            return SentencePiece(step["pattern"]["String"])
    if "ByteFallback" in kinds:
        return SentencePiece("▁")
    raise ValueError(
        f"tokenizer.json has decoder {json.dumps(decoder)[:80]}, but only byte-level BPE and "
        "SentencePiece style are supported: choose a Llama-shaped model"
    )


def _steps(decoder: Any) -> list[dict[str, Any]]:
    if not isinstance(decoder, dict):
        return []
    return decoder["decoders"] if decoder.get("type") == "Sequence" else [decoder]


def _tokenizers() -> Any:
    try:
        return importlib.import_module("tokenizers")
    except ImportError:
        raise ValueError(
            "reading tokenizer.json needs the tokenizers package, which is not installed: "
            'pip install "minipaged[models]"'
        ) from None
