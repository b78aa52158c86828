"""A script: plain operations, carried out beside a learner's object, that report plain data.

A script says what to do and not what should come of it, so it can be sent into the learner's
process, and the verdict is formed elsewhere. A function is called by one operation. A class takes
several: make an object, keep it under a name, call its methods. Standard library only: this runs
in the learner's process too.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import itertools
import linecache
import types
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from minipaged.course import cost, lent, plain, wrapped
from minipaged.course.lent import FIXTURES

MAX_ITEMS = 50_000  # that are listed of one thing: links that go round in a circle have no end
MAX_PRINTED = 400  # characters of printed text that are kept of one operation


class Operation(NamedTuple):
    """One call.

    args: positional arguments, plain data; Kept(name) stands for an earlier result or a fixture.
    target: "" is the learner's own function or class, else the name that an earlier result was
    kept under. method: of the target, "" for the target itself. keep: the name to keep the result
    under; then it is not reported. how: what to do, by the names of HOW.
    """

    args: tuple[Any, ...] = ()
    target: str = ""
    method: str = ""
    keep: str = ""
    how: str = "call"


# what an operation does with its target (or the target's attribute, if a method is named)
HOW: dict[str, Any] = {
    "call": lambda target, *args: target(*args),
    "get": lambda target: target,
    "len": len,
    "list": lambda target: list(itertools.islice(target, MAX_ITEMS + 1)),
    "in": lambda target, value: value in target,
    "item": lambda target, key: target[key],
    "give": lambda target, value: value,  # keeps an argument, so that later calls can change it
    # the steps of the cheapest of several calls, each with a list of arguments of its own; the last
    # operations of a script only
    "cost": cost.fewest,
}


class Case(NamedTuple):
    """A small situation. name: a few words. story: what happens, in a sentence or two."""

    name: str
    story: str
    operations: tuple[Operation, ...]


class Fault(NamedTuple):
    """An exception. kinds: its class name and those of its bases; one that only has the name of a
    built-in exception says so. line, source: where in the learner's own code it passed last; None
    and "" if it never was there."""

    kinds: list[str]
    message: str
    line: int | None
    source: str


class Observation(NamedTuple):
    """What one operation did. value: encoded result; None if there was a fault or it was kept.

    printed: the beginning of what was printed meanwhile. args_after: the encoded arguments if the
    call changed them, else None.
    """

    value: Any = None
    fault: Fault | None = None
    printed: str = ""
    args_after: Any = None


def is_ours(subject: Any) -> bool:
    """True for what minipaged itself defines, or a class derived from it: nobody's own work."""
    bases = subject.__mro__ if isinstance(subject, type) else (subject,)
    modules = (getattr(one, "__module__", None) for one in bases)
    return any(isinstance(m, str) and m.partition(".")[0] == "minipaged" for m in modules)


def run(operations: Iterable[Operation], subject: Any) -> list[Observation]:
    """Carry a script out; exactly one observation an operation, whatever happens.

    Nothing reaches the real stdout or stderr. Only KeyboardInterrupt passes through.
    """
    kept = {"": subject, **FIXTURES}
    return [_carry_out(operation, kept) for operation in operations]


