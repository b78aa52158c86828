def step_cost(model, work, card):
    hidden, dim = model["hidden"], model["head_dim"]
    columns = {"q": model["heads"] * dim, "k": model["kv_heads"] * dim}
    columns |= {"v": columns["k"], "o": columns["q"]}
    columns |= {name: model["mlp"] for name in ("gate", "up", "down")}
    body = model["layers"] * sum(hidden * n for n in columns.values())
    head = hidden * model["vocab"]
    pairs = sum(sum(range(c - q + 1, c + 1)) for q, c in work)
    tokens = sum(q for q, _ in work)
    attention = 2 * model["layers"] * columns["q"] * pairs
    cost = {"flops": 2.0 * (body * tokens + head * len(work) + attention)}
    kv = model["layers"] * (columns["k"] + columns["v"])
    cost["bytes"] = model["bytes_per_number"] * (
        (body + head) * bool(work) + kv * sum(q + c for q, c in work)
    )
    times = [cost["bytes"] / card["bandwidth"], cost["flops"] / card["flops"]]
    cost["seconds"] = max(times)
    cost["bound"] = ("memory", "compute")[times.index(max(times))]
    return cost
