# says: this is K and V
def block_figures(block_size, layout, lengths, head_dim, number_bytes):
    """Bytes of one instruction, of a tile and of the tables; slots that stay empty."""
    row = head_dim * number_bytes
    side_by_side = {"NHD": row, "packed": 16 * block_size}
    if layout not in side_by_side:
        raise ValueError(f"layout is {layout!r}: choose NHD or packed")
    blocks = [-(-length // block_size) for length in lengths]
    return {
        "run": min(32 * 16, side_by_side[layout]),
        "tile": 2 * block_size * row,
        "table": 4 * sum(blocks),
        "expected_waste": len(lengths) * (block_size - 1) / 2,
        "waste": block_size * sum(blocks) - sum(lengths),
    }
