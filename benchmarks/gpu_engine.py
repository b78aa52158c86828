"""The whole engine on a card beside transformers: output tokens a second on one workload.

    python benchmarks/gpu_engine.py                  a random Llama of 1.1 billion parameters
    python benchmarks/gpu_engine.py FOLDER           a model in Hugging Face's format
    python benchmarks/gpu_engine.py --json out.json  the same, written down as well
    python benchmarks/gpu_engine.py --dry            tries the script itself, on a CPU

Compared are transformers generate in static batches, minipaged with both attention backends, and
transformers generate_batch where there is one: under 4 minutes in all. A share of the requests is
checked: every token must be the likeliest, but for rounding. Exit code: 0; 1 if a token was wrong;
2 if nothing could be run here.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

TINY = {
    "requests": 4,
    "prompt": [3, 9],
    "output": [2, 5],
    "max_num_seqs": 3,
    "check": 4,
    "repeats": 1,
}
"""What a dry run takes where nothing else is asked for."""


def main() -> int:
    """Read the options, and see to it that Triton is imported in the right mode."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", type=Path, help="a folder; a random model without")
    parser.add_argument("--requests", type=int, default=128)
    parser.add_argument("--prompt", type=int, nargs=2, default=[64, 512], metavar=("LO", "HI"))
    parser.add_argument("--output", type=int, nargs=2, default=[32, 128], metavar=("LO", "HI"))
    parser.add_argument("--max-num-seqs", type=int, default=64, help="at once, and in a batch")
    parser.add_argument("--max-num-batched-tokens", type=int, default=2048)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    parser.add_argument("--check", type=int, default=16, help="requests whose tokens are checked")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, while there is time")
    parser.add_argument("--seconds", type=float, default=210.0, help="for everything, about")
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    parser.add_argument(
        "--dry", action="store_true", help="tiny, in Triton's interpreter, on a CPU"
    )
    args = parser.parse_args()
    if args.dry:
        os.environ["TRITON_INTERPRET"] = "1"
        for name, value in TINY.items():
            if getattr(args, name) == parser.get_default(name):
                setattr(args, name, value)
    elif said := no_card():
        print(said)
        return 2
    try:
        from gpu_bench.run_engine import run
    except ImportError as error:
        print(f"{error}: install minipaged with its extra 'test', and triton (Linux only)")
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
