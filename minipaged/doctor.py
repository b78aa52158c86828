"""`minipaged doctor`: is everything there, and does it answer?"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from minipaged.llm import LLM

QUESTION = "What is a block table?"

# distribution -> what it is for; the extra that brings it, "" for what always comes along
NEEDS = {
    "torch": ("the model and its executor", ""),
    "numpy": ("torch's companion", ""),
    "safetensors": ("reading weights", ""),
    "rich": ("this table and the live view", ""),
    "typer": ("the command line", ""),
    "nbformat": ("exercise notebooks", ""),
    "triton": ("GPU kernels (Linux)", "-"),
    "tokenizers": ("models other than the tutor", "models"),
    "ipykernel": ("running notebooks", "notebooks"),
    "jupyterlab": ("working in notebooks", "notebooks"),
    "jupytext": ("building notebooks", "dev"),
    "pytest": ("the tests", "test"),
    "transformers": ("the tests", "test"),
}


def examine(console: Console | None = None) -> int:
    """Print the report; 0 if the engine answers, 1 if something that it needs is missing."""
    console = console or Console()
    console.print(f"Python {platform.python_version()} on {platform.system()}", highlight=False)
    missing = _packages(console)
    if missing:
        names = " ".join(missing)
        console.print(f"Missing: {names}. Mend it with: pip install --force-reinstall minipaged")
        return 1
    from minipaged.llm import LLM

    llm = LLM("tutor")
    _device(console)
    _memory(llm, console)
    return _generation(llm, console)


def _packages(console: Console) -> list[str]:
    """The table of packages; returns those that the engine cannot do without."""
    table = Table("package", "version", "for", box=None, pad_edge=False)
    missing = []
    for name, (purpose, extra) in NEEDS.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "missing"
            if extra == "":
                missing.append(name)
            elif extra == "-":
                version = "none"
            else:
                purpose += f': pip install "minipaged[{extra}]"'
        table.add_row(name, version, Text(purpose))
    console.print(table)
    return missing


def _device(console: Console) -> None:
    import torch

    if torch.cuda.is_available():
        console.print(f"GPU: {torch.cuda.get_device_name()}", highlight=False)
    else:
        threads = torch.get_num_threads()
        count = "1 thread" if threads == 1 else f"{threads} threads"
        console.print(f"No GPU: the model runs on the CPU with {count}", highlight=False)


def _memory(llm: LLM, console: Console) -> None:
    """The sum behind the pool's size."""
    memory, block_size = llm.memory, llm.engine.manager.block_size
    mib = 2**20
    lines = (
        "Memory of LLM('tutor')",
        f"  weights           {memory.weight_bytes:>12,} B = {memory.weight_bytes / mib:.1f} MiB",
        f"  KV per token      {memory.kv_bytes_per_token:>12,} B",
        f"  a block of {block_size:<6} {memory.block_bytes:>12,} B"
        f" = {block_size} x {memory.kv_bytes_per_token:,}",
        f"  for the KV cache  {memory.available:>12,} B = {memory.available / mib:.1f} MiB",
        f"  blocks            {memory.num_blocks:>12,}"
        f" = {memory.available:,} // {memory.block_bytes:,}",
        f"  tokens            {memory.num_blocks * block_size:>12,}",
    )
    console.print("\n".join(lines), highlight=False)


def _generation(llm: LLM, console: Console) -> int:
    began = time.perf_counter()
    (answer,) = llm.generate(QUESTION)
    seconds = time.perf_counter() - began
    console.print(f"Asked: {QUESTION}", highlight=False)
    console.print(Padding(Text(answer.text), (0, 2)))
    count = len(answer.token_ids)
    console.print(f"  {count} tokens in {seconds:.2f} s, {count / seconds:.0f} tokens/s")
    if answer.finish_reason != "stop":
        print("The answer did not end by itself: the weights may be damaged", file=sys.stderr)
        return 1
    console.print("All is well.")
    return 0
