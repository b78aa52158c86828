"""transformers on the same requests, and as the judge of greedy tokens."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

Tokens = list[list[int]]


class Theirs:
    """A model as transformers runs it, with no end-of-text token: everybody gets all they want."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device) -> None:
        from transformers import AutoModelForCausalLM

        self.device = device
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        self.model = model.to(device).eval()
        for place in (self.model.generation_config, self.model.config):
            place.eos_token_id = None

    def _settings(self, most: int) -> Any:
        from transformers import GenerationConfig

        return GenerationConfig(
            max_new_tokens=most, do_sample=False, eos_token_id=None, pad_token_id=0
        )

    @torch.inference_mode()
    def static(self, prompts: Tokens, wanted: Sequence[int], batch: int) -> Tokens:
        """generate, in batches of neighbours, padded on the left; each batch until the last of it
        has what it wants. -> for each request the tokens that it wants."""
        out: Tokens = []
        for start in range(0, len(prompts), batch):
            some, want = prompts[start : start + batch], wanted[start : start + batch]
            width = max(map(len, some))
            ids = torch.tensor([[0] * (width - len(p)) + p for p in some], device=self.device)
            mask = torch.tensor(
                [[0] * (width - len(p)) + [1] * len(p) for p in some], device=self.device
            )
            found = self.model.generate(
                ids, attention_mask=mask, generation_config=self._settings(max(want))
            )
            rows = found[:, width:].tolist()
            out += [row[:count] for row, count in zip(rows, want, strict=True)]
        return out

    def has_continuous(self) -> bool:
        """Whether this version has generate_batch."""
        return hasattr(self.model, "generate_batch")

    def continuous(self, prompts: Tokens, wanted: Sequence[int], at_once: int) -> Tokens:
        """generate_batch: continuous batching over a paged cache, with room for at_once requests.

        It has one limit for all, so all get as many tokens as the one that wants most. Its cache
        is made at the first call and kept, where this version can; call `done` at the end.
        """
        known = inspect.signature(self.model.generate_batch).parameters
        options = {"progress_bar": False, "persistent_manager": True}
        found = self.model.generate_batch(
            inputs=prompts,
            generation_config=self._settings(max(wanted)),
            **{name: value for name, value in options.items() if name in known},
            **self._room(at_once, max(map(len, prompts)) + max(wanted)),
        )
        if len(found) != len(prompts):
            raise RuntimeError(f"generate_batch answered {len(found)} of {len(prompts)} requests")
        rows = [found[name].generated_tokens for name in sorted(found, key=_number)]
        return [row[:count] for row, count in zip(rows, wanted, strict=True)]

    def _room(self, at_once: int, longest: int) -> dict[str, Any]:
        """The size of its cache, where it can be said: by default it takes the memory there is."""
        try:
            from transformers import ContinuousBatchingConfig
        except ImportError:
            return {}
        page = 256 if longest >= 256 else 16
        blocks = at_once * -(-longest // page)
        config = ContinuousBatchingConfig(
            page_size=page, num_blocks=blocks, max_requests_per_batch=at_once
        )
        return {"continuous_batching_config": config}

    def done(self) -> None:
        """Give back what generate_batch kept."""
        destroy = getattr(self.model, "destroy_cached_continuous_batching_manager", None)
        if destroy is not None:
            destroy()

    @torch.inference_mode()
    def gap(self, prompt: list[int], output: list[int]) -> float:
        """By how much the likeliest token's logit is above that of the token in `output`, at the
        place where it is most, in standard deviations of the logits there: 0 if all are greedy.
        """
        ids = torch.tensor([prompt + output], device=self.device)
        logits = self.model(ids).logits[0, len(prompt) - 1 : -1].float()
        taken = logits.gather(1, torch.tensor(output, device=self.device)[:, None])[:, 0]
        return float(((logits.amax(1) - taken) / logits.std(1)).max())


def _number(name: str) -> int:
    """Of a request id such as req_12: the order in which they were given."""
    return int("".join(letter for letter in name if letter.isdigit()) or 0)
