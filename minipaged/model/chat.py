"""Chat templates: the text around a user's turn that an instruction model was trained on."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, NoReturn

from minipaged.model.folder import read_json_if_there, token_text

TEMPLATE_FILE = "chat_template.jinja"


class ChatTemplate:
    """A folder's Jinja template, run in Jinja's sandbox with the names that templates expect.

    The settings are those of transformers, src/transformers/utils/chat_template_utils.py.
    """

    def __init__(self, source: str, special_tokens: dict[str, str]) -> None:
        """special_tokens: bos_token, eos_token and so on, by the names that the template uses."""
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = _now
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"the model's chat template is no valid Jinja: {error}") from None
        self._special_tokens = special_tokens

    @classmethod
    def from_folder(cls, folder: Path | str) -> ChatTemplate | None:
        """The template in chat_template.jinja or tokenizer_config.json; None if there is none."""
        config = read_json_if_there(folder, "tokenizer_config.json")
        source = _source(Path(folder), config)
        if source is None:
            return None
        texts = {name: token_text(value) for name, value in config.items() if "_token" in name}
        return cls(source, {name: text for name, text in texts.items() if text is not None})

    def render(self, text: str) -> str:
        """`text` as the user's only turn, up to where the answer begins."""
        messages = [{"role": "user", "content": text}]
        return self._template.render(
            messages=messages, add_generation_prompt=True, **self._special_tokens
        )


def _source(folder: Path, config: dict[str, Any]) -> str | None:
    if (folder / TEMPLATE_FILE).is_file():
        return (folder / TEMPLATE_FILE).read_text(encoding="utf-8")
    found = config.get("chat_template")
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found}
        return named.get("default")
    return found


def _refuse(message: str) -> NoReturn:
    raise ValueError(f"the model's chat template refuses this prompt: {message}")


def _now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
