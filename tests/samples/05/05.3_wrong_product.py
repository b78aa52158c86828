# says: The log-probabilities were multiplied
def beam_step(beams, logprobs, width):
    found = []
    for parent, (_, total) in enumerate(beams):
        for token, logprob in logprobs[parent].items():
            found.append((parent, token, total * logprob))
    found.sort(key=lambda one: (-one[2], one[0], one[1]))
    return found[:width]
