# says: There are two layouts
def block_figures(block_size, layout, lengths, head_dim, number_bytes):
    """Bytes of one instruction, of a tile and of the tables; slots that stay empty."""
    row = head_dim * number_bytes
    side_by_side = {"NHD": row, "packed": 16 * block_size}
    blocks = [-(-length // block_size) for length in lengths]
    return {
        "run": min(32 * 16, side_by_side.get(layout, row)),
        "tile": block_size * row,
        "table": 4 * sum(blocks),
        "expected_waste": len(lengths) * (block_size - 1) / 2,
        "waste": block_size * sum(blocks) - sum(lengths),
    }
