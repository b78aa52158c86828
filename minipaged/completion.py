"""What a prompt's answer is: one sample, several, or the best of several. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from minipaged.config import SamplingParams
from minipaged.metrics import RequestTimes
from minipaged.output import RequestOutput
from minipaged.plan import TokenLogprobs
from minipaged.prompts import Prompt


@dataclass(slots=True)
class Completion:
    """One prompt's answer.

    token_ids: every output token, the one that ended it included. text: what they say, without
    the end token, a stop token or anything from a stop string on. finish_reason: "stop" or
    "length". logprobs: one entry per token if asked for. times: seconds on the engine's clock.
    samples: all n samples, in the order of their index, or best first if best_of chose them; the
    other fields are those of the first. The samples themselves have an empty list here.
    """

    prompt: Prompt
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    times: RequestTimes | None = None
    samples: list[Completion] = field(default_factory=list, compare=False, repr=False)

    def add(self, output: RequestOutput) -> None:
        """Take over one step's news."""
        self.text += output.new_text
        self.token_ids += output.new_token_ids
        self.logprobs += output.logprobs
        self.finish_reason = output.finish_reason
        self.times = output.times


def to_write(params: SamplingParams) -> SamplingParams:
    """What the engine is asked for: best_of samples, with the odds that they are ranked by."""
    if params.best_of is None:
        return params
    return replace(params, n=params.best_of, best_of=None, logprobs=params.logprobs or 0)


def completion_of(
    prompt: Prompt, params: SamplingParams, outputs: Iterable[RequestOutput]
) -> Completion:
    """The answer from all outputs of a request that was made with to_write(params).

    best_of ranks by the mean log-probability per token, as OpenAI's completions API words it; of
    equals the lower index comes first. vLLM's first engine (V0) had best_of too and ranked by the
    sum, which favours short samples; vLLM's V1 dropped it.
    """
    samples = [Completion(prompt) for _ in range(to_write(params).n)]
    for output in outputs:
        samples[output.sample_index].add(output)
    if params.best_of is not None:
        samples = sorted(samples, key=_mean_logprob, reverse=True)[: params.n]
    if params.logprobs is None:
        for sample in samples:
            sample.logprobs = []
    return replace(samples[0], samples=samples)


def _mean_logprob(sample: Completion) -> float:
    return sum(entry.logprob for entry in sample.logprobs) / len(sample.logprobs)
