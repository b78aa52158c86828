def swap_or_recompute(request, num_blocks, costs=LLAMA_3_8B):
    tokens = request.num_computed_tokens
    per_token = costs["kv_bytes_per_token"] / costs["host_bandwidth"]
    move = per_token * tokens + costs["seconds_per_block"] * num_blocks
    work = costs["num_parameters"] + tokens * costs["num_layers"] * costs["hidden_size"]
    if move < tokens * work / costs["peak_flops"]:
        return "swap"
    return "recompute"
