"""The attention kernels on a card: are they right, how fast, and which way of compiling wins.

    python benchmarks/gpu_kernels.py                    all sections, under 4 minutes
    python benchmarks/gpu_kernels.py --json out.json    the same, written down as well
    python benchmarks/gpu_kernels.py --only variants --seconds 1200    every combination
    python benchmarks/gpu_kernels.py --dry              tries the script itself, on a CPU

Sections: correctness (every kernel against float64 with NaN in all memory that it may not read),
bandwidth (a large copy), decode (batch x context, beside torch), layouts (block sizes and both
layouts of K), splits (numbers of pieces beside the rule of splits.py), variants (which tables
configs.py should hold), rivals (FlashInfer and vLLM where they are installed). A section that runs
out of its share of the time says what it left out. Exit code: 0; 1 if a kernel was wrong; 2 if
nothing could be run here.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    """Read the options, and see to it that Triton is imported in the right mode."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", help="query heads/KV heads/head_dim; 32/8/128 if not given")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    parser.add_argument("--block-size", type=int, default=16, choices=(8, 16, 32, 64, 128))
    parser.add_argument("--only", help="sections, with commas between")
    parser.add_argument("--seconds", type=float, default=215.0, help="for everything, about")
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    parser.add_argument(
        "--dry", action="store_true", help="tiny, in Triton's interpreter, on a CPU"
    )
    args = parser.parse_args()
    if args.dry:
        os.environ["TRITON_INTERPRET"] = "1"
    elif said := no_card():
        print(said)
        return 2
    try:
        from gpu_bench.run_kernels import run
    except ImportError as error:
        print(f"{error}: install minipaged and triton (which has wheels for Linux only)")
        return 2
    return run(args)


def no_card() -> str:
    """Why there is nothing to measure with; empty if there is a card."""
    import torch

    if torch.cuda.is_available():
        return ""
    return "torch sees no GPU here: nothing can be measured; --dry tries the script on a CPU"


if __name__ == "__main__":
    sys.exit(main())
