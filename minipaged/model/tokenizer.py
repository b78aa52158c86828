"""Text to token ids and back to bytes: what every tokenizer offers, and the tutor's own. No torch.

A tokenizer gives bytes, not text: one character may be spread over several tokens, and only who
streams the text knows when enough of it has come (codecs.getincrementaldecoder does the waiting).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

SYSTEM_PROMPT = "You are the minipaged tutor. Answer questions about serving engines."
BEGIN, END, USER, ASSISTANT = 256, 257, 258, 259


class Tokenizer(Protocol):
    """What the engine asks of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Ids are below this number."""
        ...

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Ids that end a text."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of `text` alone, without any special token around it."""
        ...

    def prompt_ids(self, text: str) -> list[int]:
        """The ids to feed for what a user typed, in the form that the model was trained on."""
        ...

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        """The exact UTF-8 bytes of the ids; special tokens give none.

        Bytes of a + b are the bytes of a, then those of b, so pieces can be joined as they come.
        The end may cut a character; errors="replace" or an incremental decoder deals with it.
        """
        ...


class TutorTokenizer:
    """Byte level: ids 0 to 255 are bytes, 256 begins, 257 ends, 258 is "user", 259 "assistant"."""

    vocab_size = 260
    eos_token_ids = (END,)

    def __init__(self) -> None:
        self._head = [BEGIN, *SYSTEM_PROMPT.encode(), USER]

    def encode(self, text: str) -> list[int]:
        """One id per UTF-8 byte; what UTF-8 cannot hold (lone surrogates) becomes "?"."""
        return list(text.encode("utf-8", "replace"))

    def prompt_ids(self, text: str) -> list[int]:
        """begin, system prompt, user, the question, assistant: all prompts share their start.

        Space around the question is dropped: the tutor never saw any in training.
        """
        return [*self._head, *self.encode(text.strip()), ASSISTANT]

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        """The ids below 256 as bytes. ValueError for an id outside the vocabulary."""
        for token in token_ids:
            if not 0 <= token < self.vocab_size:
                raise ValueError(
                    f"token id {token} is outside the tutor's vocabulary of {self.vocab_size}: "
                    "were these ids made by another model?"
                )
        return bytes(token for token in token_ids if token < BEGIN)
