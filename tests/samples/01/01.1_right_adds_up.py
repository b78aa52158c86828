def kv_bytes_per_token(num_layers, num_kv_heads, head_dim, dtype_bytes=2):
    total = 0
    for _layer in range(num_layers):
        for _head in range(num_kv_heads):
            key = bytes(head_dim * dtype_bytes)
            value = bytes(head_dim * dtype_bytes)
            total += len(key) + len(value)
    return total
