import heapq


def batch_steps(lengths, slots, refill):
    if not refill:
        line, steps = list(lengths), 0
        while line:
            batch, line = line[:slots], line[slots:]
            steps += max(batch)
    else:
        free_at = [0] * slots
        for length in lengths:
            heapq.heapreplace(free_at, free_at[0] + length)
        steps = max(free_at)
    return (steps, slots * steps - sum(lengths))
