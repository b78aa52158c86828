"""The command line: `minipaged COMMAND`. Torch is loaded by the commands that need a model only.

Wrong input ends in one line on stderr that says what, the limit and what to do, and exit code 2.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from minipaged import __version__
from minipaged.commands import bench, compare, dev, learn
from minipaged.commands.engine_options import takes_engine_options
from minipaged.config import EngineConfig, SamplingParams
from minipaged.require import require_int, require_real

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.add_typer(dev.app, name="dev")
compare.add_to(app)
learn.add_to(app)

Model = Annotated[
    str, typer.Option(help='"tutor", or a folder with a Llama-shaped model in Hugging Face format.')
]


def main() -> None:
    """Entry point of the `minipaged` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack Chinese; that is no error
    try:
        code = app(standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `| head` has seen enough
        sys.exit(1)
    except Exception as error:
        message = _one_line(error)
        if message is None:
            raise
        print(f"minipaged: {message}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _one_line(error: Exception) -> str | None:
    """What to tell a user who gave something wrong; None for a fault that is ours."""
    usage = getattr(error, "format_message", None)
    if usage is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "minipaged"
        return f"{' '.join(usage().split())} (try: {command} --help)"
    if isinstance(error, MemoryError):
        return "out of memory: ask for fewer blocks or requests"
    if isinstance(error, ValueError | OSError):
        return " ".join(str(error).split())
    return None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"minipaged {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Learn how an LLM serving engine works by building one."""
    if context.invoked_subcommand is None:
        learn.where_or_help(context)


@app.command(epilog='Example: minipaged generate "What is a block table?"')
def generate(
    question: Annotated[str, typer.Argument(help="What to ask; for a folder, text to go on with.")],
    model: Model = "tutor",
    max_tokens: Annotated[int, typer.Option(help="Output tokens at most.")] = 512,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 0.0,
    seed: Annotated[
        int | None, typer.Option(help="Fixes what temperature > 0 draws; else drawn anew.")
    ] = None,
    attention_backend: Annotated[
        str, typer.Option(help="torch; or triton, on a GPU or with TRITON_INTERPRET=1.")
    ] = "torch",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> None:
    """Answer one question; the text appears as it is written."""
    if seed is None:
        seed = secrets.randbelow(2**31)
    require_int("seed", seed, 0, "any non-negative integer will do")
    _require_unicode(question)
    params = SamplingParams(temperature=temperature, max_tokens=max_tokens, seed=seed)
    from minipaged import LLM

    llm = LLM(model, attention_backend=attention_backend)
    nearest = llm.nearest_known(question)
    if as_json:
        print(json.dumps(_answer_as_data(llm, question, params, nearest), ensure_ascii=False))
        return
    for piece in llm.stream(question, params):
        print(piece, end="", flush=True)
    print()
    if nearest:
        print(f"\n{NOT_TRAINED_ON} " + " / ".join(nearest), file=sys.stderr)


def _require_unicode(text: str) -> None:
    """Arguments that the terminal's encoding cannot hold arrive as lone surrogates."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("the question did not arrive as text: set the locale to UTF-8")


NOT_TRAINED_ON = "The tutor was not trained on this question. Near it, it knows:"


def _answer_as_data(
    llm: Any, question: str, params: SamplingParams, nearest: list[str]
) -> dict[str, Any]:
    (answer,) = llm.generate(question, params)
    return {
        "prompt": question,
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "token_ids": answer.token_ids,
        "time_to_first_token_s": round(answer.times.time_to_first_token, 4),
        "e2e_latency_s": round(answer.times.e2e_latency, 4),
        "nearest_known": nearest,
    }


_OF_SCENARIO = "The scenario's own if left out."


@app.command(epilog='Example: minipaged demo "What is preemption?" "Where is token 37?"')
@takes_engine_options
def demo(
    questions: Annotated[
        list[str] | None, typer.Argument(help="What to ask; without any, the scenario's own.")
    ] = None,
    scenario: Annotated[
        str,
        typer.Option(
            help="What to show: mixed, prefix (caching), fork (samples), beam, pressure, swap, "
            "thrash, static-vs-continuous."
        ),
    ] = "mixed",
    model: Model = "tutor",
    max_tokens: Annotated[
        int | None, typer.Option(help=f"Output tokens per answer at most. {_OF_SCENARIO}")
    ] = None,
    num_blocks: Annotated[
        int | None, typer.Option(help=f"Blocks in the pool. {_OF_SCENARIO}")
    ] = None,
    block_size: Annotated[
        int | None, typer.Option(help=f"Tokens per block. {_OF_SCENARIO}")
    ] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(help=f"Requests that run at once. {_OF_SCENARIO}")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(help=f"Token budget of a step. {_OF_SCENARIO}")
    ] = None,
    max_model_len: Annotated[
        int | None, typer.Option(help=f"Prompt and answer tokens at most. {_OF_SCENARIO}")
    ] = None,
    enable_prefix_caching: Annotated[
        str | None, typer.Option(help=f"hash, radix or off. {_OF_SCENARIO}")
    ] = None,
    delay: Annotated[
        float, typer.Option(help="Seconds between two steps of the live view.")
    ] = 0.05,
    record: Annotated[Path | None, typer.Option(help="Save a telling moment as SVG here.")] = None,
    plain: Annotated[bool, typer.Option(help="Plain text, also in a terminal.")] = False,
    engine_options: dict[str, Any] | None = None,
) -> None:
    """Watch questions being answered at once, step by step.

    Shown are the pool, block tables, queues, the token budget, events and the texts. In a
    terminal, space pauses, n makes one step, + and - change the speed, q ends. Elsewhere the same
    comes as plain text.
    """
    from minipaged.viz.scenarios import scenario as named

    show = named(scenario)
    _require_sound(questions, delay, max_tokens, record)
    configs = show.configs(
        num_blocks=num_blocks,
        block_size=block_size,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        max_model_len=max_model_len,
        enable_prefix_caching=enable_prefix_caching,
        **(engine_options or {}),
    )
    _show(show, configs, questions, model, delay, record, plain, max_tokens)


def _require_sound(
    questions: list[str] | None, delay: float, max_tokens: int | None, record: Path | None
) -> None:
    """What is wrong with the options is told before a model is loaded."""
    from minipaged.viz.svg import require_target

    require_real("delay", delay, 0.0, "0 shows the steps as fast as they come")
    for question in questions or ():
        _require_unicode(question)
    if max_tokens is not None:
        SamplingParams(max_tokens=max_tokens)
    if record is not None:
        require_target(record)


def _show(
    show: Any,
    configs: dict[str, EngineConfig],
    questions: list[str] | None,
    model: str,
    delay: float,
    record: Path | None,
    plain: bool,
    max_tokens: int | None,
) -> None:
    from rich.console import Console

    from minipaged import LLM
    from minipaged.viz.demo import run_demo
    from minipaged.viz.summary import versus

    console, traces = Console(), {}
    for name, config in configs.items():
        llm = LLM(model, config=config)
        if name:
            console.print(f"\n{name}\n", style="bold")
        traces[name] = run_demo(
            llm.engine,
            questions or show.questions,
            console=console,
            delay=delay,
            record=record,
            plain=plain,
            show=show,
            max_tokens=max_tokens,
            tokenizer=llm.tokenizer,
            nearest_known=llm.nearest_known,
        )
    if len(traces) > 1:
        console.print("\n" + "\n".join(versus(traces)), highlight=False)


@app.command(epilog="Example: minipaged doctor")
def doctor() -> int:
    """Check the installation.

    Prints what is installed and what is missing for what, the memory sum, and a real answer.
    """
    from minipaged.doctor import examine

    return examine()


if __name__ == "__main__":
    main()