def _carry_out(operation: Operation, kept: dict[str, Any]) -> Observation:
    args: list[Any] = list(operation.args)
    value, fault = None, None
    printed = Paper()
    with _quiet(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            args = [_argument(arg, kept) for arg in operation.args]
            result = HOW[operation.how](_target(operation, kept), *args)
            if operation.keep:
                kept[operation.keep] = result
            else:
                value = plain.encode(result)
                _end(result)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            fault = describe(error, *_OURS)
    return Observation(value, fault, printed.text, _changed(operation, args))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what numpy has to say inside Triton's interpreter about every NaN."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"triton\b")
        yield


def _changed(operation: Operation, args: list[Any]) -> Any:
    """The encoded arguments if the call changed them, else None. Never raises."""
    if operation.how != "call":
        return None
    # what was kept is there to be changed
    own = [k for k, arg in enumerate(operation.args) if type(arg) is not plain.Kept]
    try:
        after = plain.encode(tuple(args[k] for k in own))
        before = tuple(operation.args[k] for k in own)
        return None if plain.same(plain.decode(after), before) else after
    except Exception:
        return {"other": "arguments that cannot be looked at"}


_OURS = (__file__, str(cost.__file__), str(plain.__file__), *lent.FILES)


def _argument(arg: Any, kept: dict[str, Any]) -> Any:
    """An argument as the learner's code gets it: a copy, or what was kept under a name."""
    if type(arg) is plain.Kept:
        return _kept(arg.name, kept)
    return plain.to_tensor(arg) if type(arg) is plain.Array else copy.deepcopy(arg)


def _target(operation: Operation, kept: dict[str, Any]) -> Any:
    target = _kept(operation.target, kept)
    return getattr(target, operation.method) if operation.method else target


def _kept(name: str, kept: dict[str, Any]) -> Any:
    if name not in kept:
        raise LookupError(f"{name!r} was never made: an earlier call failed")
    return kept[name]


def _end(result: Any) -> None:
    """Close a coroutine, which would otherwise complain on stderr that nobody awaited it."""
    if type(result) is types.CoroutineType:
        result.close()


class Paper:
    """A text stream that keeps the beginning only, so that endless printing costs no memory."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += str(text)[: max(0, MAX_PRINTED - len(self.text))]
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def describe(error: BaseException, *not_learner: str) -> Fault:
    """The fault behind an exception; frames of the files `not_learner` are left out."""
    frames = wrapped.frames_of(error)
    error = wrapped.unwrapped(error)
    kinds = [_kind(cls) for cls in type(error).__mro__ if cls is not object]
    try:
        message = wrapped.message_of(error)[:400]
    except BaseException:
        message = "(its message cannot be shown)"
    if isinstance(error, SyntaxError):
        return Fault(kinds, str(error.msg), error.lineno, (error.text or "").strip()[:120])
    line, source = _learners_line(frames, not_learner)
    return Fault(kinds, message, line, source)


_BUILT_IN = {
    name: cls
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, BaseException)
}


def _kind(cls: type) -> str:
    """A class's name; one that only has the name of a built-in exception is told apart."""
    name = plain.class_name(cls)
    return name if _BUILT_IN.get(name, cls) is cls else f"{name} (not the built-in one)"


def _learners_line(
    passed: Sequence[tuple[types.FrameType, int]], not_learner: Sequence[str]
) -> tuple[int | None, str]:
    """The deepest line of the learner's own code on the way to the exception.

    The first frame after ours is theirs. Of those below it, the ones in the same file are, and
    the ones in other cells.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in passed]
    frames = [at for at in frames if at[0] not in not_learner]
    own = [at for at in frames if at[0] == frames[0][0] or _is_cell(at[0])]
    if not own:
        return None, ""
    filename, line = own[-1]
    return line, linecache.getline(filename, line).strip()[:120]


def _is_cell(filename: str) -> bool:
    """A cell in the worker is "<cell …>"; one in a notebook is a file that does not exist."""
    if filename.startswith("<"):
        return filename.startswith("<cell ")
    return not Path(filename).exists()


def to_json(operations: Iterable[Operation]) -> list[list[Any]]:
    """A script as JSON can hold it."""
    return [[plain.encode(o.args), o.target, o.method, o.keep, o.how] for o in operations]


def from_json(rows: list[list[Any]]) -> list[Operation]:
    """What to_json wrote."""
    return [Operation(plain.decode(args), *names) for args, *names in rows]


def read_observation(data: Any) -> Observation:
    """An observation that came from elsewhere; ValueError unless it has exactly the right form."""
    value, fault, printed, args_after = _fields(data, 4)
    if type(printed) is not str:
        raise ValueError("an observation's printed text is no text")
    for encoded in (value, args_after):
        plain.decode(encoded)
    fault = None if fault is None else read_fault(fault)
    printed = "\n".join(map(plain.clean, printed.split("\n")))
    return Observation(value, fault, printed, args_after)


def read_fault(data: Any) -> Fault:
    """A fault that came from elsewhere; ValueError unless it has exactly the right form."""
    kinds, message, line, source = _fields(data, 4)
    texts = [message, source, *kinds] if type(kinds) is list else [None]
    if not all(type(text) is str for text in texts) or type(line) not in (int, type(None)):
        raise ValueError("a fault's fields have the wrong types")
    if not kinds:
        raise ValueError("a fault without a class")
    kinds, message, source = (
        [plain.clean(k) for k in kinds],
        plain.clean(message),
        plain.clean(source),
    )
    return Fault(kinds, message, line, source)


def _fields(data: Any, count: int) -> list[Any]:
    if type(data) is not list or len(data) != count:
        raise ValueError(f"a list of {count} fields was expected")
    return data
