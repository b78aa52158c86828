"""Running a notebook when it is built, and holding its outputs to what may be stored.

Stored outputs must come out the same on every machine: no addresses, no clock, no paths, nothing
on stderr. Nor sliders: without their state, which is drawn anew at every run, a reader of the
stored notebook would see an error in their place. The picture beside them is what is kept.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from minipaged.course.dev.notebook import BuildError

CELL_TIMEOUT_S = 60
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_UNSTABLE = (
    (re.compile(r"\b0x[0-9a-fA-F]{8,}"), "an address"),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d\b"), "a time of day"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "a date"),
)


def execute(notebook: NotebookNode, root: Path) -> None:
    """Run all cells in a fresh kernel and keep the outputs, in place.

    root: the folder to import minipaged from. BuildError names the cell that failed, or whose
    output would differ elsewhere.
    """
    try:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    except ImportError:
        raise BuildError(
            "executing notebooks needs nbclient, which is not installed: "
            "pip install 'minipaged[dev]'"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT_S,
            kernel_name="python3",
            record_timing=False,
            store_widget_state=False,
            coalesce_streams=True,
            extra_arguments=["--IPKernelApp.log_level=40"],
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute(env=_environment(root, folder))
        except CellExecutionError as error:
            cell = _first_failed(notebook)
            raise BuildError(f"cell {cell} fails with {error.ename}: {error.evalue}") from None
        except (CellTimeoutError, DeadKernelError) as error:
            raise BuildError(f"the kernel gave up: {error}") from None
        notebook.metadata["language_info"] = {"name": "python"}
        _drop_widgets(notebook)
        _require_stable(notebook, (str(root), str(Path.home()), folder))


def _drop_widgets(notebook: NotebookNode) -> None:
    """Take out live widgets and their state; what else a cell shows stays."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(_WIDGET_VIEW, None)


def _first_failed(notebook: NotebookNode) -> str:
    """The id of the cell that ended in an error."""
    for cell in notebook.cells:
        if any(output.output_type == "error" for output in cell.get("outputs", ())):
            return cell.id
    return "?"


def _environment(root: Path, folder: str) -> dict[str, str]:
    """The kernel's environment: our package first, the user's IPython settings left out."""
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": folder}


def _require_stable(notebook: NotebookNode, paths: tuple[str, ...]) -> None:
    for cell in notebook.cells:
        for text in _texts(cell):
            for pattern, what in _UNSTABLE:
                if found := pattern.search(text):
                    raise BuildError(f"cell {cell.id} prints {what}, {found[0]!r}: leave it out")
            for path in paths:
                if len(path) > 1 and path in text:
                    raise BuildError(f"cell {cell.id} prints the path {path!r}: leave it out")


def _texts(cell: NotebookNode) -> Iterator[str]:
    """All text that a cell put out; BuildError if some of it went to stderr."""
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            if output.name == "stderr":
                raise BuildError(f"cell {cell.id} writes to stderr: {output.text[:200]!r}")
            yield output.text
        for content in output.get("data", {}).values():
            yield content if isinstance(content, str) else repr(content)
