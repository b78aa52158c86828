"""What a mutation may put in the place of a node: the small mistakes that mutants.py makes.

Standard library only; nothing is run.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: a field of its parent, or an element of that field."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    where: str

    def put(self, node: ast.AST) -> None:
        """Put another node there."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


Changes = Iterator[tuple[str, ast.AST]]


def changes(place: Place, demanded: Collection[str], coarse: bool) -> Changes:
    """What to put in a node's place, each with its kind."""
    node = place.node
    if isinstance(place.parent, ast.Raise) and isinstance(node, ast.expr):
        yield from _exceptions(node, demanded)
    elif isinstance(node, ast.expr):
        yield from _operators(node)
        yield from _numbers(node, coarse)
        yield from _arguments(node)
        yield from _conditions(place)
    elif isinstance(node, ast.AugAssign):
        for op in _ARITHMETIC.get(type(node.op), ()):
            yield "arithmetic", ast.AugAssign(node.target, op(), node.value)
    if isinstance(node, ast.stmt):
        yield from _statements(place)
    if isinstance(node, ast.Slice):
        yield from _slices(node)


_COMPARISONS: dict[type, tuple[type, ...]] = {
    **{ast.Lt: (ast.LtE,), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE,), ast.GtE: (ast.Gt,)},
    **{ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,)},
    **{ast.In: (ast.NotIn,), ast.NotIn: (ast.In,)},
}
_ARITHMETIC: dict[type, tuple[type, ...]] = {
    **{ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv,)},
    **{ast.FloorDiv: (ast.Mult, ast.Mod), ast.Mod: (ast.FloorDiv,), ast.Div: (ast.Mult,)},
}


def _operators(node: ast.expr) -> Changes:
    if isinstance(node, ast.Compare):
        for number, op in enumerate(node.ops):
            for other in _COMPARISONS[type(op)]:
                ops = [*node.ops[:number], other(), *node.ops[number + 1 :]]
                yield "comparison", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BinOp):
        for other in _ARITHMETIC.get(type(node.op), ()):
            yield "arithmetic", ast.BinOp(node.left, other(), node.right)
    elif isinstance(node, ast.BoolOp):
        swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and for or", ast.BoolOp(swapped, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "sign left out", node.operand


def _conditions(place: Place) -> Changes:
    parent = place.parent
    if place.field not in ("test", "ifs"):
        return
    yield "condition True", ast.Constant(True)
    if not (isinstance(parent, ast.If) and not parent.orelse):
        yield "condition False", ast.Constant(False)


def _numbers(node: ast.expr, coarse: bool) -> Changes:
    if not isinstance(node, ast.Constant) or type(node.value) is not int:
        return
    if coarse:
        yield "number doubled", ast.Constant(2 * node.value or 1)
    else:
        yield "number +1", ast.Constant(node.value + 1)
        yield "number -1", ast.Constant(node.value - 1)


def _arguments(node: ast.expr) -> Changes:
    """Two arguments in the other order, where the order says something."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
        return
    either_way = isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
    if not either_way and not any(isinstance(arg, ast.Starred) for arg in node.args):
        yield "arguments swapped", ast.Call(node.func, node.args[::-1], [])


def _exceptions(node: ast.expr, demanded: Collection[str]) -> Changes:
    name = node.func if isinstance(node, ast.Call) else node
    cls = getattr(builtins, name.id, None) if isinstance(name, ast.Name) else None
    bases = {base.__name__ for base in inspect.getmro(cls)} if isinstance(cls, type) else set()
    if bases & set(demanded):
        other = ast.Name("IndexError" if "ValueError" in bases else "ValueError")
        made = ast.Call(other, node.args, node.keywords) if isinstance(node, ast.Call) else other
        yield "other exception", made


def _slices(node: ast.Slice) -> Changes:
    """Bounds moved by one. Those that are numbers already were."""
    for by in (1, -1):
        moved = [_moved(bound, by) for bound in (node.lower, node.upper)]
        yield f"slice begins {by:+}", ast.Slice(moved[0] or node.lower, node.upper, node.step)
        yield f"slice ends {by:+}", ast.Slice(node.lower, moved[1] or node.upper, node.step)
    if node.lower is None:
        yield "slice begins +1", ast.Slice(ast.Constant(1), node.upper, node.step)
    if node.upper is None:
        yield "slice ends -1", ast.Slice(node.lower, ast.Constant(-1), node.step)


def _moved(bound: ast.expr | None, by: int) -> ast.expr | None:
    number = bound.operand if isinstance(bound, ast.UnaryOp) else bound
    if bound is None or isinstance(number, ast.Constant):
        return None
    return ast.BinOp(bound, ast.Add() if by > 0 else ast.Sub(), ast.Constant(1))


def _statements(place: Place) -> Changes:
    node: Any = place.node
    if isinstance(node, ast.Return):
        yield from _returns(node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _emptied(node)
        return
    if not isinstance(node, ast.ClassDef | ast.Pass) and not _is_copy(node, place.parent):
        yield "statement left out", ast.Pass()


def _is_copy(node: Any, parent: Any) -> bool:
    """Leaving it out changes nothing, or what another mutant changes."""
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return True
    if isinstance(node, ast.Return) and isinstance(parent, DEFINITIONS):
        return parent.body[-1] is node
    return isinstance(parent, ast.If) and not parent.orelse and len(parent.body) == 1


def _returns(node: ast.Return) -> Changes:
    if node.value is None:
        return
    yield "returns None", ast.Return(ast.Constant(None))
    first: Any = node.value
    if isinstance(first, ast.BinOp | ast.Compare):
        yield "returns the first operand", ast.Return(first.left)
    elif isinstance(first, ast.BoolOp):
        yield "returns the first operand", ast.Return(first.values[0])


def _emptied(node: Any) -> Changes:
    rest = body_of(node)
    if not rest or (len(rest) == 1 and isinstance(rest[0], ast.Return)):
        return  # nothing to do, or the same as returning None
    fields = {field: value for field, value in ast.iter_fields(node) if field != "body"}
    docstring = node.body[: len(node.body) - len(rest)]
    yield "emptied", type(node)(**fields, body=[*docstring, ast.Pass()])


def body_of(node: Any) -> list[ast.stmt]:
    """The statements of a function behind its docstring."""
    has_docstring = ast.get_docstring(node, clean=False) is not None
    return node.body[1:] if has_docstring else node.body
