# says: the sum last
def beam_step(beams, logprobs, width):
    found = []
    for parent, (_, total) in enumerate(beams):
        for token, logprob in logprobs[parent].items():
            found.append((total + logprob, parent, token))
    return sorted(found, reverse=True)[:width]
