# says: The packed pool was read like the other
def offset(block_table, token, head, d, shape, x):
    """Where in the K pool one number lies, counted in numbers."""
    block_size, num_kv_heads, head_dim = shape
    if x < 0 or (x and head_dim % x):
        raise ValueError(f"x is {x}, and head_dim {head_dim} is no multiple of it")
    limits = (len(block_table) * block_size, num_kv_heads, head_dim)
    for name, value, limit in zip(("token", "head", "d"), (token, head, d), limits, strict=True):
        if not 0 <= value < limit:
            raise IndexError(f"{name} is {value}: it must be from 0 to {limit - 1}")
    block, slot = block_table[token // block_size], token % block_size
    if x == 0:
        return ((block * block_size + slot) * num_kv_heads + head) * head_dim + d
    row = (block * block_size + slot) * num_kv_heads + head
    return row * head_dim + d // x * x + d % x
