# says: This is in bits.
def kv_bytes_per_token(num_layers, num_kv_heads, head_dim, dtype_bytes=2):
    return 2 * num_layers * num_kv_heads * head_dim * dtype_bytes * 8
