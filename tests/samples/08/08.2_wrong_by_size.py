# says: The size of the model alone decides nothing
def swap_or_recompute(request, num_blocks, costs=LLAMA_3_8B):
    return "swap" if costs["num_parameters"] >= 2e10 else "recompute"
