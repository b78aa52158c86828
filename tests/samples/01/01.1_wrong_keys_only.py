# says: each layer keeps a key and, beside it, a value
def kv_bytes_per_token(num_layers, num_kv_heads, head_dim, dtype_bytes=2):
    return num_layers * num_kv_heads * head_dim * dtype_bytes
