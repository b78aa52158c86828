"""Single key presses from a terminal, on POSIX (termios) and on Windows (msvcrt)."""

from __future__ import annotations

import os
import select
import sys
import time
from types import TracebackType
from typing import Any, Protocol

_POLL_S = 0.02


class Keys(Protocol):
    """A source of key presses, open from `with` to its end."""

    def __enter__(self) -> Keys: ...

    def __exit__(self, *exc: Any) -> None: ...

    def read(self, timeout: float) -> str:
        """The next key, or "" after `timeout` seconds. The right arrow is "right"."""
        ...


class NoKeys:
    """Nobody is there to press a key: reading only waits."""

    def __enter__(self) -> NoKeys:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def read(self, timeout: float) -> str:
        """Always "", after `timeout` seconds."""
        time.sleep(max(timeout, 0.0))
        return ""


class PosixKeys:
    """The terminal at stdin without line buffering and echo; put back as it was at the end."""

    def __enter__(self) -> PosixKeys:
        import termios
        import tty

        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        import termios

        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def read(self, timeout: float) -> str:
        """The next key, or "" after `timeout` seconds; "q" once the terminal is gone."""
        if not self._ready(timeout):
            return ""
        data = os.read(self._fd, 1)
        while data[:1] == b"\x1b" and len(data) < 8 and self._ready(_POLL_S):
            data += os.read(self._fd, 1)
            if data[-1:].isalpha() and data != b"\x1bO":
                break
        if data in (b"\x1b[C", b"\x1bOC"):
            return "right"
        return data.decode("latin-1") if data else "q"

    def _ready(self, timeout: float) -> bool:
        return bool(select.select([self._fd], [], [], max(timeout, 0.0))[0])


class WindowsKeys:
    """The console of Windows."""

    def __enter__(self) -> WindowsKeys:
        import msvcrt

        self._msvcrt: Any = msvcrt
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def read(self, timeout: float) -> str:
        """The next key, or "" after `timeout` seconds."""
        end = time.monotonic() + timeout
        while not self._msvcrt.kbhit():
            left = end - time.monotonic()
            if left <= 0:
                return ""
            time.sleep(min(left, _POLL_S))
        key = self._msvcrt.getwch()
        if key in ("\x00", "\xe0"):
            return "right" if self._msvcrt.getwch() == "M" else ""
        return key


def open_keys() -> Keys:
    """Keys of this terminal, or NoKeys if stdin is not one."""
    if not sys.stdin.isatty():
        return NoKeys()
    return WindowsKeys() if sys.platform == "win32" else PosixKeys()
