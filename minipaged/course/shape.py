"""The shape of a piece of code: its syntax tree without what a copier changes.

Left out are comments, docstrings, annotations, __slots__, and the order of imports and definitions.
Every name that can be chosen freely is replaced by a number: parameters, variables, attributes that
the code sets, private methods, its own and other functions but Python's. Public methods keep their
names. Standard library only; nothing is executed.
"""

from __future__ import annotations

import ast
import builtins
import copy
from dataclasses import dataclass

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Shape:
    """Shapes of equal code are equal. num_nodes: of the syntax tree behind it."""

    text: str
    num_nodes: int


def shape_of(tree: ast.AST) -> Shape:
    """The shape of a syntax tree, which stays as it is. Cost: O(nodes * log nodes)."""
    tree = _Bare().visit(copy.deepcopy(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            node.body.sort(key=_order)
    _Numbers(tree).visit(tree)
    return Shape(ast.dump(tree), sum(1 for _ in ast.walk(tree)))


class _Bare(ast.NodeTransformer):
    """Leaves out what a program does not need, and annotations; marks methods as such."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [one for one in body if not _says_nothing(one)] or [ast.Pass()]
        for field in ("annotation", "returns", "type_comment"):
            if hasattr(node, field):
                setattr(node, field, None)
        if isinstance(node, ast.ClassDef):
            for one in node.body:
                one.is_member = True  # type: ignore[attr-defined]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.Assign(targets=[node.target], value=node.value or ast.Constant(value=None))


def _says_nothing(statement: ast.stmt) -> bool:
    """Texts that stand for themselves, and __slots__, which lists names."""
    if isinstance(statement, ast.Assign):
        return [getattr(target, "id", "") for target in statement.targets] == ["__slots__"]
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)


def _order(statement: ast.stmt) -> tuple[int, str, str]:
    """Imports, then what keeps its place (sorting is stable), then definitions.

    Public methods go by their names; all else by what it looks like with every name blanked.
    """
    if not isinstance(statement, (*_IMPORTS, *_DEFINITIONS)):
        return 1, "", ""
    nameless = copy.deepcopy(statement)
    _Blank().visit(nameless)
    name = getattr(statement, "name", "")
    is_fixed = _is_member(statement) and _is_public(name)
    return 2 * isinstance(statement, _DEFINITIONS), name if is_fixed else "", ast.dump(nameless)


def _is_member(node: ast.AST) -> bool:
    return getattr(node, "is_member", False)


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _name_field(node: ast.AST) -> str:
    """The field of a node that holds a name, "" if there is none."""
    for field in ("id", "arg", "attr", "asname", "name"):
        if isinstance(getattr(node, field, None), str):
            return field
    return ""


class _Blank(ast.NodeVisitor):
    """Blanks every name but those of imported modules."""

    def generic_visit(self, node: ast.AST) -> None:
        field = _name_field(node)
        if field and not isinstance(node, ast.alias):
            setattr(node, field, "_")
        super().generic_visit(node)


class _Numbers(ast.NodeVisitor):
    """Replaces made-up names by numbers, in the order in which they appear.

    Variables are numbered anew in every function that stands in a class or at the top: the same
    thing may be called differently in two of them.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.attributes = _Namespace(_made_up_attributes(tree))
        self.variables = [_Namespace(_made_up_variables(tree) | _from_elsewhere(tree))]

    def generic_visit(self, node: ast.AST) -> None:
        field = _name_field(node)
        if field and not (isinstance(node, ast.alias) and field == "name"):
            setattr(node, field, self._renamed(getattr(node, field), node))
        if isinstance(node, _FUNCTIONS) and len(self.variables) == 1:
            self.variables.append(_Namespace(_made_up_variables(node) - _globals(node)))
            super().generic_visit(node)
            self.variables.pop()
        else:
            super().generic_visit(node)

    def _renamed(self, name: str, node: ast.AST) -> str:
        is_attribute = isinstance(node, ast.Attribute)
        if is_attribute or (_is_member(node) and isinstance(node, _FUNCTIONS)):
            return self.attributes.renamed(name)
        for namespace in reversed(self.variables):
            if name in namespace.names:
                return namespace.renamed(name)
        return name


class _Namespace:
    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.numbers: dict[str, str] = {}

    def renamed(self, name: str) -> str:
        if name not in self.names:
            return name
        return self.numbers.setdefault(name, f"_{len(self.numbers)}")


def _made_up_attributes(tree: ast.AST) -> set[str]:
    """Attributes that are set, and private methods."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, _FUNCTIONS) and _is_member(node) and not _is_public(node.name):
            found.add(node.name)
    return found


def _made_up_variables(tree: ast.AST) -> set[str]:
    """Parameters, assigned names, imports under another name, functions and classes of its own."""
    found = set()
    for node in ast.walk(tree):
        is_set = not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and is_set:
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or "")
        elif isinstance(node, ast.ExceptHandler):
            found.add(node.name or "")
        elif isinstance(node, _DEFINITIONS) and not _is_member(node):
            found.add(node.name)
    return found - {""}


def _from_elsewhere(tree: ast.AST) -> set[str]:
    """All names that are used and not Python's own: a part of a module gets some from around it."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names - set(vars(builtins))


def _globals(function: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            found.update(node.names)
    return found
