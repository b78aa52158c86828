"""Into how many pieces to cut each sequence of a decode step, so that the GPU is full.

One program reads the keys of one sequence and one KV head. A card runs a few hundred programs at
once; a batch of four sequences with eight KV heads gives it thirty-two, and the others idle. So
the keys are split, each piece has a program of its own, and a second kernel merges the pieces
(Dao et al. 2023, "Flash-Decoding"; flash-attention, hopper/heuristics.h; vLLM,
csrc/attention/paged_attention_v2.cu).
"""

from __future__ import annotations

from minipaged.require import require_int

MAX_SPLITS = 64
"""Pieces of one sequence at most: the merge reads an output of D numbers for each."""

MIN_TILES = 4
"""Tiles in a piece at least: below that, starting and merging cost more than the piece."""

PROGRAMS_PER_SM = 2
"""Programs that a multiprocessor should have at once: one computes while the other waits."""

ALMOST_FULL = 0.8
"""Programs per multiprocessor from which on nothing is split (FlashAttention's figure)."""


def choose_split_size(
    num_seqs: int, num_kv_heads: int, longest: int, *, tile: int, num_sms: int
) -> int:
    """Keys in a piece, a whole number of tiles: the one piece of all if the card is full anyway.

    longest: keys of the longest sequence. num_sms: multiprocessors of the card.
    The rule: if num_seqs x num_kv_heads programs give 80 % of the multiprocessors one, nothing is
    split. Else as few pieces as give each multiprocessor two programs (or nearly, as a piece is
    whole tiles), but no more than MAX_SPLITS, and none shorter than MIN_TILES tiles. All sequences
    get pieces of one size, so a short one beside a long one is a single piece.
    """
    advice = "give the step's batch as it is"
    for name, value in (("num_seqs", num_seqs), ("num_kv_heads", num_kv_heads)):
        require_int(name, value, 1, advice)
    require_int("longest", longest, 0, advice)
    require_int("tile", tile, 1, "keys that the kernel reads at once")
    require_int("num_sms", num_sms, 1, "multiprocessors of the card")
    tiles = max(1, -(-longest // tile))
    programs = num_seqs * num_kv_heads
    if programs >= ALMOST_FULL * num_sms:
        return tiles * tile
    wanted = -(-PROGRAMS_PER_SM * num_sms // programs)
    pieces = min(wanted, MAX_SPLITS, max(1, tiles // MIN_TILES))
    return -(-tiles // pieces) * tile


def num_splits(longest: int, split_size: int) -> int:
    """Pieces of the longest sequence; 1 if it has no keys."""
    return max(1, -(-longest // split_size))
