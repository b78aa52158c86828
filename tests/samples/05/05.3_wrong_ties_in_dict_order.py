# says: Equal sums are left in the order of the dict
def beam_step(beams, logprobs, width):
    found = []
    for parent, (_, total) in enumerate(beams):
        for token, logprob in logprobs[parent].items():
            found.append((parent, token, total + logprob))
    return sorted(found, key=lambda one: one[2], reverse=True)[:width]
