"""Dependencies point one way, and the core needs neither torch nor numpy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import minipaged

PACKAGE = Path(minipaged.__file__).parent
TENSOR_LIBRARIES = {"torch", "numpy", "triton", "safetensors", "transformers"}
TENSOR_FREE = [
    *(path for path in PACKAGE.glob("*.py") if path.name != "llm.py"),
    *(PACKAGE / "cache").glob("*.py"),
    *(PACKAGE / "sched").glob("*.py"),
    *(PACKAGE / "viz").glob("*.py"),
    *(PACKAGE / "course").rglob("*.py"),
    PACKAGE / "exec" / "base.py",
    PACKAGE / "exec" / "sim_exec.py",
]
# doctor reports on torch; plain and fixture_far make tensors for the scripts that want some
LOOKS_INSIDE_A_FUNCTION = {"doctor.py", "plain.py", "fixture_far.py"}
MAY_IMPORT = {
    # what each part may import of the package, beside itself
    "require": set(),
    "config": {"require"},
    "plan": {"config"},
    "request": {"config"},
    "protocols": {"plan", "request"},
    "clock": set(),
    "metrics": {"plan"},
    "output": {"plan", "metrics"},
    "intake": {"config", "request", "sched"},
    "cache": {"config", "request", "plan", "protocols"},
    "sched": {"config", "request", "plan", "protocols", "cache"},
    "exec": {"require", "config", "plan", "kernels", "model"},
    "kernels": {"require"},
    "model": {"require", "plan", "config"},
    "components": {"config", "protocols", "cache", "sched"},
}


def imports(path: Path, top_level_only: bool = False):
    """Module names imported by a file; those under TYPE_CHECKING do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", TENSOR_FREE, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_tensor_library_is_imported_at_the_top(path):
    lazily = path.name in LOOKS_INSIDE_A_FUNCTION
    found = {name.split(".")[0] for name in imports(path, top_level_only=lazily)}
    assert not found & TENSOR_LIBRARIES


def _parts():
    for part in MAY_IMPORT:
        path = PACKAGE / part
        files = (
            [path.with_suffix(".py")] if path.with_suffix(".py").exists() else path.rglob("*.py")
        )
        for file in files:
            yield pytest.param(part, file, id=str(file.relative_to(PACKAGE)))


@pytest.mark.parametrize(("part", "path"), list(_parts()))
def test_dependencies_point_one_way(part, path):
    for name in imports(path):
        if name == "minipaged" or name.startswith("minipaged."):
            target = name.partition(".")[2].partition(".")[0]
            assert target in MAY_IMPORT[part] | {part}, f"{path.name} imports {name}"


@pytest.mark.parametrize(
    "module",
    [
        "minipaged",
        "minipaged.cli",
        "minipaged.engine",
        "minipaged.bench",
        "minipaged.fuzz",
        "minipaged.trace",
        "minipaged.workload",
        "minipaged.exec.sim_exec",
        "minipaged.course.check",
    ],
)
def test_importing_it_loads_neither_torch_nor_numpy(module):
    code = f"import {module}, sys; print(sorted({{'torch', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
