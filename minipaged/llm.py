"""LLM: a model, a paged pool and an engine behind three calls: generate, stream, engine."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from minipaged.clock import Clock
from minipaged.components import Components
from minipaged.config import EngineConfig, SamplingParams
from minipaged.engine import Engine
from minipaged.exec.memory import derive_num_blocks, measure_workspace, weight_bytes
from minipaged.exec.torch_exec import TorchExecutor
from minipaged.kernels.reference import paged_attention
from minipaged.metrics import RequestTimes
from minipaged.model.loader import load_llama
from minipaged.model.tokenizer import Tokenizer, TutorTokenizer
from minipaged.model.tutor import corpus
from minipaged.output import RequestOutput
from minipaged.plan import StepPlan, StepResult, TokenLogprobs

TUTOR = Path(__file__).parent / "model" / "tutor" / "weights"

Prompt = str | Sequence[int]


@dataclass(slots=True)
class Completion:
    """One prompt's answer.

    token_ids: every output token, the one that ended it included. text: what they say, without
    the end token, a stop token or anything from a stop string on. finish_reason: "stop" or
    "length". logprobs: one entry per token if asked for. times: seconds on the engine's clock.
    """

    prompt: Prompt
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    times: RequestTimes | None = None

    def add(self, output: RequestOutput) -> None:
        """Take over one step's news."""
        self.text += output.new_text
        self.token_ids += output.new_token_ids
        self.logprobs += output.logprobs
        self.finish_reason = output.finish_reason
        self.times = output.times


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
        llama = load_llama(folder, _dtype(config.dtype, device), device)
        dtype = next(llama.parameters()).dtype
        self.memory = derive_num_blocks(
            llama.config,
            config.cache,
            device=device,
            dtype=dtype,
            weight_bytes=weight_bytes(llama),
            workspace_bytes=measure_workspace(llama, config.scheduler.max_num_batched_tokens),
        )
        config = _complete(config, self.memory.num_blocks, llama.config.max_position_embeddings)
        executor = TorchExecutor(
            llama,
            config.cache,
            device=device,
            dtype=dtype,
            attention=parts.attention or paged_attention,
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
        self._inboxes = _Inboxes()
        self.engine.observers.append(self._inboxes)

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[Completion]:
        """Answer prompts together; the result is in their order.

        prompts: a text, a list of texts, or token ids. params: for all, or one for each.
        ValueError names the prompt that can never be served; then none was started.
        """
        prompts = _as_list(prompts)
        chosen = _one_each(params, len(prompts))
        token_ids = []
        for number, (prompt, one) in enumerate(zip(prompts, chosen, strict=True)):
            try:
                token_ids.append(self.engine.check_prompt(prompt, one))
            except ValueError as error:
                where = f"prompt {number}: " if len(prompts) > 1 else ""
                raise ValueError(f"{where}{error}") from None
        completions = [Completion(prompt) for prompt in prompts]
        ids: list[str] = []
        try:
            for known, one in zip(token_ids, chosen, strict=True):
                ids.append(self._add(known, one))
            for request_id, completion in zip(ids, completions, strict=True):
                for output in self._outputs(request_id):
                    completion.add(output)
        finally:
            self._drop(ids)
        return completions

    def stream(self, prompt: Prompt, params: SamplingParams | None = None) -> Iterator[str]:
        """The answer's text piece by piece, as it becomes certain; no piece is empty.

        A prompt that can never be served is refused here; the request is queued when the first
        piece is asked for, and aborted if the iterator is closed early.
        """
        params = SamplingParams() if params is None else params
        return self._pieces(self.engine.check_prompt(prompt, params), params)

    def nearest_known(self, prompt: Prompt, count: int = 3) -> list[str]:
        """For the tutor: known questions most like one that it was not trained on, else [].

        If none has anything in common with it, the corpus's first questions are named.
        """
        if not self._is_tutor or not isinstance(prompt, str) or corpus.known(prompt):
            return []
        return corpus.nearest(prompt, count) or [pair.question for pair in corpus.pairs()[:count]]

    def _pieces(self, prompt: list[int], params: SamplingParams) -> Iterator[str]:
        request_id = self._add(prompt, params)
        try:
            for output in self._outputs(request_id):
                if output.new_text:
                    yield output.new_text
        finally:
            self._drop([request_id])

    def _add(self, prompt: Prompt, params: SamplingParams) -> str:
        while (request_id := f"request-{next(self._ids)}") in self.engine.requests:
            pass
        self.engine.add_request(request_id, prompt, params)
        self._inboxes.open(request_id)
        return request_id

    def _outputs(self, request_id: str) -> Iterator[RequestOutput]:
        """One request's outputs; steps the engine whenever none is there."""
        inbox = self._inboxes.of[request_id]
        finished = False
        while not finished:
            while not inbox:
                if request_id not in self.engine.requests:
                    raise RuntimeError(f"{request_id} was aborted while its answer was being read")
                self.engine.step()
            output = inbox.popleft()
            finished = output.finished
            yield output

    def _drop(self, request_ids: Sequence[str]) -> None:
        self.engine.abort(request_ids)
        for request_id in request_ids:
            self._inboxes.of.pop(request_id, None)


class _Inboxes:
    """An observer that keeps the outputs of some requests until they are read.

    of: request id to its outputs. Whoever steps the engine fills them.
    """

    def __init__(self) -> None:
        self.of: dict[str, deque[RequestOutput]] = {}

    def open(self, request_id: str) -> None:
        """Keep this request's outputs from now on."""
        self.of[request_id] = deque()

    def event(self, kind: str, request_id: str, detail: str = "") -> None: ...

    def planned(self, engine: Engine, plan: StepPlan) -> None: ...

    def committed(
        self, engine: Engine, plan: StepPlan, result: StepResult, outputs: list[RequestOutput]
    ) -> None:
        """Sort the outputs of one step."""
        for output in outputs:
            inbox = self.of.get(output.request_id)
            if inbox is not None:
                inbox.append(output)


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt, or several, as a list; a sequence of ints is one prompt."""
    if isinstance(prompts, str):
        return [prompts]
    if not isinstance(prompts, list | tuple):
        raise ValueError(f"prompts is {prompts!r:.80}: give a text, token ids, or a list of them")
    if prompts and isinstance(prompts[0], int):
        return [prompts]
    return list(prompts)


def _one_each(
    params: SamplingParams | Sequence[SamplingParams] | None, count: int
) -> list[SamplingParams]:
    if params is None or isinstance(params, SamplingParams):
        return [SamplingParams() if params is None else params] * count
    if not isinstance(params, list | tuple):
        raise ValueError(f"params is {params!r:.80}: give a SamplingParams, or one for each prompt")
    if len(params) != count:
        raise ValueError(f"{len(params)} SamplingParams for {count} prompts: give one, or {count}")
    return list(params)


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


def _complete(config: EngineConfig, num_blocks: int, model_limit: int) -> EngineConfig:
    """The config with what was left to memory and the model."""
    limit = config.max_model_len or model_limit
    if limit > model_limit:
        raise ValueError(
            f"max_model_len is {limit}, but the model has {model_limit} positions: "
            f"ask for at most {model_limit}"
        )
    cache = replace(config.cache, num_blocks=num_blocks)
    return replace(config, cache=cache, max_model_len=limit)
