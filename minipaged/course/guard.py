"""What a graded cell may import, and the guard that refuses the rest, and files.

A guard against the easy way, not a wall: it keeps a cell from passing off the reference or the
packaged solution as its own work and says so where it happens. Whoever knows Python's insides gets
around it and still gains no point by force, since the verdict is formed in another process
(docs/GRADING.md says what stops what). Standard library only: this runs in the learner's process.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection, Sequence
from typing import Any

# modules for data and numbers; none that reaches files, processes, the network or the interpreter
PLAIN = frozenset(
    "__future__ abc array bisect cmath collections contextlib copy dataclasses datetime decimal "
    "enum fractions functools hashlib heapq itertools json math numbers operator pprint queue "
    "random re statistics string struct textwrap time types typing unicodedata warnings weakref "
    "zlib".split()
)
TENSORS = frozenset({"numpy", "torch", "triton"})
NO_FILES = (
    "files cannot be opened in a graded cell: all that it works on comes as arguments, or stands "
    "in the cell"
)


def importable(tensors: bool) -> frozenset[str]:
    """The top-level modules that a graded cell may import. tensors: its exercise is on tensors."""
    return PLAIN | TENSORS if tensors else PLAIN


def install(importable: Collection[str], namespace: dict[str, Any]) -> None:
    """From now on code in `namespace` may import these top-level modules only, nobody minipaged.

    And nobody opens a file, by whatever name they get hold of an `open`; what is open stays open.
    An import is the one exception: a module that may be imported may import others. This holds
    for the process, as long as it runs.

    Modules import what they like as before: a function looks its __import__ up where it was
    defined, and only this namespace gets another one. What minipaged has loaded stays alive for
    those who hold it, but nobody finds it by name.
    """
    for name in [name for name in sys.modules if _top(name) == "minipaged"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _NotMinipaged())
    sys.addaudithook(_refuse_files)

    def guarded_import(
        name: str,
        globals_: Any = None,
        locals_: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        # C code that imports a helper (time.strptime does) asks in the name of its caller, and
        # unlike an import statement with an empty list
        by_statement = type(fromlist) is not list
        if level == 0 and by_statement and _top(name) not in importable:
            raise ImportError(refusal(name), name=name)
        return builtins.__import__(name, globals_, locals_, fromlist or (), level)

    namespace["__builtins__"] = {**vars(builtins), "__import__": guarded_import}


def refusal(name: str) -> str:
    """Why a module is not imported, for the learner."""
    top = _top(name)
    if top == "minipaged":
        return (
            "minipaged cannot be imported in a graded cell: what the task asks for is to be your "
            "own work, and a check belongs into the cell below"
        )
    if top in TENSORS:
        return f"{top} cannot be imported in this cell: the exercise works on plain Python values"
    return (
        f"{top} cannot be imported in a graded cell: only modules for data and numbers can, such "
        "as math, itertools, collections, dataclasses and random"
    )


def _refuse_files(event: str, args: tuple[Any, ...]) -> None:
    """Every way to open a file says so to the interpreter under the name "open" (PEP 578)."""
    if event != "open":
        return
    frame = sys._getframe(1) if hasattr(sys, "_getframe") else None
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return
        frame = frame.f_back
    raise PermissionError(NO_FILES)


class _NotMinipaged:
    """A finder that stands before all others and finds minipaged for nobody."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if _top(fullname) == "minipaged":
            raise ImportError(refusal(fullname), name=fullname)


def _top(name: object) -> str:
    return str(name).partition(".")[0]
