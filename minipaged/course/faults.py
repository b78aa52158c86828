"""An exception of the learner's code in plain words, for every place that has to tell of one."""

from __future__ import annotations

import builtins

from minipaged.course.script import Fault

# exceptions of a cell that looks for something in another one, and what to say about it
MISSING = ("NameError", "ModuleNotFoundError")
OUT_OF_MEMORY = "this takes more memory than a cell may take"
ONLY_THIS_CELL = "Only this cell is graded: it must hold the imports and helpers that it uses."


def say_fault(fault: Fault, quote: bool = True) -> str:
    """An exception in words; with quote also its own words and the learner's line."""
    name = fault.kinds[0] if quote else next(filter(_is_builtin, fault.kinds), "an exception")
    said = f"Your code raised {name}" + (f": {fault.message}" if quote and fault.message else "")
    if fault.kinds[0] == "SystemExit":
        said = "Your code ended the program (SystemExit); it should return a value instead"
    if _is_out_of_memory(fault):
        said += f" ({OUT_OF_MEMORY})"
    if fault.line is None:
        return (
            f"{said}. It happened at the call itself, in no line of yours: compare name, "
            "parameters and what your code returned before with the task."
        )
    source = f": `{fault.source}`" if quote and fault.source else "."
    return f"{said}, in line {fault.line} of the cell{source}"


def _is_out_of_memory(fault: Fault) -> bool:
    """Not if the line raises it itself: an allocator of one's own refuses like that."""
    if fault.source.startswith("raise"):
        return False
    return "MemoryError" in fault.kinds or (
        fault.kinds[0] == "RuntimeError" and "can't allocate memory" in fault.message
    )


def _is_builtin(kind: str) -> bool:
    return isinstance(getattr(builtins, kind, None), type)
