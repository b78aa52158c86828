"""What a user gets back, and how tokens become text while they arrive."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from minipaged.metrics import RequestTimes
from minipaged.plan import TokenLogprobs


class TextDecoder(Protocol):
    """The part of a tokenizer that output needs."""

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes: ...


@dataclass(slots=True)
class RequestOutput:
    """One request's news from one step.

    new_token_ids: the tokens of this step. new_text: the text that became certain with them
        (empty if the engine has no tokenizer, while a character is incomplete, or while the
        text's end could be the beginning of a stop string).
    finish_reason: "stop" or "length" in the last output of the sample, else None.
    sample_index: which of the request's n samples this is, from 0.
    logprobs: one entry per new token if the request asked for them.
    times: in the last output, when what happened to the request.
    """

    request_id: str
    new_token_ids: list[int]
    new_text: str = ""
    finish_reason: str | None = None
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    times: RequestTimes | None = None
    sample_index: int = 0

    @property
    def finished(self) -> bool:
        """True in a sample's last output."""
        return self.finish_reason is not None


class TextStream:
    """Turns one request's tokens into text, piece by piece.

    A piece never ends inside a UTF-8 character, and never shows the beginning of a stop string
    that may yet be completed. Invalid bytes become U+FFFD.
    """

    __slots__ = ("_decoder", "_held", "_stops", "_utf8", "stopped")

    def __init__(self, decoder: TextDecoder, stop: Sequence[str] = ()) -> None:
        self._decoder = decoder
        self._stops = tuple(stop)
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self.stopped = False

    def push(self, token_ids: Sequence[int], may_stop: bool = True) -> str:
        """The text that has become certain; may_stop: whether a stop string that ends here counts.

        Sets `stopped` when one was found; the text then ends right before the first of them.
        Cost: O(text x stop strings), where a text that may begin one is compared once for each
        length up to the longest of them.
        """
        return self._take(self._utf8.decode(self._decoder.decode_bytes(token_ids)), may_stop)

    def close(self) -> str:
        """What was held back, now that nothing follows; "" after a stop string."""
        if self.stopped:
            return ""
        text = self._held + self._utf8.decode(b"", final=True)
        self._held = ""
        return text

    def _take(self, text: str, may_stop: bool) -> str:
        text = self._held + text
        self._held = ""
        places = [text.find(stop) for stop in self._stops] if may_stop else []
        found = [at for at in places if at >= 0]
        if found:
            self.stopped = True
            return text[: min(found)]
        keep = self._length_to_hold(text)
        if keep:
            text, self._held = text[:-keep], text[-keep:]
        return text

    def _length_to_hold(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop string."""
        longest = max((len(s) for s in self._stops), default=1) - 1
        for size in range(min(longest, len(text)), 0, -1):
            if any(s.startswith(text[-size:]) for s in self._stops):
                return size
        return 0
