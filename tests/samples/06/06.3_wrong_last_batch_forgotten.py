# says: The last batch has fewer requests
def batch_steps(lengths, slots, refill):
    """(steps, idle slot-steps) of requests of these lengths on so many slots."""
    if refill:
        ends = [0] * slots
        for length in lengths:
            first = ends.index(min(ends))
            ends[first] += length
        steps = max(ends)
    else:
        starts = range(0, len(lengths) - slots + 1, slots)
        steps = sum(max(lengths[start : start + slots]) for start in starts)
    return steps, steps * slots - sum(lengths if refill else lengths[: len(lengths) // slots * slots])
