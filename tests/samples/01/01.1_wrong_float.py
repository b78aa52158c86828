# says: The result is a float
def kv_bytes_per_token(num_layers, num_kv_heads, head_dim, dtype_bytes=2):
    bits = 2 * num_layers * num_kv_heads * head_dim * dtype_bytes * 8
    return bits / 8
