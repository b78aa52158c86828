import math


def block_figures(block_size, layout, lengths, head_dim, number_bytes):
    if layout == "NHD":
        run = head_dim * number_bytes
    elif layout == "packed":
        run = sum(16 for _ in range(block_size))
    else:
        raise ValueError("no such layout")
    table = waste = 0
    for length in lengths:
        table += 4 * math.ceil(length / block_size)
        waste += -length % block_size
    per_request = (block_size - 1) / 2
    return dict(
        waste=waste,
        expected_waste=float(per_request * len(lengths)),
        table=table,
        tile=block_size * head_dim * number_bytes,
        run=512 if run > 512 else run,
    )
