# says: The requests were dealt out to the slots in turn
def batch_steps(lengths, slots, refill):
    """(steps, idle slot-steps) of requests of these lengths on so many slots."""
    if refill:
        ends = [0] * slots
        for number, length in enumerate(lengths):
            ends[number % slots] += length
        steps = max(ends)
    else:
        starts = range(0, len(lengths), slots)
        steps = sum(max(lengths[start : start + slots]) for start in starts)
    return steps, steps * slots - sum(lengths)
