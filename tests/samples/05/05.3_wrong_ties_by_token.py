# says: the token decides only within a beam
def beam_step(beams, logprobs, width):
    found = []
    for parent, (_, total) in enumerate(beams):
        for token, logprob in logprobs[parent].items():
            found.append((parent, token, total + logprob))
    return sorted(found, key=lambda one: (-one[2], one[1], one[0]))[:width]
