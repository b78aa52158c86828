"""See that no program reads or writes outside of the tensors that its launch was given.

Triton's interpreter follows any address: past the end of a tensor lies another one, or garbage
that a later mask may hide. On a GPU it may be nobody's memory.
"""

from __future__ import annotations

from collections import Counter

from triton.runtime import interpreter


class Watched:
    """In place of the interpreter's C functions: looks at every address before it is used."""

    def __init__(self, real):
        self.real = real
        self.spans = []
        """(first byte, byte behind the last) of each tensor of the launch."""
        self.reads = Counter()
        """Numbers read of each tensor, by its first byte."""
        self.calls = 0
        """Instructions that read, masked or not."""

    def __getattr__(self, name):
        return getattr(self.real, name)

    def load(self, addresses, mask, other, dtype):
        self.calls += 1
        self.look("read", addresses[mask], dtype.itemsize)
        return self.real.load(addresses, mask, other, dtype)

    def store(self, addresses, values, mask):
        self.look("written", addresses[mask], values.dtype.itemsize)
        return self.real.store(addresses, values, mask)

    def look(self, how, addresses, size):
        outside = addresses == addresses
        for begin, end in self.spans:
            inside = (addresses >= begin) & (addresses + size <= end)
            outside &= ~inside
            if how == "read":
                self.reads[begin] += int(inside.sum())
        assert not outside.any(), f"{outside.sum()} numbers outside of all tensors would be {how}"


def watch(monkeypatch) -> Watched:
    """Look at every launch from now on. AttributeError if the interpreter is built otherwise."""
    watched = Watched(interpreter._interpreter)
    begin = interpreter.GridExecutor._init_args_hst

    def launch(self, *args, **kwargs):
        on_host = begin(self, *args, **kwargs)
        tensors = [x for x in (*on_host[0], *on_host[1].values()) if hasattr(x, "data_ptr")]
        watched.spans = [
            (x.data_ptr(), x.data_ptr() + x.numel() * x.element_size()) for x in tensors
        ]
        return on_host

    monkeypatch.setattr(interpreter, "_interpreter", watched)
    monkeypatch.setattr(interpreter.GridExecutor, "_init_args_hst", launch)
    return watched
