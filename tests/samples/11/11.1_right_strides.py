def offset(block_table, token, head, d, shape, x):
    size, heads, dim = shape
    if x < 0 or (x and dim % x != 0):
        raise ValueError("x does not fit")
    entry, slot = divmod(token, size)
    if entry not in range(len(block_table)) or head not in range(heads) or d not in range(dim):
        raise IndexError("no such number")
    steps = {"block": size * heads * dim, "slot": heads * dim, "head": dim, "d": 1}
    if x:
        steps = {"block": size * heads * dim, "slot": x, "head": size * dim, "group": size * x, "d": 1}
    where = {"block": block_table[entry], "slot": slot, "head": head, "d": d}
    if x:
        where["group"], where["d"] = divmod(d, x)
    return sum(steps[axis] * index for axis, index in where.items())
