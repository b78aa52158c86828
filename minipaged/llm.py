"""LLM: a model, a paged pool and an engine behind generate, stream and beam_search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from minipaged.beam import beam_search
from minipaged.beam_scores import Beam, BeamSearchParams
from minipaged.clock import Clock
from minipaged.completion import Completion, completion_of, to_write
from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.memory import MemorySum, derive_num_blocks, measure_workspace, weight_bytes
from minipaged.exec.torch_exec import TorchExecutor
from minipaged.inboxes import Inboxes
from minipaged.kernels.backends import kernels_of
from minipaged.model.llama import Llama
from minipaged.model.loader import load_llama
from minipaged.model.tokenizer import Tokenizer, TutorTokenizer
from minipaged.model.tutor import corpus
from minipaged.output import RequestOutput
from minipaged.prompts import Prompt, as_list, params_for_each, salts_for_each
from minipaged.request import sample_id

__all__ = ["LLM", "TUTOR", "Completion"]

TUTOR = Path(__file__).parent / "model" / "tutor" / "weights"


class LLM:
    """A model ready to answer.

        llm = LLM("tutor", block_size=16, num_blocks=64)
        llm.generate(["What is a block table?"], SamplingParams(max_tokens=100))
        for piece in llm.stream("What is preemption?"): ...

    model: "tutor" (inside the package), or a folder in Hugging Face format with a Llama-shaped
        model: config.json, tokenizer.json, *.safetensors.
    config, or its fields by name as keywords: see EngineConfig. num_blocks and max_model_len may
        be left out; memory and the model decide then.
    engine: for add_request / step / abort, metrics and observers; requests added there are moved
        on by generate and stream, which keep only the outputs of their own. memory: the sum
        behind the pool's size. ValueError for what cannot be served or loaded, in one line.
    """

    def __init__(
        self,
        model: str | Path = "tutor",
        *,
        config: EngineConfig | None = None,
        components: Components | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        if config is not None and options:
            raise ValueError(f"give either config or {sorted(options)}, not both")
        config = EngineConfig.of(**options) if config is None else config
        parts = Components() if components is None else components
        if not isinstance(config, EngineConfig) or not isinstance(parts, Components):
            raise ValueError(f"give an EngineConfig and Components, not {config!r} and {parts!r}")
        self._is_tutor = str(model) == "tutor"
        folder = _folder_of(model)
        self.tokenizer = _load_tokenizer(folder, self._is_tutor)
        device = _device(config.device)
        kernels = kernels_of(config.attention_backend, device)
        if parts.attention is not None:
            kernels = kernels._replace(attention=parts.attention)
        llama = load_llama(folder, _dtype(config.dtype, device), device)
        dtype = next(llama.parameters()).dtype
        self.memory = derive_num_blocks(
            llama.config,
            config.cache,
            device=device,
            dtype=dtype,
            weight_bytes=weight_bytes(llama),
            workspace_bytes=measure_workspace(
                llama, config.scheduler.max_num_batched_tokens, kernels.attention
            ),
        )
        config = _complete(config, self.memory, llama)
        executor = TorchExecutor(
            llama,
            config.cache,
            device=device,
            dtype=dtype,
            kernels=kernels,
        )
        self.engine = Engine(
            config,
            executor,
            components=parts,
            clock=clock,
            tokenizer=self.tokenizer,
            vocab_size=llama.config.vocab_size,
            eos_token_ids=self.tokenizer.eos_token_ids,
        )
        self._ids = itertools.count()
        self._inboxes = Inboxes()
        self.engine.observers.append(self._inboxes)

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        cache_salt: str | Sequence[str] = "",
    ) -> list[Completion]:
        """Answer prompts together; the result is in their order.

        prompts: a text, a list of texts, or token ids. params, cache_salt: for all, or one for
        each. With n or best_of above 1 a Completion has more than one of `samples`. ValueError
        names the prompt that can never be served; then none was started.
        """
        prompts = as_list(prompts)
        chosen = params_for_each(params, len(prompts))
        salts = salts_for_each(cache_salt, len(prompts))
        token_ids = self._check_all(prompts, chosen)
        ids: list[str] = []
        try:
            for known, one, salt in zip(token_ids, chosen, salts, strict=True):
                ids.append(self._add(known, to_write(one), salt))
            return [
                completion_of(prompt, one, self._outputs(request_id, to_write(one).n))
                for prompt, one, request_id in zip(prompts, chosen, ids, strict=True)
            ]
        finally:
            self._drop(ids)

    def stream(
        self, prompt: Prompt, params: SamplingParams | None = None, *, cache_salt: str = ""
    ) -> Iterator[str]:
        """The answer's text piece by piece, as it becomes certain; no piece is empty.

        A prompt that can never be served is refused here; the request is queued when the first
        piece is asked for, and aborted if the iterator is closed early.
        """
        params = SamplingParams() if params is None else params
        (token_ids,) = self._check_all([prompt], [params])
        (salt,) = salts_for_each(cache_salt, 1)
        for name in ("n", "best_of"):
            if (getattr(params, name) or 1) > 1:
                raise ValueError(
                    f"{name} is {getattr(params, name)}, but a stream gives one answer: leave "
                    f"{name} out, or use generate"
                )
        return self._pieces(token_ids, params, salt)

    def beam_search(
        self, prompts: Prompt | Sequence[Prompt], params: BeamSearchParams | None = None
    ) -> list[list[Beam]]:
        """For each prompt its likeliest continuations as beam search finds them, best first.

        prompts: a text, a list of texts, or token ids. ValueError, and nothing was started, if one
        can never be served; see minipaged/beam.py for what that takes, and for the rules.
        """
        params = BeamSearchParams() if params is None else params
        end_tokens = self.tokenizer.eos_token_ids
        found = beam_search(self.engine, as_list(prompts), params, eos_token_ids=end_tokens)
        for beam in (beam for beams in found for beam in beams):
            visible = beam.token_ids[:-1] if beam.finish_reason == "stop" else beam.token_ids
            beam.text = self.tokenizer.decode_bytes(visible).decode("utf-8", "replace")
        return found

    def nearest_known(self, prompt: Prompt, count: int = 3) -> list[str]:
        """For the tutor: known questions most like one that it was not trained on, else [].

        If none has anything in common with it, the corpus's first questions are named.
        """
        if not self._is_tutor or not isinstance(prompt, str) or corpus.known(prompt):
            return []
        return corpus.nearest(prompt, count) or [pair.question for pair in corpus.pairs()[:count]]

    def _check_all(
        self, prompts: Sequence[Prompt], chosen: Sequence[SamplingParams]
    ) -> list[list[int]]:
        """The tokens of every prompt; ValueError names the first that can never be served."""
        token_ids = []
        for number, (prompt, params) in enumerate(zip(prompts, chosen, strict=True)):
            try:
                token_ids.append(self._check(prompt, params))
            except ValueError as error:
                where = f"prompt {number}: " if len(prompts) > 1 else ""
                raise ValueError(f"{where}{error}") from None
        return token_ids

    def _check(self, prompt: Prompt, params: SamplingParams) -> list[int]:
        places = self.engine.config.scheduler.max_num_seqs
        if isinstance(params, SamplingParams) and (params.best_of or 1) > places:
            raise ValueError(
                f"best_of is {params.best_of}, but max_num_seqs is {places}: each sample takes a "
                "place, so ask for fewer or raise max_num_seqs"
            )
        return self.engine.check_prompt(prompt, params)

    def _pieces(self, prompt: list[int], params: SamplingParams, salt: str) -> Iterator[str]:
        request_id = self._add(prompt, to_write(params), salt)
        try:
            for output in self._outputs(request_id):
                if output.new_text:
                    yield output.new_text
        finally:
            self._drop([request_id])

    def _add(self, prompt: Prompt, params: SamplingParams, salt: str = "") -> str:
        while (request_id := f"request-{next(self._ids)}") in self.engine.requests:
            pass
        self.engine.add_request(request_id, prompt, params, cache_salt=salt)
        self._inboxes.open(request_id)
        return request_id

    def _outputs(self, request_id: str, num_samples: int = 1) -> Iterator[RequestOutput]:
        """One request's outputs; steps the engine whenever none is there."""
        inbox = self._inboxes.of[request_id]
        unfinished = set(range(num_samples))
        while unfinished:
            while not inbox:
                ids = [sample_id(request_id, index) for index in {0, *unfinished}]
                if not any(one in self.engine.requests for one in ids):
                    raise RuntimeError(f"{request_id} was aborted while its answer was being read")
                self.engine.step()
            output = inbox.popleft()
            if output.finished:
                unfinished.discard(output.sample_index)
            yield output

    def _drop(self, request_ids: Sequence[str]) -> None:
        self.engine.abort(request_ids)
        for request_id in request_ids:
            self._inboxes.of.pop(request_id, None)


