# says: grows with the square
def swap_or_recompute(request, num_blocks, costs=LLAMA_3_8B):
    tokens = request.num_computed_tokens
    moving = 2 * (tokens * costs["kv_bytes_per_token"] / costs["host_bandwidth"])
    moving += 2 * num_blocks * costs["seconds_per_block"]
    flop = 2 * tokens * costs["num_parameters"]
    flop += 2 * costs["num_layers"] * costs["hidden_size"] * tokens
    computing = flop / costs["peak_flops"]
    return "swap" if moving < computing else "recompute"
