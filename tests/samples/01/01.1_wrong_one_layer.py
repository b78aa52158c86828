# says: This is one layer.
def kv_bytes_per_token(num_layers, num_kv_heads, head_dim, dtype_bytes=2):
    keys = num_kv_heads * head_dim * dtype_bytes
    values = keys
    return keys + values