def _folder_of(model: str | Path) -> Path:
    if str(model) == "tutor":
        return TUTOR
    if not str(model) or not Path(model).is_dir():
        raise ValueError(f"no model {str(model)!r}: give 'tutor' or a model folder that exists")
    return Path(model)


def _load_tokenizer(folder: Path, is_tutor: bool) -> Tokenizer:
    if is_tutor:
        return TutorTokenizer()
    from minipaged.model.hf_tokenizer import HFTokenizer

    return HFTokenizer(folder)


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', but torch sees no GPU here: use 'cpu' or 'auto'")
    return name


def _dtype(name: str, device: str) -> torch.dtype | None:
    """None leaves the checkpoint's own."""
    if name == "auto":
        return torch.float32 if device == "cpu" else None
    return getattr(torch, name)


def _complete(config: EngineConfig, memory: MemorySum, llama: Llama) -> EngineConfig:
    """The config with what was left to memory and the model."""
    model = llama.config
    model_limit = model.max_position_embeddings
    limit = config.max_model_len or model_limit
    if limit > model_limit:
        raise ValueError(
            f"max_model_len is {limit}, but the model has {model_limit} positions: "
            f"ask for at most {model_limit}"
        )
    cache = replace(config.cache, num_blocks=memory.num_blocks)
    costs = replace(
        config.costs,
        num_parameters=sum(parameter.numel() for parameter in llama.parameters()),
        num_layers=model.num_layers,
        hidden_size=model.hidden_size,
        kv_bytes_per_token=memory.kv_bytes_per_token,
    )
    return replace(config, cache=cache, costs=costs, max_model_len=limit)
