# says: This always moves
def swap_or_recompute(request, num_blocks, costs=LLAMA_3_8B):
    return "swap"
