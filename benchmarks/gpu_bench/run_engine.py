"""The comparison of gpu_engine.py: the engine with both backends beside transformers."""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gpu_bench.clocks import first_line
from gpu_bench.random_model import ONE_BILLION, TINY, write_random_llama
from gpu_bench.report import DRY, Section, console, environment, show, version_of, write_json
from gpu_bench.theirs import Theirs, Tokens
from minipaged.config import SamplingParams
from minipaged.kernels.triton_backend import require_usable
from minipaged.llm import LLM

GAP = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.2}
"""Standard deviations of the logits by which a token may miss the likeliest one: rounding through
all layers. A token drawn at random misses it by about four."""

BLOCK_SIZE = 16
NOTE = (
    "one workload, all requests there from the start, greedy, no end of text; output tokens that "
    "were asked for, a second: what a batch computes beyond a request's wish does not count. "
    "seconds: median of the runs. ratio: tokens a second to transformers generate's. minipaged "
    "makes the text as well. largest gap: every token of the checked requests, put through "
    "transformers again, is so many standard deviations of its logits below the likeliest at most; "
    "same tokens: checked requests with just those of generate (in 16 bits near ties differ)"
)


class Work(NamedTuple):
    """prompts, and how many tokens each wants."""

    prompts: Tokens
    wanted: list[int]


def make_work(
    requests: int, prompt: tuple[int, int], output: tuple[int, int], vocab_size: int
) -> Work:
    """Random prompts and lengths, the same every time."""
    r = random.Random(0)
    prompts = [
        [r.randrange(10, vocab_size) for _ in range(r.randint(*prompt))] for _ in range(requests)
    ]
    return Work(prompts, [r.randint(*output) for _ in range(requests)])


def run(args: argparse.Namespace) -> int:
    """Compare; 0, or 1 if a token was not greedy, or 2 if nothing can run here."""
    began = time.perf_counter()
    device = torch.device("cpu" if args.dry else "cuda")
    try:
        require_usable(device)
        if args.model and not args.model.is_dir():
            raise ValueError(f"{args.model} is no folder: give one with a model, or none at all")
    except ValueError as error:
        print(error)
        return 2
    dtype = torch.float32 if args.dry else getattr(torch, args.dtype)
    with tempfile.TemporaryDirectory() as kept:
        folder, model = args.model, str(args.model)
        if folder is None:
            folder = Path(kept)
            count = write_random_llama(
                folder, TINY if args.dry else ONE_BILLION, dtype, str(device)
            )
            model = f"a Llama of {count / 1e9:.2g} billion parameters with random weights"
        header = {
            "script": "gpu_engine",
            "dry": args.dry,
            **environment(device),
            "transformers": version_of("transformers"),
            "model": model,
            "dtype": str(dtype).removeprefix("torch."),
            "requests": args.requests,
            "prompt tokens": args.prompt,
            "output tokens": args.output,
            "at once": args.max_num_seqs,
        }
        out = console()
        out.print(*([DRY] if args.dry else []), *(f"{k}: {v}" for k, v in header.items()), sep="\n")
        left = args.seconds - (time.perf_counter() - began)
        section = Section("engine", "Throughput", NOTE, None if args.dry else left)
        section.begin()
        _compare(args, section, folder, dtype, device)
        section.end()
    show(section, out, args.dry)
    if args.json:
        write_json(args.json, header, [section])
    return 1 if any(row.get("verdict") == "WRONG" for row in section.rows) else 0


