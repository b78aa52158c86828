"""Train the embedded tutor on its corpus: python -m minipaged.model.tutor.train

A byte-level Llama of a million parameters learns the corpus by heart. Only the answers and their
end tokens count in the loss. The weights are rounded to 16 bit, written in Hugging Face format,
read back and verified: the run fails unless greedy decoding gives every answer exactly.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from minipaged.model.llama import Llama, LlamaConfig
from minipaged.model.loader import load_llama, save_llama
from minipaged.model.tokenizer import BEGIN, END
from minipaged.model.tutor.corpus import FOLDER, Pair, load_pairs
from minipaged.model.tutor.examples import encode, epochs
from minipaged.model.tutor.verify import answer_logits, margins, verify

WEIGHTS = Path(__file__).parent / "weights"

CONFIG = LlamaConfig(
    vocab_size=260,
    hidden_size=128,
    intermediate_size=384,
    num_layers=5,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    tie_word_embeddings=True,
    max_position_embeddings=1024,
    eos_token_ids=(END,),
    bos_token_id=BEGIN,
)


class Recipe(NamedTuple):
    """How to train.

    careless_share: of questions fed without capitals or question mark.
    target_margin: lead in logits that every right token should have over its best rival. During
    the last hinge_share of the steps, when most tokens are right already, what they lack of it
    adds to the loss; cross-entropy alone is content with less.
    """

    steps: int
    seed: int
    batch_size: int = 24
    peak_rate: float = 3e-3
    warmup: int = 100
    careless_share: float = 0.3
    stray_share: float = 0.2
    target_margin: float = 8.0
    hinge_share: float = 0.5


def new_model(seed: int) -> Llama:
    """An untrained tutor; weights normal with deviation 0.02, narrower into the residual stream.

    The narrowing by sqrt(2 * layers) is GPT-2's (Radford et al. 2019, section 2.3).
    """
    torch.manual_seed(seed)
    model = Llama(CONFIG)
    narrow = 0.02 / math.sqrt(2 * CONFIG.num_layers)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            into_stream = name.endswith(("o_proj.weight", "down_proj.weight"))
            nn.init.normal_(parameter, std=narrow if into_stream else 0.02)
    return model


def learning_rate(step: int, recipe: Recipe) -> float:
    """Linear warm-up, then half a cosine down to a hundredth of the peak."""
    warmup = min(recipe.warmup, recipe.steps // 10 + 1)
    if step < warmup:
        return recipe.peak_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, recipe.steps - warmup)
    return recipe.peak_rate * (0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2)


def train(model: Llama, pairs: Sequence[Pair], recipe: Recipe) -> None:
    """Train in place for recipe.steps steps and print progress."""
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.peak_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    batches = epochs(
        pairs, recipe.batch_size, recipe.careless_share, recipe.seed, recipe.stray_share
    )
    hinge_from = recipe.steps * (1 - recipe.hinge_share)
    began = time.perf_counter()
    for step, batch in enumerate(itertools.islice(batches, recipe.steps)):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, recipe)
        logits = answer_logits(model, batch)
        leads = margins(logits, batch.targets)
        loss = functional.cross_entropy(logits, batch.targets)
        if step >= hinge_from:
            loss = loss + (recipe.target_margin - leads).relu().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 0 or step == recipe.steps - 1:
            _print_progress(step, recipe.steps, loss, leads, began)


def _print_progress(step: int, steps: int, loss: Tensor, leads: Tensor, began: float) -> None:
    seconds = time.perf_counter() - began
    print(
        f"step {step + 1:5d} of {steps}  loss {loss.item():8.5f}  "
        f"wrong tokens {(leads <= 0).sum().item():5d} of {len(leads):5d}  "
        f"smallest margin {leads.min().item():6.2f}  {seconds:6.1f} s",
        flush=True,
    )


def report_minutes(pairs: Sequence[Pair], recipe: Recipe, timed: int = 30) -> None:
    """Time a few steps on a throw-away model and print what the whole run would take."""
    model = new_model(recipe.seed)
    train(model, pairs, recipe._replace(steps=3))
    began = time.perf_counter()
    train(model, pairs, recipe._replace(steps=timed))
    per_step = (time.perf_counter() - began) / timed
    minutes = per_step * recipe.steps / 60
    print(f"{per_step:.3f} s per step; {recipe.steps} steps take {minutes:.1f} minutes")


def finish(model: Llama, pairs: Sequence[Pair], out: Path) -> bool:
    """Write 16-bit weights, read them back, verify and print; True if all pairs are exact."""
    save_llama(model, out, torch.float16)
    report = verify(load_llama(out, torch.float32), pairs)
    exact = report.num_pairs - len(report.wrong)
    print(f"written to {out}")
    print(f"{exact} of {report.num_pairs} pairs exact under greedy decoding")
    print(f"smallest margin {report.smallest_margin:.2f} logits, at {report.tightest.question!r}")
    for pair in report.wrong:
        print(f"  not exact: {pair.question!r}")
    return not report.wrong


def describe(pairs: Sequence[Pair]) -> None:
    """Print the sizes of corpus and model; ValueError if an exchange exceeds the positions."""
    lengths = [len(encode(pair.question, pair.answer).token_ids) for pair in pairs]
    if max(lengths) > CONFIG.max_position_embeddings:
        longest = pairs[lengths.index(max(lengths))].question
        raise ValueError(
            f"{longest!r} and its answer take {max(lengths)} tokens, but at most "
            f"{CONFIG.max_position_embeddings} fit: shorten the answer"
        )
    answers = {pair.answer for pair in pairs}
    size = sum(len(answer.encode()) for answer in answers)
    parameters = sum(p.numel() for p in Llama(CONFIG).parameters())
    print(f"{len(pairs)} questions, {len(answers)} answers of {size} bytes together")
    print(f"longest exchange {max(lengths)} tokens, all {sum(lengths)}; {parameters} parameters")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; 0 if every pair is exact (or only the time was asked for), else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="folder to write")
    parser.add_argument("--corpus", type=Path, default=FOLDER, help="folder of .toml files")
    parser.add_argument("--limit", type=int, help="train on the first N questions only")
    parser.add_argument(
        "--minutes-report", action="store_true", help="only time some steps; write nothing"
    )
    options = parser.parse_args(argv)
    torch.set_num_threads(2)
    recipe = Recipe(steps=options.steps, seed=options.seed)
    pairs = load_pairs(options.corpus)[: options.limit]
    describe(pairs)
    if options.minutes_report:
        report_minutes(pairs, recipe)
        return 0
    model = new_model(options.seed)
    train(model, pairs, recipe)
    return 0 if finish(model, pairs, options.out) else 1


if __name__ == "__main__":
    raise SystemExit(main())
