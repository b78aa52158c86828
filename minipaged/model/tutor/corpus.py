"""What the tutor was trained on: the question-and-answer pairs in corpus/*.toml. No torch.

Each file holds entries `[[pair]]` with `topic`, `questions` (several ways to ask) and `answer`.
"""

from __future__ import annotations

import functools
import math
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "corpus"
REFUSAL = "refusal"


class Pair(NamedTuple):
    """One question and its answer. Pairs of topic "refusal" answer what is off the subject."""

    question: str
    answer: str
    topic: str


def load_pairs(folder: Path | str) -> list[Pair]:
    """All pairs of the .toml files in `folder`, by file name, then order; one pair per question.

    ValueError if there are none, an entry is malformed, or one question has two answers.
    """
    seen: dict[str, Pair] = {}
    for file in sorted(Path(folder).glob("*.toml")):
        for pair in _file_pairs(file):
            first = seen.setdefault(normalise(pair.question), pair)
            if first.answer != pair.answer:
                raise ValueError(
                    f"{file.name}: {pair.question!r} has another answer than {first.question!r} "
                    "has elsewhere in the corpus: word one of them differently"
                )
    if not seen:
        raise ValueError(f"{folder} holds no pairs: it must hold .toml files of [[pair]] entries")
    return list(seen.values())


@functools.cache
def _pairs() -> tuple[Pair, ...]:
    return tuple(load_pairs(FOLDER))


def pairs() -> list[Pair]:
    """The tutor's own pairs (read once, then kept)."""
    return list(_pairs())


def normalise(question: str) -> str:
    """The question without case, punctuation, space and width of characters."""
    return _bare(question).casefold()


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(
        _bare(text) for pair in _pairs() for text in (pair.question, pair.question.lower())
    )


def known(question: str) -> bool:
    """Whether the tutor was trained on this question, as written or all in lower case.

    Punctuation and space do not matter; other capitals do, for a model that reads bytes.
    """
    return _bare(question) in _known()


def _bare(question: str) -> str:
    folded = unicodedata.normalize("NFKC", question)
    return "".join(char for char in folded if char.isalnum())


class _Index(NamedTuple):
    """Subject questions, the pieces of each, the weight of a piece, each question's norm."""

    pairs: list[Pair]
    pieces: list[frozenset[str]]
    weights: dict[str, float]
    norms: list[float]


def nearest(question: str, n: int = 3) -> list[str]:
    """Up to n known questions most like this one, best first, each with an answer of its own.

    Likeness is the cosine of the two sets of 2- and 3-letter pieces, a piece weighing the more
    the fewer questions hold it (inverse document frequency, Spärck Jones 1972). Refusals are left
    out. Cost: one set intersection per question, under 20 ms for a few hundred.
    """
    index = _index()
    pieces = _pieces(question)
    scored = [
        (sum(index.weights[piece] for piece in pieces & own) / norm, -place)
        for place, (own, norm) in enumerate(zip(index.pieces, index.norms, strict=True))
    ]
    best: dict[str, str] = {}
    for score, place in sorted(scored, reverse=True):
        if score <= 0 or len(best) >= n:
            break
        pair = index.pairs[-place]
        best.setdefault(pair.answer, pair.question)
    return list(best.values())


@functools.cache
def _index() -> _Index:
    subject = [pair for pair in _pairs() if pair.topic != REFUSAL]
    pieces = [_pieces(pair.question) for pair in subject]
    counts = Counter(piece for own in pieces for piece in own)
    weights = {piece: math.log(1 + len(subject) / count) for piece, count in counts.items()}
    norms = [math.sqrt(sum(weights[piece] for piece in own)) or 1.0 for own in pieces]
    return _Index(subject, pieces, weights, norms)


def _pieces(question: str) -> frozenset[str]:
    """All runs of 2 and 3 letters inside the words of a question, word borders included."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    words = "".join(char if char.isalnum() else " " for char in folded).split()
    text = f" {' '.join(words)} "
    return frozenset(
        piece for size in (2, 3) for i in range(len(text)) if (piece := text[i : i + size]).strip()
    )


def _file_pairs(file: Path) -> Iterator[Pair]:
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8")).get("pair", [])
    except ValueError as error:
        raise ValueError(f"{file.name} is not valid TOML in UTF-8: {error}") from None
    for number, entry in enumerate(entries, 1):
        yield from _entry_pairs(f"{file.name}, pair {number}", entry)


def _entry_pairs(where: str, entry: dict[str, Any]) -> Iterator[Pair]:
    topic, questions, answer = (entry.get(key) for key in ("topic", "questions", "answer"))
    if not (isinstance(topic, str) and isinstance(answer, str) and isinstance(questions, list)):
        raise ValueError(f"{where}: it must hold a topic, a list of questions and an answer")
    for question in questions:
        if not isinstance(question, str) or not normalise(question) or not answer.strip():
            raise ValueError(f"{where}: question {question!r} or its answer is empty or no text")
        yield Pair(question, answer, topic)
