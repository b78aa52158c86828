# says: even a single one
def batch_steps(lengths, slots, refill):
    if not refill:
        steps = sum(max(lengths[i : i + slots]) for i in range(0, len(lengths) - 1, slots))
    else:
        free = [0] * slots
        for n in lengths:
            k = free.index(min(free))
            free[k] += n
        steps = max(free)
    return steps, steps * slots - sum(lengths)
