def swap_or_recompute(request, num_blocks, costs=LLAMA_3_8B):
    def out_and_in(kv_bytes_per_token, host_bandwidth, seconds_per_block, **rest):
        one_way = request.num_computed_tokens * kv_bytes_per_token / host_bandwidth
        return 2 * one_way + 2 * num_blocks * seconds_per_block

    def again(num_parameters, num_layers, hidden_size, peak_flops, **rest):
        tokens = request.num_computed_tokens
        for_parameters = 2 * tokens * num_parameters
        return (for_parameters + 2 * num_layers * hidden_size * tokens * tokens) / peak_flops

    words = {True: "swap", False: "recompute"}
    return words[out_and_in(**costs) < again(**costs)]
