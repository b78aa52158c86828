"""10.2 RadixIndex: what is told about a wrong answer, and the state drawn before it.

Each wrong idea is the plain index with one thing done wrongly: the one that gives the learner's
answer is the one that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipaged.course import plain
from minipaged.course.checks.base import Failure
from minipaged.course.checks.lesson_10_plain import Key, PlainIndex, drawn
from minipaged.course.expect import has_type
from minipaged.course.script import Case, Operation, run


def _but(**changed: Any) -> type[PlainIndex]:
    """The plain index with one thing done in another way."""
    return type("Wrong", (PlainIndex,), changed)


def _then(before: Callable[..., None]) -> Callable[..., Any]:
    """A publish that does something wrong first."""

    def publish(index: PlainIndex, *args: Any) -> list[tuple[int, int]]:
        before(index, *args)
        return PlainIndex.publish(index, *args)

    return publish


def _lose_siblings(index: PlainIndex, tokens: Sequence[int], ids: Any, *rest: Any) -> None:
    """Where the sequence leaves what is known, drop what goes on in another way."""
    _, last, key = rest
    for entry in range(last):
        if index.prefix(tokens, entry, key) not in index.known:
            above = key, tuple(tokens[: entry * index.block_size])
            for other in list(index.known):
                longer = len(other[1]) > len(above[1])
                if other[0] == key and longer and other[1][: len(above[1])] == above[1]:
                    index.drop(other)
            return


def _hash_all(index: PlainIndex, tokens: Any, ids: Any, *rest: Any) -> None:
    for block_id in ids[rest[0] : rest[1]]:
        index.learn(block_id)


def _hold(index: PlainIndex, tokens: Any, ids: Any, *rest: Any) -> None:
    index.pool.share(ids[rest[0] : rest[1]])


def _too_many(index: PlainIndex, tokens: Any, ids: Any, *rest: Any) -> list[tuple[int, int]]:
    return PlainIndex.publish(index, tokens, ids, rest[0], len(tokens) // index.block_size, rest[2])


def _whole_table(index: PlainIndex, tokens: Any, ids: Any, *rest: Any) -> list[tuple[int, int]]:
    return PlainIndex.publish(index, tokens, ids, rest[0], len(ids), rest[2])


def _from_first(index: PlainIndex, tokens: Any, ids: Any, *rest: Any) -> Any:
    return [(e - rest[0], b) for e, b in PlainIndex.publish(index, tokens, ids, *rest)]


def _only_itself(index: PlainIndex, block_id: int) -> None:
    for prefix in [p for p, b in index.known.items() if b == block_id]:
        index.drop(prefix)


def _untold(index: PlainIndex, prefix: Any) -> None:
    del index.known[prefix]


def _prefix_without_key(index: PlainIndex, tokens: Any, entry: int, key: Key) -> Any:
    return PlainIndex.prefix(index, tokens, entry, ("", ""))


def _first_part_of_key(index: PlainIndex, tokens: Any, entry: int, key: Key) -> Any:
    return PlainIndex.prefix(index, tokens, entry, (key[0], ""))


def _joined_key(index: PlainIndex, tokens: Any, entry: int, key: Key) -> Any:
    return PlainIndex.prefix(index, tokens, entry, ("".join(key), ""))


def _swapped_pairs(index: PlainIndex, *args: Any) -> Any:
    return [(block, entry) for entry, block in PlainIndex.publish(index, *args)]


def _own_blocks(index: PlainIndex, tokens: Any, ids: Any, *rest: Any) -> Any:
    return [(e, ids[e]) for e, _ in PlainIndex.publish(index, tokens, ids, *rest)]


def _blocks_only(index: PlainIndex, *args: Any) -> Any:
    return [block for _, block in PlainIndex.publish(index, *args)]


def _in_blocks(name: str) -> Callable[[PlainIndex], int]:
    return lambda index: getattr(PlainIndex, name)(index) // index.block_size


ALL = "the tree has, whoever holds them or not. Ask the pool for the refcount of each block."
# one index a wrong idea, most telling first
MISTAKES: tuple[tuple[type[PlainIndex], str], ...] = (
    (
        _but(limit=lambda i, tokens: len(tokens) // i.block_size),
        "match found all tokens. One at least must be left to compute, or there is nothing to "
        "sample the next token from: search (len(token_ids) - 1) // block_size pages.",
    ),
    (
        _but(limit=lambda i, tokens: 1 - -len(tokens) // i.block_size),
        "match counts a page that is not full. Whole pages only.",
    ),
    (
        _but(prefix=_prefix_without_key),
        "Tokens were found under another key. What has another salt or adapter must not be "
        "shared: give every key a tree of its own.",
    ),
    (_but(prefix=_first_part_of_key), "The key has two parts, salt and adapter. Both must agree."),
    (
        _but(prefix=_joined_key),
        "Salt and adapter were joined into one text. Then a salt passes for an adapter of the same "
        "name: keep the pair as it is.",
    ),
    (
        _but(publish=_then(_lose_siblings)),
        "When a node was split, its lower half got lost, or the new pages were put in front of it: "
        "what was known behind the place where two sequences part must stay known.",
    ),
    (
        _but(publish=_too_many),
        "More was published than was computed. Entries from `last` on have tokens, but their keys "
        "and values are not written yet.",
    ),
    (
        _but(publish=_whole_table),
        "Of the table, only the entries before `last` come in: what is behind is not computed yet.",
    ),
    (
        _but(publish=lambda i, *args: PlainIndex.publish(i, *args) and []),
        "The tree has another block with the same tokens for some entries. It keeps its own, since "
        "others may hold that one. Return each such entry as a pair (entry, block), so that the "
        "table can change and the duplicate comes free.",
    ),
    (_but(publish=_swapped_pairs), "The pairs are (entry of the table, block of the tree)."),
    (_but(publish=_from_first), "Entries count from the start of the table, not from `first`."),
    (_but(publish=_blocks_only), "Return pairs (entry, block): the manager must know which entry."),
    (
        _but(publish=_own_blocks),
        "The pairs name the table's own blocks. Name those of the tree: they are to be used "
        "instead.",
    ),
    (
        _but(publish=_then(_hash_all)),
        "The pool was told that a duplicate is known. It is not in the tree, so nobody will find "
        "it: only blocks that the tree takes in get a hash.",
    ),
    (
        _but(publish=_then(_hold)),
        "The index took hold of blocks (share). It holds none: a block that no table holds must "
        "come free, and it waits on the queue with its contents.",
    ),
    (
        _but(learn=lambda i, block_id: None),
        "The pool was not told which blocks are known: set_hash(block_id, …) for every block that "
        "the tree takes in. Without it a freed block is the next to be handed out.",
    ),
    (
        _but(forget=lambda i, block_id: None),
        "The block was handed out again, but the tree still leads to it. Somebody would read keys "
        "and values of other tokens.",
    ),
    (
        _but(forget=_only_itself),
        "What stands behind a forgotten block can never be reached again. Drop it from the tree "
        "with the block: the rest of its node and all nodes below.",
    ),
    (
        _but(drop=_untold),
        "The tree forgot a block and the pool still takes it for known: set_hash(block_id, None) "
        "for every block that is dropped.",
    ),
    (
        _but(protected_tokens=_in_blocks("protected_tokens")),
        "Counted were blocks. Asked for are tokens: each page has block_size of them.",
    ),
    (
        _but(evictable_tokens=_in_blocks("evictable_tokens")),
        "Counted were blocks. Asked for are tokens: each page has block_size of them.",
    ),
    (
        _but(protected_tokens=lambda i: len(i.known) * i.block_size),
        f"Counted was all that {ALL}",
    ),
    (
        _but(evictable_tokens=lambda i: len(i.known) * i.block_size),
        f"Counted was all that {ALL}",
    ),
)

FOUND_LESS = (
    "Less was found than is known. Either the walk ends too early, or publish put the pages where "
    "no walk comes along. They belong where the walk along all pages from the root ends; if that "
    "is inside a node, split it first and put them below the upper half."
)
TUPLES = "Right, but each pair is to be a tuple: (entry, block)."
RULES = {
    "match": (
        "match walks from the root of the key's tree along whole pages, into the next child "
        "behind each node, and returns the blocks on the way. It may end inside a node; it changes "
        "nothing."
    ),
    "publish": (
        "publish walks along the pages before `last`. Where the tree ends, the other pages come "
        "in with the table's blocks; where it has other blocks already, those are returned as "
        "(entry, block)."
    ),
    "forget": (
        "forget drops the block's page and all that stands behind it: later pages of its node and "
        "the nodes below. An id that is not in the tree is ignored."
    ),
    "protected_tokens": (
        "Protected are the tokens of known blocks with a refcount above 0, evictable those of the "
        "others. A split changes neither."
    ),
    "known_blocks": "known_blocks lists each block of the tree once, in ascending order.",
    "hashed": (
        "The pool must have a hash for exactly the blocks that the tree has: set_hash when a block "
        "comes in, set_hash(…, None) when it is dropped."
    ),
}
HANDS_OFF = (
    "The index changes nothing in the pool but hashes: it neither allocates, shares nor frees. "
    "Blocks without a hash are reused first, blocks with one last."
)
MADE = "An index is made with the block size and the pool, and knows nothing at first."


def explain(failure: Failure) -> str:
    """The wrong idea that gives the same answer, else the rule for what was asked."""
    operation = failure.operation
    if operation.keep:
        return MADE
    said = idea_behind(failure, PlainIndex, MISTAKES)
    if said:
        return said
    if type(failure.expected) is type(failure.got) is list:
        expected, got = failure.expected, failure.got
        if operation.method == "match" and got == expected[: len(got)]:
            return FOUND_LESS
        if operation.method == "publish" and got == [list(pair) for pair in expected]:
            return TUPLES
    method = operation.method.replace("evictable", "protected")
    return RULES.get(method, HANDS_OFF)


def idea_behind(failure: Failure, right: Any, ideas: Sequence[tuple[Any, str]]) -> str:
    """What is said of the first wrong idea that gives the learner's answer.

    One that also gives the right answers before it comes first. "" for an answer of another type:
    the ideas are run for it, and that takes its time.
    """
    if failure.fault or not has_type(failure.expected, failure.got):
        return ""
    operations = failure.case.operations[: failure.number + 1]
    before = [one.value for one in run(operations, right)[:-1]]
    near = ""
    for idea, sentence in ideas:
        *others, last = run(operations, idea)
        if last.fault is None and plain.same(plain.decode(last.value), failure.got):
            if [one.value for one in others] == before:
                return sentence
            near = near or sentence
    return near


def picture(case: Case, number: int) -> str:
    """What is known, who is held and the queue before an operation, as they should be."""
    if number < 2:
        return ""
    index = Operation((), "index", how="get", keep="index")
    holder: list[Any] = []

    def make(*args: Any) -> PlainIndex:
        holder.append(PlainIndex(*args))
        return holder[-1]

    run((*case.operations[:number], index), make)
    return "\n".join(drawn(holder[-1]))
