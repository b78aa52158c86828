"""What some exercises need and not every system has: Triton, which has wheels for Linux only.

Its interpreter runs a kernel as plain Python on the CPU, if TRITON_INTERPRET=1 is set before Triton
is first imported. A process has the one or the other, interpreter or compiler, to its end.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterable

INTERPRET = "TRITON_INTERPRET"
_IMPORTS = re.compile(r"(?:^|;)\s*(?:from\s+triton\b|import\s[^#;\n]*\btriton\b)", re.MULTILINE)
NO_TRITON = (
    "Triton is not installed, and lessons 11 and 12 write kernels in it. It has wheels for Linux "
    "only: take a Linux machine, WSL on Windows, or a container. No GPU is needed."
)


class NeedsTriton(ImportError):
    """Triton is missing, or cannot do what is asked in this process any more."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback, which would lead through our code."""
        return [f"NeedsTriton: {self}"]


def lacking(what: str | None) -> str:
    """Why an exercise that needs `what` ("triton", or None) cannot be run here; "" if it can."""
    return NO_TRITON if what == "triton" and not _is_there() else ""


def require_triton() -> None:
    """For the first cell of a notebook. NeedsTriton if Triton is missing, or if it was imported
    before TRITON_INTERPRET was set, so that its interpreter cannot be had."""
    if not _is_there():
        raise NeedsTriton(NO_TRITON)
    if os.environ.get(INTERPRET) != "1":
        raise NeedsTriton(f'{INTERPRET} is not set: os.environ["{INTERPRET}"] = "1" belongs above')
    if _is_compiling():
        raise NeedsTriton(
            f"Triton was imported before {INTERPRET} was set: restart the kernel, then run the "
            "first cell first"
        )


def needed_by(sources: Iterable[str]) -> str | None:
    """What cells with these sources need: "triton" if one imports it."""
    return "triton" if any(_IMPORTS.search(source) for source in sources) else None


def interpret(sources: Iterable[str]) -> None:
    """Before cells are run in this process: have Triton interpret if they import it, as the checks
    do, on whatever machine. Without effect once Triton has been imported."""
    if needed_by(sources) and "triton" not in sys.modules:
        os.environ.setdefault(INTERPRET, "1")


def _is_there() -> bool:
    return importlib.util.find_spec("triton") is not None


def _is_compiling() -> bool:
    language = sys.modules.get("triton.language")
    return language is not None and type(language.cdiv).__name__ == "JITFunction"
