# says: Each query was kept from its own key
def step_cost(model, work, card):
    dim, layers = model["head_dim"], model["layers"]
    q_cols, kv_cols = model["heads"] * dim, model["kv_heads"] * dim
    layer = 2 * model["hidden"] * q_cols + 2 * model["hidden"] * kv_cols
    layer += 3 * model["hidden"] * model["mlp"]
    output = model["hidden"] * model["vocab"]
    flops = 0
    for queries, context in work:
        flops += 2 * layers * layer * queries
        flops += 2 * output
        for number in range(queries):
            keys = context - queries + number
            flops += 4 * layers * q_cols * keys
    weights = (layers * layer + output) * model["bytes_per_number"] if work else 0
    tokens = sum(context + queries for queries, context in work)
    moved = weights + tokens * 2 * layers * kv_cols * model["bytes_per_number"]
    a, b = flops / card["flops"], moved / card["bandwidth"]
    return {
        "flops": flops,
        "bytes": moved,
        "seconds": max(a, b),
        "bound": "compute" if a > b else "memory",
    }
