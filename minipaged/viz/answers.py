"""The answers as they appear: per request its question, where it stands, and its text so far."""

from __future__ import annotations

from rich.text import Text

from minipaged.viz.state import Life, ViewState
from minipaged.viz.styles import DIM, Lines, fitted, solid
from minipaged.viz.words import counted
from minipaged.viz.wrapping import share_out, wrap

GUTTER = 3  # columns left of an answer


def answer_lines(state: ViewState, width: int, height: int) -> Lines:
    """All requests in order of arrival, in at most `height` lines.

    Where room is short the end of a text stays visible, and running requests get more of it.
    """
    lives = _chosen(list(state.lives.values()), height)
    hidden = len(state.lives) - len(lives)
    texts = [wrap(life.text, width - GUTTER) for life in lives]
    spare = height - len(lives) - (hidden > 0)
    gap = spare >= sum(len(text) for text in texts) + len(lives) - 1
    keen = [life.status == "running" for life in lives]
    room = share_out([len(text) for text in texts], spare - gap * (len(lives) - 1), keen)
    lines: Lines = []
    for life, text, count in zip(lives, texts, room, strict=True):
        lines += [_question_line(life, width), *_text_lines(life, text, count)]
        lines += [Text()] * gap
    if hidden:
        lines.append(Text(f"… and {counted(hidden, 'request')} more", style=DIM))
    return lines[:height]


def standing(life: Life, brief: bool = False) -> str:
    """Where a request stands, in a few words. brief: leave out that it was preempted before."""
    known = life.num_prompt + life.num_outputs
    if life.status == "running" and life.num_computed < known - 1:
        return f"{'redoing' if life.num_outputs else 'reading'} {life.num_computed}/{known}"
    again = f", preempted {life.num_preemptions}x" if life.num_preemptions else ""
    if life.status == "preempted":
        return again.removeprefix(", ")
    if life.status == "swapped":
        return f"on the host{again}"
    ended = "cut: " if life.reason == "length" else "done: "
    before = {"running": "", "finished": ended}.get(life.status)
    words = life.status if before is None else f"{before}{counted(life.num_outputs, 'token')}"
    return words if brief else words + again


def _chosen(lives: list[Life], height: int) -> list[Life]:
    """As many lives as have room: live ones before ended ones, late ones before early ones."""
    if len(lives) <= height:
        return lives
    ended = ("finished", "aborted")
    ranked = sorted(range(len(lives)), key=lambda i: (lives[i].status in ended, -i))
    return [lives[i] for i in sorted(ranked[: max(height - 1, 0)])]


def _question_line(life: Life, width: int) -> Text:
    where = Text(standing(life, brief=width < 48), style=DIM)
    line = Text.assemble((f"{life.mark.sign} ", solid(life.mark)), (f" {life.question}", "bold"))
    fitted(line, width - where.cell_len - 2)
    line.append(" " * (width - line.cell_len - where.cell_len))
    return line.append_text(where)


def _text_lines(life: Life, text: list[str], count: int) -> Lines:
    """The last `count` lines of a text beside a bar in its colour."""
    aside = life.status in ("preempted", "swapped", "aborted")
    lines: Lines = []
    for at in range(len(text) - count, len(text)):
        cut = at == len(text) - count > 0
        line = Text.assemble(("▌", life.mark.colour), ("… " if cut else "  ", DIM))
        lines.append(line.append(text[at], style=DIM if aside else ""))
    return lines
