"""An exception inside a kernel, as Triton's interpreter passes it on: wrapped once or more.

What it wraps has the words and the line that help; the wrapping only has them as a text. Standard
library only: this runs in the learner's process too, mostly without Triton.
"""

from __future__ import annotations

import traceback
from types import FrameType

_WRAPS = "InterpreterError"  # triton.runtime.errors


def unwrapped(error: BaseException) -> BaseException:
    """What was raised in the kernel, else the exception itself."""
    return _chain(error)[-1]


def frames_of(error: BaseException) -> list[tuple[FrameType, int]]:
    """Frames and lines on the way to where it was raised, in kernels too, outermost first."""
    return [frame for one in _chain(error) for frame in traceback.walk_tb(one.__traceback__)]


def _chain(error: BaseException) -> list[BaseException]:
    found = [error]
    while (cause := found[-1].__cause__) is not None and _is_wrapping(found[-1]):
        found.append(cause)
    return found


def _is_wrapping(error: BaseException) -> bool:
    kind = type(error)
    return kind.__name__ == _WRAPS and kind.__module__.partition(".")[0] == "triton"


def message_of(error: BaseException) -> str:
    """Its text; of what Triton's compiler refuses the reason and the line, which it puts behind up
    to twelve lines of the kernel."""
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    if type(error).__name__ != "CompilationError" or node is None or not isinstance(source, str):
        return str(error)
    line = source.splitlines()[node.lineno - 1 : node.lineno]
    return f"{getattr(error, 'error_message', None) or 'refused'} (at `{''.join(line).strip()}`)"
