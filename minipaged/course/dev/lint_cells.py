"""What is wrong with a skeleton beside its solution, from their syntax trees. Nothing is run.

A skeleton is an exercise's cell after stripping. Solving it only ever replaces
`raise NotImplementedError()`: so its signatures are the solution's, and no gap says `pass`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from minipaged.course.dev.notebook import solution_regions

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def skeleton_faults(solution: str, skeleton: str) -> Iterator[str]:
    """What is wrong and what to do, a sentence each; sources of one cell before and after."""
    try:
        solved = ast.parse(solution)
    except SyntaxError as error:
        yield f"the solution is not Python (line {error.lineno} of its cell): mend it"
        return
    try:
        stripped = ast.parse(skeleton)
    except SyntaxError as error:
        yield (
            f"the skeleton is not Python (line {error.lineno} of its cell): let the solution's "
            "markers enclose whole statements"
        )
        return
    yield from _signature_faults(_signatures(solved), _signatures(stripped))
    yield from _gap_faults(stripped, len(solution_regions(solution)))


def _signature_faults(solved: dict[str, str], stripped: dict[str, str]) -> Iterator[str]:
    for name, wanted in solved.items():
        owner = name.rpartition(".")[0]
        if owner and owner not in stripped:
            continue  # its class is missing, and that has been said
        if name not in stripped:
            yield (
                f"the solution defines {name}, the skeleton does not: put its signature outside "
                "the solution's markers"
            )
        elif stripped[name] != wanted:
            yield (
                f"the skeleton has `{stripped[name]}`, the solution `{wanted}`: make them the same"
            )
    for name in sorted(stripped.keys() - solved.keys()):
        yield f"the skeleton defines {name}, the solution does not: take it out"


def _gap_faults(stripped: ast.Module, num_gaps: int) -> Iterator[str]:
    for name, node in _definitions(stripped):
        if not isinstance(node, ast.ClassDef) and _says_nothing(node.body):
            yield (
                f"{name} does nothing in the skeleton: mark what the learner writes as the "
                "solution, or end it with `return None` if it is given"
            )
    raised = sum(
        isinstance(node, ast.Raise)
        and node.exc is not None
        and ast.unparse(node.exc).startswith("NotImplementedError")
        for node in ast.walk(stripped)
    )
    if raised < num_gaps:
        yield (
            f"the skeleton raises NotImplementedError in {raised} of {num_gaps} gaps: let the "
            "solution's markers enclose code, not text"
        )


def _says_nothing(body: list[ast.stmt]) -> bool:
    """Only `pass`, dots and a docstring: it looks like a gap, and runs."""
    return all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in body
    )


def _signatures(tree: ast.Module) -> dict[str, str]:
    """Each function, class and method with what a caller sees of it."""
    return {name: _signature(node) for name, node in _definitions(tree)}


def _definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Definition]]:
    """Definitions with their dotted names, not those inside of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            name = f"{prefix}{child.name}"
            yield name, child
            if isinstance(child, ast.ClassDef):
                yield from _definitions(child, f"{name}.")
        elif isinstance(child, ast.stmt):
            yield from _definitions(child, prefix)


def _signature(node: _Definition) -> str:
    """Decorators, name, parameters with defaults and annotations (of a class, its bases)."""
    decorators = "".join(f"@{ast.unparse(one)} " for one in node.decorator_list)
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
        return f"{decorators}class {node.name}({bases})"
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{decorators}{kind} {node.name}({ast.unparse(node.args)}){returns}"
