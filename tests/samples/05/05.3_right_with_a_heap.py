import heapq


def beam_step(beams, logprobs, width):
    heap = [
        (-(total + logprob), parent, token)
        for parent, ((_, total), row) in enumerate(zip(beams, logprobs, strict=True))
        for token, logprob in row.items()
    ]
    return [(parent, token, -loss) for loss, parent, token in heapq.nsmallest(width, heap)]
