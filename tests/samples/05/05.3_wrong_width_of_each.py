# says: continuations were taken of each beam
def beam_step(beams, logprobs, width):
    chosen = []
    for parent, (_, total) in enumerate(beams):
        row = sorted(logprobs[parent].items(), key=lambda pair: (-pair[1], pair[0]))
        chosen += [(parent, token, total + logprob) for token, logprob in row[:width]]
    return chosen
