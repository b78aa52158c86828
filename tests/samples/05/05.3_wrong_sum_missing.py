# says: The beam's own sum is missing
def beam_step(beams, logprobs, width):
    found = []
    for parent, (_, _) in enumerate(beams):
        for token, logprob in logprobs[parent].items():
            found.append((parent, token, logprob))
    found.sort(key=lambda one: (-one[2], one[0], one[1]))
    return found[:width]