def _compare(
    args: argparse.Namespace,
    section: Section,
    folder: Path,
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    theirs = Theirs(folder, dtype, device)
    vocab_size = theirs.model.config.vocab_size
    work = make_work(args.requests, tuple(args.prompt), tuple(args.output), vocab_size)
    base = "transformers generate"
    rivals: dict[str, Callable[[], Callable[[Work], Tokens]]] = {
        base: lambda: lambda w: theirs.static(*w, args.max_num_seqs),
        "minipaged, triton": lambda: _ours("triton", args, folder, dtype, device),
        "minipaged, torch": lambda: _ours("torch", args, folder, dtype, device),
    }
    if theirs.has_continuous():
        rivals["transformers generate_batch"] = lambda: _continuous(theirs, work, args.max_num_seqs)
    else:
        section.left_out.append("transformers generate_batch: this version has none")
    found: dict[str, Tokens] = {}
    for name, make in rivals.items():
        if section.over(name):
            continue
        try:
            answers, seconds = _timed(make(), work, args.repeats, section)
            theirs.done()
            told = _checked(theirs, work, answers, found.get(base), args.check, dtype)
        except Exception as error:
            section.left_out.append(f"{name}: {first_line(error)}")
            if name.startswith("minipaged"):
                section.rows.append({"engine": f"{name}: did not run", "verdict": "WRONG"})
            continue
        found[name] = answers
        rate = sum(map(len, answers)) / statistics.median(seconds)
        first = rate if name == base else section.rows[0].get("tokens / s", rate)
        section.rows.append(
            {
                "engine": name,
                "tokens": sum(map(len, answers)),
                "seconds": statistics.median(seconds),
                "runs": len(seconds),
                "tokens / s": rate,
                "ratio": rate / first if base in found else None,
                **told,
            }
        )


def _timed(
    answer: Callable[[Work], Tokens], work: Work, repeats: int, section: Section
) -> tuple[Tokens, list[float]]:
    """What is answered, and the seconds of each run, after a short one that does not count."""
    few = min(len(work.prompts), 8)
    answer(Work(work.prompts[:few], [min(4, wanted) for wanted in work.wanted[:few]]))
    seconds, answers = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        answers = answer(work)
        seconds.append(time.perf_counter() - begin)
        if section.seconds is not None and section.now() - section.began > section.seconds / 2:
            break
    return answers, seconds


def _ours(
    backend: str, args: argparse.Namespace, folder: Path, dtype: torch.dtype, device: torch.device
) -> Callable[[Work], Tokens]:
    """An LLM with room for as many requests at once as it may run."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    longest = args.prompt[1] + args.output[1]
    llm = LLM(
        folder,
        attention_backend=backend,
        device=str(device),
        dtype=str(dtype).removeprefix("torch."),
        block_size=BLOCK_SIZE,
        num_blocks=args.max_num_seqs * -(-longest // BLOCK_SIZE),
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
    )

    def answer(work: Work) -> Tokens:
        params = [SamplingParams(max_tokens=count, ignore_eos=True) for count in work.wanted]
        return [done.token_ids for done in llm.generate(work.prompts, params)]

    return answer


def _continuous(theirs: Theirs, work: Work, at_once: int) -> Callable[[Work], Tokens]:
    """generate_batch, whose cache and graphs are made for the work that it meets first: for all."""
    gc.collect()
    answers = theirs.continuous(*work, at_once)
    if [len(row) for row in answers] != work.wanted:
        raise RuntimeError("generate_batch gave fewer tokens than were asked for")
    return lambda some: theirs.continuous(*some, at_once)


def _checked(
    theirs: Theirs,
    work: Work,
    answers: Tokens,
    greedy: Tokens | None,
    check: int,
    dtype: torch.dtype,
) -> dict[str, Any]:
    """The columns about right and wrong: for requests spread over all of them."""
    step = max(1, len(answers) // max(1, check))
    some: Sequence[int] = range(0, len(answers), step)[:check]
    whole = all(len(a) == count for a, count in zip(answers, work.wanted, strict=True))
    gap = max(theirs.gap(work.prompts[i], answers[i]) for i in some) if whole else float("inf")
    same = sum(answers[i] == greedy[i] for i in some) if greedy else None
    return {
        "same tokens": None if same is None else f"{same} of {len(some)}",
        "largest gap": gap,
        "tolerance": GAP[dtype],
        "verdict": "ok" if gap <= GAP[dtype] else "WRONG",
    }
